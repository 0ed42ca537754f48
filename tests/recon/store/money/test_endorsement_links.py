"""The links of people's words: each word leaves one, in order."""

from sqlalchemy import delete

from recon.desk.held_keys import SANDBOX_KEYS
from recon.store.database.engine import Store
from recon.store.money.endorsement_links import newest_said, said_after
from recon.store.money.endorsement_saving import digest_of, next_sequence, signature_of
from recon.store.schema import endorsement
from tests.recon.store.money.test_endorsement_rows import said


def test_each_word_leaves_a_link(store: Store) -> None:
    """With its number, its key and the digest of its signature."""
    with store.reading() as connection:
        assert newest_said(connection) == 0
    said(store, "jo", "kim")
    with store.reading() as connection:
        links = list(said_after(connection, 0))
        signatures = [signature_of(connection, one.number) for one in links]
        assert [one.number for one in links] == [1, 2]
        assert [one.sha256 for one in links] == [digest_of(one) for one in signatures]
        assert {one.key for one in links} == {SANDBOX_KEYS.name}
        assert list(said_after(connection, links[0].link)) == links[1:]


def test_a_number_is_given_once(store: Store) -> None:
    """Also where the word that had it was taken away."""
    said(store, "jo", "kim")
    with store.writing() as connection:
        connection.execute(delete(endorsement).where(endorsement.c.sequence == 2))
        assert (newest_said(connection), next_sequence(connection)) == (2, 3)

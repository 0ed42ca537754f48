"""What the desk looks up to give a word its number."""

from recon.store.database.engine import Store
from recon.store.money.endorsement_saving import next_sequence, signature_of
from tests.recon.store.money.test_endorsement_rows import said


def test_each_word_has_the_next_number(store: Store) -> None:
    """One after another, and a number that was never given has no signature."""
    said(store, "jo", "kim")
    with store.reading() as connection:
        assert next_sequence(connection) == 3
        signatures = [signature_of(connection, number) for number in (1, 2, 3)]
    assert [len(one) for one in signatures] == [128, 128, 0]
    assert signatures[0] != signatures[1]

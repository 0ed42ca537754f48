"""Endorsements in the table, on both databases."""

from datetime import UTC, datetime

from sqlalchemy import delete, insert, update

from recon.desk.endorsement import Endorsement, Kind, endorse, instant
from recon.desk.held_keys import SANDBOX_KEYS
from recon.store.database.engine import Store
from recon.store.money.endorsement_rows import Endorsed, named_database, next_sequence, save
from recon.store.schema import endorsement

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


def said(store: Store, *people: str, subject: str = "r1", kind: Kind = Kind.RELEASE) -> None:
    """The words of some approvers about one run."""
    assert SANDBOX_KEYS.private is not None
    with store.writing() as connection:
        for person in people:
            word = Endorsement(
                kind,
                subject,
                {},
                {"sequence": "1"},
                person,
                person.title(),
                "approver",
                proven=False,
                at=instant(NOW),
                valid_until="",
                sequence=next_sequence(connection),
                nonce="00" * 16,
                database=named_database(connection, chance="", at=NOW),
            )
            save(connection, endorse(word, key=SANDBOX_KEYS.private), word=word, at=NOW)


def problem(store: Store) -> str:
    """What is said of the release of run r1."""
    with store.reading() as connection:
        return Endorsed(SANDBOX_KEYS).release_problem(connection, "r1")


def broken(store: Store) -> list[str]:
    """What is no endorsement of the desk."""
    with store.reading() as connection:
        return list(Endorsed(SANDBOX_KEYS).broken(connection))


def test_two_words_are_two_people(store: Store) -> None:
    """What was saved is opened again, in its order and with its numbers."""
    said(store, "jo")
    assert problem(store) == "the desk endorsed it for Jo alone"
    said(store, "kim")
    assert (problem(store), broken(store)) == ("", [])


def test_a_changed_column_changes_nothing_of_a_word(store: Store) -> None:
    """The columns are there to find it by: the document counts."""
    said(store, "jo", "kim", subject="r2")
    with store.writing() as connection:
        connection.execute(update(endorsement).values(subject="r1"))
    assert problem(store) == "the desk endorsed it for nobody"


def test_what_was_removed_or_put_beside_is_told(store: Store) -> None:
    """A gap in the numbers, and a row without the desk's signature."""
    said(store, "jo", "kim", "ann")
    with store.writing() as connection:
        connection.execute(delete(endorsement).where(endorsement.c.sequence == 2))
        connection.execute(
            insert(endorsement).values(
                sequence=4, kind="release", person="x", at=NOW, document="{}", signature="00"
            )
        )
    told = broken(store)
    assert any("endorsement 4" in one and "not the desk's" in one for one in told)
    assert any("endorsement 2 is missing" in one for one in told)

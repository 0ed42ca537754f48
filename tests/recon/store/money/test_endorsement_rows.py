"""Endorsements in the table, on both databases."""

from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import delete, insert, update

from recon.desk.endorsement import Endorsement, Kind, endorse, instant
from recon.desk.held_keys import NO_KEYS, SANDBOX_KEYS, HeldKeys
from recon.store.database.engine import Store
from recon.store.money.endorsement_rows import (
    Endorsed,
    OpenedWords,
    named_database,
    next_sequence,
    save,
)
from recon.store.schema import endorsement

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


def said(store: Store, *people: str, subject: str = "r1", kind: Kind = Kind.RELEASE) -> None:
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
    with store.reading() as connection:
        return Endorsed(SANDBOX_KEYS).release_problem(connection, "r1")


def broken(store: Store) -> list[str]:
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


def test_words_are_opened_once(store: Store) -> None:
    words = OpenedWords(SANDBOX_KEYS)
    said(store, "jo")
    with store.reading() as connection:
        assert [one.person for one in words.words(connection)] == ["jo"]
    said(store, "kim")
    with store.reading() as connection:
        assert [one.person for one in words.words(connection)] == ["jo", "kim"]
        assert list(words.broken(connection)) == []
        assert words.taken_away(connection) == ""


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_each_missing_word_is_told(store: Store, gone: int) -> None:
    said(store, "jo", "kim", "lee")
    with store.writing() as connection:
        connection.execute(delete(endorsement).where(endorsement.c.sequence == gone))
    with store.reading() as connection:
        words = OpenedWords(SANDBOX_KEYS)
        assert f"endorsement {gone} is gone" in words.taken_away(connection)
        assert f"endorsement {gone} " in next(words.broken(connection))


def test_all_words_missing_is_told(store: Store) -> None:
    """An empty table is no database in which nobody spoke."""
    said(store, "jo", "kim")
    with store.writing() as connection:
        connection.execute(delete(endorsement))
    with store.reading() as connection:
        assert "endorsement 1 is gone" in OpenedWords(SANDBOX_KEYS).taken_away(connection)


def test_without_a_key_nothing_is_opened(store: Store) -> None:
    said(store, "jo")
    with store.reading() as connection:
        words = OpenedWords(NO_KEYS)
        assert words.words(connection) == []


def test_words_of_another_key_alone_take_none_away(store: Store) -> None:
    """Nothing rests on what was said before the first word that holds."""
    said(store, "jo", "kim")
    key = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    with store.reading() as connection:
        words = OpenedWords(HeldKeys(key, None, must_be_proven=True))
        assert words.words(connection) == []
        assert words.taken_away(connection) == ""

"""The words of a database as they are opened: what is missing among them is told."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import delete

from recon.desk.held_keys import NO_KEYS, SANDBOX_KEYS, HeldKeys
from recon.store.database.engine import Store
from recon.store.money.endorsement_rows import OpenedWords
from recon.store.schema import endorsement
from tests.recon.store.money.test_endorsement_rows import said


def test_words_are_opened_once(store: Store) -> None:
    """The second look adds what is new."""
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
    """The first, one in the middle and the newest."""
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
    """Nobody's word counts there."""
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

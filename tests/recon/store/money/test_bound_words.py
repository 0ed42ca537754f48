"""Words of people against the history that binds them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from recon.store.money import sending_rows
from recon.store.money.bound_words import changed_words
from recon.store.people import approval_rows
from recon.store.people.approval_rows import PersonsWord

COPY = """
INSERT INTO release
SELECT 'run-2', reason, first_by, first_authenticated, first_at, second_by, second_authenticated,
    second_at
FROM release
"""
AT = datetime(2026, 1, 5, tzinfo=UTC)


def spoken(store: Any) -> None:
    """Sending was stopped, and two people lifted the hold of a run."""
    with store.writing() as connection:
        sending_rows.turn_switch(connection, stop=True, by="Ann", reason="a drill", at=AT)
        for by in ("Jo Ahn", "Kim Bell"):
            word = PersonsWord(by, authenticated=True, at=AT)
            approval_rows.save_release(connection, "run-1", reason="looked at", word=word)


@pytest.mark.parametrize("ended", ["", "Jo Ahn left"])
def test_what_was_said_agrees(store: Any, ended: str) -> None:
    """Words that nobody touched are no problem, also where one took the place of an ended one."""
    spoken(store)
    if ended:
        word = PersonsWord("Lee Cho", authenticated=False, at=AT)
        with store.writing() as connection:
            approval_rows.save_release(connection, "run-1", reason="again", word=word, ended=ended)
    with store.reading() as connection:
        assert list(changed_words(connection)) == []


@pytest.mark.parametrize(
    ("forged", "told"),
    [
        ("UPDATE sending_switch SET stopped = (1 = 0)", "sending 1: its stopped is not the one"),
        ("DELETE FROM sending_switch", "sending 1: the history knows it, its table does not"),
        ("UPDATE release SET first_by = 'Eve'", "release run-1: its first by is not the one"),
        (
            COPY,
            "release run-2: the history never heard of it",
        ),
    ],
)
def test_a_word_that_nobody_said_is_named(store: Any, forged: str, told: str) -> None:
    """Changed, taken away or made up: which word, and what is the matter with it."""
    spoken(store)
    with store.writing() as connection:
        connection.execute(text(forged))
        (found,) = changed_words(connection)
    assert found.startswith(told)
    assert found.endswith("it was changed past the journal")

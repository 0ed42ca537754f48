"""Words of people against the history that binds them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from recon.model.resolutions import BreakAnswer, Import
from recon.store.money import sending_rows
from recon.store.money.bound_words import changed_names, changed_words
from recon.store.nights import sign_off_rows
from recon.store.people import approval_rows, resolution_rows
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


def named(store: Any) -> None:
    """Two people signed a night, and somebody answered a break of it twice."""
    with store.writing() as connection:
        for role, by in (("reviewer", "Jo Ahn"), ("approver", "Kim Bell")):
            word = PersonsWord(by, authenticated=role == "approver", at=AT)
            sign_off_rows.save(connection, "run-1", role=role, word=word, workbook_sha256="ab")
        for version in (1, 2):
            answer = BreakAnswer(resolution="", owner="Kim Bell", comment=f"asked {version}")
            brought = Import("answers.xlsx", f"{version}", "run-1", "Jo Ahn")
            new = resolution_rows.NewAnswer(
                ("1", "2"), "b-1", version, answer, False, 7, False, "EUR", 100
            )
            resolution_rows.save(connection, [new], brought=brought, at=AT)


def test_names_that_nobody_touched_are_no_problem(store: Any) -> None:
    """Signatures with and without a code, and a second answer to one break."""
    named(store)
    with store.reading() as connection:
        assert list(changed_names(connection)) == []


@pytest.mark.parametrize(
    ("forged", "sentence"),
    [
        ("UPDATE sign_off SET signed_by = 'Eve' WHERE role = 'approver'", "run-1: its signed by"),
        ("UPDATE sign_off SET workbook_sha256 = 'cd' WHERE role = 'approver'", "its workbook sha"),
        ("DELETE FROM sign_off WHERE role = 'reviewer'", "run-1: the history knows it, its table"),
        ("UPDATE break_answer SET owner = 'Eve' WHERE version = 1", "break b-1: its owner is not"),
        ("DELETE FROM break_answer WHERE version = 2", "break b-1: the history knows it"),
    ],
)
def test_a_signature_or_answer_that_was_changed_is_named(
    store: Any, forged: str, sentence: str
) -> None:
    """Whoever can write the tables takes nobody's name away and puts nobody else's there."""
    named(store)
    with store.writing() as connection:
        connection.execute(text(forged))
        (problem,) = changed_names(connection)
    assert sentence in problem

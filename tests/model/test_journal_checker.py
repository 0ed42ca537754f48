"""The checker itself: each hand-made bad journal breaks exactly the invariant that it is about."""

import hashlib
import sqlite3
from dataclasses import dataclass

import pytest
from deliveries import Intention
from journal_checker import GENESIS, Known, hashes, shrunk, unwanted, violations

AT = "2026-11-21 02:00:00.000000"
REPORTED_AT = "2026-11-21T02:00:00.000000+00:00"
TABLES = """
CREATE TABLE instruction (
    instruction_id, state, transaction_id, order_no, kind, amount, payment_amount,
    refund_reference_id);
CREATE TABLE contradiction (instruction_id, transaction_id);
CREATE TABLE order_row (order_no);
INSERT INTO order_row VALUES ('T0');
CREATE TABLE batch (batch_id, merchant_id, account_id, state, body_sha256);
CREATE TABLE attempt (batch_id, position, instruction_id);
CREATE TABLE history (sequence, at, entity, entity_id, event, data, previous_hash, hash);
"""


@dataclass(frozen=True)
class Moved:
    """One effect."""

    body_sha256: str = "body-0"
    position: int = 0
    kind: str = "refund"
    transaction_id: str = "T0"
    amount: int = 400
    batch_id: str = ""


def journal_of(*states, batch_state="closed", amount=400, numbers=(), cases=()):
    """A journal in which each instruction was sent in a batch of its own, all of one payment."""
    journal = sqlite3.connect(":memory:")
    journal.executescript(TABLES)
    last = GENESIS
    for number, state in enumerate(states):
        wanted, body = f"i{number}", f"body-{number}"
        told = f"T0-{numbers[number]:02}" if numbers else ""
        values = (wanted, state, "T0", "T0", "refund", amount, 1_000, told)
        journal.execute("INSERT INTO instruction VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        journal.execute("INSERT INTO batch VALUES (?, 'm', 'a', ?, ?)", (wanted, batch_state, body))
        journal.execute("INSERT INTO attempt VALUES (?, 0, ?)", (wanted, wanted))
        parts = (last, str(number + 1), REPORTED_AT, "instruction", wanted, state, "{}")
        link = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
        row = (number + 1, AT, "instruction", wanted, state, "{}", last, link)
        journal.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        last = link
    for wanted in cases:
        journal.execute("INSERT INTO contradiction VALUES (?, 'T0')", (wanted,))
    return journal


@pytest.mark.parametrize(
    ("states", "effects"),
    [
        (("confirmed",), (Moved(),)),
        (("approved", "rejected"), ()),
        (("in_doubt", "needs_human"), (Moved(),)),
        (("confirmed",), (Moved(), Moved(body_sha256=""))),
    ],
)
def test_a_true_journal_has_no_violation(states, effects):
    """What is done took effect once, what is not done did not, what is open may be either."""
    assert violations(journal_of(*states), effects) == []


@pytest.mark.parametrize(
    ("states", "effects", "broken"),
    [
        (("confirmed",), (Moved(), Moved()), "I1"),
        (("in_doubt",), (Moved(), Moved()), "I1"),
        (("confirmed",), (), "I2"),
        (("resolved_applied",), (Moved(body_sha256=""),), "I2"),
        (("rejected",), (Moved(),), "I3"),
        (("approved",), (Moved(),), "I3"),
        (("resolved_not_applied",), (Moved(),), "I3"),
        (("confirmed",), (Moved(), Moved(body_sha256="unheard of")), "I5"),
        (("in_doubt", "in_doubt", "in_doubt"), (), "I4"),
    ],
)
def test_each_bad_journal_breaks_its_own_invariant(states, effects, broken):
    found = violations(journal_of(*states), effects)

    assert [one[:2] for one in found] == [broken]


@pytest.mark.parametrize("state", ["in_flight", "in_doubt"])
def test_what_is_open_in_the_end_is_told(state):
    """Evidence was there and nobody looked."""
    journal = journal_of(state)

    assert violations(journal, ()) == []
    assert [one[:2] for one in violations(journal, (), ended=True)] == ["I7"]


def test_two_requests_on_the_wire_are_told():
    """One sender per account, one batch at a time."""
    found = violations(journal_of("in_flight", "in_flight", batch_state="claimed"), ())

    assert [one[:2] for one in found] == ["I8"]


@pytest.mark.parametrize(
    "change",
    [
        'UPDATE history SET data = \'{"by":"me"}\' WHERE sequence = 1',
        "DELETE FROM history WHERE sequence = 1",
        "UPDATE history SET hash = previous_hash WHERE sequence = 2",
        "UPDATE instruction SET state = 'withdrawn' WHERE instruction_id = 'i0'",
        "DELETE FROM history WHERE sequence = 2",
    ],
)
def test_a_changed_history_is_told(change):
    """Edited, cut, or bypassed."""
    journal = journal_of("approved", "approved")
    journal.execute(change)

    assert [one[:2] for one in violations(journal, ())] == ["I6"]


def test_a_history_that_was_written_anew_is_told():
    """It closes in itself; what was seen before tells."""
    before = hashes(journal_of("approved", "approved"))

    assert shrunk(before, journal_of("approved", "approved", "planned")) == []
    assert [one[:2] for one in shrunk(before, journal_of("planned", "approved"))] == ["I6"]


WISH = Intention("refund", "T0", 400)
OTHER = Intention("refund", "T0", 250)


@pytest.mark.parametrize(
    ("effects", "may_happen", "broken"),
    [
        ((Moved(),), {WISH: 1}, ""),
        ((Moved(), Moved("body-1")), {WISH: 2}, ""),
        ((Moved(), Moved("")), {WISH: 1}, ""),
        ((Moved(), Moved("body-1")), {WISH: 1, OTHER: 1}, "I10"),
        ((Moved(), Moved("body-1", amount=250)), {WISH: 1}, "I11"),
        ((Moved(transaction_id="T1"),), {WISH: 1}, "I11"),
        ((Moved(kind="capture"),), {WISH: 1}, "I11"),
    ],
)
def test_money_is_held_against_what_the_merchant_wanted(effects, may_happen, broken):
    """Two instructions, each with one effect, are still one intention too much."""
    found = unwanted(effects, may_happen=may_happen)

    assert [one[:3].rstrip(":") for one in found] == [broken] * bool(broken)


@pytest.mark.parametrize(
    ("journal", "known", "broken"),
    [
        (journal_of("withdrawn"), Known({WISH: 1}), ""),
        (journal_of("withdrawn"), Known({WISH: 1, OTHER: 1}), "I12"),
        (journal_of("resolved_not_applied"), Known({WISH: 1}, {"i0"}), "I13"),
        (journal_of("resolved_not_applied", cases=["i0"]), Known({WISH: 1}, {"i0"}), ""),
        (journal_of("confirmed", "confirmed", numbers=(1, 2)), Known({WISH: 2}), ""),
        (
            journal_of("confirmed", "confirmed", numbers=(1, 1)),
            Known({WISH: 2}),
            "I15",
        ),
        (
            journal_of("confirmed", "confirmed", numbers=(1, 3)),
            Known({WISH: 2}),
            "I15",
        ),
        (
            journal_of("confirmed", "confirmed", numbers=(1, 3), cases=["i1"]),
            Known({WISH: 2}),
            "",
        ),
    ],
)
def test_what_the_journal_may_not_know_has_a_case_in_the_end(journal, known, broken):
    """A wish without an instruction, a belief that is wrong, numbers that do not count."""
    rows = journal.execute("SELECT instruction_id, state FROM instruction").fetchall()
    moved = [Moved(f"body-{one[1:]}") for one, state in rows if state != "withdrawn"]
    found = violations(journal, moved, known=known, ended=True)

    assert [one[:3] for one in found] == [broken] * bool(broken)

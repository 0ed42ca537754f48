"""Which entries of the books stand against the payouts of a window."""

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from recon.config.rules import Rules
from recon.matching.frames.sources import (
    INSTRUCTION_COLUMNS,
    LEDGER_COLUMNS,
    SETTLEMENT_COLUMNS,
    frame_of,
)
from recon.steps.compare.selected_entries import with_payouts
from recon.steps.ground.window import in_window

SINCE = datetime(2026, 10, 21, tzinfo=UTC)


def entry(name: str, day: str, **cells: object) -> dict[str, object]:
    """A payout in the books."""
    plain = {"entry_id": name, "entry_type": "payout", "currency": "EUR", "amount": 1, "line": 2}
    return {**plain, "booked_at": f"2026-{day}T12:00:00Z", **cells}


ENTRIES = (
    entry("batch of before the window", "10-22", reference_no="B0"),
    entry("batch of the window", "10-22", reference_no="B1"),
    entry("names nothing, later", "11-05", reference_no="B9"),
    entry("of ours, long ago", "06-01", reference_no="P1"),
    entry(
        "reversal of it",
        "06-02",
        entry_type="payout_reversal",
        reverses_entry_id="of ours, long ago",
    ),
    entry("capture long ago", "06-01", entry_type="capture", reference_no="P1"),
    entry("capture", "10-22", entry_type="capture"),
)


def kept(settlement: pd.DataFrame | None) -> list[str]:
    """The entries that a night compares."""
    entries = frame_of(ENTRIES, columns=LEDGER_COLUMNS)
    ours = [{"kind": "payout", "request_id": "P1", "amount": 1, "line": 0}]
    found = with_payouts(
        in_window(entries, since=SINCE, asked=set()),
        entries=entries,
        settlement=settlement,
        instructions=frame_of(ours, columns=INSTRUCTION_COLUMNS),
        since=SINCE,
        rules=Rules.of({}, source="test"),
    )
    return list(found["entry_id"])


def test_a_payout_is_held_against_its_entry_however_old_that_is() -> None:
    """Without settlement files: the window's entries, and those that name a payout of ours."""
    assert kept(None) == [
        "batch of before the window",
        "batch of the window",
        "names nothing, later",
        "capture",
        "of ours, long ago",
        "reversal of it",
    ]


def test_a_pay_out_booked_early_in_the_window_may_be_of_a_batch_before_it() -> None:
    """Where files tell of pay-outs: only later entries that name none are somebody's error."""
    paid = [{"batch_id": "B1", "entry_type": "payout", "gross": 1, "fee": 0, "net": 1, "line": 2}]
    assert kept(frame_of(paid, columns=SETTLEMENT_COLUMNS)) == [
        "batch of the window",
        "names nothing, later",
        "capture",
        "of ours, long ago",
        "reversal of it",
    ]


def test_what_closes_a_group_stays_as_long_as_the_group_does() -> None:
    """A break that was written off does not come back when the window moves on."""
    entries = frame_of(
        [
            entry("by its batch", "06-01", entry_type="write_off", reference_no="B0"),
            entry("adjusted", "06-01", entry_type="adjustment", reference_no="bank:EUR"),
            entry("of a payment", "06-01", entry_type="write_off", transaction_id="T"),
            entry("of an order", "06-01", entry_type="write_off", order_no="O"),
            entry("at the bank", "06-01", entry_type="bank", reference_no="B0"),
        ],
        columns=LEDGER_COLUMNS,
    )
    found = in_window(entries, since=SINCE, asked=set(), settled_from=SINCE)
    assert list(found["entry_id"]) == ["by its batch", "adjusted", "at the bank"]


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ([("early", "10-22", 100)], []),
        ([("early", "10-22", 900)], ["early"]),
        ([("as soon as it is late", "10-23", 100)], ["as soon as it is late"]),
        ([("booked before it is settled", "10-21", 900)], ["booked before it is settled"]),
        ([("booked before anything is", "10-20", 900)], ["booked before anything is"]),
        ([("longer before", "10-19", 900)], []),
        ([("of another amount", "10-20", 100)], []),
        ([("before", "10-21", 900), ("after", "10-22", 900)], ["after"]),
        ([("before", "10-20", 900), ("at once", "10-21", 900)], ["before"]),
        ([("first", "10-22", 900), ("second", "10-22", 900)], ["first"]),
        ([("given back", "10-22", -900)], []),
        ([("by its name", "10-22", 900, "B2"), ("beside it", "10-22", 900)], ["by its name"]),
    ],
)
def test_an_entry_without_a_batch_is_of_one_from_before_unless_a_pay_out_has_its_amount(
    entries: list[Any], named: list[str]
) -> None:
    """Only while such a batch may still be booked: two business days by the rules.

    So long before its day a pay-out may be booked, too.
    """
    rows = [
        entry(
            name,
            day,
            amount=abs(amount),
            entry_type="payout" if amount > 0 else "payout_reversal",
            reference_no=batch[0] if batch else "",
        )
        for name, day, amount, *batch in entries
    ]
    paid = [
        {"batch_id": "B2", "entry_type": "payout", "currency": "EUR", "settled_on": "2026-10-22"}
        | {"gross": 900, "fee": 0, "net": 900, "line": 2}
    ]
    books = frame_of(rows, columns=LEDGER_COLUMNS)
    found = with_payouts(
        in_window(books, since=SINCE, asked=set(), settled_from=SINCE),
        entries=books,
        settlement=frame_of(paid, columns=SETTLEMENT_COLUMNS),
        instructions=frame_of([], columns=INSTRUCTION_COLUMNS),
        since=SINCE,
        rules=Rules.of({}, source="test"),
    )
    assert list(found["entry_id"]) == named

"""The sample night on disk: order files of several channels, a ledger, and the answer key.

The ledger is a SQLite table, as a ledger behind SQL would be, and the same rows as a CSV file.

The answer key: every planted finding, written down from the truth, not by the engine.
"""

import csv
import io
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from recon.model.money import format_minor_units
from recon.model.words import BreakCode
from recon.privacy.own_files import write_result
from recon.sandbox.sample_night.planted_night import SampleNight
from recon.sandbox.sample_night.records import (
    LEDGER_HEADER,
    ORDER_HEADER,
    BreakEffect,
    Expectation,
    LedgerLine,
    cells_of,
)

CHANNELS = ("web", "app", "stores")
LATE_CHANNEL = "web-corrections"
"""Comes last: repeats, newer versions, second rows."""
SPOILT_CHANNEL = "marketplace"
"""The partner whose rows cannot all be read."""
GOOD_ROWS_BETWEEN = 2
"""Readable rows between two unreadable ones."""

LEDGER_TABLE = "ledger_entries"
LEDGER_QUERY = "select * from ledger_entries"

Row = tuple[str, ...]


def order_file_names(night: SampleNight) -> dict[str, str]:
    """Channel -> name of its order file."""
    day = night.business_date.isoformat()
    return {
        channel: f"orders-{day}-{channel}.csv"
        for channel in (*CHANNELS, SPOILT_CHANNEL, LATE_CHANNEL)
    }


def order_rows(night: SampleNight) -> dict[str, list[Row]]:
    """Channel -> the rows of its file, without the header."""
    rng = Random(f"channels {night.seed}")
    lines = [line for story in night.stories for line in story.orders]
    lines.sort(key=lambda line: (line.ordered_at, line.order_no))
    spoilt_count = GOOD_ROWS_BETWEEN * len(night.bad_rows)
    spoilt = set(rng.sample(range(len(lines)), min(spoilt_count, len(lines))))
    rows: dict[str, list[Row]] = {channel: [] for channel in order_file_names(night)}
    for number, line in enumerate(lines):
        channel = SPOILT_CHANNEL if number in spoilt else rng.choice(CHANNELS)
        rows[channel].append(cells_of(line))
    rows[SPOILT_CHANNEL] = _interleaved(rows[SPOILT_CHANNEL], night=night)
    rows[LATE_CHANNEL] = [cells_of(line) for story in night.stories for line in story.later]
    return rows


def ledger_lines(night: SampleNight) -> list[LedgerLine]:
    """The ledger, in the order of booking."""
    lines = [line for story in night.stories for line in story.ledger]
    return sorted([*lines, *night.fees], key=lambda line: (line.booked_at, line.entry_id))


def inbox_texts(night: SampleNight) -> dict[str, str]:
    """Name -> text of each order file that has rows."""
    rows = order_rows(night)
    return {
        name: csv_text(ORDER_HEADER, rows[channel])
        for channel, name in order_file_names(night).items()
        if rows[channel]
    }


def ledger_csv_text(night: SampleNight) -> str:
    """The ledger as CSV."""
    return csv_text(LEDGER_HEADER, map(cells_of, ledger_lines(night)))


def write_inbox(night: SampleNight, *, inbox: Path) -> list[Path]:
    """Write the order files; gives their paths."""
    return [_write_text(inbox / name, text) for name, text in inbox_texts(night).items()]


def write_ledger_table(ledger_csv: str, *, path: Path) -> Path:
    """Write a ledger's CSV file as the table `ledger_entries` of a new SQLite file."""
    rows = csv.reader(io.StringIO(ledger_csv))
    next(rows)
    path.unlink(missing_ok=True)
    columns = ", ".join(f"{name} TEXT NOT NULL" for name in LEDGER_HEADER)
    marks = ", ".join("?" * len(LEDGER_HEADER))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {LEDGER_TABLE} ({columns})")
        connection.executemany(
            f"INSERT INTO {LEDGER_TABLE} VALUES ({marks})",  # noqa: S608 - our own names
            rows,
        )
    return path


def add_to_ledger_table(ledger_csv: str, *, path: Path) -> str:
    """Add entries to the table, each once; gives the whole as CSV, in the order of booking."""
    rows = csv.reader(io.StringIO(ledger_csv))
    next(rows)
    marks = ", ".join("?" * len(LEDGER_HEADER))
    with closing(sqlite3.connect(path)) as connection, connection:
        known = {row[0] for row in connection.execute(LEDGER_QUERY)}
        connection.executemany(
            f"INSERT INTO {LEDGER_TABLE} VALUES ({marks})",  # noqa: S608 - our own names
            [row for row in rows if row[0] not in known],
        )
        every = connection.execute(f"{LEDGER_QUERY} order by booked_at, entry_id")
        return csv_text(LEDGER_HEADER, every)


def answer_key_table(night: SampleNight) -> dict[str, Any]:
    """What a correct reconciliation must find, with the place of each unreadable row."""
    return answer_key(night) | {"rejected_rows": _rejected_rows(night)}


def _interleaved(good: Sequence[Row], *, night: SampleNight) -> list[Row]:
    """Unreadable rows spread among the readable ones."""
    rows: list[Row] = []
    for number, bad in enumerate(night.bad_rows):
        start = number * GOOD_ROWS_BETWEEN
        rows += [*good[start : start + GOOD_ROWS_BETWEEN], bad.cells]
    return rows + list(good[GOOD_ROWS_BETWEEN * len(night.bad_rows) :])


def _rejected_rows(night: SampleNight) -> list[dict[str, str | int]]:
    """Where each unreadable row stands; line 1 is the header."""
    name = order_file_names(night)[SPOILT_CHANNEL]
    lines = {row: line for line, row in enumerate(order_rows(night)[SPOILT_CHANNEL], start=2)}
    return [
        {"file": name, "line": lines[bad.cells], "column": bad.column, "kind": bad.kind}
        for bad in night.bad_rows
    ]


def csv_text(header: Row, rows: Iterable[Row]) -> str:
    """A CSV file with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _write_text(path: Path, text: str) -> Path:
    """Write a file whole or not at all: a reader never sees half of it."""
    part = path.with_name(f".{path.name}.part")
    write_result(part, text, newline="")
    part.replace(path)
    return path


_NO_SOURCE = "the sample night has no source for it (payouts, settlement files, rates, reviews)"
_NO_BANK = "the sample night has no statements of a bank"
_NO_FAULT = "the sandbox answers every call here; it takes a fault plan to leave a doubt"
_NOT_SENT = "what the gateway would refuse is seen before it is sent, and waits for a person"
_NO_AMOUNT = "the query shows neither captured nor refunded sums"
_ONE_PAYMENT = "an order number is used once at the gateway"

NOT_SHOWN: Mapping[BreakCode, str] = {
    BreakCode.DUPLICATE_PAYMENT: _ONE_PAYMENT,
    BreakCode.SPLIT_INCOMPLETE: _ONE_PAYMENT,
    BreakCode.AMBIGUOUS_MATCH: _ONE_PAYMENT,
    BreakCode.OVER_REFUND: _NO_AMOUNT,
    BreakCode.OVER_CAPTURE: _NO_AMOUNT,
    BreakCode.PARTIAL_CAPTURE_UNEXPECTED: _NO_AMOUNT,
    BreakCode.CAPTURE_UNCONFIRMED: _NO_FAULT,
    BreakCode.CANCEL_UNCONFIRMED: _NO_FAULT,
    BreakCode.REFUND_UNCONFIRMED: _NO_FAULT,
    BreakCode.CAPTURE_REJECTED: _NOT_SENT,
    BreakCode.CANCEL_REJECTED: _NOT_SENT,
    BreakCode.REFUND_REJECTED: _NOT_SENT,
    BreakCode.REFUND_FAILED_AFTER_ACCEPT: "an accepted refund fails only on a later night",
    BreakCode.CHARGEBACK_REVERSED_NOT_BOOKED: "it takes an earlier night",
    BreakCode.CHARGEBACK_AFTER_REFUND: "no seeded payment is both refunded and charged back",
    BreakCode.STATUS_UNMAPPED: "the sample's rules map every code of the sandbox",
    BreakCode.STALE_PENDING: "the truth lists no payment that is pending at the gateway",
    BreakCode.FX_DIFFERENCE: _NO_SOURCE,
    BreakCode.PAYOUT_UNCONFIRMED: _NO_SOURCE,
    BreakCode.PAYOUT_FAILED: _NO_SOURCE,
    BreakCode.PAYOUT_NOT_BOOKED: _NO_SOURCE,
    BreakCode.PAYOUT_AMOUNT_MISMATCH: _NO_SOURCE,
    BreakCode.LEDGER_PAYOUT_ONLY: _NO_SOURCE,
    BreakCode.SETTLEMENT_MISSING: _NO_SOURCE,
    BreakCode.SETTLEMENT_AMOUNT_MISMATCH: _NO_SOURCE,
    BreakCode.FEE_VARIANCE: _NO_SOURCE,
    BreakCode.UNEXPECTED_RECEIPT: _NO_SOURCE,
    BreakCode.HELD_BACK: _NO_SOURCE,
    BreakCode.FEE_NOT_BOOKED: _NO_SOURCE,
    BreakCode.FEE_BOOKED_DIFFERS: _NO_SOURCE,
    BreakCode.RESERVE_NOT_BOOKED: _NO_SOURCE,
    BreakCode.RESERVE_BOOKED_DIFFERS: _NO_SOURCE,
    BreakCode.PAYOUT_TWICE_AT_BANK: _NO_BANK,
    BreakCode.PAYOUT_RETURNED: _NO_BANK,
    BreakCode.BANK_AMOUNT_DIFFERS: _NO_BANK,
    BreakCode.BANK_FX_DIFFERENCE: _NO_BANK,
    BreakCode.PAYOUT_NOT_AT_BANK: _NO_BANK,
    BreakCode.BANK_RECEIPT_UNKNOWN: _NO_BANK,
    BreakCode.BANK_NOT_BOOKED: _NO_BANK,
    BreakCode.REVIEW_STUCK: _NO_SOURCE,
    BreakCode.SUBSCRIPTION_NOT_ENDED: "the sample night instructs no end of a subscription",
}
"""Codes that a sample night cannot show, and why."""


def answer_key(night: SampleNight) -> dict[str, Any]:
    """The expectations as plain values; amounts as text with the currency's decimals."""
    expected = [story.expected for story in night.stories if story.expected is not None]
    expected.sort(key=lambda expectation: (expectation.account_id, expectation.order_no))
    return {
        "business_date": night.business_date.isoformat(),
        "seed": night.seed,
        "merchant_id": night.account.merchant_id,
        "account_id": night.account.account_id,
        "instructions": _instructions(night),
        "breaks": [_break(expectation) for expectation in expected if expectation.code],
        "unverified": [
            _place(expectation) | {"reason": expectation.unverified}
            for expectation in expected
            if expectation.unverified
        ],
        "matched_with_flag": [
            _place(expectation) | {"flag": expectation.flag}
            for expectation in expected
            if expectation.flag
        ],
        "pending": [_place(expectation) for expectation in expected if expectation.pending],
        "not_shown": {code.value: why for code, why in NOT_SHOWN.items()},
        "payments_left_out": night.left_out,
    }


def _instructions(night: SampleNight) -> dict[str, int]:
    """How many instructions of each kind the files carry, repeats counted once."""
    waiting = ("cancel of a captured", "refund of a payment not captured")
    asked = [
        (line.action, story) for story in night.stories for line in story.orders if line.action
    ]
    held = sum(1 for _, s in asked if s.expected and s.expected.why.startswith(waiting))
    counts = Counter(action for action, _ in asked)
    return dict(sorted(counts.items())) | {"of_these_waiting": held}


def _place(expectation: Expectation) -> dict[str, Any]:
    return {
        "merchant_id": expectation.merchant_id,
        "account_id": expectation.account_id,
        "order_no": expectation.order_no,
        "transaction_id": expectation.transaction_id,
        "why": expectation.why,
    }


def _break(expectation: Expectation) -> dict[str, Any]:
    entry = _place(expectation) | {
        "code": expectation.code,
        "effects": [_effect(e) for e in expectation.effects],
    }
    if expectation.alone:
        entry["in_a_night_of_one_account"] = [
            {
                "account_id": alone.account_id,
                "code": alone.code,
                "effects": [_effect(effect) for effect in alone.effects],
            }
            for alone in expectation.alone
        ]
    return entry


def _effect(effect: BreakEffect) -> dict[str, str]:
    return {
        "leg": effect.leg,
        "account_id": effect.account_id,
        "currency": effect.currency,
        "amount": format_minor_units(effect.amount, currency=effect.currency),
    }

"""The sample night on disk: order files of several channels, a ledger, and the answer key.

The ledger is a SQLite table, as a ledger behind SQL would be, and the same rows as a CSV file.
"""

import csv
import io
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from recon.privacy.own_files import write_result
from recon.sandbox.sample_night.answer_key import answer_key
from recon.sandbox.sample_night.planted_night import SampleNight
from recon.sandbox.sample_night.records import LEDGER_HEADER, ORDER_HEADER, LedgerLine, cells_of

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

"""The sealed files of a month's nights: one account, each row with its night.

A night says everything of its window once more: `newest_rows` has each key as the last night that
knows it says it, so that no row is made into a frame twice.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.archive.answers_once import ANSWERS, PASSED_OVER, SHARED, whole_answers
from recon.archive.rows_file import as_declared
from recon.proof.night_tables import frame_of_table

READ = (
    *("orders", "answers", "instructions", "settlement", "ledger", "terms"),
    *("held", "paid", "received", "explained", "breaks", "effects", "pending", "matches"),
    *("unverified", "movements", "journals"),
)
"""Files of a night that a month reads; of NEWEST_ONLY those of the newest night alone."""
EARLIER_READ = ("answers", "instructions", "ledger", "terms")
"""Files of the nights before those of a month: of payments that they are asked about."""
BANKS = frozenset({"paid", "received", "explained"})
"""Files of a night that knows a bank."""
NEWEST_ONLY = BANKS | {"held", "journals"}
"""Files that say how things stand, and nothing of how they came to."""
SMALL_BYTES = 6 << 20
"""Of all files of a month: 36 nights of ten orders a day; both engines go another way below it."""
NUMBER = pa.field("number", pa.int64(), nullable=False)
_ACCOUNT = ("merchant_id", "account_id")


@dataclass(frozen=True, slots=True)
class MonthNight:
    """A night as its sealed files."""

    number: int
    """Its place among the nights that are read, the oldest is 0."""
    run_id: str
    business_date: str
    rules_digest: str
    files: Mapping[str, Path]
    """Name of a schema -> the file with its rows; a night need not have all."""
    predecessor: str = ""
    """The run whose open breaks it carries forward; "" for none."""
    answered: Mapping[str, Path] = field(default_factory=dict)
    """The files of the gateway's answers by their names in the night's folder, where `answers` has
    only what none of them says; see archive.answers_once."""

    books_since: tuple[datetime, datetime] | None = None
    """Since when its books are whole: entries of orders, and those of fees, reserves and pay-outs;
    None where it has none, or where rows of them were refused."""

    @property
    def all_files(self) -> tuple[Path, ...]:
        """Every file that is read of it."""
        return (*self.files.values(), *self.answered.values())


def are_small(nights: Iterable[MonthNight]) -> bool:
    """Whether the files of some nights have few rows together, by their bytes.

    One that is not there is for its reader to name.
    """
    every = (file for night in nights for file in night.all_files)
    return sum(file.stat().st_size for file in every if file.exists()) <= SMALL_BYTES


def table_of(
    night: MonthNight,
    name: str,
    *,
    account: tuple[str, str] | None = None,
    columns: Sequence[str] = (),
) -> pa.Table:
    """The rows of a file of a night, of one account where it is named; some columns, or all."""
    asked = [*dict.fromkeys(columns)]
    wanted = [*dict.fromkeys([*asked, *(_ACCOUNT if account and columns else ())])]
    table = _table(night, name, columns=wanted or None)
    if account is not None:
        own = [
            pc.equal(table[column], word) for column, word in zip(_ACCOUNT, account, strict=True)
        ]
        is_own = pc.and_(*own)
        # Most files have one account alone, and a filter copies whatever it keeps.
        table = table if pc.all(is_own, min_count=0).as_py() else table.filter(is_own)
    return table.select(asked) if asked else table


def _table(night: MonthNight, name: str, *, columns: Sequence[str] | None) -> pa.Table:
    if name != ANSWERS or not night.answered:
        return _read(night.files[name], columns=columns)
    passed_over, own = (_read(night.files[each]) for each in (PASSED_OVER, ANSWERS))
    needed = [each for each in SHARED if columns is None or each in columns]
    replies = ((file, _read(path, columns=needed)) for file, path in night.answered.items())
    return whole_answers(own, passed_over=passed_over, replies=replies, columns=columns)


def _read(path: Path, *, columns: Sequence[str] | None = None) -> pa.Table:
    return as_declared(pq.ParquetFile(path).read(columns=columns))


def frame_of(
    night: MonthNight,
    name: str,
    *,
    account: tuple[str, str] | None = None,
    columns: Sequence[str] = (),
) -> pd.DataFrame:
    """The same as a frame."""
    return frame_of_table(table_of(night, name, account=account, columns=columns))


def newest_rows(
    nights: Sequence[MonthNight],
    name: str,
    *,
    account: tuple[str, str],
    key: str,
    columns: Sequence[str],
    among: Mapping[str, Collection[str]] | None = None,
) -> pd.DataFrame:
    """The rows of each key as the last night that has it wrote them, `number` beside them.

    `among`: of these columns one has one of its words; without it all rows are read.
    """
    parts, known = [], pa.array([], pa.string())
    later = known
    for night in reversed(nights):
        rows = table_of(night, name, account=account, columns=columns)
        if among is not None:
            rows = rows_among(rows, words=among)
        keys = rows[key].combine_chunks()
        # Nearly all are keys of the night after it; few are looked for among all that are known.
        rows = rows.filter(pc.invert(pc.is_in(keys, value_set=later)))
        own = rows[key].combine_chunks()
        there = known.filter(pc.is_in(known, value_set=own))
        rows = rows.filter(pc.invert(pc.is_in(rows[key], value_set=there)))
        known = pa.concat_arrays([known, *rows[key].chunks])
        later = keys
        parts.append(numbered(rows, night=night))
    return frame_of_table(pa.concat_tables(reversed(parts)))


def rows_among(rows: pa.Table, *, words: Mapping[str, Collection[str]]) -> pa.Table:
    """The rows of which any of these columns has one of its words."""
    sides = [
        pc.is_in(rows[name], value_set=pa.array(sorted(own), pa.string()))
        for name, own in words.items()
    ]
    return rows.filter(reduce(pc.or_, sides))


def numbered(rows: pa.Table, *, night: MonthNight) -> pa.Table:
    """Rows with the number of their night."""
    return rows.append_column(NUMBER, pa.repeat(pa.scalar(night.number, pa.int64()), len(rows)))


def frame_without_blanks(table: pa.Table) -> pd.DataFrame:
    """A table that Arrow computed as a frame: it takes any column for one that may be blank."""
    full = pa.schema([each.with_nullable(False) for each in table.schema])
    return frame_of_table(table.cast(full))

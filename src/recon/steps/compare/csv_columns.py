"""Frames written as CSV, some rows at a time, with each amount in decimals of its currency."""

import csv
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any

import pandas as pd

from recon.matching.breaks.result import AMOUNT_COLUMNS
from recon.model.errors import Defect
from recon.model.money import format_minor_units

BLOCK_ROWS = 25_000
"""Rows that are in memory as text at one time, in addition to the frame."""
_END = "\r\n"


def csv_of(frame: pd.DataFrame, *, columns: Sequence[str]) -> str:
    """These columns as CSV with a header; amounts have the decimals of their row's currency.

    Raises:
        Defect: an amount that is not 0 has no currency.
    """
    return b"".join(csv_chunks(frame, columns=columns)).decode()


def csv_chunks(
    frame: pd.DataFrame, *, columns: Sequence[str], amounts: Collection[str] = AMOUNT_COLUMNS
) -> Iterator[bytes]:
    """The same CSV in UTF-8, a block of rows at a time: a large file is never whole in memory.

    `amounts` are the columns of minor units.

    Raises:
        Defect: an amount that is not 0 has no currency.
    """
    yield (",".join(columns) + "\n").encode()
    for start in range(0, len(frame), BLOCK_ROWS):
        rows = frame.iloc[start : start + BLOCK_ROWS]
        shown = cache(_shown)  # the sides of a row mostly have one amount
        cells = [
            map(shown, rows[name].tolist(), rows["currency"].tolist())
            if name in amounts
            else _texts(rows[name])
            for name in columns
        ]
        lines: list[str] = []
        # A cell is quoted only where it must be; the writer quotes the characters of a line's end,
        # and some readers take a carriage return for one.
        writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator=_END)
        writer.writerows(zip(*cells, strict=True))
        yield "".join([f"{line.removesuffix(_END)}\n" for line in lines]).encode()


def _shown(minor: Any, currency: str) -> str:
    if pd.isna(minor):
        return ""
    if not currency and minor:
        msg = f"an amount of {minor} minor units has no currency"
        raise Defect(msg)
    return format_minor_units(int(minor), currency=currency) if currency else ""


def _texts(column: "pd.Series[Any]") -> Iterable[str]:
    if isinstance(column.dtype, pd.StringDtype):
        texts: list[str] = column.fillna("").tolist()
        return texts
    return map(plain_text, column.tolist())


def plain_text(value: Any) -> str:
    """Text of one cell: instants in UTC, dates in ISO format, blank for a missing value."""
    match value:
        case str():
            return str(value)  # plain text, also of a member of an enum
        case datetime() if not pd.isna(value):
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date() if not pd.isna(value):
            return value.isoformat()
    return "" if pd.isna(value) else str(value)

"""A frame as CSV, column by column: a million rows are too many to write cell by cell.

The bytes are those of Python's csv writer with a line feed behind each row: a cell is quoted only
where it must be. A carriage return is quoted too, since some readers take it for an end.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.errors import Defect
from recon.matching.coding import coded
from recon.matching.grouping import Ints, Rows, amounts_of
from recon.matching.result import AMOUNT_COLUMNS
from recon.money import exponent

BLOCK_ROWS = 100_000
"""Rows that are texts in memory at once, beside the whole."""
MUST_BE_QUOTED = '[",\n\r]'
TEXT = pa.large_string()


def csv_of(frame: pd.DataFrame, *, columns: Sequence[str]) -> str:
    """These columns with their header, amounts with the decimals of the row's currency.

    Raises:
        Defect: an amount that is not 0 has no currency.
    """
    header = ",".join(columns) + "\n"
    starts = range(0, len(frame), BLOCK_ROWS)
    return header + "".join(
        _lines(frame.iloc[start : start + BLOCK_ROWS], columns=columns) for start in starts
    )


def _lines(rows: pd.DataFrame, *, columns: Sequence[str]) -> str:
    cells = [
        _amounts(rows[name], currency=rows["currency"])
        if name in AMOUNT_COLUMNS
        else _quoted(_texts(rows[name]))
        for name in columns
    ]
    ended = pc.binary_join_element_wise(cells[-1], pa.scalar("\n", TEXT), pa.scalar("", TEXT))
    lines = pc.binary_join_element_wise(*cells[:-1], ended, pa.scalar(",", TEXT))
    _, offsets, content = lines.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]
    whole: bytes = content.to_pybytes()
    return whole[int(places[0]) : int(places[-1])].decode("utf-8")


def _texts(column: "pd.Series[Any]") -> pa.LargeStringArray:
    if isinstance(column.dtype, pd.StringDtype):
        text: Any = pa.array(column)
        whole = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
        return pc.fill_null(whole.cast(TEXT), "")
    return pa.array([plain_text(value) for value in column.tolist()], TEXT)


def plain_text(value: Any) -> str:
    """One cell: instants in UTC, dates as ISO, blank for nothing."""
    match value:
        case str():
            return str(value)  # the word of an enum, too
        case datetime() if not pd.isna(value):
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date() if not pd.isna(value):
            return value.isoformat()
    return "" if pd.isna(value) else str(value)


def _quoted(text: pa.LargeStringArray) -> pa.LargeStringArray:
    must = pc.match_substring_regex(text, MUST_BE_QUOTED)
    if not pc.any(must).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    quote, nothing = pa.scalar('"', TEXT), pa.scalar("", TEXT)
    return pc.if_else(must, pc.binary_join_element_wise(quote, doubled, quote, nothing), text)


def _amounts(column: "pd.Series[Any]", *, currency: "pd.Series[str]") -> pa.LargeStringArray:
    """Minor units as text with the decimals of their currency; blank where none is given."""
    given, minor = column.notna().to_numpy(dtype=np.bool_), amounts_of(column)
    (codes,), words = coded([currency])
    names = words.to_pylist()
    texts = pa.nulls(len(column), TEXT)
    for decimals, numbers in _by_decimals(names, used=np.unique(codes[given])):
        rows = np.flatnonzero(given & np.isin(codes, numbers))
        texts = _put(texts, rows=rows, values=_written(minor[rows], decimals=decimals))
    nameless = given & (np.array([*map(bool, names), True])[codes] == 0)
    if (lost := minor[nameless]).any():
        msg = f"an amount of {lost[lost != 0][0]} minor units has no currency"
        raise Defect(msg)
    return pc.fill_null(texts, "")


def _by_decimals(names: list[str], *, used: Rows) -> Iterator[tuple[int, list[int]]]:
    """How many decimals, and the numbers of the currencies that have so many."""
    decimals = {int(n): exponent(names[n]) for n in used if names[n]}
    for places in sorted({*decimals.values()}):
        yield places, [number for number, own in decimals.items() if own == places]


def _put(
    texts: pa.LargeStringArray, *, rows: Rows, values: pa.LargeStringArray
) -> pa.LargeStringArray:
    if len(rows) == len(texts):
        return values
    mask = np.zeros(len(texts), dtype=np.bool_)
    mask[rows] = True
    return pc.replace_with_mask(texts, pa.array(mask), values)


def _written(minor: Ints, *, decimals: int) -> pa.LargeStringArray:
    """`-1234.50`: a leading minus, no grouping."""
    units, rest = np.divmod(np.abs(minor), 10**decimals)
    text = pa.array(units).cast(TEXT)
    if decimals:
        fraction = pc.utf8_lpad(pa.array(rest).cast(TEXT), decimals, "0")
        text = pc.binary_join_element_wise(text, fraction, pa.scalar(".", TEXT))
    if not (minor < 0).any():
        return text
    signs = pa.array(np.where(minor < 0, "-", ""), TEXT)
    return pc.binary_join_element_wise(signs, text, pa.scalar("", TEXT))

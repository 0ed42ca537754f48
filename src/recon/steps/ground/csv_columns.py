"""A frame as CSV, column by column: a million rows are too many to write cell by cell.

The bytes are those of Python's csv writer with a line feed behind each row: a cell is quoted only
where it must be. A carriage return is quoted too, since some readers take it for an end.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.breaks.result import AMOUNT_COLUMNS
from recon.matching.frames.coding import Codes, coded
from recon.matching.frames.grouping import Bools, Ints, Rows, amounts_of
from recon.model.errors import Defect
from recon.model.money import exponent

BLOCK_ROWS = 100_000
"""Rows that are texts in memory at once, beside the whole."""
MUST_BE_QUOTED = '[",\n\r]'
TEXT = pa.large_string()
_SPECIAL = (*b'",\n\r',)
"""The bytes of these; in UTF-8 none of them is ever part of another character."""


def csv_of(frame: pd.DataFrame, *, columns: Sequence[str]) -> str:
    """These columns with their header, amounts with the decimals of the row's currency.

    Raises:
        Defect: an amount that is not 0 has no currency.
    """
    return b"".join(csv_parts(frame, columns=columns)).decode()


def csv_parts(
    frame: pd.DataFrame, *, columns: Sequence[str], amounts: Collection[str] = AMOUNT_COLUMNS
) -> Iterator[bytes]:
    """The same in UTF-8, some rows at a time: a large file is never whole in memory.

    `amounts` are the columns of minor units.

    Raises:
        Defect: an amount that is not 0 has no currency.
    """
    yield (",".join(columns) + "\n").encode()
    for start in range(0, len(frame), BLOCK_ROWS):
        yield _lines(frame.iloc[start : start + BLOCK_ROWS], columns=columns, amounts=amounts)


def _lines(rows: pd.DataFrame, *, columns: Sequence[str], amounts: Collection[str]) -> bytes:
    written = _Amounts(rows)
    cells = [
        written.texts(name) if name in amounts else _quoted(_texts(rows[name])) for name in columns
    ]
    ended = pc.binary_join_element_wise(cells[-1], pa.scalar("\n", TEXT), pa.scalar("", TEXT))
    lines = pc.binary_join_element_wise(*cells[:-1], ended, pa.scalar(",", TEXT))
    return bytes_of(lines).tobytes()


def bytes_of(texts: pa.LargeStringArray) -> npt.NDArray[np.uint8]:
    """What all texts of an array say, behind one another."""
    _, offsets, content = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(places[0]), int(places[-1])
    if first == last:
        return np.zeros(0, dtype=np.uint8)
    return np.frombuffer(content, dtype=np.uint8)[first:last]


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
    # One look at the bytes of a whole column: nearly none holds what must be quoted.
    content = bytes_of(text)
    if not any((content == byte).any() for byte in _SPECIAL):
        return text
    must = pc.match_substring_regex(text, MUST_BE_QUOTED)
    doubled = pc.replace_substring(text, '"', '""')
    quote, nothing = pa.scalar('"', TEXT), pa.scalar("", TEXT)
    return pc.if_else(must, pc.binary_join_element_wise(quote, doubled, quote, nothing), text)


class _Amounts:
    """The amounts of some rows as text; a column that says what another says is written once."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self._rows = rows
        self._written: list[tuple[Ints, Bools, pa.LargeStringArray]] = []

    @cached_property
    def _currencies(self) -> tuple[Codes, list[str]]:
        (codes,), words = coded([self._rows["currency"]])
        return codes, words.to_pylist()

    def texts(self, name: str) -> pa.LargeStringArray:
        """Minor units with the decimals of their currency; blank where none is given."""
        column = self._rows[name]
        given, minor = column.notna().to_numpy(dtype=np.bool_), amounts_of(column)
        for same_minor, same_given, texts in self._written:
            if np.array_equal(minor, same_minor) and np.array_equal(given, same_given):
                return texts
        texts = _amounts(minor, given=given, currencies=self._currencies)
        self._written.append((minor, given, texts))
        return texts


def _amounts(
    minor: Ints, *, given: Bools, currencies: tuple[Codes, list[str]]
) -> pa.LargeStringArray:
    codes, names = currencies
    texts = pa.nulls(len(minor), TEXT)
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
    if len(minor) > 1 and (minor == minor[0]).all():
        return pa.repeat(_written(minor[:1], decimals=decimals)[0], len(minor))
    units, rest = np.divmod(np.abs(minor), 10**decimals)
    text = pa.array(units).cast(TEXT)
    if decimals:
        fraction = pc.utf8_lpad(pa.array(rest).cast(TEXT), decimals, "0")
        text = pc.binary_join_element_wise(text, fraction, pa.scalar(".", TEXT))
    if not (minor < 0).any():
        return text
    signs = pa.array(np.where(minor < 0, "-", ""), TEXT)
    return pc.binary_join_element_wise(signs, text, pa.scalar("", TEXT))

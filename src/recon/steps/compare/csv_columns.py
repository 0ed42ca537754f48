"""A frame written as CSV column by column, as a million rows are too many to write cell by cell.

The bytes are those of Python's csv writer with a line feed after each row: a cell is quoted only
where it must be. A carriage return is quoted too, since some readers take it for a line end.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.breaks.result import AMOUNT_COLUMNS
from recon.matching.frames.coding import coded
from recon.matching.frames.grouping import Ints, amounts_of
from recon.model.errors import Defect
from recon.model.money import exponent

BLOCK_ROWS = 100_000
"""Rows that are in memory as text at one time, in addition to the frame."""
MUST_BE_QUOTED = '[",\n\r]'
TEXT = pa.large_string()
_SPECIAL = (*b'",\n\r',)
"""The bytes of these characters; in UTF-8 none of them is part of another character."""


def csv_of(frame: pd.DataFrame, *, columns: Sequence[str]) -> str:
    """These columns as CSV with a header; amounts have the decimals of their row's currency.

    Raises:
        Defect: an amount that is not 0 has no currency.
    """
    return b"".join(csv_parts(frame, columns=columns)).decode()


def csv_parts(
    frame: pd.DataFrame, *, columns: Sequence[str], amounts: Collection[str] = AMOUNT_COLUMNS
) -> Iterator[bytes]:
    """The same CSV in UTF-8, a block of rows at a time: a large file is never whole in memory.

    `amounts` are the columns of minor units.

    Raises:
        Defect: an amount that is not 0 has no currency.
    """
    yield (",".join(columns) + "\n").encode()
    for start in range(0, len(frame), BLOCK_ROWS):
        yield _lines(frame.iloc[start : start + BLOCK_ROWS], columns=columns, amounts=amounts)


def _lines(rows: pd.DataFrame, *, columns: Sequence[str], amounts: Collection[str]) -> bytes:
    money = [rows[name] for name in columns if name in amounts]
    written = iter(_amounts(money, currencies=rows["currency"])) if money else iter(())
    cells = [next(written) if name in amounts else _quoted(_texts(rows[name])) for name in columns]
    ended = pc.binary_join_element_wise(cells[-1], pa.scalar("\n", TEXT), pa.scalar("", TEXT))
    lines = pc.binary_join_element_wise(*cells[:-1], ended, pa.scalar(",", TEXT))
    return bytes_of(lines).tobytes()


def bytes_of(texts: pa.LargeStringArray) -> npt.NDArray[np.uint8]:
    """The bytes of all texts of an array, concatenated."""
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
    """Text of one cell: instants in UTC, dates in ISO format, blank for a missing value."""
    match value:
        case str():
            return str(value)  # plain text, also of a member of an enum
        case datetime() if not pd.isna(value):
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date() if not pd.isna(value):
            return value.isoformat()
    return "" if pd.isna(value) else str(value)


def _quoted(text: pa.LargeStringArray) -> pa.LargeStringArray:
    # One scan over the bytes of a whole column: hardly any holds what must be quoted.
    content = bytes_of(text)
    if not any((content == byte).any() for byte in _SPECIAL):
        return text
    must = pc.match_substring_regex(text, MUST_BE_QUOTED)
    doubled = pc.replace_substring(text, '"', '""')
    quote, nothing = pa.scalar('"', TEXT), pa.scalar("", TEXT)
    return pc.if_else(must, pc.binary_join_element_wise(quote, doubled, quote, nothing), text)


def _amounts(
    columns: Iterable["pd.Series[Any]"], *, currencies: "pd.Series[Any]"
) -> Iterator[pa.LargeStringArray]:
    """Minor units with the decimals of each row's currency; blank where no amount is given."""
    (codes,), words = coded([currencies])
    names = words.to_pylist()
    is_named = np.array([*map(bool, names), True])[codes] == 1
    for column in columns:
        given, minor = column.notna().to_numpy(dtype=np.bool_), amounts_of(column)
        if (lost := minor[given & ~is_named]).any():
            msg = f"an amount of {lost[lost != 0][0]} minor units has no currency"
            raise Defect(msg)
        decimals = {int(n): exponent(names[n]) for n in np.unique(codes[given & is_named])}
        texts = pa.nulls(len(minor), TEXT)
        for places in sorted({*decimals.values()}):
            alike = [number for number, own in decimals.items() if own == places]
            mask = given & np.isin(codes, alike)
            values = _written(minor[mask], decimals=places)
            texts = values if mask.all() else pc.replace_with_mask(texts, pa.array(mask), values)
        yield pc.fill_null(texts, "")


def _written(minor: Ints, *, decimals: int) -> pa.LargeStringArray:
    """Minor units as text such as `-1234.50`: a leading minus, no grouping."""
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

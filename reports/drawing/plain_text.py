"""Foreign text made fit for a cell, and values of frames made plain.

Text stays text: nothing here can become a formula, an error value or an unreadable file.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa

from recon.steps.ground.csv_columns import bytes_of

TEXT_CHARACTERS_MAX = 1_000
"""A cell holds 32,767; nobody reads more than this, and the database has the whole text."""

REPLACEMENT = "�"
_BREAKS = re.compile(r"\r\n|[\r\n\t\u2028\u2029]")
# Control characters break the file; bidirectional overrides make text look like other text.
_UNWANTED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_ESCAPE_BEGINS = "_x"
_ESCAPE_LIKE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_FORMULA_STARTS = ("=", "+", "-", "@")


def cell_text(text: str) -> tuple[str, int]:
    """The text as it may stand in a cell, and how many characters had to be replaced."""
    if len(text) <= TEXT_CHARACTERS_MAX and text.isprintable() and _ESCAPE_BEGINS not in text:
        return text, 0
    one_line = _BREAKS.sub(" ", text)
    clean, replaced = _UNWANTED.subn(REPLACEMENT, one_line)
    if len(clean) > TEXT_CHARACTERS_MAX:
        clean = clean[: TEXT_CHARACTERS_MAX - 1] + "…"
    return _ESCAPE_LIKE.sub("_x005F_", clean), replaced


def replaced_in(texts: Sequence[str]) -> int:
    """How many characters of many texts would have to be replaced."""
    joined = "".join(texts)
    return 0 if joined.isprintable() else len(_UNWANTED.findall(joined))


def odd_of(column: "pd.Series[str]") -> list[str]:
    """The texts of a column among which one may not be plain printable ASCII.

    A million rows are too many to look at one by one: their bytes are looked at together.
    """
    if not isinstance(column.dtype, pd.StringDtype):
        oddities: list[str] = column.fillna("").tolist()
        return oddities
    texts: Any = pa.array(column)
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    odd = [chunk for chunk in chunks if not _is_plain(chunk.cast(pa.large_string()))]
    return [text for chunk in odd for text in chunk.to_pylist() if text]


def _is_plain(texts: pa.LargeStringArray) -> bool:
    content = bytes_of(texts)
    return bool(((content >= ord(" ")) & (content <= ord("~"))).all())


def needs_quote(text: str) -> bool:
    """Whether editing the cell could turn the text into a formula."""
    return text.startswith(_FORMULA_STARTS)


def plain(value: Any) -> Any:
    """A value of a frame as int, str, datetime or None; NA, NaT and NaN are None."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)
    if isinstance(value, datetime | date):
        return value
    # A column that lost its dtype carries NaN for blank; NaN alone differs from itself.
    return None if value != value else int(value)  # noqa: PLR0124 - the test for NaN


def local_instant(value: datetime, *, timezone: str) -> datetime:
    """An instant in the report's zone, without the zone (Excel has none)."""
    if value.tzinfo is None:
        return value.replace(microsecond=0)
    return value.astimezone(ZoneInfo(timezone)).replace(tzinfo=None, microsecond=0)


def day_of(value: Any) -> date | None:
    """A date from a date, an instant or ISO text; None when blank or something else."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value)[:10]) if value else None
    except ValueError:
        return None


def text_width(text: str) -> int:
    """Columns that a text takes; East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)

"""Time columns: from a program's own notation to ISO 8601 and microseconds since 1970, UTC.

Text without an offset is local time in the source's time zone. A local time that a clock change
skips does not exist and is refused; one that occurs twice means the first. Other notations (twelve
hours, month names, counts of days or seconds) are converted once for each distinct cell.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import COUNTED_TIMES, MONTHS, TIME_PARTS, FileLayout
from recon.files.typing.text_cells import CellProblems, distinct_if_few, note_cells

YEAR_MIN = 1970
YEAR_MAX = 2199
"""Timestamps outside of these years are taken for mistakes."""

QUICK_LOCAL_YEAR_MAX = 2036
"""Arrow ignores daylight saving time after a time zone's table ends (2037: measured)."""

NOT_GIVEN = np.iinfo(np.int64).min
"""numpy's representation of "no time" (NaT)."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TO_THE_SECOND = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_OFFSET = r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
ISO_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2}|[+-][0-9]{2})?)?",
    re.ASCII,
)
_COMPACT = r"\A([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})\z"


@dataclass(slots=True)
class InstantColumn:
    """Microseconds per row, NOT_GIVEN where there are none, and the problems of other rows."""

    microseconds: npt.NDArray[np.int64]
    problems: dict[int, str] = field(default_factory=dict)


def read_instants(cells: pa.Array, *, zone: ZoneInfo, compact: bool = False) -> InstantColumn:
    """Parse trimmed text; `compact` also accepts the gateway's 14 digits."""
    own = distinct_if_few(cells)
    column = _read_each(own.texts, zone=zone, compact=compact)
    return InstantColumn(column.microseconds[own.codes], own.by_row(column.problems))


def _read_each(cells: pa.Array, *, zone: ZoneInfo, compact: bool) -> InstantColumn:
    if compact:
        cells = pc.replace_substring_regex(cells, _COMPACT, r"\1-\2-\3T\4:\5:\6")
    column = InstantColumn(np.full(len(cells), NOT_GIVEN, dtype=np.int64))
    left = np.array(pc.not_equal(cells, ""), dtype=bool)
    for pattern, local in ((_TO_THE_SECOND + _OFFSET, None), (_TO_THE_SECOND, zone)):
        if not left.any():
            break
        fits = np.array(pc.match_substring_regex(cells, rf"\A{pattern}\z"), dtype=bool)
        quick = _read_at_once(cells.filter(pa.array(fits)), zone=local)
        if quick is not None:
            column.microseconds[fits] = quick
            left &= ~fits
    for row in np.flatnonzero(left).tolist():
        try:
            column.microseconds[row] = _read_one(cells[row].as_py(), zone=zone)
        except (ValueError, OverflowError) as error:
            column.problems[row] = str(error)
    return column


def _read_at_once(texts: pa.Array, *, zone: ZoneInfo | None) -> npt.NDArray[np.int64] | None:
    """Parse all texts with Arrow; None if one of them needs the slow path."""
    try:
        if zone is None:
            instants: Any = texts.cast(pa.timestamp("us", tz="UTC"))
        else:
            local = texts.cast(pa.timestamp("us"))
            instants = pc.assume_timezone(
                local, zone.key, ambiguous="earliest", nonexistent="raise"
            )
    except pa.ArrowInvalid:
        return None
    microseconds = np.array(instants.cast(pa.int64()))
    if not len(microseconds):
        return microseconds
    ends = np.array([microseconds.min(), microseconds.max()], dtype="datetime64[us]")
    first, last = (ends.astype("datetime64[Y]").astype(int) + YEAR_MIN).tolist()
    last_read = YEAR_MAX if zone is None else QUICK_LOCAL_YEAR_MAX
    return microseconds if first >= YEAR_MIN and last <= last_read else None


def _read_one(text: str, *, zone: ZoneInfo) -> int:
    if ISO_TIME.fullmatch(text) is None:
        msg = f"{text!r} is not a time such as 2026-01-05T10:30:00Z"
        raise ValueError(msg)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        msg = f"{text!r} is no moment of the calendar"
        raise ValueError(msg) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
        if moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment.replace(
            tzinfo=None
        ):
            msg = f"{text!r} is a time that the clock change of {zone.key} skips"
            raise ValueError(msg)
    moment = moment.astimezone(UTC)
    if not YEAR_MIN <= moment.year <= YEAR_MAX:
        msg = f"{text!r} is not between the years {YEAR_MIN} and {YEAR_MAX}"
        raise ValueError(msg)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def what_is_wrong_with_day(text: str) -> str:
    """Return why a text is not a usable date; "" if it is one.

    Args:
        text: Such as 2026-11-19.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return "is no date such as 2026-11-19"
    # Dates within a week of the calendar's ends would break later date arithmetic.
    if not YEAR_MIN <= day.year <= YEAR_MAX:
        return f"is not between the years {YEAR_MIN} and {YEAR_MAX}"
    return ""


PATTERNS_STORED = 256
"""Number of time patterns cached; a proposal tries some dozens on every cell."""
_ISO_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].*)?\z"
_PART = re.compile("%-?.")
_CENTURY = 2000
_NOON = 12
_COUNTED = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,52})?", re.ASCII)
"""Workbook numbers are binary fractions and arrive with all of their decimals, at most 52."""
_DAY_SECONDS = 86_400
_FIRST_SERIAL = 25_569
"""Serial day of 1970-01-01 in spreadsheets; earlier dates are taken for mistakes."""
_REAL_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)?\z"
"""A spreadsheet's date as it arrives here, also through CSV: without an offset."""
_TO_DAY_12 = r"\A[0-9]{4}-[0-9]{2}-(?:0[1-9]|1[0-2])"
_WRITTEN_DAY = r"\A[0-9]{1,2}[./ -][0-9]{1,2}[./ -](?:[0-9]{2}|[0-9]{4})(?:[^0-9]|\z)"
_NO_MONTH = r"\A(?:(?:1[3-9]|[23][0-9])[./ -]|[0-9]{1,2}[./ -](?:1[3-9]|[23][0-9])[./ -])"
"""One of the two numbers is not a month, so a spreadsheet of another locale keeps the text."""
_DATE_CHARACTERS = 10


def without_swapped_days(cells: pa.Array, *, times: str, problems: CellProblems) -> pa.Array:
    """Drop dates whose day and month a spreadsheet may have swapped.

    It turns 03/04 into 4 March and leaves 25/04 as text: then no real date in the column (in a
    large file: in one part of it) has day 13 or more, and no text could be converted.

    Args:
        cells: As in the file; real dates in ISO 8601.
        times: The pattern of a workbook's texts, "" if unknown.
        problems: Receives the suspect dates.
    """
    parts = [part.replace("-", "") for part in _PART.findall(times)]
    in_doubt = {"%d", "%m"} <= set(parts) and parts[0] != "%Y"
    written = pc.match_substring_regex(cells, _WRITTEN_DAY)
    if not (in_doubt or pc.any(written).as_py()):
        return cells  # cheap exit for most files
    dates = pc.match_substring_regex(cells, _REAL_DATE)
    left = pc.and_(written, pc.match_substring_regex(cells, _NO_MONTH))
    could_be = pc.and_(dates, pc.match_substring_regex(cells, _TO_DAY_12))
    texts = pc.filter(cells, left)
    contradicted = pc.any(pc.or_(pc.and_not(written, left), pc.and_not(dates, could_be))).as_py()
    if contradicted:
        return cells
    companion = (
        f"beside texts such as {texts[0].as_py()[:_DATE_CHARACTERS]}"
        if len(texts)
        else f"and no text as {times}"
    )
    why = (
        f"is a real date {companion}: a spreadsheet may have swapped day and month; export it anew"
    )
    note_cells(problems, could_be, why=why)
    return pc.if_else(could_be, "", cells)


def times_in_standard_form(
    cells: pa.Array, *, layout: FileLayout, typed: bool, problems: CellProblems
) -> pa.Array:
    """Rewrite every cell in standard form; "" if it is not written as `layout.times` says."""
    fine: Any = pc.equal(cells, "")
    if typed:  # cells that were dates are in standard form already
        fine = pc.or_(fine, pc.match_substring_regex(cells, _ISO_DATE))
    own: Any = cells.dictionary_encode()
    standard = [standard_time(text, times=layout.times) for text in own.dictionary.to_pylist()]
    written = pa.array(standard, pa.large_string()).take(own.indices)
    fine = pc.or_(fine, pc.is_valid(written))
    note_cells(problems, pc.invert(fine), why=f"is not a time written as {layout.times}")
    return pc.if_else(fine, pc.coalesce(written, cells), "")


def days_of(cells: pa.Array) -> pa.Array:
    """Return the date part of times in standard form."""
    timed = pc.match_substring_regex(cells, _ISO_DATE)
    return pc.if_else(timed, pc.utf8_slice_codeunits(cells, 0, _DATE_CHARACTERS), cells)


def with_clock(cells: pa.Array, *, clocks: pa.Array) -> pa.Array:
    """Append the time of day from another column; a blank cell stays blank."""
    joined = pc.binary_join_element_wise(cells, clocks, pa.scalar(" ", cells.type))
    return pc.if_else(pc.or_(pc.equal(cells, ""), pc.equal(clocks, "")), cells, joined)


def standard_time(text: str, *, times: str) -> str | None:
    """Convert one cell to standard form; None if it does not follow the pattern."""
    if times in COUNTED_TIMES:
        return _counted(text, times=times)
    names, pattern = _time_pattern(times)
    match = pattern.fullmatch(text)
    if match is None:
        return None
    given = dict(zip(names, match.groups(), strict=True))
    year = int(given["Y"]) if "Y" in given else _CENTURY + int(given["y"])
    month = int(given["m"]) if "m" in given else 1 + MONTHS.index(given["b"].title())
    hour = int(given.get("H", "0"))
    if "I" in given:
        hour = int(given["I"])
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if given["p"].upper() == "PM" else 0)
    clock = f"{hour:02}:{given.get('M', '00')}:{given.get('S', '00')}"
    fraction = f".{given['f']}" if "f" in given else ""
    day = f"{year:04}-{month:02}-{int(given['d']):02}"
    return f"{day}T{clock}{fraction}{given.get('z', '')}"


def _counted(text: str, *, times: str) -> str | None:
    """Convert spreadsheet days (the fraction is local time) or seconds since 1970 UTC."""
    if _COUNTED.fullmatch(text) is None:
        return None
    try:
        count = Decimal(text)
    except InvalidOperation:
        return None
    if times == "unix":
        return (_EPOCH + timedelta(seconds=int(count))).isoformat() if count == int(count) else None
    seconds = (count - _FIRST_SERIAL) * _DAY_SECONDS
    if seconds < 0:
        return None
    # A spreadsheet's fraction of a day is binary; below a millisecond it is noise.
    moment = _EPOCH + timedelta(milliseconds=int((seconds * 1000).to_integral_value()))
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds")


@lru_cache(maxsize=PATTERNS_STORED)
def _time_pattern(times: str) -> tuple[list[str], re.Pattern[str]]:
    """Return the letters of a pattern's parts, and the regular expression of its cells."""
    parts, literals = _PART.findall(times), _PART.split(times)
    pairs = zip(parts, literals[1:], strict=True)
    written = "".join(TIME_PARTS[part] + re.escape(text) for part, text in pairs)
    return [part[-1] for part in parts], re.compile(re.escape(literals[0]) + written, re.ASCII)

"""Columns of timestamps: ISO 8601 text into microseconds since 1970, UTC.

Text without an offset is local time of the source's zone. A local time that a clock change skips
does not exist and is refused; one that happens twice means the first time.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.typing.distinct import distinct_if_few

YEAR_MIN = 1970
YEAR_MAX = 2199
"""Beyond these a timestamp is a mistake."""

QUICK_LOCAL_YEAR_MAX = 2036
"""Arrow knows no summer time after the tables of a time zone end (2037: measured)."""

NOT_GIVEN = np.iinfo(np.int64).min
"""How numpy writes "no time"."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TO_THE_SECOND = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_OFFSET = r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2}|[+-][0-9]{2})?)?",
    re.ASCII,
)
_COMPACT = r"\A([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})\z"


@dataclass(slots=True)
class InstantColumn:
    """Microseconds per row, NOT_GIVEN where there is none, and what is wrong with the others."""

    microseconds: npt.NDArray[np.int64]
    problems: dict[int, str] = field(default_factory=dict)


def read_instants(cells: pa.Array, *, zone: ZoneInfo, compact: bool = False) -> InstantColumn:
    """Instants of trimmed text; `compact` also takes the gateway's 14 digits."""
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
    """All of them, or None where one of them needs the slow way."""
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
    if _ISO.fullmatch(text) is None:
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
    """Why a text is no day that can be judged; "" when it is one.

    Args:
        text: such as 2026-11-19.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return "is no date such as 2026-11-19"
    # A week before or behind the calendar's own ends cannot be counted.
    if not YEAR_MIN <= day.year <= YEAR_MAX:
        return f"is not between the years {YEAR_MIN} and {YEAR_MAX}"
    return ""

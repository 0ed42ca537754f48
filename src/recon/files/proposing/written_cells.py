"""Ways to write amounts and times: whether a cell may be one, and the candidate patterns.

Which of the candidates is right is decided by reading all cells with a run's readers.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, TypeVar

from recon.config.file_layouts import MONTHS
from recon.files.typing.instants import ISO_TIME
from recon.model.money import is_currency

V = TypeVar("V")
W = TypeVar("W")

_SEPARATORS = ("", ".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")
AMOUNT_WAYS: tuple[dict[str, str], ...] = tuple(
    {"decimal_sign": decimal, "thousands_sign": thousands, "minus": minus, "units": units}
    for minus, thousands, decimal, units in product(
        ("before", "behind", "brackets", "DR"), _SEPARATORS, ".,", ("major", "minor")
    )
    if decimal != thousands
)
"""Ways to write an amount, the simplest first; of equivalent ways the first is used."""
_MARK = (
    "[A-Z]{0,2}[$\u20ac\u00a3\u00a5\u20a9\u20b9\u20bd\u20ba\u20b4\u20aa\u0e3f]"
    "|[A-Z]{3}|z\u0142|kr|K\u010d|Ft"
)
"""Currency signs and codes written next to an amount."""
_MARKS_OF = {"\u20ac": "EUR", "\u00a3": "GBP", "z\u0142": "PLN", "K\u010d": "CZK", "Ft": "HUF"}
"""Signs that belong to a single currency."""
_AMOUNT = re.compile(
    rf"[-\u2212(]?(?:(?P<before>{_MARK})[ \u00a0\u202f]?)?[-\u2212(]?"
    rf"[0-9][0-9.,'\u2019 \u00a0\u202f]*[-\u2212)]?(?P<behind>{_MARK})?\)?[-\u2212]?"
    r"(?:[ \u00a0\u202f]?[CD]R)?"
)
_MONTH = "|".join(MONTHS)
_WRITTEN = re.compile(
    rf"(?P<a>[0-9]{{1,4}}|{_MONTH})(?P<s>[./ -])(?P<b>[0-9]{{1,2}}|{_MONTH})(?P<t>[./ -]|, )"
    r"(?P<c>[0-9]{4}|[0-9]{2}|[0-9])"
    r"(?:(?P<gap>T| |, )(?P<H>[0-9]{1,2}):[0-9]{2}(?P<S>:[0-9]{2}(?P<f>\.[0-9]{1,6})?)?"
    r"(?P<p> ?[AaPp][Mm])?)?(?P<z> ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?"
)
_COMPACT = {8: ("%Y%m%d", "%d%m%Y"), 12: ("%Y%m%d%H%M",), 14: ("%Y%m%d%H%M%S", "%d%m%Y%H%M%S")}
"""Number of digits -> what digits alone may mean."""
_DAY_IN_DIGITS = re.compile(
    r"20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[0-9]{4}|[0-9]{6})?", re.ASCII
)
_COUNT = re.compile(r"([0-9]+)(?:\.[0-9]*)?", re.ASCII)
_UNIX = range(1_000_000_000, 4_000_000_000)
_SERIAL = range(25_569, 80_000)


def best_ways(ways: Iterable[W], *, read: Callable[[W], tuple[V, Any]], least: Any) -> dict[V, W]:
    """Return value -> first way that reads it, among the ways that fit most cells."""
    best, most = dict[V, W](), least
    for way in ways:
        value, fitting = read(way)
        if fitting > most:
            best, most = {}, fitting
        if fitting == most:
            best.setdefault(value, way)
    return best


def looks_like_amount(text: str) -> bool:
    """Return whether a cell may be an amount, however written."""
    return _AMOUNT.fullmatch(text) is not None


def looks_like_time(text: str) -> bool:
    """Return whether a cell may be a time, however written."""
    return ISO_TIME.fullmatch(text) is not None or any(time_patterns(text))


def looks_like_day(text: str) -> bool:
    """Return whether a cell is written as a date, rather than as a count of days or seconds."""
    return any(form.fullmatch(text) for form in (ISO_TIME, _WRITTEN, _DAY_IN_DIGITS))


def nearby_currency(texts: Iterable[str]) -> str:
    """Return the only currency written next to the amounts; "" if none or several are possible."""
    marks = {mark_of(text) for text in texts} - {""}
    mark = marks.pop() if len(marks) == 1 else ""
    return mark if is_currency(mark) else _MARKS_OF.get(mark, "")


def mark_of(text: str) -> str:
    """Return the currency sign or code next to an amount as written, or ""."""
    match = _AMOUNT.fullmatch(text)
    return (match["before"] or match["behind"] or "") if match is not None else ""


def time_patterns(text: str) -> Iterator[str]:
    """Yield every pattern that a cell may follow; where possible one digit stands for two."""
    if (count := _COUNT.fullmatch(text)) is not None:
        if count[1] == text:
            yield from _COMPACT.get(len(text), ())
            yield from ("unix",) * (int(text) in _UNIX)
        yield from ("serial",) * (int(count[1]) in _SERIAL)
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return
    clock = ""
    if match["gap"] is not None:
        half = re.sub("[^ ]+", "%p", match["p"] or "")
        clock = f"{match['gap']}{'%I' if half else '%-H'}:%M"
        clock += (":%S" if match["S"] else "") + (".%f" if match["f"] else "") + half
    zone = re.sub("[^ ]+", "%z", match["z"] or "")
    cells = match.group("a", "b", "c")
    for order in _orders(*cells, between=match["s"]):
        parts = []
        for letter, cell in zip(order, cells, strict=True):
            year = "%Y" if len(cell) == len("2026") else "%y"
            parts.append("%b" if cell.isalpha() else year if letter == "y" else f"%-{letter}")
        yield f"{parts[0]}{match['s']}{parts[1]}{match['t']}{parts[2]}{clock}{zone}"


def _orders(a: str, b: str, c: str, *, between: str) -> tuple[str, ...]:
    """Return the possible orders of day, month and year; points between them mean day first."""
    if a.isalpha() or b.isalpha():
        return ("mdy" if a.isalpha() else "dmy",)
    if len(a) == len("2026"):
        return ("ymd",)
    if between == ".":
        return ("dmy",)
    return ("dmy", "mdy", "ymd") if len(a) == len(c) == len("26") else ("dmy", "mdy")

"""Which ways of writing amounts and times fit all cells of a sample; more than one is asked.

Every way is tried with the very functions that read a file at night, so that what fits here is what
a night will read. Two ways that give the same values everywhere are one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple, TypeVar

from recon.config.file_layouts import MONTHS, FileLayout
from recon.files.typing.amounts import completed, plain_amounts
from recon.files.typing.instants import standard_time
from recon.model.errors import AmountError
from recon.model.money import format_minor_units, is_currency, parse_signed_minor_units

V = TypeVar("V")
W = TypeVar("W")
Answers = Mapping[str, str]
"""Key of a layout -> what a person decided."""


class SeenCell(NamedTuple):
    """One cell of a column of amounts or times."""

    line: int
    text: str
    currency: str = ""
    is_number: bool = False
    """Not text: it may lack decimals in any layout."""


class Decided(NamedTuple):
    """Keys of a layout, and what is to be asked of them."""

    keys: dict[str, Any]
    questions: dict[str, str]


_SEPARATORS = ("", ".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")
_MINUSES = ("before", "behind", "brackets", "DR")
_SIGNS = tuple(
    {"decimal_sign": decimal, "thousands_sign": thousands, "minus": minus}
    for minus, thousands, decimal in product(_MINUSES, _SEPARATORS, ".,")
    if decimal != thousands
)
"""Ways to write an amount, the plainest first: of those that read the same the first is taken."""
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_MARK = (
    "[A-Z]{0,2}[$\u20ac\u00a3\u00a5\u20a9\u20b9\u20bd\u20ba\u20b4\u20aa\u0e3f]"
    "|[A-Z]{3}|z\u0142|kr|K\u010d|Ft"
)
"""How people write a currency beside an amount."""
_MARKS_OF = {"\u20ac": "EUR", "\u00a3": "GBP", "z\u0142": "PLN", "K\u010d": "CZK", "Ft": "HUF"}
"""Those that are of one currency alone."""
_AMOUNT = re.compile(
    rf"[-\u2212(]?(?:(?P<before>{_MARK})[ \u00a0\u202f]?)?[-\u2212(]?"
    rf"[0-9][0-9.,'\u2019 \u00a0\u202f]*[-\u2212)]?(?P<behind>{_MARK})?\)?[-\u2212]?"
    r"(?:[ \u00a0\u202f]?[CD]R)?"
)
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2}|[+-][0-9]{2})?)?",
    re.ASCII,
)
_MONTH = "|".join(MONTHS)
_WRITTEN = re.compile(
    rf"(?P<a>[0-9]{{1,4}}|{_MONTH})(?P<s>[./ -])(?P<b>[0-9]{{1,2}}|{_MONTH})(?P<t>[./ -]|, )"
    r"(?P<c>[0-9]{4}|[0-9]{2}|[0-9])"
    r"(?:(?P<gap>T| |, )(?P<H>[0-9]{1,2}):[0-9]{2}(?P<S>:[0-9]{2}(?P<f>\.[0-9]{1,6})?)?"
    r"(?P<p> ?[AaPp][Mm])?)?(?P<z> ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?"
)
_COMPACT = {8: ("%Y%m%d", "%d%m%Y"), 12: ("%Y%m%d%H%M",), 14: ("%Y%m%d%H%M%S", "%d%m%Y%H%M%S")}
"""Digits alone -> what they may be."""
_DAY_IN_DIGITS = re.compile(
    r"20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[0-9]{4}|[0-9]{6})?", re.ASCII
)
_COUNT = re.compile(r"([0-9]+)(?:\.[0-9]*)?", re.ASCII)
_PADDED = {"m": 5, "d": 8, "H": 11}
"""Part of a pattern -> its place in the standard form."""
_UNIX = range(1_000_000_000, 4_000_000_000)
_SERIAL = range(25_569, 80_000)
_MARKS_SHOWN_MAX = 3
"""Currencies beside amounts of which a question shows a line."""
_SAMPLED_MAX = 2_000
"""Different cells that are tried in every way."""


def best_ways(ways: Iterable[W], *, read: Callable[[W], tuple[V, Any]], least: Any) -> dict[V, W]:
    """What is read -> the first way by which it is, of the ways by which most can be read."""
    best, most = dict[V, W](), least
    for way in ways:
        value, fitting = read(way)
        if fitting > most:
            best, most = {}, fitting
        if fitting == most:
            best.setdefault(value, way)
    return best


def looks_like_amount(text: str) -> bool:
    """Whether a cell may be an amount in some way of writing."""
    return _AMOUNT.fullmatch(text) is not None


def looks_like_time(text: str) -> bool:
    """Whether a cell may be a time in some way of writing."""
    return _ISO.fullmatch(text) is not None or any(_patterns(text))


def looks_like_day(text: str) -> bool:
    """Whether a cell is a time that is written as one, not a count."""
    return any(form.fullmatch(text) for form in (_ISO, _WRITTEN, _DAY_IN_DIGITS))


def currency_beside(texts: Iterable[str]) -> str:
    """The only currency that stands beside amounts; "" where none or several may be meant."""
    marks = {_mark_of(text) for text in texts} - {""}
    mark = marks.pop() if len(marks) == 1 else ""
    return mark if is_currency(mark) else _MARKS_OF.get(mark, "")


def _mark_of(text: str) -> str:
    match = _AMOUNT.fullmatch(text)
    return (match["before"] or match["behind"] or "") if match is not None else ""


def decided_amounts(cells: Iterable[SeenCell], *, in_cents: bool, answers: Answers) -> Decided:
    """How amounts are written; `in_cents`: a name of the file says they are whole cents."""
    shapes: dict[tuple[object, ...], SeenCell] = {}
    for cell in cells:
        shapes.setdefault((re.sub("[1-9]", "9", cell.text), *cell[2:]), cell)
    examples = list(shapes.values())[:_SAMPLED_MAX]
    if not examples:
        return Decided({}, {})
    marked = {mark: cell for cell in reversed(examples) if (mark := _mark_of(cell.text))}
    if len(marked) > 1 and "currency_sign" not in answers:
        seen = sorted(marked.values())[:_MARKS_SHOWN_MAX]
        shown = ", ".join(f"{cell.text!r} on line {cell.line}" for cell in seen)
        ask = f"more than one currency stands beside amounts ({shown}), and a layout takes one"
        without = "export amounts without it, or each currency into a file of its own"
        return Decided({}, {"currency_sign": f"{ask}: {without}"})
    given = {"currency_sign": next(iter(marked), "")}
    given |= {"units": "minor"} if in_cents else {}
    readings = _amount_readings(examples, given={**given, **answers})
    if not readings:
        line = examples[0].line
        ask = f"the amount on line {line} and others fit no way of writing amounts that is known"
        return Decided({}, {"decimal_sign": ask})
    first, *others = readings
    keys = dict[str, Any](_beside_standard(readings[first]))
    layout = FileLayout.model_validate(readings[first])
    if layout.units == "major" and any(_are_short(examples, layout=layout)):
        keys["short_decimals"] = True
    if not others:
        return Decided(keys, {})
    by_units = len({way["units"] for way in readings.values()}) > 1
    cell, *values = next(row for row in zip(examples, *readings, strict=True) if row[1] != row[2])
    ways = " or ".join(
        f"{_shown(value, of=cell)} ({_keys_shown(way)})"
        for value, way in zip(values, readings.values(), strict=True)
    )
    ask = f"line {cell.line} has {cell.text}: {ways}? No row decides"
    return Decided(keys, {"units" if by_units else "decimal_sign": ask})


def _amount_readings(
    examples: Sequence[SeenCell], *, given: Mapping[str, str]
) -> dict[tuple[int | None, ...], dict[str, str]]:
    """What all cells say together -> the plainest way in which they do; the best ways only."""
    sign = given["currency_sign"]
    ways = [
        {**written, "currency_sign": sign, "units": units}
        for written, units in product(_SIGNS, ("major", "minor"))
    ]

    def read(keys: dict[str, str]) -> tuple[tuple[int | None, ...], int]:
        layout = FileLayout.model_validate(keys)
        plain = plain_amounts([cell.text for cell in examples], layout=layout)
        pairs = zip(examples, plain, strict=True)
        values = tuple(_value(text, of=cell, units=keys["units"]) for cell, text in pairs)
        return values, sum(value is not None for value in values)

    fitting = (k for k in ways if all(given.get(key, text) == text for key, text in k.items()))
    return best_ways(fitting, read=read, least=1)


def _value(plain: str | None, *, of: SeenCell, units: str) -> int | None:
    """Minor units; whole amounts are taken, too, so that they compete with cents."""
    if plain is None or units == "minor":
        return int(plain) if plain and _WHOLE.fullmatch(plain) else None
    currency = of.currency or "EUR"
    try:
        return parse_signed_minor_units(completed(plain, currency=currency), currency=currency)
    except AmountError:
        return None


def _are_short(cells: Sequence[SeenCell], *, layout: FileLayout) -> Iterator[bool]:
    """Whether amounts lack decimals of their currency, which are 0 then."""
    texts = [cell for cell in cells if not cell.is_number]
    plain = plain_amounts([cell.text for cell in texts], layout=layout)
    for cell, text in zip(texts, plain, strict=True):
        yield text is not None and completed(text, currency=cell.currency or "EUR") != text


def units_of(texts: Sequence[str], *, layout: FileLayout) -> list[int | None]:
    """Amounts as whole numbers, whatever their currency: to compare sums of one row."""
    units: list[int | None] = []
    for plain in plain_amounts(texts, layout=layout):
        whole, _, fraction = (plain or "").partition(".")
        try:
            exact = f"{whole}.{fraction.ljust(3, '0')}"
            units.append(parse_signed_minor_units(exact, currency="KWD"))
        except AmountError:
            units.append(None)
    return units


def _shown(value: int | None, *, of: SeenCell) -> str:
    if value is None:
        return "no amount"
    amount = format_minor_units(value, currency=of.currency or "EUR")
    return f"{amount} {of.currency}".strip()


def _keys_shown(keys: Mapping[str, str]) -> str:
    shown = _beside_standard(keys) or {"decimal_sign": "."}
    shown.setdefault("units", keys["units"])
    return ", ".join(f"{key} = {text!r}" for key, text in shown.items())


def _beside_standard(keys: Mapping[str, str]) -> dict[str, str]:
    """Only what differs from what a layout means without the key."""
    standard = FileLayout()
    return {key: text for key, text in keys.items() if text != getattr(standard, key)}


def decided_times(
    cells: Iterable[SeenCell],
    *,
    dates: bool,
    zone_of_name: str,
    zone_matters: bool,
    answers: Answers,
) -> Decided:
    """How times are written, and in which zone where they do not say it.

    Args:
        cells: All filled cells of the columns of times.
        dates: These columns hold days.
        zone_of_name: The zone that a name of the file tells, or "".
        zone_matters: Whether moments are read, not days alone.
        answers: What a person decided.
    """
    by_text: dict[str, SeenCell] = {}
    for cell in cells:
        by_text.setdefault(cell.text, cell)
    examples = list(by_text.values())[:_SAMPLED_MAX]
    if not examples:
        return Decided({}, {})
    keys: dict[str, Any] = {}
    questions: dict[str, str] = {}
    timed = dates and any(len(text) > len("2026-11-20") for text in by_text)
    if timed or not all(_ISO.fullmatch(cell.text) for cell in examples):
        readings = _time_readings(examples, answers=answers)
        if not readings:
            ask = f"the time on line {examples[0].line} is written in no way that is known"
            return Decided({}, {"times": ask})
        keys["times"], *others = readings
        if others:
            pairs = zip(examples, readings[keys["times"]], readings[others[0]], strict=True)
            row = next((cell for cell, one, other in pairs if one != other), examples[0])
            ways = " or ".join(map(repr, readings))
            questions["times"] = (
                f"line {row.line} has {row.text}, which fits {ways}; no row decides"
            )
    times = keys.get("times", "")
    if times:
        bare = None if times == "unix" or "%z" in times else examples[0]
    else:
        iso = ((cell, _ISO.fullmatch(cell.text)) for cell in examples)
        bare = next((cell for cell, match in iso if match is None or not match[1]), None)
    if zone_matters and bare is not None:
        if "zone" in answers or zone_of_name:
            keys["zone"] = answers.get("zone", zone_of_name)
        else:
            ask = f"times such as that on line {bare.line} have no offset: in which zone are they?"
            questions["zone"] = f"{ask} (such as Europe/Lisbon)"
    return Decided(keys, questions)


def _time_readings(
    examples: Sequence[SeenCell], *, answers: Answers
) -> dict[str, tuple[str | None, ...]]:
    """Pattern -> what all cells say by it; the best ones only, one of each order of their parts.

    Two digits are demanded of a part only where a cell has a 0 before its one: a sample of the
    last months of a year shows no other. Orders by which all of a sample is alike, such as that
    of 11/11/2026, are two: the next day they differ.
    """
    patterns = list(dict.fromkeys(p for cell in examples for p in _patterns(cell.text)))
    if "times" in answers:
        patterns = [answers["times"]]
    best: dict[str, list[tuple[str, tuple[str | None, ...]]]] = {}
    most = 1
    for pattern in sorted(patterns, key=lambda text: text.count("%-"), reverse=True):
        values = tuple(_moment(cell.text, times=pattern) for cell in examples)
        fitting = sum(value is not None for value in values)
        if fitting > most:
            best, most = {}, fitting
        if fitting == most:
            best.setdefault(pattern.replace("%-", "%"), []).append((pattern, values))
    return dict(
        next((way for way in alike if _demands_zeros(*way)), alike[0]) for alike in best.values()
    )


def _demands_zeros(pattern: str, values: Sequence[str | None]) -> bool:
    """Whether each part that is below 10 somewhere must have a 0 before its one digit."""
    seen = [part for part, at in _PADDED.items() if any(v and v[at] == "0" for v in values)]
    return not any(f"%-{part}" in pattern for part in seen)


def _moment(text: str, *, times: str) -> str | None:
    """The moment in the standard form, if the calendar has it."""
    standard = standard_time(text, times=times)
    try:
        return standard if standard is None or datetime.fromisoformat(standard) else None
    except ValueError:
        return None


def _patterns(text: str) -> Iterator[str]:
    """Every pattern by which a cell may be written."""
    if (count := _COUNT.fullmatch(text)) is not None:
        if count[1] == text:
            yield from _COMPACT.get(len(text), ())
            yield from ("unix",) * (int(text) in _UNIX)
        yield from ("serial",) * (int(count[1]) in _SERIAL)
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return
    clocks = [""]
    if match["gap"] is not None:
        rest = ":%M" + (":%S" if match["S"] else "") + (".%f" if match["f"] else "")
        half = re.sub("[^ ]+", "%p", match["p"] or "")
        hours = ["%I"] if half else ["%H", "%-H"][len(match["H"]) == 1 :]
        clocks = [f"{match['gap']}{hour}{rest}{half}" for hour in hours]
    zone = re.sub("[^ ]+", "%z", match["z"] or "")
    for order in _orders(match):
        ways = []
        for letter, cell in zip(order, match.group("a", "b", "c"), strict=True):
            if cell.isalpha():
                ways.append(["%b"])
            elif letter == "y":
                ways.append(["%Y" if len(cell) == len("2026") else "%y"])
            else:
                ways.append([f"%{letter}", f"%-{letter}"][len(cell) != len("05") :])
        for (a, b, c), clock in product(product(*ways), clocks):
            yield f"{a}{match['s']}{b}{match['t']}{c}{clock}{zone}"


def _orders(match: re.Match[str]) -> tuple[str, ...]:
    """In which order day, month and year may stand; a point between them means day first."""
    a, b, c = match.group("a", "b", "c")
    if a.isalpha() or b.isalpha():
        return ("mdy" if a.isalpha() else "dmy",)
    if len(a) == len("2026"):
        return ("ymd",)
    if match["s"] == ".":
        return ("dmy",)
    return ("dmy", "mdy", "ymd") if len(a) == len(c) == len("26") else ("dmy", "mdy")

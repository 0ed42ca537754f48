"""Which ways of writing amounts and times fit all cells of a sample; more than one is asked.

Every way is tried with the very functions that read a file at night, so that what fits here is what
a night will read. Two ways that give the same values everywhere are one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple

from recon.config.file_layouts import MONTHS, FileLayout
from recon.files.typing.written_amounts import plain_amount
from recon.files.typing.written_times import standard_time
from recon.model.errors import AmountError
from recon.model.money import exponent, format_minor_units, is_currency, parse_signed_minor_units

Answers = Mapping[str, str]
"""Key of a layout -> what a person decided."""


class SeenCell(NamedTuple):
    """One cell of a column of amounts or times."""

    line: int
    text: str
    currency: str = ""


class Decided(NamedTuple):
    """Keys of a layout, and what is to be asked of them."""

    keys: dict[str, Any]
    questions: dict[str, str]


_SEPARATORS = ("", ".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")
_SIGNS = tuple(
    {"decimal_sign": decimal, "thousands_sign": thousands, "minus": minus}
    for minus, thousands, decimal in product(("before", "behind", "brackets"), _SEPARATORS, ".,")
    if decimal != thousands
)
"""Ways to write an amount, the plainest first: of those that read the same the first is taken."""
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_MARK = (
    "[A-Z]{0,2}[$\u20ac\u00a3\u00a5\u20a9\u20b9\u20bd\u20ba\u20b4\u20aa\u0e3f]"
    "|[A-Z]{3}|z\u0142|kr|K\u010d|Ft"
)
"""How people write a currency beside an amount."""
_MARKS_OF = {
    "\u20ac": "EUR",
    "\u00a3": "GBP",
    "z\u0142": "PLN",
    "K\u010d": "CZK",
    "Ft": "HUF",
}
"""Those that are of one currency alone."""
_AMOUNT = re.compile(
    rf"[-(]?(?:(?P<before>{_MARK})[ \u00a0\u202f]?)?[-(]?[0-9][0-9.,'\u2019 \u00a0\u202f]*[-)]?"
    rf"(?P<behind>{_MARK})?\)?-?"
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
_PADDED = {"m": 5, "d": 8, "H": 11}
"""Part of a pattern -> its place in the standard form."""
_UNIX = range(1_000_000_000, 4_000_000_000)
_SERIAL = range(25_569, 80_000)
_MARKS_SHOWN_MAX = 3
"""Currencies beside amounts of which a question shows a line."""
_SAMPLED_MAX = 2_000
"""Different cells that are tried in every way."""


def looks_like_amount(text: str) -> bool:
    """Whether a cell may be an amount in some way of writing."""
    return _AMOUNT.fullmatch(text) is not None


def currency_mark(texts: Iterable[str]) -> str:
    """The one sign of a currency that stands beside amounts; "" where there is none or several."""
    marks = {_mark_of(text) for text in texts} - {""}
    return marks.pop() if len(marks) == 1 else ""


def _mark_of(text: str) -> str:
    match = _AMOUNT.fullmatch(text)
    return (match["before"] or match["behind"] or "") if match is not None else ""


def currency_of_mark(sign: str) -> str:
    """The only currency that is written so, or ""."""
    return sign if is_currency(sign) else _MARKS_OF.get(sign, "")


def looks_like_time(text: str) -> bool:
    """Whether a cell may be a time in some way of writing."""
    return _ISO.fullmatch(text) is not None or any(_patterns(text))


def looks_like_day(text: str) -> bool:
    """Whether a cell is a time that is written as one, not a count."""
    return any(form.fullmatch(text) for form in (_ISO, _WRITTEN, _DAY_IN_DIGITS))


def decided_amounts(cells: Iterable[SeenCell], *, in_cents: bool, answers: Answers) -> Decided:
    """How amounts are written; `in_cents`: a name of the file says they are whole cents."""
    shapes: dict[tuple[str, str], SeenCell] = {}
    for cell in cells:
        shape = re.sub("[1-9]", "9", cell.text)
        shapes.setdefault((shape, cell.currency), cell)
    examples = list(shapes.values())[:_SAMPLED_MAX]
    if not examples:
        return Decided({}, {})
    marked = {_mark_of(cell.text): cell for cell in reversed(examples)}
    marked.pop("", None)
    if len(marked) > 1 and "currency_sign" not in answers:
        seen = sorted(marked.values())[:_MARKS_SHOWN_MAX]
        shown = ", ".join(f"{cell.text!r} on line {cell.line}" for cell in seen)
        ask = f"more than one currency stands beside amounts ({shown}), and a layout takes one"
        without = "export amounts without it, or each currency into a file of its own"
        return Decided({}, {"currency_sign": f"{ask}: {without}"})
    readings = _amount_readings(examples, in_cents=in_cents, answers=answers)
    if not readings:
        line = examples[0].line
        ask = f"the amount on line {line} and others fit no way of writing amounts that is known"
        return Decided({}, {"decimal_sign": ask})
    first, *others = readings.items()
    if not others:
        return Decided(_beside_standard(dict(first[1])), {})
    key = "units" if _differ(readings.values(), "units") else "decimal_sign"
    values = [first[0], others[0][0]]
    row = next(i for i, pair in enumerate(zip(*values, strict=True)) if pair[0] != pair[1])
    ways = " or ".join(
        f"{_shown(value[row], of=examples[row])} ({_keys_shown(keys)})"
        for value, keys in readings.items()
    )
    ask = f"line {examples[row].line} has {examples[row].text}: {ways}? No row decides"
    return Decided(_beside_standard(dict(first[1])), {key: ask})


def _amount_readings(
    examples: Sequence[SeenCell], *, in_cents: bool, answers: Answers
) -> dict[tuple[int | None, ...], Mapping[str, str]]:
    """What all cells say together -> the plainest way in which they do; the best ways only."""
    best: dict[tuple[int | None, ...], Mapping[str, str]] = {}
    fitting = 0
    sign = answers.get("currency_sign", currency_mark(cell.text for cell in examples))
    for written, units in product(_SIGNS, ("major", "minor")):
        signs = {**written, "currency_sign": sign}
        keys = {**signs, "units": units}
        if (in_cents and "units" not in answers and units == "major") or any(
            answers.get(key, text) != text for key, text in keys.items()
        ):
            continue
        layout = FileLayout.model_validate(signs)
        values = tuple(_value(cell, layout=layout, units=units) for cell in examples)
        fits = sum(value is not None for value in values)
        if fits > fitting:
            best, fitting = {}, fits
        if fits == fitting and fits:
            best.setdefault(values, keys)
    return best


def _value(cell: SeenCell, *, layout: FileLayout, units: str) -> int | None:
    """Minor units; whole amounts are taken, too, so that they compete with cents."""
    plain = plain_amount(cell.text, layout=layout)
    if plain is None:
        return None
    if units == "minor":
        return int(plain) if _WHOLE.fullmatch(plain) else None
    try:
        decimals = exponent(cell.currency or "EUR")
        if "." not in plain and decimals:
            plain = f"{plain}.{'0' * decimals}"
        return parse_signed_minor_units(plain, currency=cell.currency or "EUR")
    except AmountError:
        return None


def units_of(text: str, *, layout: FileLayout) -> int | None:
    """An amount as a whole number, whatever its currency: to compare sums of one row."""
    plain = plain_amount(text, layout=layout)
    if plain is None:
        return None
    whole, _, fraction = plain.partition(".")
    try:
        return parse_signed_minor_units(f"{whole}.{fraction.ljust(3, '0')}", currency="KWD")
    except AmountError:
        return None


def _shown(value: int | None, *, of: SeenCell) -> str:
    if value is None:
        return "no amount"
    amount = format_minor_units(value, currency=of.currency or "EUR")
    return f"{amount} {of.currency}".strip()


def _keys_shown(keys: Mapping[str, str]) -> str:
    told_keys = _beside_standard(keys) or {"decimal_sign": "."}
    if keys["units"] == "major":
        told_keys.setdefault("units", "major")
    return ", ".join(f"{key} = {text!r}" for key, text in told_keys.items())


def _differ(readings: Iterable[Mapping[str, str]], key: str) -> bool:
    return len({keys[key] for keys in readings}) > 1


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
    examples = _different(cells)
    if not examples:
        return Decided({}, {})
    keys: dict[str, Any] = {}
    questions: dict[str, str] = {}
    iso = [_ISO.fullmatch(cell.text) for cell in examples]
    plain = all(iso) and not (
        dates and any(len(cell.text) > len("2026-11-20") for cell in examples)
    )
    if not plain:
        readings = _time_readings(examples, answers=answers)
        if not readings:
            ask = f"the time on line {examples[0].line} is written in no way that is known"
            return Decided({}, {"times": ask})
        first, *others = readings
        keys["times"] = first
        if others:
            pair = zip(readings[first], readings[others[0]], strict=True)
            row = next((i for i, (one_way, other) in enumerate(pair) if one_way != other), 0)
            ways = " or ".join(map(repr, readings))
            questions["times"] = (
                f"line {examples[row].line} has {examples[row].text}, which fits {ways}; "
                "no row decides"
            )
    offsets = [_has_offset(cell.text, times=keys.get("times", "")) for cell in examples]
    if zone_matters and not all(offsets):
        if "zone" in answers or zone_of_name:
            keys["zone"] = answers.get("zone", zone_of_name)
        else:
            line = examples[offsets.index(False)].line
            ask = f"times such as that on line {line} have no offset: in which zone are they?"
            questions["zone"] = f"{ask} (such as Europe/Lisbon)"
    return Decided(keys, questions)


def _different(cells: Iterable[SeenCell]) -> list[SeenCell]:
    """The first cell of each text."""
    by_text: dict[str, SeenCell] = {}
    for cell in cells:
        by_text.setdefault(cell.text, cell)
    return list(by_text.values())[:_SAMPLED_MAX]


def _has_offset(text: str, *, times: str) -> bool:
    if times:
        return times == "unix" or "%z" in times
    match = _ISO.fullmatch(text)
    return match is not None and match[1] is not None


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
    best: dict[str, dict[str, tuple[str | None, ...]]] = {}
    fitting = 0
    for pattern in sorted(patterns, key=lambda text: text.count("%-"), reverse=True):
        values = tuple(_moment(cell.text, times=pattern) for cell in examples)
        fits = sum(value is not None for value in values)
        if fits > fitting:
            best, fitting = {}, fits
        if fits == fitting and fits:
            best.setdefault(pattern.replace("%-", "%"), {})[pattern] = values
    return dict(_least_demanding(alike) for alike in best.values())


def _least_demanding(
    alike: Mapping[str, tuple[str | None, ...]],
) -> tuple[str, tuple[str | None, ...]]:
    """Of patterns of one order, all of which fit, the one that demands only digits that are seen.

    A value below 10 in a part of two digits has a 0 before its one.
    """
    values = next(iter(alike.values()))
    seen = {part for part, at in _PADDED.items() if any(v and v[at] == "0" for v in values)}
    fitting = [p for p in alike if all("%-" + part not in p for part in seen)]
    demanded = fitting or [*alike]
    return max(demanded, key=lambda text: text.count("%-")), values


def _moment(text: str, *, times: str) -> str | None:
    """The moment in the standard form, if the calendar has it."""
    standard = standard_time(text, times=times)
    if standard is None:
        return None
    try:
        datetime.fromisoformat(standard)
    except ValueError:
        return None
    return standard


def _patterns(text: str) -> Iterable[str]:
    """Every pattern by which a cell may be written."""
    if text.isascii() and text.isdigit():
        yield from _COMPACT.get(len(text), ())
        if int(text) in _UNIX:
            yield "unix"
    whole, _, fraction = text.partition(".")
    counted = (whole + fraction).isascii() and (whole + fraction).isdigit()
    if counted and whole and int(whole) in _SERIAL:
        yield "serial"
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return
    for order in _orders(match):
        parts = zip(order, (match["a"], match["b"], match["c"]), strict=True)
        for forms in product(*(_forms(letter, cell) for letter, cell in parts)):
            day = f"{forms[0]}{match['s']}{forms[1]}{match['t']}{forms[2]}"
            yield from (day + clock + (_offset(match)) for clock in _clocks(match))


def _orders(match: re.Match[str]) -> Iterable[str]:
    """In which order day, month and year may stand; a point between them means day first."""
    a, b, c = match["a"], match["b"], match["c"]
    if a.isalpha() or b.isalpha():
        yield "mdy" if a.isalpha() else "dmy"
        return
    if len(a) == len("2026"):
        yield "ymd"
        return
    yield "dmy"
    if match["s"] != ".":
        yield "mdy"
        if len(a) == len(c) == len("26"):
            yield "ymd"


def _forms(letter: str, cell: str) -> Iterable[str]:
    """How a part of a date may be written."""
    if cell.isalpha():
        return ("%b",)
    if letter == "y":
        return ("%Y",) if len(cell) == len("2026") else ("%y",)
    return (f"%{letter}", f"%-{letter}") if len(cell) == len("05") else (f"%-{letter}",)


def _clocks(match: re.Match[str]) -> Iterable[str]:
    if match["gap"] is None:
        return ("",)
    rest = ":%M" + (":%S" if match["S"] else "") + (".%f" if match["f"] else "")
    if match["p"]:
        return (f"{match['gap']}%I{rest}{' ' if match['p'].startswith(' ') else ''}%p",)
    hours = ("%H", "%-H") if len(match["H"]) == len("09") else ("%-H",)
    return tuple(f"{match['gap']}{hour}{rest}" for hour in hours)


def _offset(match: re.Match[str]) -> str:
    if not match["z"]:
        return ""
    return " %z" if match["z"].startswith(" ") else "%z"

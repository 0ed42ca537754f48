"""What the cells of samples decide of a layout: words, amounts and their signs, times, a last line.

Every way is tried by the night's own readers, so that what fits here is what a night will read; two
ways that give the same values everywhere are one. Sums prove which way money goes, of a row (net is
gross less fee) and of a batch that a payout ends. What nothing proves is asked.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pandas as pd

from recon.config.file_layouts import FileLayout
from recon.files.proposing.ranked_columns import Draft, layout_of, units_of
from recon.files.proposing.sample import SAMPLE_ROWS_MAX, total_of
from recon.files.proposing.vocabulary import MEANINGS, NAMES, plain_words
from recon.files.proposing.written_cells import (
    AMOUNT_WAYS,
    best_ways,
    looks_like_amount,
    mark_of,
    time_patterns,
)
from recon.files.typing.control_figures import declared_units
from recon.files.typing.instants import ISO_TIME, standard_time
from recon.files.typing.table_schema import DIRECTIONS, SETTLED_TYPES, Cell, Grammar, TableColumn
from recon.model.errors import AmountError, UsageError
from recon.model.money import format_minor_units, is_currency
from recon.model.words import EntryType, SourceKind
from recon.privacy.shown_text import redacted

_SAMPLED_MAX = 2_000
"""Different cells that are tried in every way."""
_MARKS_SHOWN_MAX = 3
"""Currencies beside amounts of which a question shows a line."""
_ZONES = {"utc": "UTC", "gmt": "UTC"}
_PADDED = {"m": 5, "d": 8, "H": 11}
"""Part of a pattern -> its place in the standard form."""
_OF_ROW = ("gross", "fee", "net")
_CHOICES: tuple[tuple[str, ...], ...] = (
    *((), ("gross", "net"), ("gross",), ("net",), ("fee",), ("gross", "fee"), ("fee", "net")),
    _OF_ROW,
)
"""Columns of a row whose sign may differ from ours, the plainest first."""
_WAYS = {kind: way for kind, way in DIRECTIONS.items() if kind in SETTLED_TYPES} | {"payout": 1}
"""Entry type of a settled row -> the sign of its net; adjustments have either."""
_EITHER_WAY = frozenset({"reserve", "payout"})
_MINUS_WORDS = NAMES["debits"] | NAMES["signs_minus"]
_PLUS_WORDS = NAMES["credits"] | NAMES["signs_plus"]
_UNREAD = frozenset({"decimal_sign", "units", "currency_sign"})
"""Questions with which no amount can be read."""
_TRIED_ROWS_MAX = 500
"""Rows by which it is tried of which amounts a column of signs is."""
_TRIED_COLUMNS_MAX = 12
"""Columns of amounts of which it is tried which ones come to the fee."""
_PROVEN_BY_ROWS = 2
"""Rows that are enough; one may come to it by chance."""
_CHOICES_SHOWN_MAX = 4
_Sides = dict[str, str]
"""A column of signs: its name, and its words for plus and for minus."""


def listed(text: str, *, by: str = ",") -> tuple[str, ...]:
    """The columns of an answer such as `gross,net` or `Commission + Markup`."""
    return tuple(name.strip() for name in text.split(by) if name.strip())


def decide_keys(draft: Draft) -> None:
    """All that the cells decide, each key by those before it."""
    _decide_words(draft)
    _decide_amounts(draft)
    _decide_sums(draft)
    _decide_sign(draft)
    _decide_turned(draft)
    _decide_captures(draft)
    _decide_times(draft)
    _decide_trailer(draft)


def _decide_words(draft: Draft) -> None:
    """The key `words`: of columns that hold some words, and of currencies in small letters."""
    words: dict[str, dict[str, str]] = {}
    for column in draft.schema.columns:
        seen = draft.seen(column.name)
        if isinstance(column.cell, frozenset) and not seen.keys() <= column.cell:
            words[column.name] = _meant(draft, column=column, ours=column.cell)
    # What is no currency stays a row that a night refuses.
    codes = {text for text in draft.seen("currency") if is_currency(text.upper())}
    if any(code.upper() != code for code in codes):
        words["currency"] = {code: code.upper() for code in sorted(codes)}
    if words:
        draft.keys["words"] = words


def _meant(draft: Draft, *, column: TableColumn, ours: frozenset[str]) -> dict[str, str]:
    """Their word -> ours; a word that could mean several things is asked."""
    table = "kind" if column.name == "action" else column.name
    known = MEANINGS.get("bank_status" if draft.schema.kind is SourceKind.BANK else table, {})
    meant = draft.answered(f"words.{column.name}.")
    for word, line in draft.seen(column.name).items():
        if word in meant:
            continue
        if (named := known.get(plain_words(word), word)) in ours:
            meant[word] = named
            continue
        shown = f".{word}" if redacted(word) == word else ""
        which = ", ".join(sorted(ours))
        draft.questions[f"words.{column.name}{shown}"] = f"line {line}: which of {which} is it?"
    return meant


def _decide_amounts(draft: Draft) -> None:
    """The keys of decimal sign, thousands, minus, units, and whether decimals may lack."""
    names = [draft.columns[column.name] for column in draft.amount_columns()]
    names += [*draft.debit.values(), *chain.from_iterable(draft.sums.values())]
    names = [name for name in dict.fromkeys(names) if name in draft.theirs]
    seen = [pair for name in names for pair in draft.theirs[name].seen.items()]
    if not seen:
        return
    marks = {mark: (line, text) for text, line in reversed(seen) if (mark := mark_of(text))}
    if len(marks) > 1 and "currency_sign" not in draft.answers:
        shown = sorted(marks.values())[:_MARKS_SHOWN_MAX]
        each = ", ".join(f"{text!r} on line {line}" for line, text in shown)
        draft.questions["currency_sign"] = (
            f"more than one currency stands beside amounts ({each}), and a layout takes one: "
            "export amounts without it, or each currency into a file of its own"
        )
        return
    given = {"currency_sign": next(iter(marks), "")}
    if any(NAMES["cents"] & {*draft.theirs[name].words.split(" ")} for name in names):
        given["units"] = "minor"
    given |= draft.answers
    rows = _unlike(draft, names)

    def read(way: dict[str, Any]) -> tuple[tuple[int | None, ...], int]:
        values = tuple(chain.from_iterable(draft.read(names, rows=rows, **way)))
        return values, sum(value is not None for value in values)

    blanks = sum(
        not draft.sample.raw.columns[name][row].as_py() for name in names for row in rows.tolist()
    )
    ways = (
        {**way, "currency_sign": given["currency_sign"], "short_decimals": True}
        for way in AMOUNT_WAYS
        if all(given.get(key, text) == text for key, text in way.items())
    )
    readings = best_ways(ways, read=read, least=blanks + 1)
    if not readings:
        ask = f"the amount on line {seen[0][1]} and others fit no way of writing amounts that is"
        draft.questions["decimal_sign"] = f"{ask} known"
        return
    first, *others = readings
    way = readings[first]
    draft.keys.update(_beside_standard(way))
    if way["units"] == "minor" or read(way | {"short_decimals": False})[0] == first:
        draft.keys.pop("short_decimals", None)
    if others:
        _ask_of_amounts(draft, readings, cells=[(name, row) for name in names for row in rows])
    debits = [*chain.from_iterable(draft.read([*draft.debit.values()]))]
    if any(debits) and all(units is not None and units <= 0 for units in debits):
        draft.keys["debit_minus"] = True


def _unlike(draft: Draft, names: Sequence[str]) -> Any:
    """Rows of which no two write their amounts alike, but for the digits."""
    raw = draft.sample.raw
    currencies = draft.columns.get("currency", "")
    columns = [raw.columns[name].to_pylist() for name in names]
    columns = [[re.sub("[1-9]", "9", text) for text in texts] for texts in columns]
    columns += [raw.columns[currencies].to_pylist()] if currencies else []
    columns += [raw.numbers[name].to_pylist() for name in names if name in raw.numbers]
    shapes = {shape: row for row, shape in reversed([*enumerate(zip(*columns, strict=True))])}
    return np.array(sorted(shapes.values())[:_SAMPLED_MAX], dtype=np.int64)


def _ask_of_amounts(
    draft: Draft,
    readings: Mapping[tuple[int | None, ...], dict[str, Any]],
    *,
    cells: Sequence[tuple[str, Any]],
) -> None:
    """Show the first cell that two ways read as two amounts."""
    first, second = [*readings][:2]
    at = next(at for at, (one, other) in enumerate(zip(first, second, strict=True)) if one != other)
    name, row = cells[at]
    raw, column = draft.sample.raw, draft.columns.get("currency", "")
    code = raw.columns[column][row].as_py() if column else draft.constants.get("currency", "")
    code = code.upper() if is_currency(code.upper()) else ""
    shown = []
    for values, way in readings.items():
        keys = _beside_standard(way) or {"decimal_sign": "."}
        keys = {key: text for key, text in keys.items() if key != "short_decimals"}
        keys.setdefault("units", way["units"])
        amount, units = "no amount", values[at]
        if units is not None:
            amount = f"{format_minor_units(units, currency=code or 'EUR')} {code}".strip()
        written = ", ".join(f"{key} = {text!r}" for key, text in keys.items())
        shown.append(f"{amount} ({written})")
    by_units = len({way["units"] for way in readings.values()}) > 1
    where = f"line {raw.lines[row]} has {raw.columns[name][row]}"
    ask = f"{where}: {' or '.join(shown)}? No row decides"
    draft.questions["units" if by_units else "decimal_sign"] = ask


def _beside_standard(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Only what differs from what a layout means without the key."""
    standard = FileLayout()
    return {key: text for key, text in keys.items() if text != getattr(standard, key)}


def _decide_times(draft: Draft) -> None:
    """The keys `times` and `zone`; a column that need not be there is left where it differs."""
    instants, dates = (
        [c for c in draft.schema.columns if c.cell is cell and c.name in draft.columns]
        for cell in (Cell.INSTANT, Grammar.DATE)
    )
    seen: dict[str, int] = {}
    raw = draft.sample.raw
    for name in (column.name for column in (*instants, *dates) if column.required):
        texts = raw.columns[draft.columns[name]].to_pylist()
        if clock := draft.clock.get(name):
            pairs = zip(texts, raw.columns[clock].to_pylist(), strict=True)
            texts = [f"{text} {time}".strip() if text else "" for text, time in pairs]
        for text, line in zip(texts, raw.lines.tolist(), strict=True):
            seen.setdefault(text, line)
    seen.pop("", None)
    examples = [*seen][:_SAMPLED_MAX]
    readings = _time_readings(examples, dates=bool(dates), answer=draft.answers.get("times"))
    if examples and not readings:
        ask = f"the time on line {seen[examples[0]]} is written in no way that is known"
        draft.questions["times"] = ask
        return
    times, *others = [*readings] or [""]
    if times:
        draft.keys["times"] = times
    if others:
        both = zip(examples, readings[times], readings[others[0]], strict=True)
        text = next((text for text, one, other in both if one != other), examples[0])
        ways = " or ".join(map(repr, readings))
        ask = f"line {seen[text]} has {text}, which fits {ways}; no row decides"
        draft.questions["times"] = ask
    bare = [text for text in examples if _has_no_offset(text, times=times)]
    names = [draft.theirs[draft.columns[c.name]].words for c in instants if c.required]
    zones = {_ZONES[word] for name in names for word in name.split(" ") if word in _ZONES}
    zone = draft.answers.get("zone", zones.pop() if len(zones) == 1 else "")
    if bare and names and ("zone" in draft.answers or zone):
        draft.keys["zone"] = zone
    elif bare and names:
        ask = f"times such as that on line {seen[bare[0]]} have no offset: in which zone are they?"
        draft.questions["zone"] = f"{ask} (such as Europe/Lisbon)"
    for column in () if draft.sample.typed and times else instants:
        values = [_moment(text, times=times, dates=False) for text in draft.seen(column.name)]
        if not column.required and None in values:
            del draft.columns[column.name]


def _has_no_offset(text: str, *, times: str) -> bool:
    if times:
        return times != "unix" and "%z" not in times
    return not re.search(r"(?:Z|[T ].*[+-].*)\Z", text)


def _time_readings(
    examples: Sequence[str], *, dates: bool, answer: str | None
) -> dict[str, tuple[str | None, ...]]:
    """Pattern -> what all cells say by it, of the patterns by which most say something.

    Orders by which all of a sample is alike, such as that of 11/11/2026, are two: the next day they
    differ.
    """
    patterns = ["", *dict.fromkeys(p for text in examples for p in time_patterns(text))]

    def read(times: str) -> tuple[str | None, ...]:
        return tuple(_moment(text, times=times, dates=dates) for text in examples)

    readings = {times: read(times) for times in ([answer] if answer is not None else patterns)}
    fits = {times: len(values) - values.count(None) for times, values in readings.items()}
    most = max(fits.values())
    best = {times: readings[times] for times in readings if fits[times] == most > 0}
    if "" in best:
        return {"": best[""]}
    if answer is not None:
        return best
    # Two digits are demanded of a part only where a cell has a 0 before its one: a sample of the
    # last months of a year shows no other.
    found = {}
    for lenient, values in best.items():
        times = lenient
        for part, at in _PADDED.items():
            strict = times.replace(f"%-{part}", f"%{part}")
            if any(value and value[at] == "0" for value in values) and read(strict) == values:
                times = strict
        found[times] = values
    return found


def _moment(text: str, *, times: str, dates: bool) -> str | None:
    """The moment in the standard form, if the calendar has it."""
    standard = standard_time(text, times=times) if times else text
    if not times and (not ISO_TIME.fullmatch(text) or (dates and len(text) > len("2026-11-20"))):
        return None
    try:
        return standard if standard is None or datetime.fromisoformat(standard) else None
    except ValueError:
        return None


def _decide_sums(draft: Draft) -> None:
    """The keys `sums` and `net`: what no single column of a file says."""
    for ours, text in draft.answered("sums.").items():
        parts = listed(text, by=" + ")
        if unknown := [name for name in parts if name not in draft.theirs]:
            msg = f"sums.{ours}: the samples have no column {unknown[0]!r} that can be named"
            raise UsageError(msg)
        _add_up(draft, ours, parts)
    if draft.schema.kind is not SourceKind.SETTLEMENT:
        return
    if not {"fee", "constants.fee", "columns.fee"} & {*draft.sums, *draft.answers}:
        _find_summands(draft)
    # No column of a file can be its net, and gross and fee are known.
    has_fee = "fee" in {*draft.columns, *draft.sums} or "constants.fee" in draft.answers
    if "columns.net" not in draft.questions or "gross" not in draft.columns or not has_fee:
        return
    free = [their for name, their in draft.theirs.items() if name not in draft.taken()]
    names = [repr(their.name) for their in free if their.seen and their.all(looks_like_amount)]
    if names and "net" not in draft.answers:
        ask = f"which column is it: {' or '.join(names[:_CHOICES_SHOWN_MAX])}?"
        draft.questions["columns.net"] = f"{ask} (net=gross_less_fee where none is)"
        return
    del draft.questions["columns.net"]
    draft.keys["net"] = "gross_less_fee"


def _add_up(draft: Draft, ours: str, parts: Sequence[str]) -> None:
    """Take an amount for the sum of some columns; how amounts are written, they say as well."""
    draft.sums[ours] = tuple(parts)
    draft.columns.pop(ours, None)
    for key in (f"columns.{ours}", *_UNREAD):
        draft.questions.pop(key, None)
    _decide_amounts(draft)


def _find_summands(draft: Draft) -> None:
    """The fee, where it is what several columns come to: gross less all of them is net.

    Two rows prove it, by one choice of columns alone. A column that is nothing in all of them is
    of the fee if it is named as a part of it: the next file's net proves that again.
    """
    has_both = {"gross", "net"} <= draft.columns.keys()
    if _UNREAD & draft.questions.keys() or "fee" in draft.debit or not has_both:
        return
    rows = np.arange(min(_TRIED_ROWS_MAX, len(draft.sample.raw.lines)))
    taken = draft.taken() - {draft.columns.get("fee")}
    free = [
        name
        for name, their in draft.theirs.items()
        if name not in taken and their.all(looks_like_amount)
    ]
    read = dict(zip(free, draft.read(free, rows=rows), strict=True))
    amounts = {name: units for name, units in read.items() if None not in units}
    parts = {name: np.array(units) for name, units in amounts.items() if any(units)}
    mapped = draft.mapped(_OF_ROW)
    gross, net = (units_of(mapped, name)[: len(rows)] for name in ("gross", "net"))
    if None in gross or None in net or len(parts) > _TRIED_COLUMNS_MAX:
        return
    wanted = np.array(gross) - np.array(net)
    if np.count_nonzero(wanted) < _PROVEN_BY_ROWS:
        return
    fitting = [
        names
        for size in range(1, len(parts) + 1)
        for names in combinations(parts, size)
        if np.array_equal(abs(np.sum([parts[name] for name in names], axis=0)), abs(wanted))
    ]
    if not fitting or any(len(names) == 1 for names in fitting):
        return  # one column alone says it, or nothing does
    if len(fitting) > 1:
        ways = " or ".join(" + ".join(names) for names in fitting[:_CHOICES_SHOWN_MAX])
        draft.questions.pop("columns.fee", None)
        ask = f"of which columns is the fee the sum: {ways}? Each fits all rows"
        draft.questions["sums.fee"] = ask
        return
    named = {name for name in amounts if draft.theirs[name].is_named(NAMES["fee_parts"])}
    _add_up(draft, "fee", [n for n in amounts if n in fitting[0] or n in named - parts.keys()])


def _decide_sign(draft: Draft) -> None:
    """The key `sign`: amounts without a sign have it in a column of S and H, or Af and Bij."""
    found: dict[str, _Sides] = {}
    for their in draft.theirs.values():
        words = {plain_words(text): text for text in their.seen}
        is_read = their.name in draft.columns.values()
        if is_read or not words or not words.keys() <= _MINUS_WORDS | _PLUS_WORDS:
            continue
        minus = [text for word, text in words.items() if word in _MINUS_WORDS]
        plus = [text for text in words.values() if text not in minus]
        sides = {"column": their.name, "plus": "".join(plus), "minus": "".join(minus)}
        found[their.name] = sides if max(len(minus), len(plus)) == 1 else {}
    if not found:
        return
    kind, sides = draft.schema.kind, next(iter(found.values()))
    signs = _answered_signs(draft, found)
    # Of a bank what is added may bear no word; of books both sides bear one.
    of_books = kind is SourceKind.LEDGER and "amount" in draft.columns.keys() - draft.debit.keys()
    of_bank = kind is SourceKind.BANK and bool(sides.get("minus"))
    if signs is None and len(found) == 1 and sides and (of_books or of_bank):
        signs = {"amount": sides}
    if signs is None and kind is SourceKind.SETTLEMENT and all(found.values()):
        signs = _sign_of_settled(draft, [*found.values()])
    if signs is None:
        amounts = [c.name for c in draft.schema.columns if c.cell is Cell.AMOUNT]
        ours = next((name for name in amounts if name in draft.columns), amounts[0])
        draft.questions[f"sign.{ours}"] = (
            f"column {' and '.join(map(repr, found))} says which way money goes: of which amounts "
            f"(sign.{ours} = {next(iter(found))!r}, and so on, or nothing where it is of none)?"
        )
    for ours, sign in signs.items() if signs and kind is not SourceKind.BANK else ():
        # A sample of captures alone shows one side; the other one's word must be known at night.
        for side, other in (("plus", "minus"), ("minus", "plus")):
            key = f"sign.{ours}.{side}"
            if not sign[side] and key not in draft.answers:
                ask = f"column {sign['column']!r} says {sign[other]!r} in every row"
                draft.questions[key] = f"{ask}; what does it say of the other side?"
    if signs:
        draft.keys["sign"] = signs


def _answered_signs(draft: Draft, found: Mapping[str, _Sides]) -> dict[str, _Sides] | None:
    """Our amount -> its sign, as a person named the columns of signs; None: nobody did.

    Raises:
        UsageError: a column has no words of signs that are known.
    """
    named = {ours: their for ours, their in draft.answered("sign.").items() if "." not in ours}
    for ours, their in named.items():
        if their and not found.get(their):
            msg = f"sign.{ours}: {their!r} is no column with one known word for plus and for minus"
            raise UsageError(msg)
    return {ours: found[their] for ours, their in named.items() if their} if named else None


def _sign_of_settled(draft: Draft, found: Sequence[_Sides]) -> dict[str, _Sides] | None:
    """Our amount -> its sign: those by which net is gross less fee; None: several do, or none."""
    # What is taken as a fee may be called a debit.
    turned = [{**each, "plus": each["minus"], "minus": each["plus"]} for each in found]
    ways = {"gross": [{}, *found], "fee": [{}, *found, *turned], "net": [{}, *found]}
    fixed = {*draft.debit, *({"net"} & draft.keys.keys())}
    every = product(*([{}] if name in fixed else ways[name] for name in _OF_ROW))
    columns = {sides["column"] for sides in found}
    signs = [
        {name: sides for name, sides in zip(_OF_ROW, chosen, strict=True) if sides}
        for chosen in every
        if {sides["column"] for sides in chosen if sides} == columns
    ]

    def read(sign: dict[str, _Sides]) -> tuple[Any, tuple[int, int]]:
        rows = _settled(draft, sign=sign).head(_TRIED_ROWS_MAX)
        sums = rows[_adds_up(rows)]
        # Money goes as the type says; without a net its gross does, and the fee of a capture.
        of = "gross" if "net" in draft.keys else "net"
        fine = sums[of] * sums["kind"].map(_WAYS).fillna(0) >= 0
        if of == "gross":
            fine &= (sums["fee"] >= 0) | (sums["kind"] != EntryType.CAPTURE)
        return rows.to_csv(), (len(sums), int(fine.sum()))

    best = best_ways(signs, read=read, least=(1, 0))
    return next(iter(best.values())) if len(best) == 1 else None


def _settled(draft: Draft, **keys: Any) -> pd.DataFrame:
    """Line, kind, batch, gross, fee and net of the rows whose amounts can be read.

    By the layout so far, and by further keys. Amounts are objects: a sum may pass what 64 bits
    hold.
    """
    mapped = draft.mapped((*_OF_ROW, "batch_id"), **keys)
    rows = pd.DataFrame({name: units_of(mapped, name) for name in _OF_ROW}, dtype=object)
    rows["line"] = draft.sample.raw.lines
    rows["kind"] = pd.Series(mapped.cells["entry_type"].to_pylist(), dtype=object)
    named = (mapped.cells[name].to_pylist() for name in ("batch_id", "currency"))
    rows["batch"] = [f"{batch}\x1f{currency}" for batch, currency in zip(*named, strict=True)]
    rows = rows.dropna(subset=["gross", "fee"] if "net" in draft.keys else list(_OF_ROW))
    return rows.assign(net=rows["gross"] - rows["fee"]) if "net" in draft.keys else rows


def _adds_up(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Of which rows net is gross less fee."""
    return (rows["gross"] - rows["fee"] == rows["net"]).astype(bool)


def _contrary(rows: pd.DataFrame, *, kind: str) -> int:
    """The first line of a kind whose net is not as ours, where that may be a mistake; 0: none.

    Refunds and fees are given back now and then; of reserves and payouts either way is common.
    """
    wrong = rows["line"][(rows["net"] * _WAYS[kind] < 0).astype(bool)]
    rare = kind not in _EITHER_WAY and len(wrong) * 2 <= len(rows)
    return 0 if rare or not len(wrong) else int(wrong.iloc[0])


def _decide_turned(draft: Draft) -> None:
    """The keys `turned` and `turned_rows` of a settlement: signs that are not as ours.

    Gross, fee and net prove which of them differ; the sums of batches that a payout ends, which
    rows are the wrong way round as a whole. What neither proves, and is not as ours, is asked.
    """
    has_net = "net" not in draft.keys
    known = {*draft.columns, *draft.sums, *(["net"] * (not has_net))}
    of_settlement = draft.schema.kind is SourceKind.SETTLEMENT
    if _UNREAD & draft.questions.keys() or not of_settlement or not known.issuperset(_OF_ROW):
        return
    rows = _settled(draft)
    # Refunds without a sign look as if fees had the other one; captures do not.
    with_fee = rows[rows["fee"] != 0]
    captures = with_fee[with_fee["kind"] == EntryType.CAPTURE]
    with_fee = captures if len(captures) else with_fee
    other_sign = with_fee["gross"] + with_fee["fee"] == with_fee["net"]
    if has_net and other_sign.sum() > _adds_up(with_fee).sum():
        draft.keys["turned"] = ["fee"]
    minus = captures["line"][(captures["fee"] < 0).astype(bool)]
    if not has_net and "turned" in draft.answers:
        draft.keys["turned"] = [*listed(draft.answers["turned"])]
    elif not has_net and len(minus):
        draft.questions["turned"] = (
            f"the fee of the capture on line {minus.iloc[0]} is minus, and no net says why: fee "
            "where fees have the opposite of our sign, else nothing"
        )
    given = {kind: listed(text) for kind, text in draft.answered("turned_rows.").items()}
    turned, doubted = dict(given), dict[str, int]()
    kinds = dict.fromkeys(rows["kind"])
    for kind in kinds.keys() & _WAYS.keys() - given.keys():
        # The fewest columns by which they add up, the right way before.
        ways = {}
        for each in _CHOICES if has_net else _CHOICES[:1]:
            own = _settled(draft, turned_rows={kind: each})
            own = own[own["kind"] == kind]
            line = _contrary(own, kind=kind)
            ways[each] = (int(_adds_up(own).sum()), not each or not line, line)
        turned[kind] = max(ways, key=lambda each: ways[each][:2])
        if line := ways[turned[kind]][2]:
            doubted[kind] = line
    proven = _proven_by_batches(draft, turned, [*doubted])
    for kind in sorted(doubted, key=lambda kind: doubted[kind]):
        # The same rows the other way round; a fee that is always 0 stays as it is.
        has_fee = bool((rows["fee"][rows["kind"] == kind] != 0).any())
        names = {"gross", *(["fee"] * has_fee), *(["net"] * has_net)} ^ set(turned[kind])
        whole = tuple(name for name in _OF_ROW if name in names)
        if kind in proven:
            turned[kind] = whole if proven[kind] else turned[kind]
            continue
        draft.questions[f"turned_rows.{kind}"] = (
            f"the net of the {kind} on line {doubted[kind]} is not "
            f"{'plus' if _WAYS[kind] > 0 else 'minus'}, and no batch's sum says why: "
            f"{','.join(whole)} where such rows have the opposite of our signs, "
            f"{'gross where their fee has not, ' * (len(whole) > 1 and not has_net)}"
            "else nothing"
        )
    if turned_rows := {kind: turned[kind] for kind in kinds if turned.get(kind)}:
        draft.keys["turned_rows"] = turned_rows


def _proven_by_batches(
    draft: Draft, turned: Mapping[str, Sequence[str]], doubted: Sequence[str]
) -> dict[str, bool]:
    """Kind in doubt -> whether its rows are the other way round, where sums of batches say it."""
    rows = _settled(draft, turned_rows=turned)
    sums: dict[str, dict[str, int]] = {}
    for batch, kind, net in zip(rows["batch"], rows["kind"], rows["net"], strict=True):
        of = sums.setdefault(batch, {})
        of[kind] = of.get(kind, 0) + net
    batches = [of for of in sums.values() if of.get("payout") and len(of) > 1]

    def read(flips: tuple[bool, ...]) -> tuple[Any, int]:
        flipped = {kind for kind, flip in zip(doubted, flips, strict=True) if flip}
        totals = [
            {kind: -net if kind in flipped else net for kind, net in of.items()} for of in batches
        ]
        return flips, sum(2 * total["payout"] == sum(total.values()) for total in totals)

    every = product((False, True), repeat=len(doubted))
    best = [{*flips} for flips in zip(*best_ways(every, read=read, least=1), strict=True)]
    pairs = zip(doubted, best, strict=False)
    return {kind: flips.pop() for kind, flips in pairs if len(flips) == 1}


def _decide_captures(draft: Draft) -> None:
    """The key `captures` of books with signs or two sides: that by which no entry is refused."""
    if draft.schema.kind is not SourceKind.LEDGER or "amount" not in draft.columns:
        return
    if {"columns.entry_type", "constants.entry_type"} & draft.questions.keys():
        return  # what an entry is says more than somebody who is asked of its side
    read = {side: draft.mapped(["amount"], captures=side) for side in ("plus", "minus")}
    plus, minus = ({*mapped.problems.get("amount", ())} for mapped in read.values())
    lines = {
        side: int(draft.sample.raw.lines[min(refused)])
        for side, refused in (("plus", minus - plus), ("minus", plus - minus))
        if refused
    }
    kinds = read["plus"].cells["entry_type"].to_pylist()
    signed = read["plus"].signed
    moves = zip(kinds, signed.minor_units.tolist(), strict=True) if signed else ()
    has_sides = "amount" in draft.debit or "sign" in draft.keys
    if not has_sides and not any(kind in DIRECTIONS and units < 0 for kind, units in moves):
        return
    if len(lines) == 1:
        draft.keys["captures"] = next(iter(lines))
        return
    says = sorted((line, side) for side, line in lines.items())
    why = ": " + " and ".join(f"line {line} says {side}" for line, side in says)
    draft.questions["captures"] = (
        f"are captures plus or minus{why if lines else '? No entry type says it'}"
    )


def _decide_trailer(draft: Draft) -> None:
    """The key `trailer`: its word, which cells are the count and the sum of the first sample.

    No sum is held of workbooks, of a bank (its opening and closing prove it), of two currencies.
    """
    sample, column = draft.sample, draft.columns.get("amount", "")
    if not sample.trailer:
        return
    trailer = draft.keys["trailer"] = total_of(sample.trailer)
    behind = trailer.get("place", 1) + 1
    cells = [*enumerate(sample.trailer[behind - 1 :], start=behind)]
    at_rows = [at for at, cell in cells if cell == str(sample.first_rows)]
    if len(at_rows) == 1:
        trailer["rows"] = at_rows[0]
    is_whole = sample.first_rows < SAMPLE_ROWS_MAX and not sample.typed
    if not column or not is_whole or draft.schema.kind is SourceKind.BANK:
        return
    mapped, rows = draft.mapped(["amount"]), sample.first_rows
    codes, units = {*mapped.cells["currency"].to_pylist()[:rows]}, units_of(mapped, "amount")[:rows]
    written = units if mapped.signed is None else mapped.signed.minor_units.tolist()[:rows]
    total = 0 if None in units or len(codes) > 1 else sum(filter(None, written))
    layout = layout_of(draft.layout() | {"constants": {}})
    places = [at for at, cell in cells if total and total == _declared(cell, codes, layout=layout)]
    below = sample.raw.header.index(column) + 1
    if below in places or len(places) == 1:
        trailer["amount"] = below if below in places else places[0]


def _declared(cell: str, codes: Collection[str], *, layout: FileLayout) -> int | None:
    """What a cell declares in minor units of the only currency; None: nothing."""
    try:
        return declared_units(cell, currency=next(iter(codes)), layout=layout)
    except AmountError:
        return None

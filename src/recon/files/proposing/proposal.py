"""Propose a layout for files like the samples: its keys, open questions and unused columns.

Every way to write terms, amounts and times is tried with the readers that a run uses, so what fits
here is what a run will read; two ways that give the same values everywhere count as one. Signs are
proven by gross, fee and net of each row, and by the sum of a batch that ends with a payout. What
nothing proves is asked.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.config.file_layouts import FileLayout
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.files.proposing.columns import Draft, draft_of, layout_of, units_of
from recon.files.proposing.sample import (
    SAMPLE_ROWS_MAX,
    sample_of,
    total_of,
    without_other_rows,
)
from recon.files.proposing.vocabulary import MEANINGS, NAMES, names_of_column, plain_text
from recon.files.proposing.written_cells import (
    AMOUNT_WAYS,
    best_ways,
    looks_like_amount,
    mark_of,
    time_patterns,
)
from recon.files.typing.control_figures import declared_units
from recon.files.typing.instants import ISO_TIME, standard_time
from recon.files.typing.table_schema import (
    DIRECTIONS,
    SETTLED_TYPES,
    Cell,
    Grammar,
    TableSchema,
)
from recon.model.errors import AmountError, UsageError
from recon.model.money import format_minor_units, is_currency
from recon.model.terms import EntryType, SourceKind
from recon.privacy.displayed_text import redacted

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_DIGITS = re.compile(r"[0-9]+(?:[-_.]?[0-9]+)*")
_FIRST = ("files", "delimiter", "quote", "encoding", "preamble", "columns", "constants", "words")


class Proposal(NamedTuple):
    """The layout found in the samples."""

    layout: dict[str, Any]
    """The keys of the layout decided so far."""
    questions: dict[str, str]
    """Key -> question for the user, with the row that shows why."""
    blank: tuple[str, ...]
    """Our columns without a match in the samples; they are blank in every row."""
    not_read: tuple[str, ...]
    """Their columns that are not read."""


def proposal_of(
    files: Sequence[FileBytes],
    *,
    schema: TableSchema,
    constants: Mapping[str, str],
    answers: Mapping[str, str],
) -> Proposal:
    """Propose the layout of files like these.

    Args:
        files: Samples of one layout.
        schema: The columns that a run reads from them.
        constants: Merchant and account, where they are known.
        answers: The user's answers: key of the layout -> text.

    Raises:
        SourceUnreadableError: one is not a table with a header, or their headers differ.
        UsageError: an answer is not valid for its key.
    """
    known = frozenset().union(*map(names_of_column, schema.names))
    sample = sample_of(files, known=known, answers=answers)
    if not len(sample.raw.lines):
        why = "a column is known by what it holds, too"
        refuse(sample.raw.name, f"has a header and no row; {why}: give a sample with rows")
    of_orders = schema.kind is SourceKind.ORDERS
    sample = without_other_rows(sample, orders=of_orders, answers=answers)
    draft = draft_of(sample, schema=schema, known=constants, answers=answers)
    _decide_keys(draft)
    layout = draft.layout()
    read = draft.assigned() | {*draft.keys["currencies"].values()}
    read |= {sign["column"] for sign in layout.get("sign", {}).values()}
    read |= {rule["column"] for rule in layout.get("skip", ())}
    read |= {layout["lines"]["column"]} if "lines" in layout else set()
    not_read = tuple(redacted(name) for name in sample.raw.header if name not in read)
    blank = tuple(ours for ours, text in draft.keys["constants"].items() if not text)
    return Proposal(layout, draft.questions, blank, not_read)


def pattern_of(names: list[str]) -> str:
    """Return the file name pattern of the layout: numbers in the names become wildcards."""
    patterns = {_DIGITS.sub("*", re.sub(r"[*?\[\]]", "?", name)) for name in names}
    return min(patterns, key=len) if len(patterns) == 1 else f"*.{names[0].rpartition('.')[2]}"


def layout_text(proposal: Proposal, *, table: str, files: str) -> str:
    """Return the layout as TOML; `table` is its header with brackets, `files` the pattern or ""."""
    keys: dict[str, Any] = ({"files": files} if files else {}) | proposal.layout
    notes = {
        "blank in every row, for no column is it": proposal.blank,
        "not read": proposal.not_read,
    }
    lines = [table, *(f"# {why}: {', '.join(names)}" for why, names in notes.items() if names)]
    ordered = {key: keys[key] for key in _FIRST if key in keys} | keys
    return "\n".join([*lines, *table_lines(ordered)]) + "\n"


def table_lines(keys: Mapping[str, Any]) -> list[str]:
    """Return the keys of a table as TOML lines."""
    return [f"{_key(key)} = {_value(value)}" for key, value in keys.items()]


def _value(value: Any) -> str:
    match value:
        case dict():
            parts = (f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
            return f"{{ {', '.join(parts)} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case str() | bool():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


_SAMPLED_MAX = 2_000
"""Maximum number of distinct cells that are tried in every way."""
_MARKS_DISPLAYED_MAX = 3
"""Maximum number of currency signs of which a question shows a line."""
_ZONES = {"utc": "UTC", "gmt": "UTC"}
_OF_ROW = ("gross", "fee", "net")
_CHOICES: tuple[tuple[str, ...], ...] = (
    *((), ("gross", "net"), ("gross",), ("net",), ("fee",), ("gross", "fee"), ("fee", "net")),
    _OF_ROW,
)
"""Columns of a row whose sign may differ from ours, the simplest choice first."""
_WAYS = {kind: way for kind, way in DIRECTIONS.items() if kind in SETTLED_TYPES} | {"payout": 1}
"""Entry type of a settled row -> the sign of its net; adjustments have either."""
_EITHER_WAY = frozenset({"reserve", "payout"})
_MINUS_WORDS = NAMES["debits"] | NAMES["signs_minus"]
_PLUS_WORDS = NAMES["credits"] | NAMES["signs_plus"]
_PROVEN_BY_ROWS = 2
"""Number of rows that are proof enough; a single one may fit by chance."""


def _decide_keys(draft: Draft) -> None:
    """Decide everything that the cells show, in order: each key uses those before it."""
    _decide_words(draft)
    _decide_amounts(draft)
    _decide_sign(draft)
    is_unsigned = any(key.startswith("sign.") for key in draft.questions)
    if draft.schema.kind is SourceKind.SETTLEMENT and draft.has_amounts and not is_unsigned:
        _decide_fee(draft)
        _decide_negated(draft)
    _decide_captures(draft)
    _decide_times(draft)
    _decide_trailer(draft)


def _decide_words(draft: Draft) -> None:
    """Decide the key `words`: for columns of terms, and for currencies in lower case.

    A term that could mean several things is asked.
    """
    words = draft.keys["words"]
    for column in draft.schema.columns:
        seen, ours = draft.seen(column.name), column.cell
        if not isinstance(ours, frozenset) or seen.keys() <= ours:
            continue
        table = "kind" if column.name == "action" else column.name
        table = "bank_status" if draft.schema.kind is SourceKind.BANK else table
        known, meant = MEANINGS.get(table, {}), words.setdefault(column.name, {})
        for word, line in seen.items():
            if word in meant:
                continue
            if (named := known.get(plain_text(word), word)) in ours:
                meant[word] = named
                continue
            shown = f".{word}" if redacted(word) == word else ""
            which = ", ".join(sorted(ours))
            draft.ask(f"words.{column.name}{shown}", f"line {line}: which of {which} is it?")
    # Anything that is not a currency stays, and its row is rejected by a run.
    codes = {text for text in draft.seen("currency") if is_currency(text.upper())}
    if any(code.upper() != code for code in codes):
        words["currency"] = {code: code.upper() for code in sorted(codes)}


def _decide_amounts(draft: Draft) -> None:
    """Decide decimal and thousands sign, minus and units, and whether decimals may be missing."""
    debits = [*draft.keys["debit"].values()]
    names = [draft.columns[column.name] for column in draft.amount_columns()]
    names += [*debits, *chain.from_iterable(draft.keys["sums"].values())]
    names = [name for name in dict.fromkeys(names) if name in draft.theirs]
    seen = [pair for name in names for pair in draft.theirs[name].seen.items()]
    if not seen:
        return
    marks = {mark: (line, text) for text, line in reversed(seen) if (mark := mark_of(text))}
    given = {"currency_sign": next(iter(marks), "")}
    if any(NAMES["cents"] & {*draft.theirs[name].words.split(" ")} for name in names):
        given["units"] = "minor"
    given |= draft.answers
    if len(marks) > 1 and "currency_sign" not in draft.answers:
        shown = sorted(marks.values())[:_MARKS_DISPLAYED_MAX]
        each = ", ".join(f"{text!r} on line {line}" for line, text in shown)
        draft.ask(
            "currency_sign",
            f"more than one currency stands beside amounts ({each}), and a layout takes one: "
            "export amounts without it, or each currency into a file of its own",
        )
        return
    rows = _unlike(draft, names)

    def read(way: dict[str, Any]) -> tuple[tuple[int | None, ...], int]:
        values = (*chain.from_iterable(draft.read(name, rows=rows, **way) for name in names),)
        return values, sum(value is not None for value in values)

    raw = draft.sample.raw
    blanks = sum(not raw.columns[name][row].as_py() for name in names for row in rows.tolist())
    ways = (
        {**way, "currency_sign": given["currency_sign"], "decimals": "as_written"}
        for way in AMOUNT_WAYS
        if all(given.get(key, text) == text for key, text in way.items())
    )
    readings = best_ways(ways, read=read, least=blanks + 1)
    if not readings:
        ask = f"the amount on line {seen[0][1]} and others fit no way of writing amounts that is"
        draft.ask("decimal_sign", f"{ask} known")
        return
    first = next(iter(readings))
    way = readings[first]
    draft.keys.update(_other_than_standard(way))
    if way["units"] == "minor" or read(way | {"decimals": "full"})[0] == first:
        draft.keys.pop("decimals", None)
    if len(readings) > 1:
        _ask_of_amounts(draft, readings, cells=[(name, row) for name in names for row in rows])
    assigned = [*chain.from_iterable(map(draft.read, debits))]
    if any(assigned) and all(units is not None and units <= 0 for units in assigned):
        draft.keys["debit_minus"] = True


def _unlike(draft: Draft, names: Sequence[str]) -> Any:
    """Return the rows that differ in how their amounts are written, ignoring the digits."""
    raw = draft.sample.raw
    columns = [raw.columns[name].to_pylist() for name in names]
    columns = [[re.sub("[1-9]", "9", text) for text in texts] for texts in columns]
    columns += [
        raw.columns[their].to_pylist() for their in (draft.columns.get("currency"),) if their
    ]
    columns += [raw.numbers[name].to_pylist() for name in names if name in raw.numbers]
    shapes = {shape: row for row, shape in reversed([*enumerate(zip(*columns, strict=True))])}
    return np.array(sorted(shapes.values())[:_SAMPLED_MAX], dtype=np.int64)


def _ask_of_amounts(
    draft: Draft,
    readings: Mapping[tuple[int | None, ...], dict[str, Any]],
    *,
    cells: Sequence[tuple[str, Any]],
) -> None:
    """Ask about the first cell that two ways read as different amounts."""
    first, second = [*readings][:2]
    at = next(at for at, (one, other) in enumerate(zip(first, second, strict=True)) if one != other)
    name, row = cells[at]
    raw, column = draft.sample.raw, draft.columns.get("currency", "")
    code = raw.columns[column][row].as_py() if column else draft.keys["constants"].get("currency")
    code = code.upper() if is_currency((code or "").upper()) else ""
    shown = []
    for values, way in readings.items():
        written = _other_than_standard(way) | {key: way[key] for key in ("decimal_sign", "units")}
        keys = ", ".join(f"{key} = {text!r}" for key, text in written.items() if key != "decimals")
        units = values[at]
        amount = "no amount" if units is None else format_minor_units(units, currency=code or "EUR")
        shown.append(f"{amount} {code} ({keys})")
    by_units = len({way["units"] for way in readings.values()}) > 1
    where = f"line {raw.lines[row]} has {raw.columns[name][row]}"
    ask = f"{where}: {' or '.join(shown)}? No row decides"
    draft.ask("units" if by_units else "decimal_sign", ask)


def _other_than_standard(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the keys that differ from the defaults of a layout."""
    standard = FileLayout()
    return {key: text for key, text in keys.items() if text != getattr(standard, key)}


def _decide_times(draft: Draft) -> None:
    """Decide the keys `times` and `zone`; optional columns written otherwise are dropped."""
    instants, dates = (
        [c for c in draft.schema.columns if c.cell is cell and c.name in draft.columns]
        for cell in (Cell.INSTANT, Grammar.DATE)
    )
    seen: dict[str, int] = {}
    raw = draft.sample.raw
    for name in (column.name for column in (*instants, *dates) if column.required):
        texts = raw.columns[draft.columns[name]].to_pylist()
        if clock := draft.keys["clock"].get(name):
            pairs = zip(texts, raw.columns[clock].to_pylist(), strict=True)
            texts = [f"{text} {time}".strip() if text else "" for text, time in pairs]
        for text, line in zip(texts, raw.lines.tolist(), strict=True):
            seen.setdefault(text, line)
    seen.pop("", None)
    examples = [*seen][:_SAMPLED_MAX]
    given = draft.answers.get("times")
    patterns = ["", *dict.fromkeys(p for text in examples for p in time_patterns(text))]
    readings = {
        times: [_moment(text, times=times, dates=bool(dates)) for text in examples]
        for times in (patterns if given is None else [given])
    }
    # Two orders that read the whole sample alike, as for 11/11/2026, are still two: they would
    # differ the next day.
    most = max(len(values) - values.count(None) for values in readings.values())
    best = [t for t, values in readings.items() if len(values) - values.count(None) == most]
    if examples and not most:
        ask = f"the time on line {seen[examples[0]]} is written in no way that is known"
        draft.ask("times", ask)
        return
    times = best[0]
    if times:
        draft.keys["times"] = times
        if len(best) > 1:
            both = zip(examples, readings[times], readings[best[1]], strict=True)
            text = next((text for text, one, other in both if one != other), examples[0])
            ways = " or ".join(map(repr, best))
            draft.ask("times", f"line {seen[text]} has {text}, which fits {ways}; no row decides")

    def has_no_offset(text: str) -> bool:
        if times:
            return times != "unix" and "%z" not in times
        return not re.search(r"(?:Z|[T ].*[+-].*)\Z", text)

    bare = [text for text in examples if has_no_offset(text)]
    names = [draft.theirs[draft.columns[c.name]].words for c in instants if c.required]
    zones = {_ZONES[word] for name in names for word in name.split(" ") if word in _ZONES}
    if bare and names and len(zones) == 1:
        draft.keys.setdefault("zone", zones.pop())
    elif bare and names:
        ask = f"times such as that on line {seen[bare[0]]} have no offset: in which zone are they?"
        draft.ask("zone", f"{ask} (such as Europe/Lisbon)")
    elif "zone" in draft.keys:
        del draft.keys["zone"]
    for column in () if draft.sample.typed and times else instants:
        values = [_moment(text, times=times, dates=False) for text in draft.seen(column.name)]
        if not column.required and None in values:
            del draft.columns[column.name]


def _moment(text: str, *, times: str, dates: bool) -> str | None:
    """Return the time in standard form, or None if it is not a valid one."""
    standard = standard_time(text, times=times) if times else text
    if not times and (not ISO_TIME.fullmatch(text) or (dates and len(text) > len("2026-11-20"))):
        return None
    try:
        return standard if standard is None or datetime.fromisoformat(standard) else None
    except ValueError:
        return None


def _decide_sign(draft: Draft) -> None:
    """Decide the key `sign`: amounts without a sign have it in a column of S and H, or Af and Bij.

    For ledgers and banks it is one such column for one amount; for settled rows the user decides.

    Raises:
        UsageError: a column in an answer has no known terms for signs.
    """
    found: dict[str, dict[str, str]] = {}
    for their in draft.theirs.values():
        words = {plain_text(text): text for text in their.seen}
        is_read = their.name in draft.columns.values()
        if is_read or not words or not words.keys() <= _MINUS_WORDS | _PLUS_WORDS:
            continue
        minus = [text for word, text in words.items() if word in _MINUS_WORDS]
        plus = [text for word, text in words.items() if word not in _MINUS_WORDS]
        if max(len(minus), len(plus)) == 1:
            sides = {"column": their.name, "plus": "".join(plus), "minus": "".join(minus)}
            found[their.name] = sides
    given = {key[5:]: text for key, text in draft.answers.items() if key.startswith("sign.")}
    named = {ours: name for ours, name in given.items() if "." not in ours}
    for ours, name in named.items():
        if name and name not in found:
            msg = f"sign.{ours}: {name!r} is no column with one known word for plus and for minus"
            raise UsageError(msg)
    kind = draft.schema.kind
    signs = {ours: found[name] for ours, name in named.items() if name}
    if not named and len(found) == 1 and "amount" in draft.columns:
        (sides,) = found.values()
        # A bank may leave credits without a term; a ledger has a term for both sides.
        of_ledger = kind is SourceKind.LEDGER and "amount" not in draft.keys["debit"]
        if of_ledger or (kind is SourceKind.BANK and sides["minus"]):
            signs = {"amount": sides}
    amounts = [c.name for c in draft.schema.columns if c.cell is Cell.AMOUNT]
    amounts = [name for name in amounts if name in draft.columns and name not in named] or amounts
    unsaid = found.keys() - {sides["column"] for sides in signs.values()}
    if unsaid and "" not in named.values():
        draft.ask(
            f"sign.{amounts[0]}",
            f"column {' and '.join(map(repr, sorted(unsaid)))} says which way money goes: of which "
            f"amounts (sign.{amounts[0]} = {min(unsaid)!r}, and so on, or nothing where it is of "
            "none)?",
        )
    for ours, sign in signs.items() if kind is not SourceKind.BANK else ():
        # A sample with only captures shows one side, but a run must know the other side's term too.
        for side, other in (("plus", "minus"), ("minus", "plus")):
            if not sign[side]:
                ask = f"column {sign['column']!r} says {sign[other]!r} in every row"
                draft.ask(f"sign.{ours}.{side}", f"{ask}; what does it say of the other side?")
    if signs:
        draft.keys["sign"] = {
            ours: sides | {s: given[f"{ours}.{s}"] for s in sides if f"{ours}.{s}" in given}
            for ours, sides in signs.items()
        }


def _settled(draft: Draft, **keys: Any) -> pd.DataFrame:
    """Return line, kind, batch, gross, fee and net of the rows whose amounts can be read.

    Reads by the layout so far and further keys. Amounts are Python objects, as a sum may exceed 64
    bits.
    """
    mapped = draft.mapped((*_OF_ROW, "batch_id"), **keys)
    rows = pd.DataFrame({name: units_of(mapped, name) for name in _OF_ROW}, dtype=object)
    rows["line"] = draft.sample.raw.lines
    rows["kind"] = pd.Series(mapped.cells["entry_type"].to_pylist(), dtype=object)
    named = (mapped.cells[name].to_pylist() for name in ("batch_id", "currency"))
    rows["batch"] = [f"{batch}\x1f{currency}" for batch, currency in zip(*named, strict=True)]
    rows = rows.dropna(subset=["gross", "fee"] if "net" in draft.keys else list(_OF_ROW))
    rows = rows.assign(net=rows["gross"] - rows["fee"]) if "net" in draft.keys else rows
    return rows.assign(fits=(rows["gross"] - rows["fee"] == rows["net"]).astype(bool))


def _decide_fee(draft: Draft) -> None:
    """Decide the key `sums`: all columns named like parts of a fee, if the rows prove it."""
    fee, sums = draft.columns.get("fee", ""), draft.keys["sums"]
    parts = draft.free(lambda of: of.is_named(NAMES["fee_parts"]) and of.all(looks_like_amount))
    if not parts or "net" not in draft.columns or {"columns.fee", "sums.fee"} & {*draft.answers}:
        return
    if fee and _settled(draft)["fits"].all():
        return
    parts = [name for name in draft.theirs if name in {fee, *parts}]
    others = {ours: their for ours, their in draft.columns.items() if ours != "fee"}
    summed = _settled(draft, sums={"fee": parts}, columns=others) if parts[1:] else None
    if summed is None or not summed["fits"].all() or sum(summed["fee"] != 0) < _PROVEN_BY_ROWS:
        draft.ask("columns.fee", f"is it {' or '.join(map(repr, parts))}, or {' + '.join(parts)}?")
        return
    sums["fee"] = tuple(parts)
    draft.columns.pop("fee", None)
    draft.questions.pop("columns.fee", None)


def _decide_negated(draft: Draft) -> None:
    """Decide the keys `negated` and `negated_rows` of a settlement: signs that differ from ours.

    Gross, fee and net prove which of them differ; the sums of batches that end with a payout prove
    which rows are reversed as a whole. What neither proves, and differs from ours, is asked.
    """
    has_net = "net" not in draft.keys
    if not {*draft.columns, *draft.keys["sums"], *draft.keys} >= {*_OF_ROW}:
        return
    rows = _settled(draft)
    captures = rows["kind"] == EntryType.CAPTURE
    minus = rows["line"][captures & (rows["fee"] < 0).astype(bool)]
    if len(minus) and not has_net:
        ask = f"the fee of the capture on line {minus.iloc[0]} is minus, and no net says why: fee "
        draft.ask("negated", f"{ask}where fees have the opposite of our sign, else nothing")
    negated = draft.keys.get("negated_rows", {})
    doubted: dict[str, int] = {}
    for kind in [kind for kind in dict.fromkeys(rows["kind"]) if kind in _WAYS.keys() - negated]:
        # The fewest columns that make the rows add up, preferring the usual direction.
        ways = {}
        for each in _CHOICES if has_net else _CHOICES[:1]:
            own = _settled(draft, negated_rows={kind: each})
            own = own[own["kind"] == kind]
            wrong = own["line"][(own["net"] * _WAYS[kind] < 0).astype(bool)]
            # Refunds and fees are occasionally given back; reserves and payouts often go either
            # way.
            rare = kind not in _EITHER_WAY and len(wrong) * 2 <= len(own)
            line = 0 if rare or not len(wrong) else int(wrong.iloc[0])
            ways[each] = (int(own["fits"].sum()), not each or not line, line)
        negated[kind] = max(ways, key=lambda each: ways[each][:2])
        if line := ways[negated[kind]][2]:
            doubted[kind] = line
    proven = _proven_by_batches(_settled(draft, negated_rows=negated), [*doubted])
    for kind, line in sorted(doubted.items(), key=lambda each: each[1]):
        # The same rows reversed; a fee that is always 0 keeps its sign.
        has_fee = bool((rows["fee"][rows["kind"] == kind] != 0).any())
        names = {"gross", *(["fee"] * has_fee), *(["net"] * has_net)} ^ set(negated[kind])
        whole = tuple(name for name in _OF_ROW if name in names)
        if kind in proven:
            negated[kind] = whole if proven[kind] else negated[kind]
            continue
        draft.ask(
            f"negated_rows.{kind}",
            f"the net of the {kind} on line {line} is not {'plus' if _WAYS[kind] > 0 else 'minus'}"
            f", and no batch's sum says why: {','.join(whole)} where such rows have the opposite "
            f"of our signs, {'gross where their fee has not, ' * (len(whole) > 1 and not has_net)}"
            "else nothing",
        )
    given = {key.removeprefix("negated_rows.") for key in draft.answers}
    negated = {kind: names for kind, names in negated.items() if names or kind in given}
    draft.keys.update({"negated_rows": negated} if negated else {})


def _proven_by_batches(rows: pd.DataFrame, doubted: Sequence[str]) -> dict[str, bool]:
    """Return kind -> whether its rows are reversed, where the sums of batches prove it."""
    nets = rows.pivot_table("net", "batch", "kind", aggfunc="sum", fill_value=0)
    if "payout" not in nets or len(nets.columns) == 1:
        return {}
    nets = nets[nets["payout"] != 0]

    def read(flips: tuple[bool, ...]) -> tuple[tuple[bool, ...], int]:
        flipped = {kind for kind, flip in zip(doubted, flips, strict=True) if flip}
        signed = nets * [-1 if kind in flipped else 1 for kind in nets.columns]
        return flips, int((2 * signed["payout"] == signed.sum(axis=1)).sum())

    best = best_ways(product((False, True), repeat=len(doubted)), read=read, least=1)
    proven = {kind: {flips[at] for flips in best} for at, kind in enumerate(doubted)}
    return {kind: flips.pop() for kind, flips in proven.items() if len(flips) == 1}


def _decide_captures(draft: Draft) -> None:
    """Decide the key `captures` of a ledger with signs or sides, so that no entry is rejected."""
    if draft.schema.kind is not SourceKind.LEDGER or "amount" not in draft.columns:
        return
    if {"columns.entry_type", "constants.entry_type"} & draft.questions.keys():
        return  # the entry type decides more than an answer about the side would
    read = {side: draft.mapped(["amount"], captures=side) for side in ("plus", "minus")}
    plus, minus = ({*mapped.problems.get("amount", ())} for mapped in read.values())
    lines = {
        side: int(draft.sample.raw.lines[min(refused)])
        for side, refused in (("plus", minus - plus), ("minus", plus - minus))
        if refused
    }
    kinds, signed = read["plus"].cells["entry_type"].to_pylist(), read["plus"].signed
    moves = zip(kinds, signed.minor_units.tolist(), strict=True) if signed else ()
    has_sides = "amount" in draft.keys["debit"] or "sign" in draft.keys
    if not has_sides and not any(kind in DIRECTIONS and units < 0 for kind, units in moves):
        return
    if len(lines) == 1:
        draft.keys.setdefault("captures", next(iter(lines)))
        return
    says = " and ".join(
        f"line {n} says {side}" for n, side in sorted((n, s) for s, n in lines.items())
    )
    draft.ask(
        "captures",
        f"are captures plus or minus{f': {says}' if says else '? No entry type says it'}",
    )


def _decide_trailer(draft: Draft) -> None:
    """Decide the key `trailer`: its term, and which cells are count and sum of the first sample.

    No sum is used for workbooks, for bank files (their balances prove them) and for two currencies.
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
    lines_at = []
    for at, cell in cells if total else ():
        with suppress(AmountError):
            if declared_units(cell, currency=min(codes), layout=layout) == total:
                lines_at.append(at)
    below = sample.raw.header.index(column) + 1
    if below in lines_at or len(lines_at) == 1:
        trailer["amount"] = below if below in lines_at else lines_at[0]

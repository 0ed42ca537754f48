"""How the amounts of samples are written, which way money goes in them, and what a last line adds.

Sums prove it, of a row (net is gross less fee) and of a batch that a pay-out ends; what they do not
prove and is not as ours is asked.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np

from recon.config.file_layouts import FileLayout
from recon.files.proposing.ranked_columns import Draft
from recon.files.proposing.sample import SAMPLE_ROWS_MAX, Row, total_of
from recon.files.proposing.vocabulary import NAMES, plain_words
from recon.files.proposing.written_cells import (
    SeenCell,
    best_ways,
    decided_amounts,
    looks_like_amount,
    units_of,
)
from recon.files.typing.table_schema import DIRECTIONS, SETTLED_TYPES, Cell
from recon.model.errors import UsageError
from recon.model.money import exponent, is_currency
from recon.model.words import EntryType, SourceKind

_OF_ROW = ("gross", "fee", "net")
_CHOICES = (
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


def decide_amounts(draft: Draft) -> None:
    """The keys of decimal sign, thousands, minus, units."""
    names = [draft.columns[column.name] for column in draft.amount_columns()]
    names += [*draft.debit.values(), *chain.from_iterable(draft.sums.values())]
    names = [name for name in names if name in draft.theirs]
    cells = []
    for row in draft.sample.rows:
        code = draft.cell(row, "currency").upper()
        code = code if is_currency(code) else ""
        for name in names:
            text = row.cells[name]
            if name in row.numbers and "." in text:  # a number drops the zeros behind it
                whole, _, fraction = text.partition(".")
                text = f"{whole}.{fraction.ljust(exponent(code or 'EUR'), '0')}"
            if text:
                cells.append(SeenCell(row.line, text, code, name in row.numbers))
    in_cents = any(NAMES["cents"] & set(draft.theirs[name].words.split(" ")) for name in names)
    draft.take(decided_amounts(cells, in_cents=in_cents, answers=draft.answers))
    debits = [units for name in draft.debit.values() for units in _read(draft, name) if units != 0]
    if debits and all(units is not None and units < 0 for units in debits):
        draft.keys["debit_minus"] = True


def _written(draft: Draft) -> FileLayout:
    """How an amount of the samples is written, as far as it was decided."""
    keys = ("decimal_sign", "thousands_sign", "minus", "currency_sign")
    return FileLayout.model_validate({k: v for k, v in draft.keys.items() if k in keys})


def _read(draft: Draft, their: str, rows: Iterable[Row] | None = None) -> list[int | None]:
    """A column of theirs in each row as far as layouts read it, 0 where it is blank or none."""
    layout = _written(draft)
    rows = draft.sample.rows if rows is None else rows
    return units_of([row.cells.get(their, "") or "0" for row in rows], layout=layout)


def _units(draft: Draft, ours: str, rows: Sequence[Row] | None = None) -> list[int | None]:
    """Our amount of each row as the layout reads it so far; None: it cannot."""
    rows = draft.sample.rows if rows is None else rows
    if parts := draft.sums.get(ours):
        columns = [_read(draft, their, rows) for their in parts]
        return [None if None in of else sum(filter(None, of)) for of in zip(*columns, strict=True)]
    sign = draft.keys.get("sign", {}).get(ours)
    way = -1 if draft.keys.get("debit_minus") else 1
    found: list[int | None] = []
    pairs = (_read(draft, of.get(ours, ""), rows) for of in (draft.columns, draft.debit))
    for row, added, taken in zip(rows, *pairs, strict=True):
        if added is None or taken is None or (sign and added < 0):
            found.append(None)
        elif sign and row.cells[sign["column"]] == sign["minus"] != "":
            found.append(-added)
        else:
            found.append(added - way * taken)
    return found


def _entry_types(draft: Draft) -> list[str]:
    """What each row is in our words, where they are known."""
    known: dict[str, str] = draft.keys.get("words", {}).get("entry_type", {})
    known = known | draft.answered("words.entry_type.")
    words = (draft.cell(row, "entry_type") for row in draft.sample.rows)
    return [known.get(word, word) for word in words]


def decide_sums(draft: Draft) -> None:
    """The keys `sums`, `net` and `currencies`: what no single column of a file says."""
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
    _decide_net(draft)
    taken, stated = draft.taken(), dict[str, str]()
    for their in draft.theirs.values():
        stem = their.words.removesuffix(" currency")
        is_codes = stem != their.words and their.all(lambda text: is_currency(text.upper()))
        for ours in {*_OF_ROW} & draft.columns.keys() if is_codes else ():
            named = draft.theirs[draft.columns[ours]].words.removesuffix(" amount")
            if their.name not in taken and stem in {ours, named}:
                stated[ours] = their.name
    if stated:
        draft.keys["currencies"] = draft.keys.get("currencies", {}) | stated


def _add_up(draft: Draft, ours: str, parts: Sequence[str]) -> None:
    """Take an amount for the sum of some columns; how amounts are written, they say as well."""
    draft.sums[ours] = tuple(parts)
    draft.columns.pop(ours, None)
    for key in (f"columns.{ours}", *_UNREAD):
        draft.questions.pop(key, None)
    decide_amounts(draft)


def _find_summands(draft: Draft) -> None:
    """The fee, where it is what several columns come to: gross less all of them is net.

    Two rows prove it, by one choice of columns alone. A column that is nothing in all of them is
    of the fee if it is named as a part of it: the next file's net proves that again.
    """
    has_both = {"gross", "net"} <= draft.columns.keys()
    if _UNREAD & draft.questions.keys() or "fee" in draft.debit or not has_both:
        return
    rows = draft.sample.rows[:_TRIED_ROWS_MAX]
    taken = draft.taken() - {draft.columns.get("fee")}
    amounts = {name: _read(draft, name, rows) for name in draft.theirs if name not in taken}
    amounts = {name: units for name, units in amounts.items() if None not in units}
    parts = {name: units for name, units in amounts.items() if any(units)}
    pairs = zip(*(_units(draft, name, rows) for name in ("gross", "net")), strict=True)
    less = [None if gross is None or net is None else gross - net for gross, net in pairs]
    if sum(map(bool, less)) < _PROVEN_BY_ROWS or len(parts) > _TRIED_COLUMNS_MAX or None in less:
        return
    wanted = np.array(less, dtype=object)
    fitting = [
        names
        for size in range(1, len(parts) + 1)
        for names in combinations(parts, size)
        for total in [sum(np.array(parts[name], dtype=object) for name in names)]
        if np.array_equal(total, wanted) or np.array_equal(-total, wanted)
    ]
    if not fitting or any(len(names) == 1 for names in fitting):
        return  # one column alone says it, or nothing does
    if len(fitting) > 1:
        ways = " or ".join(" + ".join(names) for names in fitting[:_CHOICES_SHOWN_MAX])
        draft.questions.pop("columns.fee", None)
        draft.ask("sums.fee", f"of which columns is the fee the sum: {ways}? Each fits all rows")
        return
    named = {name for name in amounts if draft.theirs[name].is_named(NAMES["fee_parts"])}
    _add_up(draft, "fee", [n for n in amounts if n in fitting[0] or n in named - parts.keys()])


def _decide_net(draft: Draft) -> None:
    """The key `net`: no column of a file can be it, and gross and fee are known."""
    has_fee = "fee" in {*draft.columns, *draft.sums} or "constants.fee" in draft.answers
    if "columns.net" not in draft.questions or "gross" not in draft.columns or not has_fee:
        return
    free = [their for name, their in draft.theirs.items() if name not in draft.taken()]
    names = [repr(their.name) for their in free if their.cells and their.all(looks_like_amount)]
    if names and "net" not in draft.answers:
        ask = f"which column is it: {' or '.join(names[:_CHOICES_SHOWN_MAX])}?"
        draft.ask("columns.net", f"{ask} (net=gross_less_fee where none is)")
        return
    del draft.questions["columns.net"]
    draft.keys["net"] = "gross_less_fee"


def decide_sign(draft: Draft) -> None:
    """The key `sign`: amounts without a sign have it in a column of S and H, or Af and Bij."""
    found: dict[str, _Sides] = {}
    for their in draft.theirs.values():
        words = {plain_words(cell.text): cell.text for cell in their.cells}
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
        draft.ask(
            f"sign.{ours}",
            f"column {' and '.join(map(repr, found))} says which way money goes: of which amounts "
            f"(sign.{ours} = {next(iter(found))!r}, and so on, or nothing where it is of none)?",
        )
    if not signs:
        return
    draft.keys["sign"] = signs
    for ours, sign in signs.items() if kind is not SourceKind.BANK else ():
        # A sample of captures alone shows one side; the other one's word must be known at night.
        for side, other in (("plus", "minus"), ("minus", "plus")):
            if not sign[side] and f"sign.{ours}.{side}" not in draft.answers:
                ask = f"column {sign['column']!r} says {sign[other]!r} in every row"
                draft.ask(f"sign.{ours}.{side}", f"{ask}; what does it say of the other side?")


def _answered_signs(draft: Draft, found: Mapping[str, _Sides]) -> dict[str, _Sides] | None:
    """Our amount -> its sign, as a person named the columns of signs; None: nobody did.

    Raises:
        UsageError: a column has no words of signs that are known.
    """
    given = draft.answered("sign.").items()
    named = {ours: their for ours, their in given if "." not in ours}
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

    def read(chosen: tuple[_Sides, ...]) -> tuple[Any, tuple[int, int]]:
        draft.keys["sign"] = _named(chosen)
        rows = _settled(draft)
        rows = rows.some(np.arange(len(rows.lines)) < _TRIED_ROWS_MAX)
        sums = rows.some(rows.adds_up)
        return str(rows), (len(sums.lines), int(sums.as_ours.sum()))

    fitting = [chosen for chosen in every if {s["column"] for s in chosen if s} == columns]
    best = best_ways(fitting, read=read, least=(1, 0))
    draft.keys.pop("sign", None)
    return _named(*best.values()) if len(best) == 1 else None


def _named(chosen: tuple[_Sides, ...]) -> dict[str, _Sides]:
    return {name: sign for name, sign in zip(_OF_ROW, chosen, strict=True) if sign}


class _Settled(NamedTuple):
    """The rows of a settlement file whose amounts can be read."""

    lines: Any
    kinds: Any
    batches: Any
    """Batch and currency, as one text."""
    units: Any
    """Gross, fee, net of each; objects, for a sum may pass what 64 bits hold."""
    has_net: bool
    """Its file has the net, which proves the others."""

    def __str__(self) -> str:
        return f"{self.lines.tolist()} {self.units.tolist()}"

    def some(self, rows: Any) -> "_Settled":
        """Those rows alone."""
        lines, kinds, batches, units = (column[rows] for column in self[:4])
        return _Settled(lines, kinds, batches, units, self.has_net)

    def turned(self, columns: Collection[str]) -> "_Settled":
        """The same with the opposite sign in some columns."""
        units = self.units * [-1 if name in columns else 1 for name in _OF_ROW]
        if not self.has_net:
            units[:, 2] = units[:, 0] - units[:, 1]
        return self._replace(units=units)

    @property
    def adds_up(self) -> Any:
        """Of which net is gross less fee."""
        gross, fee, net = self.units.T
        return (gross - fee == net).astype(bool)

    @property
    def as_ours(self) -> Any:
        """Whose money goes as the type says; without a net its gross, and a capture's fee."""
        gross, fee, net = self.units.T
        ways = np.array([_WAYS.get(kind, 0) for kind in self.kinds], dtype=object)
        if self.has_net:
            return (net * ways >= 0).astype(bool)
        is_fine = (fee >= 0).astype(bool) | (self.kinds != EntryType.CAPTURE)
        return (gross * ways >= 0).astype(bool) & is_fine

    def contrary(self, columns: Collection[str], *, kind: str) -> int:
        """The first line whose net is not as ours, where that may be a mistake; 0: none.

        Refunds and fees are given back now and then; of reserves and pay-outs either way is common.
        """
        wrong = self.lines[(self.turned(columns).units[:, 2] * _WAYS[kind] < 0).astype(bool)]
        rare = kind not in _EITHER_WAY and len(wrong) * 2 <= len(self.lines)
        return 0 if rare or not len(wrong) else int(wrong[0])


def _settled(draft: Draft) -> _Settled:
    """The rows of a settlement file, as far as its layout is decided."""
    rows, has_net = draft.sample.rows, "net" not in draft.keys
    columns = [_units(draft, name) for name in _OF_ROW]
    lines = np.array([row.line for row in rows], dtype=np.int64)
    batches = [f"{draft.cell(row, 'batch_id')}\x1f{draft.cell(row, 'currency')}" for row in rows]
    units = np.array(columns, dtype=object).reshape(len(_OF_ROW), len(rows)).T
    read = np.array([None not in row for row in units.tolist()], dtype=bool)
    kinds = np.array(_entry_types(draft), dtype=object)
    whole = _Settled(lines, kinds, np.array(batches, dtype=object), units, has_net)
    return whole.some(read).turned(())


def decide_turned(draft: Draft) -> None:
    """The keys `turned` and `turned_rows` of a settlement: signs that are not as ours.

    Gross, fee and net prove which of them differ; the sums of batches that a pay-out ends, which
    rows are the wrong way round as a whole. What neither proves, and is not as ours, is asked.
    """
    known = {*draft.columns, *draft.sums, *({"net"} & draft.keys.keys())}
    of_settlement = draft.schema.kind is SourceKind.SETTLEMENT
    if _UNREAD & draft.questions.keys() or not of_settlement or not known.issuperset(_OF_ROW):
        return
    rows = _settled(draft)
    # Refunds without a sign look as if fees had the other one; captures do not.
    with_fee = rows.some((rows.units[:, 1] != 0).astype(bool))
    captures = with_fee.some(with_fee.kinds == EntryType.CAPTURE)
    with_fee = captures if len(captures.lines) else with_fee
    if with_fee.turned(("fee",)).adds_up.sum() > with_fee.adds_up.sum() and rows.has_net:
        draft.keys["turned"] = ["fee"]
        rows = rows.turned(("fee",))
    if not rows.has_net:
        rows = rows.turned(listed(draft.answers.get("turned", "")))
        minus = captures.lines[(captures.units[:, 1] < 0).astype(bool)]
        if len(minus):
            draft.ask(
                "turned",
                f"the fee of the capture on line {minus[0]} is minus, and no net says why: fee "
                "where fees have the opposite of our sign, else nothing",
            )
    by_kind = {kind: rows.some(rows.kinds == kind) for kind in dict.fromkeys(rows.kinds.tolist())}
    given = {kind: listed(text) for kind, text in draft.answered("turned_rows.").items()}
    turned, doubted = dict(given), dict[str, int]()
    for kind in by_kind.keys() & _WAYS.keys() - given.keys():
        own = by_kind[kind]
        # The fewest columns by which they add up, the right way before.
        ways = [
            (int(own.turned(each).adds_up.sum()), not each or not own.contrary(each, kind=kind))
            for each in _CHOICES
        ]
        turned[kind] = _CHOICES[ways.index(max(ways))]
        if line := own.contrary(turned[kind], kind=kind):
            doubted[kind] = line
    proven = _proven_by_batches(rows, turned, [*doubted])
    for kind in sorted(doubted, key=lambda kind: doubted[kind]):
        # The same rows the other way round; a fee that is always 0 stays as it is.
        has_fee = bool((by_kind[kind].units[:, 1] != 0).any())
        names = {"gross", *(["fee"] * has_fee), *(["net"] * rows.has_net)} ^ set(turned[kind])
        whole = tuple(name for name in _OF_ROW if name in names)
        if kind in proven:
            turned[kind] = whole if proven[kind] else turned[kind]
            continue
        draft.ask(
            f"turned_rows.{kind}",
            f"the net of the {kind} on line {doubted[kind]} is not "
            f"{'plus' if _WAYS[kind] > 0 else 'minus'}, and no batch's sum says why: "
            f"{','.join(whole)} where such rows have the opposite of our signs, "
            f"{'gross where their fee has not, ' * (len(whole) > 1 and not rows.has_net)}"
            "else nothing",
        )
    if turned_rows := {kind: turned[kind] for kind in by_kind if turned.get(kind)}:
        draft.keys["turned_rows"] = turned_rows


def _proven_by_batches(
    rows: _Settled, turned: Mapping[str, Collection[str]], doubted: Sequence[str]
) -> dict[str, bool]:
    """Kind in doubt -> whether its rows are the other way round, where sums of batches say it."""
    sums: dict[str, dict[str, int]] = {}
    for kind in dict.fromkeys(rows.kinds.tolist()):
        own = rows.some(rows.kinds == kind).turned(turned.get(kind, ()))
        for batch, net in zip(own.batches.tolist(), own.units[:, 2].tolist(), strict=True):
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


def decide_captures(draft: Draft) -> None:
    """The key `captures` of books with signs or two sides; a refund with a minus has it in plus."""
    if draft.schema.kind is not SourceKind.LEDGER or "amount" not in draft.columns:
        return
    if {"columns.entry_type", "constants.entry_type"} & draft.questions.keys():
        return  # what an entry is says more than somebody who is asked of its side
    sides, lines = "amount" in draft.debit or "sign" in draft.keys, dict[str, int]()
    moves = zip(draft.sample.rows, _entry_types(draft), _units(draft, "amount"), strict=True)
    for row, entry_type, moved in moves:
        if (way := DIRECTIONS.get(entry_type, 0)) and moved:
            sides = sides or moved < 0
            lines.setdefault("plus" if (way > 0) == (moved > 0) else "minus", row.line)
    if not sides:
        return
    if len(lines) == 1:
        draft.keys["captures"] = next(iter(lines))
        return
    rows = " and ".join(f"line {line} says {side}" for side, line in lines.items())
    why = f": {rows}" if rows else "? No entry type says it"
    draft.ask("captures", f"are captures plus or minus{why}")


def decide_trailer(draft: Draft) -> None:
    """The key `trailer`: its word, which cells are the count and the sum of the first sample.

    No sum is held of workbooks, of a bank (its opening and closing prove it), of two currencies.
    """
    sample, column = draft.sample, draft.columns.get("amount", "")
    if not sample.trailer:
        return
    trailer = draft.keys["trailer"] = total_of(sample.trailer)
    behind = trailer.get("place", 1) + 1
    cells = [*enumerate(sample.trailer[behind - 1 :], start=behind)]
    rows = sample.rows[: sample.first_rows]
    at_rows = [at for at, cell in cells if cell == str(len(rows))]
    if len(at_rows) == 1:
        trailer["rows"] = at_rows[0]
    currencies = {draft.cell(row, "currency").upper() for row in rows}
    is_whole = len(rows) < SAMPLE_ROWS_MAX and not sample.typed and len(currencies) <= 1
    if not column or not is_whole or draft.schema.kind is SourceKind.BANK:
        return
    units = _units(draft, "amount", rows)
    total = sum(each or 0 for each in units)
    if None in units or not total:
        return
    layout = _written(draft)
    sums = units_of([cell for _, cell in cells], layout=layout)
    places = [at for (at, _), each in zip(cells, sums, strict=True) if each == total]
    below = sample.header.index(column) + 1
    if below in places or len(places) == 1:
        trailer["amount"] = below if below in places else places[0]

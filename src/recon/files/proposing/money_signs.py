"""How the amounts of samples are written, which way money goes in them, and what a last line adds.

Sums prove it, of a row (net is gross less fee) and of a batch that a pay-out ends; what they do not
prove and is not as ours is asked.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, product
from typing import NamedTuple

from recon.config.file_layouts import FileLayout
from recon.files.proposing.ranked_columns import Draft
from recon.files.proposing.sample import SAMPLE_ROWS_MAX, Row, total_of
from recon.files.proposing.vocabulary import NAMES, plain_words
from recon.files.proposing.written_cells import (
    SeenCell,
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
_TRIED_ROWS_MAX = 500
"""Rows by which it is tried of which amounts a column of signs is."""
_TRIED_COLUMNS_MAX = 12
"""Columns of amounts of which it is tried which ones come to the fee."""
_PROVEN_BY_ROWS = 2
"""Rows that are enough; one may come to it by chance."""
_CHOICES_SHOWN_MAX = 4
_Sides = dict[str, str]
"""A column of signs: its name, and its words for plus and for minus."""


def answered(draft: Draft, table: str) -> dict[str, str]:
    """What a person decided of the parts of one key."""
    given = draft.answers.items()
    return {key.removeprefix(table): text for key, text in given if key.startswith(table)}


def columns_of(text: str) -> tuple[str, ...]:
    """The columns of an answer such as `gross,net`; none of an empty one."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


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
    layout = _written(draft)
    debits = [
        units_of(c.text, layout=layout)
        for name in draft.debit.values()
        for c in draft.theirs[name].cells
    ]
    if any(debits) and all(units is not None and units <= 0 for units in debits):
        draft.keys["debit_minus"] = True


def _written(draft: Draft) -> FileLayout:
    """How an amount of the samples is written, as far as it was decided."""
    keys = ("decimal_sign", "thousands_sign", "minus", "currency_sign")
    return FileLayout.model_validate({k: v for k, v in draft.keys.items() if k in keys})


def _units(row: Row, ours: str, *, draft: Draft, layout: FileLayout) -> int | None:
    """Our amount of a row as the layout reads it so far; None: it cannot."""
    parts = [units_of(row.cells[their] or "0", layout=layout) for their in draft.sums.get(ours, ())]
    if parts:
        return None if None in parts else sum(each or 0 for each in parts)
    added, taken = (
        units_of(row.cells.get(of.get(ours, ""), "") or "0", layout=layout)
        for of in (draft.columns, draft.debit)
    )
    sign = draft.keys.get("sign", {}).get(ours)
    if added is None or taken is None or (sign and added < 0):
        return None
    is_minus = bool(sign) and row.cells[sign["column"]] == sign["minus"] != ""
    taken = -taken if draft.keys.get("debit_minus") else taken
    return -added if is_minus else added - taken


def _entry_type(row: Row, *, draft: Draft) -> str:
    """What a row is in our words, where they are known."""
    word = draft.cell(row, "entry_type")
    known: dict[str, str] = draft.keys.get("words", {}).get("entry_type", {})
    return (known | answered(draft, "words.entry_type.")).get(word, word)


def decide_sums(draft: Draft) -> None:
    """The keys `sums`, `net` and `currencies`: what no single column of a file says."""
    for ours, text in answered(draft, "sums.").items():
        parts = summands_of(text)
        unknown = [name for name in parts if name not in draft.theirs]
        if unknown:
            msg = f"sums.{ours}: the samples have no column {unknown[0]!r} that can be named"
            raise UsageError(msg)
        _add_up(draft, ours, parts)
    if draft.schema.kind is not SourceKind.SETTLEMENT:
        return
    if not {"fee", "constants.fee", "columns.fee"} & {*draft.sums, *draft.answers}:
        _find_summands(draft)
    _decide_net(draft)
    taken = _read_so_far(draft)
    stated: dict[str, str] = {}
    for their in draft.theirs.values():
        stem = their.words.removesuffix(" currency")
        if their.name in taken or stem == their.words or not their.all(_is_code):
            continue
        for ours in {*_OF_ROW} & draft.columns.keys():
            if stem in {ours, draft.theirs[draft.columns[ours]].words.removesuffix(" amount")}:
                stated[ours] = their.name
    if stated:
        draft.keys["currencies"] = draft.keys.get("currencies", {}) | stated


def _is_code(text: str) -> bool:
    return is_currency(text.upper())


def summands_of(text: str) -> tuple[str, ...]:
    """The columns of an answer such as `Commission + Markup`."""
    return tuple(name.strip() for name in text.split(" + "))


def _read_so_far(draft: Draft) -> set[str]:
    """Their columns of which something is read."""
    pairs = (draft.columns, draft.debit, draft.clock)
    return {*chain.from_iterable(of.values() for of in (*pairs,)), *chain(*draft.sums.values())}


def _add_up(draft: Draft, ours: str, parts: Sequence[str]) -> None:
    """Take an amount for the sum of some columns; how amounts are written, they say as well."""
    draft.sums[ours] = tuple(parts)
    draft.columns.pop(ours, None)
    for key in (f"columns.{ours}", "decimal_sign", "units", "currency_sign"):
        draft.questions.pop(key, None)
    decide_amounts(draft)


def _find_summands(draft: Draft) -> None:
    """The fee, where it is what several columns come to: gross less all of them is net.

    Two rows prove it, by one choice of columns alone. A column that is nothing in all of them is
    of the fee if it is named as a part of it: the next file's net proves that again.
    """
    unread = {"decimal_sign", "units", "currency_sign"} & draft.questions.keys()
    if unread or "fee" in draft.debit or not {"gross", "net"} <= draft.columns.keys():
        return
    layout = _written(draft)
    taken = _read_so_far(draft) - {draft.columns.get("fee")}
    amounts = {
        their.name: [units_of(row.cells[their.name] or "0", layout=layout) for row in rows]
        for rows in [draft.sample.rows[:_TRIED_ROWS_MAX]]
        for their in draft.theirs.values()
        if their.name not in taken
    }
    parts = {name: units for name, units in amounts.items() if None not in units and any(units)}
    taken_off = []
    for row in draft.sample.rows[:_TRIED_ROWS_MAX]:
        gross, net = (_units(row, name, draft=draft, layout=layout) for name in ("gross", "net"))
        taken_off.append(None if gross is None or net is None else gross - net)
    if sum(bool(each) for each in taken_off) < _PROVEN_BY_ROWS or len(parts) > _TRIED_COLUMNS_MAX:
        return
    fitting = [
        names
        for size in range(1, len(parts) + 1)
        for names in combinations(parts, size)
        if any(
            [way * sum(each or 0 for each in of) for of in zip(*map(parts.get, names), strict=True)]
            == taken_off
            for way in (1, -1)
        )
    ]
    if not fitting or any(len(names) == 1 for names in fitting):
        return  # one column alone says it, or nothing does
    if len(fitting) > 1:
        ways = " or ".join(" + ".join(names) for names in fitting[:_CHOICES_SHOWN_MAX])
        draft.questions.pop("columns.fee", None)
        draft.ask("sums.fee", f"of which columns is the fee the sum: {ways}? Each fits all rows")
        return
    named = {
        name
        for name, units in amounts.items()
        if not any(units) and None not in units and draft.theirs[name].is_named(NAMES["fee_parts"])
    }
    _add_up(draft, "fee", [name for name in amounts if name in named or name in fitting[0]])


def _decide_net(draft: Draft) -> None:
    """The key `net`: no column of a file can be it, and gross and fee are known."""
    has_fee = "fee" in {*draft.columns, *draft.sums} or "constants.fee" in draft.answers
    if "columns.net" not in draft.questions or "gross" not in draft.columns or not has_fee:
        return
    taken = _read_so_far(draft)
    free = [
        their.name
        for their in draft.theirs.values()
        if their.name not in taken and their.cells and their.all(looks_like_amount)
    ]
    if free and "net" not in draft.answers:
        named = " or ".join(map(repr, free[:_CHOICES_SHOWN_MAX]))
        reckoned = "net=gross_less_fee where none is"
        draft.ask("columns.net", f"which column is it: {named}? ({reckoned})")
        return
    del draft.questions["columns.net"]
    draft.keys["net"] = "gross_less_fee"


def decide_sign(draft: Draft) -> None:
    """The key `sign`: amounts without a sign have it in a column of S and H, or Af and Bij."""
    taken = set(draft.columns.values())
    found: dict[str, _Sides] = {}
    for their in draft.theirs.values():
        words = {plain_words(cell.text): cell.text for cell in their.cells}
        if their.name in taken or not (words and set(words) <= _MINUS_WORDS | _PLUS_WORDS):
            continue
        minus = [text for word, text in words.items() if word in _MINUS_WORDS]
        plus = [text for text in words.values() if text not in minus]
        sides = {"column": their.name, "plus": "".join(plus), "minus": "".join(minus)}
        found[their.name] = sides if max(len(minus), len(plus)) == 1 else {}
    kind = draft.schema.kind
    signs = _answered_signs(draft, found)
    if signs is None and len(found) == 1 and _may_have_sign(draft, *found.values()):
        signs = {"amount": next(iter(found.values()))}
    elif signs is None and kind is SourceKind.SETTLEMENT and found and all(found.values()):
        signs = _sign_of_settled(draft, [*found.values()])
    if signs is None and found:
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
    given = answered(draft, "sign.").items()
    named = {ours: their for ours, their in given if "." not in ours}
    for ours, their in named.items():
        if their and not found.get(their):
            msg = f"sign.{ours}: {their!r} is no column with one known word for plus and for minus"
            raise UsageError(msg)
    return {ours: found[their] for ours, their in named.items() if their} if named else None


def _may_have_sign(draft: Draft, sides: _Sides) -> bool:
    """Of a bank what is added may bear no word; of books both sides bear one."""
    if draft.schema.kind is SourceKind.BANK:
        return bool(sides.get("minus"))
    known = "amount" in draft.columns and "amount" not in draft.debit
    return draft.schema.kind is SourceKind.LEDGER and known and bool(sides)


def _sign_of_settled(draft: Draft, found: Sequence[_Sides]) -> dict[str, _Sides] | None:
    """Our amount -> its sign: those by which net is gross less fee; None: several do, or none."""
    ways: dict[str, list[_Sides]] = {name: [{}, *found] for name in _OF_ROW}
    if "net" in draft.keys:
        ways["net"] = [{}]
    # What is taken as a fee may be called a debit.
    ways["fee"] += [{**each, "plus": each["minus"], "minus": each["plus"]} for each in found]
    best: dict[tuple[_SettledRow, ...], dict[str, _Sides]] = {}
    most = (1, 0)
    for chosen in product(*(ways[name] if name not in draft.debit else [{}] for name in _OF_ROW)):
        signs = {name: sign for name, sign in zip(_OF_ROW, chosen, strict=True) if sign}
        if {sign["column"] for sign in signs.values()} != {sides["column"] for sides in found}:
            continue
        draft.keys["sign"] = signs
        rows = tuple(islice(_settled_rows(draft), _TRIED_ROWS_MAX))
        adding_up = [row for row in rows if row.adds_up(())]
        right = sum(row.is_as_ours() for row in adding_up)
        if (len(adding_up), right) > most:
            best, most = {}, (len(adding_up), right)
        if (len(adding_up), right) == most:
            best.setdefault(rows, signs)
    draft.keys.pop("sign", None)
    return next(iter(best.values())) if len(best) == 1 else None


class _SettledRow(NamedTuple):
    """A row of a settlement file whose amounts can be read."""

    line: int
    kind: str
    batch: tuple[str, str]
    """Its batch and currency."""
    units: tuple[int, ...]
    """Gross, fee, net."""
    has_net: bool
    """Its file has the net, which proves the others."""

    def turned(self, columns: Collection[str]) -> tuple[int, ...]:
        """The same with the opposite sign in some columns."""
        named = zip(_OF_ROW, self.units, strict=True)
        gross, fee, net = (-units if name in columns else units for name, units in named)
        return gross, fee, net if self.has_net else gross - fee

    def is_as_ours(self) -> bool:
        """Whether its money goes as its type says; without a net its gross, and a capture's fee."""
        gross, fee, net = self.units
        way = _WAYS.get(self.kind, 0)
        if self.has_net:
            return net * way >= 0
        return gross * way >= 0 and (fee >= 0 or self.kind != EntryType.CAPTURE)

    def net(self, columns: Collection[str]) -> int:
        """What it comes to then."""
        return self.turned(columns)[2]

    def adds_up(self, columns: Collection[str]) -> bool:
        """Whether its net is gross less fee then."""
        gross, fee, net = self.turned(columns)
        return gross - fee == net


def _settled_rows(draft: Draft) -> Iterator[_SettledRow]:
    """The rows of a settlement file, as far as its layout is decided."""
    layout = _written(draft)
    for row in draft.sample.rows:
        gross, fee, net = (_units(row, name, draft=draft, layout=layout) for name in _OF_ROW)
        has_net = "net" not in draft.keys
        if gross is None or fee is None or net is None:
            continue
        units = (gross, fee, net if has_net else gross - fee)
        batch = (draft.cell(row, "batch_id"), draft.cell(row, "currency"))
        yield _SettledRow(row.line, _entry_type(row, draft=draft), batch, units, has_net)


def decide_turned(draft: Draft) -> None:
    """The keys `turned` and `turned_rows` of a settlement: signs that are not as ours.

    Gross, fee and net prove which of them differ; the sums of batches that a pay-out ends, which
    rows are the wrong way round as a whole. What neither proves, and is not as ours, is asked.
    """
    unread = {"decimal_sign", "units", "currency_sign"} & draft.questions.keys()
    of_settlement = draft.schema.kind is SourceKind.SETTLEMENT
    known = {*draft.columns, *draft.sums, *({"net"} & draft.keys.keys())}
    if unread or not of_settlement or not known.issuperset(_OF_ROW):
        return
    rows = list(_settled_rows(draft))
    has_net = "net" not in draft.keys
    with_fee = [row for row in rows if row.units[1]]
    # Refunds without a sign look as if fees had the other one; captures do not.
    with_fee = [row for row in with_fee if row.kind == EntryType.CAPTURE] or with_fee
    if sum(row.adds_up(("fee",)) for row in with_fee) > sum(row.adds_up(()) for row in with_fee):
        draft.keys["turned"] = ["fee"]
        rows = [row._replace(units=row.turned(("fee",))) for row in rows]
    if not has_net:
        if turned_by_answer := columns_of(draft.answers.get("turned", "")):
            rows = [row._replace(units=row.turned(turned_by_answer)) for row in rows]
        minus = [row.line for row in with_fee if row.kind == EntryType.CAPTURE and row.units[1] < 0]
        if minus:
            draft.ask(
                "turned",
                f"the fee of the capture on line {minus[0]} is minus, and no net says why: fee "
                "where fees have the opposite of our sign, else nothing",
            )
    by_kind: dict[str, list[_SettledRow]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    given = {kind: columns_of(text) for kind, text in answered(draft, "turned_rows.").items()}
    turned: dict[str, tuple[str, ...]] = {}
    doubted: dict[str, int] = {}
    for kind in by_kind.keys() & _WAYS.keys() - given.keys():
        turned[kind] = _turned_in(by_kind[kind], kind=kind)
        if line := _contrary(by_kind[kind], turned[kind], kind=kind):
            doubted[kind] = line
    turned |= given
    whole = {}  # the same rows the other way round; a fee that is always 0 stays as it is
    for kind in doubted:
        with_fee_too = any(row.units[1] for row in by_kind[kind])
        names = {"gross", *(["fee"] * with_fee_too), *(["net"] * has_net)}
        whole[kind] = tuple(names ^ set(turned[kind]))
        whole[kind] = tuple(name for name in _OF_ROW if name in whole[kind])
    proven = _proven_by_batches(rows, turned, [*doubted])
    for kind in sorted(doubted, key=lambda kind: doubted[kind]):
        if kind in proven:
            turned[kind] = whole[kind] if proven[kind] else turned[kind]
            continue
        as_ours = "plus" if _WAYS[kind] > 0 else "minus"
        draft.ask(
            f"turned_rows.{kind}",
            f"the net of the {kind} on line {doubted[kind]} is not {as_ours}, and no batch's sum "
            f"says why: {','.join(whole[kind])} where such rows have the opposite of our signs, "
            f"{'gross where their fee has not, ' * (len(whole[kind]) > 1 and not has_net)}"
            "else nothing",
        )
    if turned_rows := {kind: turned[kind] for kind in by_kind if turned.get(kind)}:
        draft.keys["turned_rows"] = turned_rows


def _turned_in(rows: Sequence[_SettledRow], *, kind: str) -> tuple[str, ...]:
    """The fewest columns by whose other sign the rows of a kind add up, the right way before."""
    return max(
        _CHOICES,
        key=lambda columns: (
            sum(row.adds_up(columns) for row in rows),
            not columns or not _contrary(rows, columns, kind=kind),
        ),
    )


def _contrary(rows: Sequence[_SettledRow], columns: Collection[str], *, kind: str) -> int:
    """The first line whose net is not as ours, where that may be a mistake; 0: none.

    Refunds and fees are given back now and then; of reserves and pay-outs either way is common.
    """
    lines = [row.line for row in rows if row.net(columns) * _WAYS[kind] < 0]
    rare = kind not in _EITHER_WAY
    return 0 if rare and len(lines) * 2 <= len(rows) else next(iter(lines), 0)


def _proven_by_batches(
    rows: Sequence[_SettledRow], turned: Mapping[str, Collection[str]], doubted: Sequence[str]
) -> dict[str, bool]:
    """Kind in doubt -> whether its rows are the other way round, where sums of batches say it."""
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        of = sums.setdefault(row.batch, {})
        of[row.kind] = of.get(row.kind, 0) + row.net(turned.get(row.kind, ()))
    batches = [of for of in sums.values() if of.get("payout") and len(of) > 1]
    best: list[dict[str, bool]] = []
    most = 1
    for flips in product((False, True), repeat=len(doubted)):
        flipped = dict(zip(doubted, flips, strict=True))
        tied = 0
        for of in batches:
            total = {kind: -net if flipped.get(kind) else net for kind, net in of.items()}
            tied += 2 * total["payout"] == sum(total.values())
        if tied > most:
            best, most = [], tied
        best += [flipped] * (tied == most)
    return {
        kind: best[0][kind]
        for kind in doubted
        if best and len({flipped[kind] for flipped in best}) == 1
    }


def decide_captures(draft: Draft) -> None:
    """The key `captures` of books with signs or two sides; a refund with a minus has it in plus."""
    if draft.schema.kind is not SourceKind.LEDGER or "amount" not in draft.columns:
        return
    if {"columns.entry_type", "constants.entry_type"} & draft.questions.keys():
        return  # what an entry is says more than somebody who is asked of its side
    sides = "amount" in draft.debit or "sign" in draft.keys
    layout, lines = _written(draft), dict[str, int]()
    for row in draft.sample.rows:
        way = DIRECTIONS.get(_entry_type(row, draft=draft), 0)
        moved = _units(row, "amount", draft=draft, layout=layout) or 0
        if way and moved:
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
    trailer = total_of(sample.trailer)
    draft.keys["trailer"] = trailer
    cells = sample.trailer[trailer.get("place", 1) :]
    behind = trailer.get("place", 1) + 1
    rows = sample.rows[: sample.first_rows]
    at_rows = [at for at, cell in enumerate(cells, start=behind) if cell == str(len(rows))]
    if len(at_rows) == 1:
        trailer |= {"rows": at_rows[0]}
    currencies = {draft.cell(row, "currency").upper() for row in rows}
    is_whole = len(rows) < SAMPLE_ROWS_MAX and not sample.typed and len(currencies) <= 1
    if not column or not is_whole or draft.schema.kind is SourceKind.BANK:
        return
    layout = _written(draft)
    units = [_units(row, "amount", draft=draft, layout=layout) for row in rows]
    total = sum(each or 0 for each in units)
    if None in units or not total:
        return
    places = [at for at, c in enumerate(cells, start=behind) if units_of(c, layout=layout) == total]
    below = sample.header.index(column) + 1
    if below in places or len(places) == 1:
        trailer |= {"amount": below if below in places else places[0]}

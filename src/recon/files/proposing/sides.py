"""Which way money goes: a column with the sign of amounts, and the side on which captures stand."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from recon.files.proposing.answers import words_answered
from recon.files.proposing.layout_draft import LayoutDraft
from recon.files.proposing.vocabulary import MINUS_WORDS, PLUS_WORDS, plain_words
from recon.files.proposing.written_money import OF_ROW, SettledRow, settled_rows
from recon.files.typing.table_schema import DIRECTIONS, Cell
from recon.model.errors import UsageError
from recon.model.words import SourceKind

_TRIED_ROWS_MAX = 500
"""Rows by which it is tried of which amounts a column of signs is."""


def decide_sign(draft: LayoutDraft) -> None:
    """The key `sign`: amounts without a sign have it in a column of S and H, or Af and Bij."""
    taken = set(draft.ranked.columns.values())
    found: dict[str, dict[str, str]] = {}
    for their in draft.theirs.values():
        words = {plain_words(cell.text): cell.text for cell in their.cells}
        if their.name in taken or not (words and set(words) <= MINUS_WORDS | PLUS_WORDS):
            continue
        minus = [text for word, text in words.items() if word in MINUS_WORDS]
        plus = [text for word, text in words.items() if text not in minus]
        sides = {"column": their.name, "plus": "".join(plus), "minus": "".join(minus)}
        found[their.name] = sides if max(len(minus), len(plus)) == 1 else {}
    kind = draft.schema.kind
    signs = _answered(draft, found)
    if signs is None and len(found) == 1 and _may_have_sign(draft, *found.values()):
        signs = {"amount": next(iter(found.values()))}
    elif signs is None and kind is SourceKind.SETTLEMENT and found and all(found.values()):
        signs = _sign_of_settled(draft, [*found.values()])
    if signs:
        draft.keys["sign"] = signs
    elif signs is None and found:
        _ask_of_sign(draft, [*found])
    for ours, sign in (signs or {}).items():
        if kind is not SourceKind.BANK:
            _ask_of_other_side(draft, sign, ours=ours)


def _answered(
    draft: LayoutDraft, found: Mapping[str, dict[str, str]]
) -> dict[str, dict[str, str]] | None:
    """Our amount -> its sign, as a person named the columns of signs; None: nobody did.

    Raises:
        UsageError: a column has no words of signs that are known.
    """
    given = {k.removeprefix("sign."): t for k, t in draft.answers.items() if k.startswith("sign.")}
    named = {ours: their for ours, their in given.items() if "." not in ours}
    for ours, their in named.items():
        if their and not found.get(their):
            msg = f"sign.{ours}: {their!r} is no column with one known word for plus and for minus"
            raise UsageError(msg)
    return {ours: found[their] for ours, their in named.items() if their} if named else None


def _sign_of_settled(
    draft: LayoutDraft, found: Sequence[dict[str, str]]
) -> dict[str, dict[str, str]] | None:
    """Our amount -> its sign: those by which net is gross less fee; None: several do, or none."""
    ways: dict[str, list[dict[str, str]]] = {name: [{}] for name in OF_ROW}
    for sides in found:
        for name in OF_ROW:
            ways[name].append(sides)
        # What is taken as a fee may be called a debit.
        ways["fee"].append(sides | {"plus": sides["minus"], "minus": sides["plus"]})
    best: dict[tuple[SettledRow, ...], dict[str, dict[str, str]]] = {}
    most = (1, 0)
    for chosen in product(
        *(ways[name] if name not in draft.ranked.debit else [{}] for name in OF_ROW)
    ):
        signs = {name: sign for name, sign in zip(OF_ROW, chosen, strict=True) if sign}
        if {sign["column"] for sign in signs.values()} != {sides["column"] for sides in found}:
            continue
        draft.keys["sign"] = signs
        rows = tuple(islice(settled_rows(draft), _TRIED_ROWS_MAX))
        adding_up = [row for row in rows if row.adds_up(())]
        fits = (len(adding_up), sum(row.is_right for row in adding_up))
        if fits > most:
            best, most = {}, fits
        if fits == most:
            best.setdefault(rows, signs)
    draft.keys.pop("sign", None)
    return next(iter(best.values())) if len(best) == 1 else None


def _may_have_sign(draft: LayoutDraft, sides: Mapping[str, str]) -> bool:
    """Of a bank what is added may bear no word; of books both sides bear one."""
    if draft.schema.kind is SourceKind.BANK:
        return bool(sides.get("minus"))
    known = "amount" in draft.ranked.columns and "amount" not in draft.ranked.debit
    return draft.schema.kind is SourceKind.LEDGER and known and bool(sides)


def _ask_of_other_side(draft: LayoutDraft, sign: Mapping[str, str], *, ours: str) -> None:
    """A sample of captures alone shows one side; the other one's word must be known at night."""
    for side, other in (("plus", "minus"), ("minus", "plus")):
        key = f"sign.{ours}.{side}"
        if not sign[side] and key not in draft.answers:
            ask = f"column {sign['column']!r} says {sign[other]!r} in every row"
            draft.questions[key] = f"{ask}; what does it say of the other side?"


def _ask_of_sign(draft: LayoutDraft, names: Sequence[str]) -> None:
    """Which amounts a column is of; whoever answers names the column, or none."""
    amounts = [c for c in draft.schema.columns if c.cell is Cell.AMOUNT]
    ours = (draft.amount_columns() or amounts)[0].name
    which = " and ".join(map(repr, names))
    draft.questions[f"sign.{ours}"] = (
        f"column {which} says which way money goes: of which amounts (sign.{ours} = {names[0]!r}, "
        "and so on, or nothing where it is of none)?"
    )


def decide_captures(draft: LayoutDraft) -> None:
    """The key `captures` of books with signs or two sides; a refund with a minus has it in plus."""
    amount, debit = (of.get("amount", "") for of in (draft.ranked.columns, draft.ranked.debit))
    sides = bool(debit) or "sign" in draft.keys
    if draft.schema.kind is not SourceKind.LEDGER or amount not in draft.theirs:
        return
    if {"columns.entry_type", "constants.entry_type"} & draft.questions.keys():
        return  # what an entry is says more than somebody who is asked of its side
    lines: dict[str, int] = {}
    for line, sign, way in _signs(draft, amount=amount, debit=debit):
        sides = sides or sign < 0
        lines.setdefault("plus" if way == sign else "minus", line)
    if not sides:
        return
    if len(lines) == 1:
        draft.keys["captures"] = next(iter(lines))
        return
    rows = " and ".join(f"line {line} says {side}" for side, line in lines.items())
    why = f": {rows}" if rows else "? No entry type says it"
    draft.questions["captures"] = f"are captures plus or minus{why}"


def _signs(draft: LayoutDraft, *, amount: str, debit: str) -> Iterator[tuple[int, int, int]]:
    """Line, sign, and direction of each row whose entry type has one."""
    entry_type = draft.ranked.columns.get("entry_type", "")
    constant = draft.constant("entry_type")
    words = draft.keys.get("words", {}).get("entry_type", {}) | words_answered(draft.answers)
    sign: Mapping[str, str] = draft.keys.get("sign", {}).get("amount", {})
    for sample in draft.samples:
        names = (amount, debit, entry_type, sign.get("column", ""))
        places = {name: sample.header.index(name) for name in names if name in sample.header}
        for row in sample.rows:
            word = row.cells[places[entry_type]] if entry_type in places else constant
            way = DIRECTIONS.get(words.get(word, word), 0)
            moved = _sign(row.cells[places[amount]])
            if debit and not moved:
                moved = -_sign(row.cells[places[debit]])
            if sign and row.cells[places[sign["column"]]] == sign["minus"] != "":
                moved = -moved
            if way and moved:
                yield row.line, moved, way


def _sign(text: str) -> int:
    if not any(digit in text for digit in "123456789"):
        return 0
    return -1 if "-" in text or "(" in text else 1

"""Which way money goes: a column with the sign of amounts, and the side on which captures stand."""

from collections.abc import Iterator, Mapping

from recon.files.proposing.answers import words_answered
from recon.files.proposing.layout_draft import LayoutDraft
from recon.files.proposing.ranked_columns import TheirColumn
from recon.files.proposing.vocabulary import MINUS_WORDS, PLUS_WORDS, plain_words
from recon.files.typing.table_schema import DIRECTIONS, Cell
from recon.model.words import SourceKind


def decide_sign(draft: LayoutDraft) -> None:
    """The key `sign`: amounts without a sign have it in a column of S and H, or Af and Bij."""
    taken = set(draft.ranked.columns.values())
    for their in draft.theirs.values():
        words = {plain_words(cell.text): cell.text for cell in their.cells}
        if their.name in taken or not (words and set(words) <= MINUS_WORDS | PLUS_WORDS):
            continue
        minus = [text for word, text in words.items() if word in MINUS_WORDS]
        plus = [text for word, text in words.items() if text not in minus]
        if len(minus) > 1 or len(plus) > 1 or not _may_have_sign(draft, minus=minus):
            _ask_of_sign(draft, their.name)
            continue
        draft.keys["sign"] = {"column": their.name, "plus": "".join(plus), "minus": "".join(minus)}
        if draft.schema.kind is SourceKind.LEDGER:
            _ask_of_other_side(draft, their)


def _may_have_sign(draft: LayoutDraft, *, minus: list[str]) -> bool:
    """Of a bank what is added may bear no word; of books both sides bear one."""
    if draft.schema.kind is SourceKind.BANK:
        return bool(minus)
    of_books = draft.schema.kind is SourceKind.LEDGER
    return of_books and "amount" in draft.ranked.columns and "amount" not in draft.ranked.debit


def _ask_of_other_side(draft: LayoutDraft, their: TheirColumn) -> None:
    """A sample of captures alone shows one side; the other one's word must be known at night."""
    sign = draft.keys["sign"]
    for side in ("plus", "minus"):
        key = f"sign.{side}"
        if not sign[side] and key not in draft.answers:
            ask = f"column {their.name!r} says {their.cells[0].text!r} in every row"
            draft.questions[key] = f"{ask}; what does it say of the other side?"


def _ask_of_sign(draft: LayoutDraft, name: str) -> None:
    """Beside what is asked of the amount itself, where no column is known to be it."""
    amounts = [c for c in draft.schema.columns if c.cell is Cell.AMOUNT]
    key = f"columns.{(draft.amount_columns() or amounts)[0].name}"
    ask = f"column {name!r} says which way money goes; what is of it in amounts?"
    draft.questions[key] = "; ".join([*filter(None, [draft.questions.get(key)]), ask])


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
    sign: Mapping[str, str] = draft.keys.get("sign", {})
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

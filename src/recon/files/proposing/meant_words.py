"""Which of our words a word of theirs means; one that could mean several is asked."""

from collections.abc import Mapping

from recon.files.proposing.layout_draft import LayoutDraft
from recon.files.proposing.vocabulary import BANK_STATUS, MEANINGS, plain_words
from recon.files.typing.table_schema import TableColumn
from recon.model.money import is_currency
from recon.model.words import SourceKind
from recon.privacy.shown_text import scrubbed


def decide_words(draft: LayoutDraft) -> None:
    """The key `words`: of columns that hold some words, and of currencies in small letters."""
    words: dict[str, dict[str, str]] = {}
    for column in draft.schema.columns:
        if not isinstance(column.cell, frozenset):
            continue
        lines = {cell.text: cell.line for cell in reversed(draft.cells_of(column.name))}
        if not set(lines) <= column.cell:
            words[column.name] = _meant(draft, lines, column=column)
    # What is no currency stays a row that a night refuses.
    cells = draft.cells_of("currency")
    codes = {cell.text for cell in cells if is_currency(cell.text.upper())}
    if any(code.upper() != code for code in codes):
        words["currency"] = {code: code.upper() for code in sorted(codes)}
    if words:
        draft.keys["words"] = words


def _meant(draft: LayoutDraft, lines: Mapping[str, int], *, column: TableColumn) -> dict[str, str]:
    """Their word -> ours; a word that could mean several things is asked."""
    of_bank = draft.schema.kind is SourceKind.BANK
    known = BANK_STATUS if of_bank else MEANINGS.get(column.name, {})
    assert isinstance(column.cell, frozenset)  # noqa: S101 - the caller asked
    meant = {}
    for word, line in sorted(lines.items(), key=lambda pair: pair[1]):
        ours = known.get(plain_words(word), word)
        if ours in column.cell:
            meant[word] = ours
            continue
        shown = word if scrubbed(word) == word else ""
        key = f"words.{column.name}.{shown}" if shown else f"words.{column.name}"
        which = ", ".join(sorted(column.cell))
        draft.questions[key] = f"line {line}: which of {which} is it?"
    return meant

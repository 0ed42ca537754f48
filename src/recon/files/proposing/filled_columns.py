"""Every column that a layout needs: of theirs, the same in every row, left blank, or asked."""

import re
from collections.abc import Mapping

from recon.files.proposing.layout_draft import LayoutDraft
from recon.files.proposing.ranked_columns import OF_STATEMENT, fits
from recon.files.proposing.readings_of_cells import currency_mark, currency_of_mark
from recon.files.typing.table_schema import Cell, Grammar, TableColumn
from recon.model.money import is_currency

_OF_ACCOUNT = ("merchant_id", "account_id")
_SPARED = frozenset({"transaction_id", "reference_no", "opening", "closing"})
"""Columns that many programs do not have: blank where no column is them, and said so."""
_WHERE_NONE_IS = {
    "query_result": "constants.query_result=1 where each row is a payment that the gateway has"
}
"""Columns that no portal has -> what a person may decide instead."""
_CANDIDATES_MAX = 6
"""Columns that a question names."""


def place_account(draft: LayoutDraft, *, known: Mapping[str, str]) -> None:
    """Merchant and account are what the caller knows, unless a column says the same."""
    for name in _OF_ACCOUNT:
        if name not in draft.schema.names:
            continue
        their = draft.theirs.get(draft.ranked.columns.get(name, ""))
        given = known.get(name, "")
        sure = f"columns.{name}" in draft.answers or their is None or their.name == name
        ids = {cell.text for cell in their.cells} if their is not None else set()
        if not sure and (not given or ids != {given}):
            del draft.ranked.columns[name]
        draft.questions.pop(f"columns.{name}", None)
        if name in draft.ranked.columns:
            continue
        if given:
            draft.constants[name] = given
        else:
            draft.questions[f"constants.{name}"] = (
                "whose files are they? No column says it (--merchant, --account)"
            )


def fill_required(draft: LayoutDraft) -> None:
    """What every row must have and no column is known to be."""
    for column in draft.schema.columns:
        name, key = column.name, f"columns.{column.name}"
        if name in draft.ranked.columns or key in draft.questions or name in _OF_ACCOUNT:
            continue
        if not column.required or f"constants.{name}" in draft.answers:
            continue
        if name in _SPARED and column.may_be_blank:
            draft.constants[name] = ""
            draft.blank.append(name)
        elif column.cell is Cell.CURRENCY:
            _currency_of_names(draft)
        elif isinstance(column.cell, frozenset):
            named = _candidates(draft, column)
            which = f" (columns.{name} where it is{named[1:]})" if named else ""
            ask = f"no column is known to say it{which}; what is it of every row?"
            draft.questions[f"constants.{name}"] = ask
        else:
            day = draft.ranked.columns.get("booked_on")
            each = f"; {day!r} makes a statement of each day" if day else ""
            ask = f"which column is it{_candidates(draft, column)}?"
            none = f" ({_WHERE_NONE_IS.get(name, f'constants.{name} where none is')})"
            draft.questions[key] = f"{ask}{each if name in OF_STATEMENT else ''}{none}"


def _candidates(draft: LayoutDraft, column: TableColumn) -> str:
    """Columns of which no required one is read yet, and whose cells could be this one."""
    ranked = draft.ranked
    needed = {ranked.columns.get(name, "") for name in draft.schema.required}
    taken = {*needed, *ranked.debit.values(), *ranked.clock.values()}
    if column.cell is not Cell.AMOUNT:  # what is read as money names and states nothing
        taken |= {ranked.columns[each.name] for each in draft.amount_columns()}
    free = [
        their
        for their in draft.theirs.values()
        if their.name not in taken and their.cells and fits(their, column)
    ]
    if isinstance(column.cell, Grammar) and column.cell is not Grammar.DATE:
        alone = [their for their in free if their.all_differ]
        free = alone or free
    names = [repr(their.name) for their in free]
    return f": {' or '.join(names[:_CANDIDATES_MAX])}" if names else ""


def _currency_of_names(draft: LayoutDraft) -> None:
    """What names of amounts tell, `Betrag (EUR)`, or the signs beside them; or a question."""
    columns = draft.amount_columns()
    parts = {
        part
        for column in columns
        for part in re.findall(r"\b[A-Z]{3}\b", draft.ranked.columns[column.name])
        if is_currency(part)
    }
    cells = [cell for column in columns for cell in draft.cells_of(column.name)]
    if known := currency_of_mark(currency_mark(cell.text for cell in cells)):
        parts.add(known)
    if len(parts) == 1:
        draft.constants["currency"] = parts.pop()
    else:
        draft.questions["constants.currency"] = "no column says the currency; which one is it?"

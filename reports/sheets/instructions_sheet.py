"""The Instructions sheet: what was to be moved tonight, what came of it, in which batches."""

from collections.abc import Iterable, Sequence
from typing import Any

from openpyxl.utils import get_column_letter

from recon.model.figures import NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import NUMBER_MINOR_UNITS_MAX, Draft
from reports.drawing.listing import RIGHT, Column, Row, field, put_list, put_rows
from reports.drawing.page import print_first_rows, print_on, protect, put_heading
from reports.sheets.state_words import in_words, state_words
from reports.sheets.totals import GROUP_ORDER, Rows

TOP = 4
PAPER_COLUMNS = 11
"""Up to the gateway's message: one page wide, instructions and batches."""

COLUMNS = (
    Column("Instruction", 36, "text", field("instruction_id"), "insKey"),
    Column("Kind", 18, "text", field("kind"), "insKind"),
    Column("Result", 12, "text", field("group"), "insResult"),
    Column("Order no", 24, "text", field("order_no")),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Ccy", 9, "text", field("currency"), "insCcy"),
    Column("Amount", 16, "amount", field("amount"), "insAmount"),
    Column("State", 20, "text", in_words("state", state_words)),
    Column("Outcome", 11, "text", field("outcome")),
    Column("Code", 10, "text", field("code")),
    Column("Message", 40, "text", field("message"), wrap=True),
    Column("Refund reference", 22, "text", field("refund_reference_id")),
    Column("Batch", 36, "text", field("batch_id")),
    Column("Attempt", 9, "count", field("attempt")),
    Column("Approved by", 18, "text", field("approved_by")),
    Column("Sent", 17, "instant", field("sent_at")),
    Column("Outcome at", 17, "instant", field("outcome_at")),
    Column("In doubt since", 17, "instant", field("in_doubt_since")),
    Column("File", 26, "text", field("source")),
    Column("Line", 8, "count", field("line")),
)
BATCH_COLUMNS = (
    Column("Batch", 36, "text", field("batch_id"), "batKey"),
    Column("Kind", 18, "text", field("kind"), "batKind"),
    Column("In doubt", 12, "count", field("in_doubt")),
    Column("Sent", 24, "instant", field("sent_at")),
    Column("SHA-256 of the request", 24, "text", field("body_sha256")),
    Column("Ccy", 9, "text", field("currency")),
    Column("Amount", 16, "amount", field("amount")),
    Column("Rows", 20, "count", field("rows")),
    Column("Confirmed", 11, "count", field("confirmed")),
    Column("Rejected", 10, "count", field("rejected")),
    Column("Gateway's message", 40, "text", field("message")),
    Column("Not sent", 22, "count", field("not_sent")),
    Column("Return status", 18, "text", field("return_status")),
)
"""In the columns of the list above, whose widths they share."""


def draw_instructions(draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows) -> None:
    """Totals per kind and currency, every instruction (doubt first), every batch."""
    put_heading(
        draft,
        sheet,
        title="Instructions",
        sentence="What was to be moved. In doubt means that nobody knows yet whether it took "
        f"effect: it is never sent again. Times in {figures.timezone}.",
    )
    if figures.stopped:
        look = looks.BODY_TEXT.but(fill=looks.BAD[0], colour=looks.BAD[1], bold=True)
        draft.text(sheet, (TOP - 1, 1), figures.stopped, look)
    next_row = _put_totals(draft, sheet, rows=rows.instructions)
    draft.text(sheet, (next_row, 1), "Every instruction, what is in doubt first", looks.HEADING)
    header = next_row + 1
    extent = put_list(draft, sheet, columns=COLUMNS, rows=rows.instructions, top=header)
    sheet.auto_filter.ref = f"A{header}:{sheet.cell(extent[1], len(COLUMNS)).coordinate}"
    batches = extent[1] + 2
    _put_batches(draft, sheet, rows=rows.batches, top=batches)
    last = batches + 1 + len(rows.batches)
    sheet.freeze_panes = "B4"
    print_on(sheet, run_id=figures.run_id)
    if print_first_rows(draft, sheet, columns=PAPER_COLUMNS, rows=extent) < extent[1]:
        below = f"A{batches}:{get_column_letter(PAPER_COLUMNS)}{last}"
        sheet.print_area = f"{sheet.print_area},{below}"
    else:
        sheet.print_area = f"A1:{get_column_letter(PAPER_COLUMNS)}{last}"
    protect(sheet)


def kinds_of(rows: Iterable[Row]) -> list[str]:
    """The kinds that occur, captures and refunds first."""
    first = ("capture", "refund", "cancel")
    kinds = {str(row["kind"]) for row in rows}
    return [*(kind for kind in first if kind in kinds), *sorted(kinds - set(first))]


def _put_totals(draft: Draft, sheet: Any, *, rows: Sequence[Row]) -> int:
    """Count and amount per kind, currency and result; the next free row."""
    draft.text(sheet, (TOP, 1), "Totals per kind and currency", looks.HEADING)
    titles = ["Kind", "Ccy", "Result", "Instructions", "Amount"]
    for column, title in enumerate(titles, 1):
        look = looks.HEADER_RIGHT if title in {"Instructions", "Amount"} else looks.HEADER
        draft.text(sheet, (TOP + 1, column), title, look)
    row_number = TOP + 2
    groups = sorted(
        {(str(row["kind"]), str(row["currency"]), GROUP_ORDER.index(row["group"])) for row in rows}
    )
    for kind, currency, position in groups:
        result = GROUP_ORDER[position]
        _put_total(draft, (sheet, row_number), group=(kind, currency, result), rows=rows)
        row_number += 1
    if not groups:
        draft.text(sheet, (row_number, 1), "No instruction was given.", looks.NOTE)
        row_number += 1
    return row_number + 1


def _put_total(
    draft: Draft, at: tuple[Any, int], *, group: tuple[str, str, str], rows: Sequence[Row]
) -> None:
    sheet, number = at
    kind, currency, result = group
    for column, word in enumerate(group, 1):
        look = looks.BODY_TEXT
        if column == len(group) and result == "in doubt":
            look = look.but(fill=looks.BAD[0], colour=looks.BAD[1], bold=True)
        draft.text(sheet, (number, column), word, look)
    amounts = [
        row["amount"] or 0
        for row in rows
        if (row["kind"], row["currency"], row["group"]) == (kind, currency, result)
    ]
    criteria = f"insKind,$A{number},insCcy,$B{number},insResult,$C{number}"
    draft.formula(sheet, (number, 4), (f"=COUNTIFS({criteria})", len(amounts)))
    if any(abs(amount) > NUMBER_MINOR_UNITS_MAX for amount in amounts):
        draft.amount(sheet, (number, 5), sum(amounts), currency)
        return
    draft.money_formula(
        sheet, (number, 5), (f"SUMIFS(insAmount,{criteria})", sum(amounts), currency)
    )


def _put_batches(draft: Draft, sheet: Any, *, rows: Sequence[Row], top: int) -> None:
    draft.text(sheet, (top, 1), "Batches as they were sent", looks.HEADING)
    if not rows:
        draft.text(sheet, (top + 1, 1), "Nothing was sent.", looks.NOTE)
    for column, declared in enumerate(BATCH_COLUMNS, 1):
        look = looks.HEADER_RIGHT if declared.kind in RIGHT else looks.HEADER
        if rows:
            draft.text(sheet, (top + 1, column), declared.title, look)
    put_rows(draft, sheet, columns=BATCH_COLUMNS, rows=rows, first=top + 2)

"""The Sources sheet: every input with its digest and counts, every rejected row, unknown codes."""

from collections.abc import Sequence
from typing import Any

from openpyxl.utils import get_column_letter

from recon.model.figures import NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.listing import LINE_POINTS, LINES_MAX
from reports.drawing.page import (
    column_range,
    print_on,
    protect,
    put_header,
    put_heading,
    set_widths,
)
from reports.drawing.plain_text import text_width
from reports.sheets.named_files import put_named
from reports.sheets.totals_blocks import bridge_sentence

WIDTHS = (15, 66, 12, 20, 12, 12, 12, 12, 10, 70)
REASON_COLUMN = len(WIDTHS)
LINK = looks.LINK.but(line="")
REJECTS_MAX = 10_000
"""More rejected rows than this say one thing: the file is not what it should be."""
FILE_TITLES = (
    "Kind",
    "Name",
    ">Bytes",
    ">Rows read",
    ">Accepted",
    ">Rejected",
    ">Skipped",
    ">Difference",
    "Check",
    "SHA-256",
)


def draw_sources(draft: Draft, sheet: Any, *, figures: NightFigures) -> None:
    """Files, rejected rows, codes without a rule, replaced characters."""
    set_widths(sheet, WIDTHS)
    put_heading(
        draft,
        sheet,
        title="Sources",
        sentence="What was read. Rows read must be accepted, rejected or skipped by a rule that "
        "has a name (identical repeats).",
    )
    row = _put_files(draft, sheet, figures=figures)
    row = put_named(draft, sheet, files=figures.files_named(), top=row)
    row = _put_rejects(draft, sheet, figures=figures, top=row)
    row = _put_standing(draft, sheet, figures=figures, top=row)
    row = _put_unmapped(draft, sheet, figures=figures, top=row)
    row = _put_assurance(draft, sheet, figures=figures, top=row)
    sentence = (
        f"{draft.replaced_characters} unprintable characters of foreign text were shown as \ufffd."
    )
    draft.text(sheet, (row, 1), sentence, looks.NOTE)
    sheet.freeze_panes = "A4"
    print_on(sheet, run_id=figures.run_id)
    sheet.print_area = f"A1:{get_column_letter(len(WIDTHS))}{row}"
    protect(sheet)


def _put_files(draft: Draft, sheet: Any, *, figures: NightFigures) -> int:
    draft.text(sheet, (4, 1), "Files and answers", looks.HEADING)
    put_header(draft, sheet, row=5, titles=FILE_TITLES)
    row = 6
    grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
    for file in figures.files:
        draft.text(sheet, (row, 1), file.kind.value, looks.BODY_TEXT)
        draft.text(sheet, (row, 2), file.name, looks.BODY_TEXT)
        counts = (file.rows_read, file.rows_accepted, file.rows_rejected, file.rows_skipped)
        for column, count in enumerate((file.size_bytes, *counts), 3):
            draft.number(sheet, (row, column), count, grey)
        left = counts[0] - sum(counts[1:])
        draft.formula(sheet, (row, 8), (f"=D{row}-SUM(E{row}:G{row})", left))
        word = "CHECK" if left else "OK"
        draft.formula(sheet, (row, 9), (f'=IF(H{row}=0,"OK","CHECK")', word), looks.CHECK)
        draft.text(sheet, (row, 10), file.sha256, looks.BODY_TEXT)
        row += 1
    for name, column in (("srcKind", 1), ("srcAccepted", 5)):
        reference = column_range(sheet, column=column, rows=(6, max(6, row - 1)))
        draft.name(name, reference)
    if not figures.files:
        draft.text(sheet, (row, 1), "No file was read.", looks.NOTE)
        return row + 2
    return _put_sums(draft, sheet, figures=figures, row=row)


def _put_sums(draft: Draft, sheet: Any, *, figures: NightFigures, row: int) -> int:
    total = looks.NUMBER.but(line="total", bold=True)
    draft.text(sheet, (row, 1), "All", looks.LABEL.but(line="total"))
    sums = {
        "D": sum(file.rows_read for file in figures.files),
        "E": sum(file.rows_accepted for file in figures.files),
        "F": sum(file.rows_rejected for file in figures.files),
        "G": sum(file.rows_skipped for file in figures.files),
    }
    for column, (letter, count) in enumerate(sums.items(), 4):
        formula = f"=SUM({letter}6:{letter}{row - 1})"
        draft.formula(sheet, (row, column), (formula, count), total)
    row += 1
    for kind in figures.bridge:
        to = (bridge_sentence(figures, kind=kind), "'Control totals'!A5")
        draft.link(sheet, (row, 1), to, LINK)
        row += 1
    return row + 1


def _put_rejects(draft: Draft, sheet: Any, *, figures: NightFigures, top: int) -> int:
    title = f"Rejected rows ({len(figures.rejects)})"
    draft.text(sheet, (top, 1), title, looks.HEADING)
    if not figures.rejects:
        draft.text(sheet, (top + 1, 1), "None.", looks.NOTE)
        return top + 3
    titles = ("Kind", "File", ">Line", "Column", "Order no", "", "Value", "", "", "Reason")
    put_header(draft, sheet, row=top + 1, titles=titles)
    shown = figures.rejects[:REJECTS_MAX]
    for row, reject in enumerate(shown, top + 2):
        _put_texts(draft, sheet, row, (reject.kind.value, reject.source))
        draft.number(sheet, (row, 3), reject.line)
        texts = (reject.column, reject.order_no, "", reject.value, "", "")
        for column, text in enumerate(texts, 4):
            draft.text(sheet, (row, column), text, looks.BODY_TEXT)
        _put_reason(draft, sheet, row, reject.reason)
    row = top + 2 + len(shown)
    if len(figures.rejects) > REJECTS_MAX:
        left = len(figures.rejects) - REJECTS_MAX
        draft.text(sheet, (row, 1), f"{left} more are in the database.", looks.NOTE)
        row += 1
    return row + 1


def _put_standing(draft: Draft, sheet: Any, *, figures: NightFigures, top: int) -> int:
    """Order rows of earlier nights that could not be read and still stand for their orders."""
    tonight = {(reject.source, reject.line) for reject in figures.rejects}
    rows = [reject for reject in figures.quarantined if (reject.source, reject.line) not in tonight]
    if not rows:
        return top
    title = f"Rejected on earlier nights, and not delivered again since ({len(rows)})"
    draft.text(sheet, (top, 1), title, looks.HEADING)
    titles = (">Row", "File", ">Line", "Column", "Order no", "", "", "", "", "Reason")
    put_header(draft, sheet, row=top + 1, titles=titles)
    for row, reject in enumerate(rows[:REJECTS_MAX], top + 2):
        draft.number(sheet, (row, 1), reject.reject_id)
        draft.text(sheet, (row, 2), reject.source, looks.BODY_TEXT)
        draft.number(sheet, (row, 3), reject.line)
        for column, text in enumerate((reject.column, reject.order_no), 4):
            draft.text(sheet, (row, column), text, looks.BODY_TEXT)
        _put_reason(draft, sheet, row, reject.reason)
    row = top + 2 + len(rows[:REJECTS_MAX])
    sentence = "Have these orders delivered, or decide: `recon rejected-rows dismiss ROW`."
    draft.text(sheet, (row, 1), sentence, looks.NOTE)
    return row + 2


def _put_reason(draft: Draft, sheet: Any, row: int, reason: str) -> None:
    """Why a row was rejected, in as many lines as it takes: all that is wrong in it."""
    draft.text(sheet, (row, REASON_COLUMN), reason, looks.BODY_TEXT.but(wrap=True))
    lines = -(-text_width(reason) // (WIDTHS[-1] - 2))
    if lines > 1:
        sheet.row_dimensions[row].height = LINE_POINTS * min(lines, LINES_MAX) + 3


def _put_unmapped(draft: Draft, sheet: Any, *, figures: NightFigures, top: int) -> int:
    if not figures.unmapped_codes:
        return top
    draft.text(sheet, (top, 1), "Gateway codes that no rule explains", looks.HEADING)
    titles = ("Field", "Code", ">Times", "An order")
    put_header(draft, sheet, row=top + 1, titles=titles)
    for row, code in enumerate(figures.unmapped_codes, top + 2):
        _put_texts(draft, sheet, row, (str(code.get("field", "")), str(code.get("code", ""))))
        draft.number(sheet, (row, 3), int(code.get("count", 0)))
        sample = code.get("sample order_no", code.get("order_no", code.get("sample", "")))
        draft.text(sheet, (row, 4), str(sample), looks.BODY_TEXT)
    return top + 3 + len(figures.unmapped_codes)


def _put_assurance(draft: Draft, sheet: Any, *, figures: NightFigures, top: int) -> int:
    if not figures.scope_of_assurance:
        return top
    draft.text(sheet, (top, 1), "Scope of assurance", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=("Currency", "What", ">Count", ">Amount"))
    for row, line in enumerate(figures.scope_of_assurance, top + 2):
        currency = str(line.get("currency", "") or "")
        _put_texts(draft, sheet, row, (currency, str(line.get("statement", ""))))
        draft.number(sheet, (row, 3), whole(line.get("count")))
        draft.amount(sheet, (row, 4), whole(line.get("amount")), currency)
    return top + 3 + len(figures.scope_of_assurance)


def whole(value: object) -> int | None:
    """A count as it stands in a mapping of figures; None when it is not given."""
    return None if value in {None, ""} else int(str(value))


def _put_texts(draft: Draft, sheet: Any, row: int, texts: Sequence[str]) -> None:
    for column, text in enumerate(texts, 1):
        draft.text(sheet, (row, column), text, looks.BODY_TEXT)

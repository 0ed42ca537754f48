"""A workbook that came back: what people wrote in its cream columns, and what else was changed.

Only the cream columns are read. Everything else is compared with what the database says and told
when it differs, because a changed amount in a returned file is a question, never an answer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from openpyxl.utils import get_column_letter

from recon.files.formats.form_book import FormCell, read_form
from recon.model.errors import OutputError, SourceUnreadableError
from recon.model.resolutions import (
    COMMENT_CHARACTERS_MAX,
    OWNER_CHARACTERS_MAX,
    RESOLUTIONS,
    SCOPES,
    THIS_BREAK,
    BreakAnswer,
    Returned,
    ReturnedRow,
    WorkbookRefusal,
)
from reports.drawing.draft import NOT_COVERED
from reports.drawing.listing import Column
from reports.drawing.plain_text import cell_text, day_of
from reports.reading.workbook_check import minor_units_of
from reports.sheets.breaks_sheet import ANSWERS, COLUMNS, HEADER_ROW, KEY, VERSION
from reports.sheets.run_sheet import SCHEMA_VERSION
from reports.sheets.run_sheet import TITLE as RUN_SHEET

BREAKS_SHEET = "Breaks"
FIRST_DAY = date(2000, 1, 1)
LISTS: Mapping[str, tuple[str, ...]] = {"Resolution": RESOLUTIONS, "Applies to": SCOPES}
LENGTHS: Mapping[str, int] = {
    "Owner": OWNER_CHARACTERS_MAX,
    "Comment": COMMENT_CHARACTERS_MAX,
}
COMPARED = tuple(
    column
    for column in COLUMNS
    if column.title not in ANSWERS and column.kind in {"text", "amount"} and not column.wrap
)
"""Locked columns that are held against the database."""


def read_back(path: Path) -> Returned:
    """What a returned workbook says.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a workbook of ours, or of a form this program does not know.
    """
    book = read_form(path, titles=(BREAKS_SHEET, RUN_SHEET))
    facts = _facts(book.sheets[RUN_SHEET])
    if facts.get("schema_version") != str(SCHEMA_VERSION):
        version = facts.get("schema_version", "none")
        msg = (
            f"{path.name} was written in form {version}, this program reads form {SCHEMA_VERSION}: "
            "write the report again with `recon workbook ID` and answer in the new one"
        )
        raise SourceUnreadableError(msg)
    places = _places(book.sheets[BREAKS_SHEET], name=path.name)
    read = list(_read_rows(book.sheets[BREAKS_SHEET], places=places))
    return Returned(
        name=book.name,
        sha256=book.sha256,
        facts=facts,
        keys=tuple(key for key, _, _ in read),
        rows=tuple(row for _, row, _ in read if row is not None),
        refusals=tuple(refusal for _, _, refusals in read for refusal in refusals),
    )


def _facts(rows: Sequence[Sequence[FormCell]]) -> dict[str, str]:
    facts = {}
    for cells in rows:
        if len(cells) > 1 and isinstance(cells[0].value, str):
            facts[cells[0].value] = str(cells[1].value or "")
    return facts


def _read_rows(
    rows: Sequence[Sequence[FormCell]], *, places: Mapping[str, int]
) -> Iterator[tuple[str, ReturnedRow | None, list[WorkbookRefusal]]]:
    """Break key, the row, and the cells because of which it cannot be read."""
    for number, cells in enumerate(rows[HEADER_ROW:], HEADER_ROW + 1):
        row = {
            title: cells[column] if column < len(cells) else FormCell(None)
            for title, column in places.items()
        }
        if any(cell.value not in {None, ""} for cell in row.values()):
            read, refusals = _row(row, number=number, places=places)
            yield _text(row[KEY]), read, refusals


def _places(rows: Sequence[Sequence[FormCell]], *, name: str) -> dict[str, int]:
    """Title -> position in a row; every column of ours must be there, once."""
    header = (
        [str(cell.value or "") for cell in rows[HEADER_ROW - 1]] if len(rows) >= HEADER_ROW else []
    )
    wanted = [column.title for column in COLUMNS]
    wrong = [title for title in wanted if header.count(title) != 1]
    if wrong:
        msg = (
            f"{name}: row {HEADER_ROW} of {BREAKS_SHEET} lacks the column {wrong[0]!r}, or has it "
            "twice; nothing was taken: answer in a workbook whose columns were not changed"
        )
        raise SourceUnreadableError(msg)
    return {title: header.index(title) for title in wanted}


def _row(
    row: Mapping[str, FormCell], *, number: int, places: Mapping[str, int]
) -> tuple[ReturnedRow | None, list[WorkbookRefusal]]:
    cells = {
        title: f"{BREAKS_SHEET}!{get_column_letter(column + 1)}{number}"
        for title, column in places.items()
    }
    answer, refusals = _answer(row, cells=cells)
    version = row[VERSION].value
    if not isinstance(version, int | float) or isinstance(version, bool):
        sentence = "the number of answers so far was changed"
        refusals.append(WorkbookRefusal(cells[VERSION], _text(row[VERSION]), sentence))
    if refusals:
        return None, refusals
    read = ReturnedRow(
        number=number,
        break_id=_text(row[KEY]),
        version=int(version) if isinstance(version, int | float) else 0,
        answer=answer,
        scope=_text(row["Applies to"]) or THIS_BREAK,
        shown={column.title: row[column.title].value for column in COMPARED},
        cells={title: cells[title] for title in (*ANSWERS, KEY)},
    )
    return read, []


def _answer(
    row: Mapping[str, FormCell], *, cells: Mapping[str, str]
) -> tuple[BreakAnswer, list[WorkbookRefusal]]:
    refusals = []
    for title in ANSWERS:
        problem = _problem(title, row[title])
        if problem:
            refusals.append(WorkbookRefusal(cells[title], _text(row[title]), problem))
    day = row["Resolved on"].value
    return BreakAnswer(
        resolution=_text(row["Resolution"]),
        owner=_text(row["Owner"]),
        comment=_text(row["Comment"]),
        resolved_on=day_of(day) if day else None,
    ), refusals


def _problem(title: str, cell: FormCell) -> str:
    """Why a cream cell cannot be taken; "" when it can."""
    if cell.is_formula:
        return "a formula; write the text itself"
    text = _text(cell)
    if text in {"", "None"} and cell.value in {None, ""}:
        return ""
    if title == "Resolved on":
        day = day_of(cell.value)
        good = day is not None and day > FIRST_DAY and not isinstance(cell.value, int | float)
        return "" if good else "not a date such as 2026-11-21"
    if title in LISTS and text not in LISTS[title]:
        return f"not in the list ({', '.join(LISTS[title][:3])}, …)"
    if len(text) > LENGTHS.get(title, len(text)):
        return f"longer than {LENGTHS[title]} characters"
    return ""


def _text(cell: FormCell) -> str:
    """The cell as one line of text; numbers that people type as owner or comment stay readable."""
    if cell.value is None:
        return ""
    return cell_text(str(cell.value))[0].strip()


def altered_cells(
    rows: Iterable[ReturnedRow], *, breaks: Mapping[str, Mapping[str, Any]]
) -> list[WorkbookRefusal]:
    """Locked cells that do not say what the database says (`breaks`: break_id -> its row)."""
    altered = []
    for row in rows:
        stored = breaks.get(row.break_id)
        if stored is None:
            continue
        for column in COMPARED:
            shown, expected = row.shown[column.title], column.value(stored)
            if not _same(shown, expected, column=column, currency=str(stored["currency"])):
                sentence = f"the database says {'nothing' if expected in {None, ''} else expected}"
                cell = f"{BREAKS_SHEET}, row {row.number}, {column.title}"
                altered.append(WorkbookRefusal(cell, str(shown or ""), sentence))
    return altered


def _same(shown: object, expected: Any, *, column: Column, currency: str) -> bool:
    if column.kind != "amount":
        wanted = str(expected or "")
        return str(shown or "") in {wanted, cell_text(wanted)[0]}
    if column.of_ledger and shown == NOT_COVERED:
        return True
    if shown in {None, ""} or expected is None:
        return (shown in {None, ""}) == (expected is None)
    try:
        return minor_units_of(shown, currency=currency) == int(expected)
    except OutputError:
        return False

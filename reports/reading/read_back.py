"""Returned workbooks: reading their input cells, and a workbook with the result of the import."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

from openpyxl.utils import get_column_letter

from recon.files.formats.xlsx_book import FormCell, read_form
from recon.model.errors import SourceUnreadableError
from recon.model.resolutions import (
    THIS_BREAK,
    BreakAnswer,
    Import,
    Returned,
    ReturnedRow,
    WorkbookRefusal,
)
from reports.drawing.blocks import (
    FIRST_INPUT_DAY,
    Column,
    Listing,
    Row,
    Sheet,
    Workbook,
    put_in_place,
    seal_of,
)
from reports.drawing.look import cell_text, day_of, read_text
from reports.sheets.breaks_sheet import ANSWERS, COLUMNS, KEY
from reports.sheets.breaks_sheet import TITLE as BREAKS
from reports.sheets.totals import SCHEMA_VERSION
from reports.sheets.totals import TITLE as RUN_SHEET

DIGEST_DISPLAYED = 8
TAKEN = (
    Column("Row", 8, "row", "count"),
    Column("Break key", 20, "break_id"),
    Column("Order no", 26, "order_no"),
    Column("Resolution", 24, lambda row: row["answer"].resolution),
    Column("Owner", 20, lambda row: row["answer"].owner),
    Column("Comment", 60, lambda row: row["answer"].comment, wrap=True),
    Column("Applies to", 24, "scope"),
    Column("Answer", 9, "version", "count"),
    Column("State", 30, lambda row: "waits for a second person" if row["waits"] else "kept"),
)
NOT_TAKEN = (
    Column("Cell", 26, "cell"),
    Column("What stands there", 40, "value", wrap=True),
    Column("Why it was not taken", 80, "reason", wrap=True),
)
WRITTEN = datetime(2000, 1, 1)  # noqa: DTZ001 - the same import gives the same bytes
"""Fixed creation time of the result workbook."""


def write_import(done: Import, *, next_to: Path) -> Path:
    """Write the result in the folder of the returned file; return the path that was written.

    Raises:
        OSError: the folder cannot be written.
    """
    name = f"{next_to.stem}-result-{done.sha256[:DIGEST_DISPLAYED]}.xlsx"
    taken = [{name: getattr(each, name) for name in each.__slots__} for each in done.taken]
    refused = [{name: getattr(each, name) for name in each.__slots__} for each in done.refusals]
    sheets = [
        _sheet("Not taken", NOT_TAKEN, refused, done=done),
        _sheet("Taken", TAKEN, taken, done=done),
    ]
    book = Workbook(f"Import of {done.name}", sheets, WRITTEN, footer=f"Run {done.run_id}")
    return put_in_place(book.content(), path=next_to.with_name(name))


def _sheet(title: str, columns: Sequence[Column], rows: Sequence[Row], *, done: Import) -> Sheet:
    return Sheet(
        title,
        [Listing(columns, rows, nothing="")],
        heading=title,
        about=f"{len(rows)} of {done.name}, run {done.run_id}, answered by {done.by}.",
    )


LOCKED = tuple(column for column in COLUMNS if column.kind not in {"input", "key"})
INPUTS: Mapping[str, Column] = {
    column.title: column for column in COLUMNS if column.kind == "input"
}
CHANGED = (
    "another cell of this row was changed, or a part of the rows was sorted: the answer may be "
    "another break's, and nothing of the row was taken; answer it in a fresh workbook"
)


def read_back(path: Path) -> Returned:
    """Read the answers of a returned workbook.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a workbook of ours, or of a form this program does not know.
    """
    book = read_form(path, titles=(BREAKS, RUN_SHEET))
    facts = {
        cells[0].value: str(cells[1].value or "")
        for cells in book.sheets[RUN_SHEET]
        if len(cells) > 1 and isinstance(cells[0].value, str)
    }
    if facts.get("schema_version") != str(SCHEMA_VERSION):
        version = facts.get("schema_version", "none")
        msg = (
            f"{path.name} was written in form {version}, this program reads form {SCHEMA_VERSION}: "
            "write the report again with `recon workbook ID` and answer in the new one"
        )
        raise SourceUnreadableError(msg)
    read = list(_read_rows(book.sheets[BREAKS], name=path.name))
    return Returned(
        name=book.name,
        sha256=book.sha256,
        facts=facts,
        keys=tuple(key for key, _, _ in read),
        rows=tuple(row for _, row, _ in read if row is not None),
        refusals=tuple(refusal for _, _, refusals in read for refusal in refusals),
    )


def _read_rows(
    rows: Sequence[Sequence[FormCell]], *, name: str
) -> Iterator[tuple[str, ReturnedRow | None, list[WorkbookRefusal]]]:
    """Yield the break key, the row, and refusals of cells because of which it cannot be read."""
    titles = ([read_text(cell.value) for cell in cells] for cells in rows)
    top, header = next(((at, each) for at, each in enumerate(titles) if KEY in each), (0, []))
    expected = [column.title for column in COLUMNS]
    if wrong := [title for title in expected if header.count(title) != 1]:
        msg = (
            f"{name}: the sheet {BREAKS} lacks the column {wrong[0]!r}, or has it twice; nothing "
            "was taken: answer in a workbook whose columns were not changed"
        )
        raise SourceUnreadableError(msg)
    positions = {title: header.index(title) for title in expected}
    for number, cells in enumerate(rows[top + 1 :], top + 2):
        row = {
            title: cells[column] if column < len(cells) else FormCell(None)
            for title, column in positions.items()
        }
        if any(cell.value not in {None, ""} for cell in row.values()):
            yield _row(row, number=number, positions=positions)


def _row(
    row: Mapping[str, FormCell], *, number: int, positions: Mapping[str, int]
) -> tuple[str, ReturnedRow | None, list[WorkbookRefusal]]:
    cells = {
        title: f"{BREAKS}!{get_column_letter(column + 1)}{number}"
        for title, column in positions.items()
    }
    break_id, _, rest = _text(row[KEY]).partition(".")
    version, _, seal = rest.partition(".")
    answer, refusals = _answer(row, cells=cells)
    locked = [row[column.title].value for column in LOCKED]
    if not version.isdecimal() or seal != seal_of([f"{break_id}.{version}", *locked]):
        if answer.is_blank and not refusals:
            return break_id, None, []
        return break_id, None, [WorkbookRefusal(cells[KEY], _text(row[KEY]), CHANGED)]
    if refusals:
        return break_id, None, refusals
    read = ReturnedRow(
        number=number,
        break_id=break_id,
        version=int(version),
        answer=answer,
        scope=_text(row["Applies to"]) or THIS_BREAK,
        cells={title: cells[title] for title in (*ANSWERS, KEY)},
    )
    return break_id, read, []


def _answer(
    row: Mapping[str, FormCell], *, cells: Mapping[str, str]
) -> tuple[BreakAnswer, list[WorkbookRefusal]]:
    problems = {title: _problem(column, row[title]) for title, column in INPUTS.items()}
    refusals = [
        WorkbookRefusal(cells[title], _text(row[title]), problem)
        for title, problem in problems.items()
        if problem
    ]
    day = row["Resolved on"].value
    return BreakAnswer(
        resolution=_text(row["Resolution"]),
        owner=_text(row["Owner"]),
        comment=_text(row["Comment"]),
        resolved_on=day_of(day) if day else None,
    ), refusals


def _problem(column: Column, cell: FormCell) -> str:
    """Why an input cell cannot be accepted; "" when it can."""
    if cell.is_formula:
        return "a formula; write the text itself"
    text = _text(cell)
    if cell.value in {None, ""}:
        return ""
    if column.choices:
        first = ", ".join(column.choices[:3])
        return "" if text in column.choices else f"not in the list ({first}, …)"
    if column.characters_max:
        most = column.characters_max
        return f"longer than {most} characters" if len(text) > most else ""
    day: date | None = day_of(cell.value)
    good = day is not None and day > FIRST_INPUT_DAY and not isinstance(cell.value, int | float)
    return "" if good else "not a date such as 2026-11-21"


def _text(cell: FormCell) -> str:
    """The cell as one line of text; numbers entered as owner or comment stay readable."""
    return cell_text(read_text(cell.value))[0].strip()

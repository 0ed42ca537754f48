"""A list of a month's workbook: every row, or of too many what they come to and the first of them.

The sums bear the names that formulas compute with, so that page one is live either way. All rows
stand in CSV files of the same close or statement, which the sheet names with rows and SHA-256.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from openpyxl.utils import get_column_letter

from recon.model.figures import ListFile
from recon.steps.care.month_statements import StatedMonth
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.listing import Column, Row, field, put_list, rows_of
from reports.drawing.page import print_first_rows, print_on, protect, put_heading
from reports.sheets.named_files import added_up

LIST_ROWS_MAX, LIST_ROWS_SHOWN = 10_000, 1_000
"""Of a list of more rows than the first number a workbook has the sums, and so many rows."""
TOP = 4
"""Row of the header."""
ROWS = "Rows"


@dataclass(frozen=True, slots=True)
class MonthList:
    """How a list is drawn, and how its rows are added up where they are too many."""

    title: str
    sentence: str
    columns: Sequence[Column]
    by: Mapping[str, str]
    """Fields of the frame that its sums are by -> the titles of their columns."""
    counted: str
    """Title of the column in whose place the sums say of how many rows they are."""
    files: Mapping[str, int]
    """Names of the files that have all rows -> how many of them each has."""
    amounts: Sequence[str] = ("amount",)
    """Fields of the frame that are added up: minor units."""
    first: tuple[str, str] = ("", "")
    """Of too many rows those stand first of which this field says this."""

    @property
    def sums(self) -> tuple[Column, ...]:
        """The columns of the sums, each where the list has it; they alone have names then."""
        return tuple(self._of_sums(column) for column in self.columns)

    def _of_sums(self, column: Column) -> Column:
        if column.title == self.counted:
            return Column(ROWS, column.width, "count", field(ROWS))
        if column.title in self.by.values() or column.kind == "amount":
            return column
        return Column("", column.width, "text", lambda _: None)


def put_month_list(
    draft: Draft,
    sheet: Any,
    *,
    listed: MonthList,
    frame: pd.DataFrame,
    files: Mapping[str, str],
    stated: StatedMonth,
) -> None:
    """All rows of a list, or their sums and the first ones; `files`: name -> content."""
    if len(frame) <= LIST_ROWS_MAX:
        extent = _put_rows(draft, sheet, listed=listed, rows=rows_of(frame))
        sheet.freeze_panes = f"A{TOP + 1}"
        finish(sheet, stated=stated, title_row=TOP)
    else:
        extent = _put_sums(draft, sheet, listed=listed, frame=frame, files=files)
        finish(sheet, stated=stated)
    print_first_rows(draft, sheet, columns=len(listed.columns), rows=extent)


def finish(sheet: Any, *, stated: StatedMonth, title_row: int = 0) -> None:
    """What every sheet of a statement ends with: how it is printed, and that it is locked."""
    about = f"Statement {'/'.join(stated.statement.account)} {stated.statement.month.name}"
    print_on(sheet, about=about, title_rows=f"{title_row}:{title_row}" if title_row else "")
    protect(sheet)


def _put_rows(
    draft: Draft, sheet: Any, *, listed: MonthList, rows: Sequence[Row]
) -> tuple[int, int]:
    put_heading(draft, sheet, title=listed.title, sentence=listed.sentence)
    extent = put_list(draft, sheet, columns=listed.columns, rows=rows, top=TOP)
    if not rows:
        draft.text(sheet, (extent[0], 1), "None.", looks.NOTE)
    _filter(sheet, listed=listed, top=TOP, last=extent[1])
    return extent


def _put_sums(
    draft: Draft,
    sheet: Any,
    *,
    listed: MonthList,
    frame: pd.DataFrame,
    files: Mapping[str, str],
) -> tuple[int, int]:
    """The sums of all rows, the files that have each, and the first ones."""
    named = [*_named(listed, files=files)]
    sentence = added_up(f"{len(frame):,} rows", named=named, where="below")
    put_heading(draft, sheet, title=listed.title, sentence=sentence)
    _, row = put_list(draft, sheet, columns=listed.sums, rows=_sums(frame, listed), top=TOP)
    row += 2
    for file in named:
        about = f"{file.name}: {file.rows:,} rows, {file.size_bytes:,} bytes, SHA-256 {file.sha256}"
        draft.text(sheet, (row, 1), about, looks.NOTE)
        row += 1
    title = f"The first {LIST_ROWS_SHOWN:,}"
    draft.text(sheet, (row + 1, 1), title, looks.HEADING)
    top = row + 2
    columns = [replace(column, range_name="") for column in listed.columns]
    rows = rows_of(_first(frame, listed))
    _, last = put_list(draft, sheet, columns=columns, rows=rows, top=top)
    _filter(sheet, listed=listed, top=top, last=last)
    return TOP + 1, last


def _sums(frame: pd.DataFrame, listed: MonthList) -> list[dict[str, Any]]:
    """By what the list is added up: how many rows, and what they come to; blank where none has."""
    grouped = frame.groupby([*listed.by], as_index=False)
    sums = {name: pd.NamedAgg(name, _sum) for name in listed.amounts}
    return rows_of(grouped.agg(**{ROWS: pd.NamedAgg(listed.amounts[0], "size")}, **sums))


def _first(frame: pd.DataFrame, listed: MonthList) -> pd.DataFrame:
    name, word = listed.first
    if name:
        frame = pd.concat([frame[frame[name].eq(word)], frame[frame[name].ne(word)]])
    return frame.iloc[:LIST_ROWS_SHOWN]


def _sum(amounts: "pd.Series[int]") -> Any:
    return amounts.sum(min_count=1)


def _named(listed: MonthList, *, files: Mapping[str, str]) -> Iterator[ListFile]:
    for name, rows in listed.files.items():
        content = files[name].encode()
        yield ListFile(name, rows, len(content), hashlib.sha256(content).hexdigest())


def _filter(sheet: Any, *, listed: MonthList, top: int, last: int) -> None:
    sheet.auto_filter.ref = f"A{top}:{get_column_letter(len(listed.columns))}{last}"

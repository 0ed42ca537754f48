"""A list of rows on a sheet: columns declared once, drawn in order, their ranges named.

A column says where its value comes from and how it is shown; the name of its range is what the
totals elsewhere in the workbook compute with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pandas as pd

from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.look import Look
from reports.drawing.package import RowStream
from reports.drawing.page import column_range, set_widths
from reports.drawing.plain_text import plain, replaced_in, text_width
from reports.drawing.row_xml import Kind, batches_of, cells_of, not_covered, rows_as_xml

Row = Mapping[str, Any]

RIGHT = frozenset({"amount", "count", "days"})
"""Kinds that stand right."""
INPUTS = frozenset({"input", "input day"})
"""Kinds that people fill in."""
_TEXTS = frozenset({"text", "input"})
"""Kinds whose cells hold foreign text."""
BATCH_ROWS = 2_000
"""Rows that are XML in memory at once."""
LINE_POINTS = 13
LINES_MAX = 4


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list."""

    title: str
    width: int
    kind: Kind
    value: Callable[[Row], Any]
    range_name: str = ""
    """The defined name of its rows; "" for none."""
    of_ledger: bool = False
    """Says "not covered" where there is no ledger."""
    currency: str = "currency"
    """The field that names an amount's currency."""
    wrap: bool = False
    """A sentence: it may take more than one line."""


def field(name: str) -> Callable[[Row], Any]:
    """A column's value straight from the row."""
    return itemgetter(name)


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame as plain values."""
    if not len(frame):
        return []
    names = list(frame.columns)
    columns = [_plain_values(frame[name]) for name in names]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _plain_values(column: Any) -> list[Any]:
    """The values of a column as plain ones; texts and whole numbers are not looked at singly."""
    if isinstance(column.dtype, pd.StringDtype | pd.Int64Dtype):
        return values_of(column)
    return [plain(value) for value in column.tolist()]


def values_of(column: Any, *, blank: Any = None) -> list[Any]:
    """The values of a column of texts or whole numbers, `blank` where there is none."""
    blanks = column.isna().to_numpy()
    if not blanks.any():
        values: list[Any] = column.tolist()
        return values
    pairs = zip(column.tolist(), blanks.tolist(), strict=True)
    return [blank if is_blank else value for value, is_blank in pairs]


def put_list(
    draft: Draft,
    sheet: Any,
    *,
    columns: Sequence[Column],
    rows: Sequence[Row],
    top: int,
    ledger_covered: bool = True,
) -> tuple[int, int]:
    """Header at `top`, the rows below; first and last row. One blank row stands for none."""
    set_widths(sheet, [column.width for column in columns])
    for number, column in enumerate(columns, start=1):
        draft.text(sheet, (top, number), column.title, _header_look(column))
    sheet.row_dimensions[top].height = 30
    put_rows(draft, sheet, columns=columns, rows=rows, first=top + 1, ledger_covered=ledger_covered)
    extent = (top + 1, top + max(1, len(rows)))
    name_columns(draft, sheet, columns=columns, extent=extent)
    return extent


def put_rows(
    draft: Draft,
    sheet: Any,
    *,
    columns: Sequence[Column],
    rows: Sequence[Row],
    first: int,
    ledger_covered: bool = True,
) -> None:
    """The rows of a list from the row `first` on; their XML is made while the file is written."""
    if not rows:
        return
    covered = [ledger_covered or not column.of_ledger for column in columns]
    values = [[*map(column.value, rows)] for column in columns]
    for column, column_cells, is_told in zip(columns, values, covered, strict=True):
        if column.kind in _TEXTS and is_told:
            draft.replaced_characters += replaced_in(
                [str(column_cell) for column_cell in column_cells if column_cell]
            )
    currencies = {
        column.currency: [row[column.currency] or "" for row in rows]
        for column in columns
        if column.kind == "amount"
    }
    heights = _heights(columns, values)

    def parts() -> Iterator[bytes]:
        makers = [
            cells_of(draft, column.kind, wrap=column.wrap) if is_told else not_covered(draft)
            for column, is_told in zip(columns, covered, strict=True)
        ]
        for some in batches_of(len(rows), rows=BATCH_ROWS):
            cells = [
                make(cells[some], currencies.get(column.currency, ())[some])
                for make, column, cells in zip(makers, columns, values, strict=True)
            ]
            yield rows_as_xml(cells, first_row=first + some.start, heights=heights[some])

    draft.stream(sheet, RowStream(first, first + len(rows) - 1, len(columns), parts()))


def name_columns(
    draft: Draft, sheet: Any, *, columns: Iterable[Column], extent: tuple[int, int]
) -> None:
    """Define the names of the columns that have one."""
    for number, column in enumerate(columns, start=1):
        if column.range_name:
            reference = column_range(sheet, column=number, rows=extent)
            draft.name(column.range_name, reference)


def _header_look(column: Column) -> Look:
    if column.kind in INPUTS:
        return looks.HEADER_INPUT
    return looks.HEADER_RIGHT if column.kind in RIGHT else looks.HEADER


def _heights(columns: Sequence[Column], values: Sequence[Sequence[Any]]) -> list[int]:
    """The points of each row: as high as its longest wrapped sentence, within reason."""
    lines = [
        [min(LINES_MAX, -(-text_width(str(value or "")) // (column.width - 4))) for value in cells]
        for column, cells in zip(columns, values, strict=True)
        if column.wrap
    ]
    return [LINE_POINTS * max(1, *of_row) + 3 for of_row in zip(*lines, strict=True)]

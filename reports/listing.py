"""A list of rows on a sheet: columns declared once, drawn in order, their ranges named.

A column says where its value comes from and how it is shown; the name of its range is what the
totals elsewhere in the workbook compute with.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reports import look as looks
from reports.draft import NOT_COVERED, Draft
from reports.look import Look
from reports.page import column_range, set_widths
from reports.plain_text import day_of, plain, text_width

Row = Mapping[str, Any]
Kind = Literal["text", "amount", "count", "days", "instant", "day", "input", "input day"]


RIGHT = frozenset({"amount", "count", "days"})
"""Kinds that stand right."""
INPUTS = frozenset({"input", "input day"})
"""Kinds that people fill in."""
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

    def value(row: Row) -> Any:
        return row[name]

    return value


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame as plain values."""
    names = list(frame.columns)
    columns = [[plain(value) for value in frame[name].tolist()] for name in names]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


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
    for number, row in enumerate(rows, start=top + 1):
        for place, column in enumerate(columns, start=1):
            put_value(draft, sheet, (number, place), column, row, ledger_covered)
        _fit_height(sheet, number, columns, row)
    extent = (top + 1, top + max(1, len(rows)))
    name_columns(draft, sheet, columns=columns, extent=extent)
    return extent


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


def _fit_height(sheet: Any, number: int, columns: Sequence[Column], row: Row) -> None:
    """A row as high as its longest wrapped sentence, within reason."""
    wrapped = [column for column in columns if column.wrap]
    if not wrapped:
        return
    widths = [(text_width(str(column.value(row) or "")), column.width - 4) for column in wrapped]
    lines = min(LINES_MAX, max(-(-needed // width) for needed, width in widths))
    sheet.row_dimensions[number].height = LINE_POINTS * max(1, lines) + 3


def put_value(  # noqa: PLR0917 - one call per cell; keywords would be slower to read
    draft: Draft,
    sheet: Any,
    place: tuple[int, int],
    column: Column,
    row: Row,
    ledger_covered: bool,  # noqa: FBT001 - as above
) -> None:
    """One cell of a list."""
    if column.of_ledger and not ledger_covered:
        draft.text(sheet, place, NOT_COVERED, looks.BODY.but(colour=looks.GREY_TEXT, align="right"))
        return
    value = column.value(row)
    if column.kind == "amount":
        draft.amount(sheet, place, value, row[column.currency])
    elif column.kind == "text":
        look = looks.BODY_TEXT.but(indent=1, wrap=column.wrap, top=False)
        draft.text(sheet, place, "" if value is None else str(value), look)
    else:
        _PLAIN_KINDS[column.kind](draft, sheet, place, value)


def _put_input_day(draft: Draft, sheet: Any, place: tuple[int, int], value: Any) -> None:
    draft.cell(sheet, place, looks.INPUT.but(number_format=looks.DATE_FORMAT)).value = value


_DAYS = looks.NUMBER.but(number_format=looks.DAYS_FORMAT)
_PLAIN_KINDS: Mapping[str, Callable[[Draft, Any, tuple[int, int], Any], None]] = {
    "count": lambda draft, sheet, place, value: draft.number(sheet, place, value),
    "days": lambda draft, sheet, place, value: draft.number(sheet, place, value, _DAYS),
    "instant": lambda draft, sheet, place, value: draft.instant(sheet, place, value),
    "day": lambda draft, sheet, place, value: draft.day(sheet, place, day_of(value)),
    "input": lambda draft, sheet, place, value: draft.text(
        sheet, place, str(value or ""), looks.INPUT
    ),
    "input day": _put_input_day,
}
"""How the value of a kind is written that needs nothing else of its row."""

"""Rows that are written straight into the file, beside the same cells written by openpyxl."""

import io
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import openpyxl
import pytest

from recon.model.errors import Defect
from recon.model.figures import NightFigures
from reports.drawing import listing, row_xml
from reports.drawing import look as looks
from reports.drawing.draft import NOT_COVERED, Draft
from reports.drawing.listing import (
    LINE_POINTS,
    LINES_MAX,
    Column,
    field,
    put_list,
    put_rows,
    rows_of,
)
from reports.drawing.plain_text import day_of, text_width
from reports.drawing.row_xml import CACHED_TEXTS_MAX
from reports.sheets import (
    breaks_sheet,
    instructions_sheet,
    journals_sheet,
    matched_sheet,
    open_sheet,
)
from reports.sheets.totals import rows_on_sheets

TOP = 4
BODY = looks.BODY
DAYS = looks.NUMBER.but(number_format="0")
KINDS = (
    Column("Text", 12, "text", field("text")),
    Column("Wrapped", 12, "text", field("long"), wrap=True),
    Column("Amount", 12, "amount", field("amount")),
    Column("Of the ledger", 12, "amount", field("amount"), of_ledger=True),
    Column("Count", 12, "count", field("number")),
    Column("Days", 12, "days", field("number")),
    Column("Instant", 12, "instant", field("at")),
    Column("Day", 12, "day", field("at")),
    Column("Input", 12, "input", field("text")),
    Column("Input day", 12, "input day", field("day")),
)
ODD = [
    {
        "text": text,
        "long": f"{text} " * 20,
        "amount": amount,
        "currency": currency,
        "number": number,
        "at": at,
        "day": day,
    }
    for text, amount, currency, number, at, day in (
        ("", None, "", None, None, None),
        ("=1+1", -(10**16), "EUR", 0, datetime(2026, 1, 5, 23, 59, 59, 999, UTC), date(2026, 1, 5)),
        (" a<b>&\"c'\x00\n", 10**16, "KWD", -7, datetime(1970, 1, 1, tzinfo=UTC), None),
        ("+49", 5, "EUR", 2**40, datetime(2026, 7, 1, 12, tzinfo=UTC), date(2199, 12, 31)),
        ("注文 _x0041_ é", -5, "KWD", 1, None, date(1970, 1, 1)),
        ("plain", 10**15 - 1, "JPY", 3, datetime(2026, 3, 29, 1, 30, tzinfo=UTC), None),
        ("plain", -1, None, 3, None, None),
    )
]


def by_the_library(
    draft: Draft, sheet: Any, *, columns: tuple[Column, ...], rows: Any, covered: bool
) -> None:
    """Each cell as an object of openpyxl, said once more and another way than the product does."""
    for number, row in enumerate(rows, start=TOP + 1):
        for place, column in enumerate(columns, start=1):
            at, value = (number, place), column.value(row)
            if column.of_ledger and not covered:
                grey = BODY.but(colour=looks.GREY_TEXT, align="right")
                draft.text(sheet, at, NOT_COVERED, grey)
            elif column.kind == "amount":
                draft.amount(sheet, at, value, row[column.currency] or "")
            elif column.kind == "text":
                draft.text(sheet, at, str(value or ""), looks.BODY_TEXT.but(wrap=column.wrap))
            else:
                SLOW[column.kind](draft, sheet, at, value)


def input_day(draft: Draft, sheet: Any, at: tuple[int, int], value: Any) -> None:
    """A day that people fill in."""
    look = looks.INPUT.but(number_format=looks.DATE_FORMAT)
    draft.cell(sheet, at, look).value = value


SLOW: dict[str, Callable[[Draft, Any, tuple[int, int], Any], None]] = {
    "count": lambda draft, sheet, at, value: draft.number(sheet, at, value),
    "days": lambda draft, sheet, at, value: draft.number(sheet, at, value, DAYS),
    "instant": lambda draft, sheet, at, value: draft.instant(sheet, at, value),
    "day": lambda draft, sheet, at, value: draft.day(sheet, at, day_of(value)),
    "input": lambda draft, sheet, at, value: draft.text(sheet, at, value or "", looks.INPUT),
    "input day": input_day,
}


def facts_of(cell: Any) -> tuple[object, ...]:
    """What a cell says and how it looks."""
    says = (cell.coordinate, cell.value, cell.data_type, cell.number_format, cell.quotePrefix)
    looks = (cell.font, cell.fill, cell.border, cell.alignment, cell.protection)
    return (*says, *map(repr, looks))


def cells_of(draft: Draft) -> list[tuple[object, ...]]:
    """The cells of the first sheet below the header."""
    sheet = openpyxl.load_workbook(io.BytesIO(draft.content())).worksheets[0]
    return [facts_of(cell) for row in sheet.iter_rows(min_row=TOP + 1) for cell in row]


def both_ways(columns: tuple[Column, ...], rows: Any, *, covered: bool = True) -> tuple[Any, Any]:
    """The drafts with the rows: written straight, and by the library."""
    straight, slow = Draft(timezone="Europe/Berlin"), Draft(timezone="Europe/Berlin")
    put_list(
        straight,
        straight.sheet("One"),
        columns=columns,
        rows=rows,
        top=TOP,
        ledger_covered=covered,
    )
    by_the_library(slow, slow.sheet("One"), columns=columns, rows=rows, covered=covered)
    return straight, slow


@pytest.mark.parametrize("covered", [True, False])
def test_rows_of_every_kind_are_those_that_the_library_writes(
    monkeypatch: pytest.MonkeyPatch, *, covered: bool
) -> None:
    """Each kind of cell has the library's place, value, type and look, and counts what it cut."""
    monkeypatch.setattr(listing, "BATCH_ROWS", 3)
    rows = ODD * 3
    straight, slow = both_ways(KINDS, rows, covered=covered)
    found, expected = cells_of(straight), cells_of(slow)

    assert len(found) == len(rows) * len(KINDS)
    assert found == expected
    assert straight.replaced_characters == slow.replaced_characters == 3 * (1 + 20 + 1)


def test_every_list_of_a_night_is_what_the_library_writes(figures: NightFigures) -> None:
    """The rows of each sheet, cell by cell."""
    rows = rows_on_sheets(figures)
    breaks = [{**row, "kept": figures.answers.get(row["break_id"])} for row in rows.breaks]
    lists = (
        (breaks_sheet.COLUMNS, breaks),
        (open_sheet.COLUMNS, rows.open.shown),
        (instructions_sheet.COLUMNS, rows.instructions),
        (instructions_sheet.BATCH_COLUMNS, rows.batches),
        (journals_sheet.JOURNALS, rows.journals),
        (journals_sheet.MOVEMENTS, rows.movements),
        (matched_sheet.PIVOT_COLUMNS, rows.matched.groups),
    )
    for columns, told in lists:
        assert told
        straight, slow = both_ways(columns, told)
        assert cells_of(straight) == cells_of(slow)


def test_matches_from_a_frame_are_what_the_library_writes(figures: NightFigures) -> None:
    """The Matched sheet takes whole columns of frames; its cells are the same."""
    straight, slow = Draft(timezone="UTC"), Draft(timezone="UTC")
    sheet = straight.sheet("One")
    matched_sheet.draw_matched(straight, sheet, figures=figures, rows=rows_on_sheets(figures))
    matches = rows_of(next(figures.matches.batches()))
    columns = matched_sheet.COLUMNS
    by_the_library(slow, slow.sheet("One"), columns=columns, rows=matches, covered=True)

    assert len(matches) == figures.matches.count
    assert cells_of(straight) == cells_of(slow)


def test_more_texts_than_are_kept_are_all_written() -> None:
    """A column of many different texts loses none when the kept cells are let go."""
    texts = [f"text {number}" for number in range(2 * CACHED_TEXTS_MAX + 10)]
    draft = Draft(timezone="UTC")
    rows = [{"text": text} for text in texts]
    put_list(draft, draft.sheet("One"), columns=KINDS[:1], rows=rows, top=TOP)

    assert [cell[1] for cell in cells_of(draft)] == texts


def test_styles_of_currencies_stand_in_their_order_whichever_process_draws() -> None:
    """The order of a set differs from process to process, the bytes of a workbook do not."""
    draft = Draft(timezone="UTC")
    draft.sheet("Amounts")
    amounts = row_xml.cells_of(draft, "amount")
    amounts([1] * 4, ["JPY", "KWD", "EUR", "CLF"])

    cells = amounts([1] * 4, ["CLF", "EUR", "JPY", "KWD"])

    styles = [int(cell.split('"')[1]) for cell in cells]
    assert styles == sorted(styles)


def test_rows_are_as_high_as_their_longest_sentence() -> None:
    """A wrapped sentence gets the lines that it needs, up to a bound."""
    draft = Draft(timezone="UTC")
    texts = ("", "short", "x" * 17, "x" * 500)
    rows = [{"long": text} for text in texts]
    put_list(draft, draft.sheet("One"), columns=KINDS[1:2], rows=rows, top=TOP)
    content = draft.content()
    sheet = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0]
    lines = [max(1, min(LINES_MAX, -(-text_width(text) // 8))) for text in texts]

    assert lines == [1, 1, 3, LINES_MAX]
    heights = [sheet.row_dimensions[TOP + 1 + place].height for place in range(len(texts))]
    assert heights == [LINE_POINTS * count + 3 for count in lines]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        rows_in_file = archive.read("xl/worksheets/sheet1.xml").count(b'" customHeight="1">')
    assert rows_in_file == 1 + len(texts)  # without it programs choose heights of their own


def test_a_cell_in_a_row_that_is_written_straight_is_a_defect() -> None:
    """A row would stand twice in the file, which spreadsheets refuse: it is never written."""
    draft = Draft(timezone="UTC")
    sheet = draft.sheet("One")
    put_rows(draft, sheet, columns=KINDS[:1], rows=ODD, first=2)
    draft.text(sheet, (3, 5), "in between")

    with pytest.raises(Defect, match="One has cells in row 3"):
        draft.content()


def test_lists_and_cells_stand_in_the_order_of_their_rows() -> None:
    """Several lists of one sheet, with headings between and below them."""
    draft = Draft(timezone="UTC")
    sheet = draft.sheet("One")
    put_rows(draft, sheet, columns=KINDS[:1], rows=[{"text": "b"}, {"text": "c"}], first=5)
    put_rows(draft, sheet, columns=KINDS[:1], rows=[{"text": "a"}], first=2)
    for row, text in ((1, "top"), (4, "between"), (8, "below")):
        draft.text(sheet, (row, 1), text)
    found = openpyxl.load_workbook(io.BytesIO(draft.content())).worksheets[0]

    told = [(cell.row, cell.value) for (cell,) in found.iter_rows(max_col=1) if cell.value]
    assert told == [(1, "top"), (2, "a"), (4, "between"), (5, "b"), (6, "c"), (8, "below")]
    assert found.dimensions == "A1:A8"

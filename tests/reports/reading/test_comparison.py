"""A workbook held against the night's tables: every cell that says something else is named."""

from typing import Any

import openpyxl

from reports.reading.workbook_check import run_of
from reports.sheets.breaks_sheet import COLUMNS
from reports.workbook_io import returned_differences


def column(title):
    """The number of a column of Breaks."""
    return next(number for number, one in enumerate(COLUMNS, 1) if one.title == title)


def changed(workbook, *, cells):
    """The workbook with some values changed; other cells keep what stands in them."""
    book = openpyxl.load_workbook(workbook)
    for place, value in cells.items():
        sheet, _, cell = place.partition("!")
        book[sheet][cell].value = value
    path = workbook.with_name("changed.xlsx")
    book.save(path)
    return path


def test_a_night_says_what_its_tables_say(workbook, figures):
    assert list(returned_differences(figures, workbook)) == []
    assert run_of(workbook) == "7c1f-2031"


INJECTED = {
    "Summary!A5": "RECONCILED",
    "Breaks!C9": 7,
    "Pending!B6": "another",
    "Instructions!A30": "a word",
    "Matched!H7": 12,
    "Journals!E6": 4,
    "Assurance!C6": 1.5,
    "Assurance!F42": 61,
    "Guide!B5": "Plus: the merchant has more money.",
    "_run!B7": "RECONCILED",
}


def test_every_changed_cell_is_named_and_no_other(workbook, figures):
    found = list(returned_differences(figures, changed(workbook, cells=INJECTED)))

    assert [one.partition(" says ")[0] for one in found] == list(INJECTED)
    assert all(", the night says " in one for one in found)


def test_the_file_that_was_written_is_the_measure(workbook, figures):
    """Years later the tables went on, the file did not: a copy is held against it, cell by cell."""
    copy = changed(workbook, cells=INJECTED)

    assert list(returned_differences(workbook, copy)) == list(returned_differences(figures, copy))
    assert list(returned_differences(workbook, workbook)) == []


def test_answers_sorting_and_signatures_are_no_differences(workbook, figures):
    """Cream cells are for people, rows may be sorted, and a signed copy names its signers."""
    book = openpyxl.load_workbook(changed(workbook, cells={}))
    sheet = book["Breaks"]
    first, second = ([cell.value for cell in sheet[row]] for row in (5, 6))
    for number, (one, other) in enumerate(zip(first, second, strict=True), 1):
        sheet.cell(5, number).value, sheet.cell(6, number).value = other, one
    sheet.cell(5, column("Owner")).value = "Dan Orr"
    (line,) = [row for row in book["Summary"].iter_rows() if "Reviewed" in [c.value for c in row]]
    next(cell for cell in line if cell.value == "not signed").value = "Dan Orr"
    book.save(workbook.with_name("answered.xlsx"))

    assert list(returned_differences(figures, workbook.with_name("answered.xlsx"))) == []


def test_a_row_that_was_copied_and_one_that_was_lost_are_both_named(workbook, figures):
    path = changed(workbook, cells={"Breaks!P5": f"{2:016x}.0.x"})
    found = list(returned_differences(figures, path))

    assert any("a second time" in one for one in found)
    assert f"Breaks lacks the row of the break {5:016x}" in found


def test_a_missing_sheet_and_a_foreign_file_are_told(workbook, figures, tmp_path):
    book = openpyxl.load_workbook(workbook)
    del book["Pending"]
    book.save(tmp_path / "less.xlsx")
    found: list[Any] = list(returned_differences(figures, tmp_path / "less.xlsx"))
    (tmp_path / "foreign.xlsx").write_bytes(b"no zip")

    assert "the sheet Pending is missing" in found
    assert run_of(tmp_path / "foreign.xlsx") == ""

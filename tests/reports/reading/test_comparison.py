"""A workbook held against the night's tables: every cell that says something else is named."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from recon.model.figures import ListFile, NightFigures
from reports.reading.comparison import differences, run_of
from reports.sheets.breaks_sheet import COLUMNS
from reports.workbook import SHEETS, drawn, write_workbook

Build = Callable[..., NightFigures]


@pytest.fixture
def workbook(night_workbook: bytes, tmp_path: Path) -> Path:
    """The example night as a file."""
    path = tmp_path / "night.xlsx"
    path.write_bytes(night_workbook)
    return path


def column(title: str) -> int:
    """The number of a column of Breaks."""
    return next(number for number, one in enumerate(COLUMNS, 1) if one.title == title)


def changed(workbook: Path, *, cells: Mapping[str, object]) -> Path:
    """The workbook with some values changed; other cells keep what stands in them."""
    book, values = (
        openpyxl.load_workbook(workbook),
        openpyxl.load_workbook(workbook, data_only=True),
    )
    for one in book.worksheets:
        for row in one.iter_rows():
            for place in row:
                if place.data_type == "f":
                    found = values[one.title][place.coordinate].value
                    place.value = found
    for place, value in cells.items():
        sheet, _, cell = place.partition("!")
        book[sheet][cell].value = value
    path = workbook.with_name("changed.xlsx")
    book.save(path)
    return path


def test_a_night_says_what_its_tables_say(workbook: Path, figures: NightFigures) -> None:
    """Nothing is named when nothing was changed, and the file says of which run it is."""
    assert list(differences(figures, workbook)) == []
    assert run_of(workbook) == "7c1f-2031"


PLANTED = {
    "Summary!B4": "RECONCILED",
    "Control totals!C6": 1.5,
    "Breaks!H9": 7,
    "Pending!B5": "another order",
    "Instructions!A30": "a word",
    "Matched!H7": 12,
    "Journals!E6": 4,
    "Sources!D6": 61,
    "Guide!B5": "Plus: the merchant has more money.",
    "_run!B6": "RECONCILED",
}


def test_every_changed_cell_is_named_and_no_other(workbook: Path, figures: NightFigures) -> None:
    """Whatever sheet it stands on: sheet, address, what it says and what is true."""
    found = list(differences(figures, changed(workbook, cells=PLANTED)))

    assert [one.partition(" says ")[0] for one in found] == list(PLANTED)
    assert all(", the night says " in one for one in found)


def test_the_file_that_was_written_is_the_measure(workbook: Path, figures: NightFigures) -> None:
    """Years later the tables went on, the file did not: a copy is held against it, cell by cell."""
    copy = changed(workbook, cells=PLANTED)

    assert list(differences(workbook, copy)) == list(differences(figures, copy))
    assert list(differences(workbook, workbook)) == []


def test_formulas_that_nobody_computed_are_counted(workbook: Path) -> None:
    """What a program saved without results is one sentence; another formula is named as it was."""
    book = openpyxl.load_workbook(workbook)
    first = next(
        cell
        for row in book["Control totals"].iter_rows()
        for cell in row
        if str(cell.value).startswith("=")
    )
    first.value = "=1+1"
    book.save(workbook.with_name("bare.xlsx"))
    counted, *others = differences(workbook, workbook.with_name("bare.xlsx"))

    assert re.match("[0-9]{2,} formulas hold no value", counted)
    assert [text.partition(" says ")[0] for text in others] == [
        f"Control totals!{first.coordinate}"
    ]


def test_answers_sorting_and_signatures_are_no_differences(
    workbook: Path, figures: NightFigures
) -> None:
    """Cream cells are for people, rows may be sorted, and a signed copy names its signers."""
    book = openpyxl.load_workbook(changed(workbook, cells={}))
    sheet = book["Breaks"]
    first, second = ([cell.value for cell in sheet[row]] for row in (7, 8))
    for number, (one, other) in enumerate(zip(first, second, strict=True), 1):
        sheet.cell(7, number).value, sheet.cell(8, number).value = other, one
    sheet.cell(7, column("Owner")).value = "Dan Orr"
    row = book.defined_names["signReviewer"].attr_text.rpartition("$")[2]
    book["Summary"][f"L{row}"].value = "Dan Orr"
    book.save(workbook.with_name("answered.xlsx"))

    assert list(differences(figures, workbook.with_name("answered.xlsx"))) == []


def test_a_row_that_was_copied_and_one_that_was_lost_are_both_named(
    workbook: Path, figures: NightFigures
) -> None:
    """A break that stands twice is named by its cell, one that is gone by its key."""
    path = changed(workbook, cells={"Breaks!A7": f"{2:016x}"})
    found = list(differences(figures, path))

    assert any("a second time" in one for one in found)
    assert f"Breaks lacks the row of the break {5:016x}" in found


def test_the_files_of_a_large_night_are_not_cells(figures: NightFigures, tmp_path: Path) -> None:
    """Sums in place of rows are compared like any list, and so is what is said of their file."""
    file = ListFile("results/matches.parquet", 48, 4711, "ab" * 32)
    long = replace(figures, list_files={"match": file}, matched_rows_max=47, matched_rows_shown=5)
    written = write_workbook(long, tmp_path / "night.xlsx")
    other = replace(long, list_files={"match": replace(file, sha256="cd" * 32)})

    assert list(differences(long, written)) == []
    (told,) = differences(other, written)
    assert told.startswith("Sources!J")


def test_a_missing_sheet_and_a_foreign_file_are_told(
    workbook: Path, figures: NightFigures, tmp_path: Path
) -> None:
    """A sheet that was taken out is named; what is no workbook is of no run."""
    book = openpyxl.load_workbook(workbook)
    del book["Pending"]
    book.save(tmp_path / "less.xlsx")
    found: list[Any] = list(differences(figures, tmp_path / "less.xlsx"))
    (tmp_path / "foreign.xlsx").write_bytes(b"no zip")

    assert "the sheet Pending is missing" in found
    assert run_of(tmp_path / "foreign.xlsx") == ""
    assert len(drawn(figures).workbook.sheetnames) == len(SHEETS)

"""Of more open sets than a person reads, the workbook has sums by reason and the first by money."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from recon.model.figures import ListFile, NightFigures
from recon.proof.held_against import in_file
from reports.reading.workbook_check import sheet_totals
from reports.sheets.open_rows import NOT_VERIFIED, RISK, WAITING
from reports.sheets.open_sheet import GROUP_COLUMNS, HEADER_ROW, ROW_COLUMNS
from reports.sheets.totals import rows_on_sheets
from reports.workbook import write_workbook

FILES = {
    "unverified": ListFile("results/unverified.parquet", 3, 4711, "ab" * 32),
    "pending": ListFile("results/pending.parquet", 2, 815, "cd" * 32),
}


@pytest.fixture
def many(figures: NightFigures) -> NightFigures:
    """The example night, as if more than one open set were too many for the sheet."""
    return replace(figures, open_rows_max=1, open_rows_shown=1, list_files=FILES)


@pytest.fixture
def workbook(many: NightFigures, tmp_path: Path) -> Path:
    """Its workbook."""
    return write_workbook(many, tmp_path / "many.xlsx")


def test_the_sums_are_those_of_every_row(
    workbook: Path, figures: NightFigures, tmp_path: Path
) -> None:
    """Read back, sets and sums by currency are those of the workbook that lists each row (T13).

    Beside them the files that it names, each with its rows.
    """
    named = {
        in_file(section, sha256=file.sha256): (file.rows, {}) for section, file in FILES.items()
    }
    whole = sheet_totals(write_workbook(figures, tmp_path / "whole.xlsx"))

    assert len(figures.pending) + len(figures.unverified) > 1
    assert sheet_totals(workbook) == {**whole, **named}


def test_a_row_of_several_sets_counts_as_many(figures: NightFigures, tmp_path: Path) -> None:
    """Sets that are alike stand in one row of the sums, and are read back as so many."""
    twice = pd.concat([figures.pending, figures.pending], ignore_index=True)
    alike = replace(figures, pending=twice, open_rows_max=1, open_rows_shown=1, list_files=FILES)

    assert sheet_totals(write_workbook(alike, tmp_path / "alike.xlsx"))["pending"][0] == len(twice)


def test_the_other_sheets_say_the_same(
    workbook: Path, figures: NightFigures, tmp_path: Path
) -> None:
    """Page one and the control totals show the same figures, whatever Pending lists."""
    whole = write_workbook(figures, tmp_path / "whole.xlsx")
    books = [openpyxl.load_workbook(path, data_only=True) for path in (whole, workbook)]

    for title in ("Summary", "Control totals"):
        one, other = (
            [[cell.value for cell in row] for row in book[title].iter_rows()] for book in books
        )
        assert one == other


def test_the_first_rows_are_those_with_most_money_at_risk(
    workbook: Path, many: NightFigures
) -> None:
    """Below the sums stand as many rows as declared, the dearest first."""
    every = rows_on_sheets(replace(many, open_rows_max=100)).open
    dearest = max(every.groups, key=lambda group: group[RISK])
    sheet = openpyxl.load_workbook(workbook)["Pending"]
    lists = list(_lists(sheet))

    assert [len(rows) for _, rows in lists] == [len(rows_on_sheets(many).open.groups), 1]
    assert lists[0][0] == [column.title for column in GROUP_COLUMNS]
    assert lists[1][0] == [column.title for column in ROW_COLUMNS]
    assert lists[1][1][0]["Order no"] == dearest["order_no"]
    assert sum(row["Sets"] for row in lists[0][1]) == len(every.shown)
    assert {row["Result"] for row in lists[0][1]} == {NOT_VERIFIED, WAITING}


def test_the_files_of_all_rows_are_named(workbook: Path) -> None:
    """The sheet names them, Sources says rows, bytes and SHA-256 of each."""
    book = openpyxl.load_workbook(workbook)
    sources = [[cell.value for cell in row] for row in book["Sources"].iter_rows()]

    for file in FILES.values():
        assert file.name in book["Pending"]["A2"].value
        (line,) = [row for row in sources if row[1] == file.name]
        assert (line[2], line[3], line[9]) == (file.size_bytes, file.rows, file.sha256)


def test_a_workbook_that_lists_every_row_names_no_file(
    figures: NightFigures, tmp_path: Path
) -> None:
    """Up to the declared number the rows stand on the sheet, and nowhere else to look."""
    listed = replace(figures, list_files=FILES)
    book = openpyxl.load_workbook(write_workbook(listed, tmp_path / "listed.xlsx"))

    names = {cell.value for row in book["Sources"].iter_rows() for cell in row}
    assert names.isdisjoint(file.name for file in FILES.values())
    assert book["Pending"].cell(HEADER_ROW, 2).value == "Order no"


def _lists(sheet: Any) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """Header and rows of each list of the sheet."""
    header: list[str] | None = None
    rows: list[dict[str, Any]] = []
    for row in sheet.iter_rows(min_row=HEADER_ROW, values_only=True):
        if row[0] == "Result":
            header, rows = [title for title in row if title], []
        elif header and row[0] in {NOT_VERIFIED, WAITING}:
            rows.append(dict(zip(header, row, strict=False)))
        elif header:
            yield header, rows
            header = None
    if header:
        yield header, rows

"""Of more matches than a person scrolls, the workbook has sums and the first, and names a file."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from recon.model.figures import ListFile, NightFigures, matched_of
from recon.proof.held_against import in_file
from reports.reading.workbook_check import beside_problems, sheet_totals
from reports.sheets.matched_sheet import AMOUNTS, COLUMNS, PIVOT_COLUMNS
from reports.workbook import write_workbook

FILE = ListFile("results/matches.parquet", 48, 4711, "ab" * 32)
HEADER_ROW = 4
AMOUNT_TITLES = [column.column.title for column in AMOUNTS]


@pytest.fixture
def long(figures: NightFigures) -> NightFigures:
    """The example night, as if 48 matches were too many for a sheet."""
    return replace(figures, list_files={"match": FILE}, matched_rows_max=47, matched_rows_shown=5)


@pytest.fixture
def workbook(long: NightFigures, tmp_path: Path) -> Path:
    """Its workbook."""
    return write_workbook(long, tmp_path / "long.xlsx")


def _below(sheet: Any, row: int) -> list[dict[str, Any]]:
    """The rows of the list whose header stands in `row`."""
    header = [cell.value for cell in sheet[row] if cell.value]
    rows = []
    for cells in sheet.iter_rows(min_row=row + 1, max_col=len(header), values_only=True):
        if not any(cells):
            break
        rows.append(dict(zip(header, cells, strict=True)))
    return rows


def test_the_sheet_adds_up_every_match(workbook: Path) -> None:
    """By currency, rule and kind of match, whose sums and rows are those of all matches."""
    sheet = openpyxl.load_workbook(workbook)["Matched"]
    rows = _below(sheet, HEADER_ROW)

    assert list(rows[0]) == [column.title for column in PIVOT_COLUMNS]
    assert [(row["Ccy"], row["Matched rows"], row["What explains it"]) for row in rows] == [
        ("EUR", 11, None),
        ("EUR", 1, "rounding within the tolerance"),
        ("JPY", 12, None),
        ("KWD", 12, None),
        ("USD", 12, None),
    ]
    assert Decimal(str(rows[1]["Gateway"])) == Decimal("1234567.90")


def test_the_first_rows_stand_below_as_the_whole_list_has_them(
    workbook: Path, figures: NightFigures, tmp_path: Path
) -> None:
    """As many as declared, in their order, cell by cell."""
    whole = openpyxl.load_workbook(write_workbook(figures, tmp_path / "whole.xlsx"))["Matched"]
    rows = _below(openpyxl.load_workbook(workbook)["Matched"], HEADER_ROW + 5 + 3)

    assert list(rows[0]) == [column.title for column in COLUMNS]
    assert rows == _below(whole, HEADER_ROW)[:5]


def test_money_of_the_sums_stands_above_the_same_money_of_the_rows(workbook: Path) -> None:
    """From the currency to what explains it; no amount gets the width of a text of the other."""
    sheet = openpyxl.load_workbook(workbook)["Matched"]
    sums, rows = ([cell.value for cell in sheet[row]][5:12] for row in (HEADER_ROW, HEADER_ROW + 8))

    assert sums == rows == ["Ccy", *AMOUNT_TITLES, "What explains it"]
    widths = {sheet.column_dimensions[letter].width for letter in "GHIJK"}
    assert widths == {15}


def test_what_is_read_back_is_what_the_whole_list_comes_to(
    workbook: Path, figures: NightFigures, tmp_path: Path
) -> None:
    """T13 sees the same rows and sums, by rule too, and the file with its rows."""
    whole = sheet_totals(write_workbook(figures, tmp_path / "whole.xlsx"))
    named = {in_file("match", sha256=FILE.sha256): (48, {})}

    assert whole["match"] == (48, {"EUR": 1, "JPY": 0, "KWD": 0, "USD": 0})
    assert sheet_totals(workbook) == {**whole, **named}


def test_the_file_of_all_rows_is_named_and_no_other_is_written(workbook: Path) -> None:
    """The sheet names it, Sources says bytes, rows and SHA-256; nothing lies beside it."""
    book = openpyxl.load_workbook(workbook)
    (line,) = [
        [cell.value for cell in row]
        for row in book["Sources"].iter_rows()
        if row[1].value == FILE.name
    ]

    assert "48 sets" in book["Matched"]["A2"].value
    assert FILE.name in book["Matched"]["A2"].value
    assert (line[0], line[2], line[3], line[9]) == ("matched", 4711, 48, FILE.sha256)
    assert [path.name for path in workbook.parent.iterdir()] == ["long.xlsx"]
    assert list(beside_problems(workbook)) == []


def test_who_wants_every_row_on_the_sheet_gets_it(long: NightFigures, tmp_path: Path) -> None:
    """Up to `matched_rows_max` the sheet lists all, and names no file."""
    whole = replace(long, matched_rows_max=48)
    book = openpyxl.load_workbook(write_workbook(whole, tmp_path / "whole.xlsx"))

    assert len(_below(book["Matched"], HEADER_ROW)) == 48
    assert FILE.name not in {cell.value for row in book["Sources"].iter_rows() for cell in row}


@pytest.mark.parametrize("rows_max", [49, 47], ids=["all", "first"])
def test_rows_without_an_order_stand_behind_those_with_one(
    figures: NightFigures, tmp_path: Path, rows_max: int
) -> None:
    """What bank and books alone speak of comes last; no row is lost."""
    rows = pd.concat(list(figures.matches.batches()), ignore_index=True)
    bank = rows.head(1).assign(order_no="", transaction_id="", match_id="bank")
    shown = replace(
        figures,
        matches=matched_of(pd.concat([bank, rows], ignore_index=True)),
        matched_rows_max=rows_max,
        matched_rows_shown=48,
        list_files={"match": FILE},
    )

    sheet = openpyxl.load_workbook(write_workbook(shown, tmp_path / "bank.xlsx"))["Matched"]
    listed = _below(sheet, HEADER_ROW if rows_max == 49 else HEADER_ROW + 5 + 3)

    keys = [row["Match key"] for row in listed]
    assert keys == [*rows["match_id"], "bank"][: 49 if rows_max == 49 else 48]

"""A file beside a workbook that holds all matches: `matches.csv` of `recon reconcile`."""

import re
from dataclasses import replace

import openpyxl
import pytest

from recon.matching.breaks.result import MATCH_COLUMNS
from recon.model.figures import ListFile
from recon.steps.compare.csv_columns import csv_of
from reports.reading.workbook_check import companion_problems, sha256_of, sheet_totals, totals_in
from reports.workbook import write_workbook

NAME = "matches.csv"


@pytest.fixture
def workbook(figures, tmp_path):
    """The example night as plain files, written as if 48 matches were too many for a sheet."""
    whole = tmp_path / NAME
    whole.write_text(csv_of(next(figures.matches.batches()), columns=MATCH_COLUMNS), "utf-8")
    file = ListFile(NAME, 48, whole.stat().st_size, sha256_of(whole))
    long = replace(figures, list_files={"match": file}, matched_rows_max=47, matched_rows_shown=5)
    return write_workbook(long, tmp_path / "night.xlsx")


def test_it_is_named_and_read_and_never_copied(workbook):
    book = openpyxl.load_workbook(workbook)
    hidden = {row[0].value: row[1].value for row in book["_run"].iter_rows(max_col=2)}

    assert sorted(path.name for path in workbook.parent.iterdir()) == [NAME, "night.xlsx"]
    assert hidden["matched_file_1"] == f"48 {sha256_of(workbook.with_name(NAME))} {NAME}"
    assert totals_in(workbook.with_name(NAME))[0] == 48
    assert sheet_totals(workbook)["match"] == (48, {"EUR": 1, "JPY": 0, "KWD": 0, "USD": 0})
    assert list(companion_problems(workbook)) == []


def _shortened(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))


def _one_cent_more(path):
    path.write_text(re.sub(r",0\.01,0\.01", ",0.02,0.01", path.read_text("utf-8"), count=1))


@pytest.mark.parametrize(
    ("spoil", "found"),
    [(_shortened, (47, 1)), (_one_cent_more, (48, 2))],
)
def test_a_file_that_lost_a_row_or_a_cent_is_not_the_sheets_total(workbook, spoil, found):
    spoil(workbook.with_name(NAME))
    count, sums = sheet_totals(workbook)["match"]

    assert (count, sums["EUR"]) == found


def test_a_changed_or_lost_file_is_named(workbook):
    _one_cent_more(workbook.with_name(NAME))
    (changed,) = companion_problems(workbook)
    workbook.with_name(NAME).unlink()
    (gone,) = companion_problems(workbook)

    assert f"{NAME} is not the file that night.xlsx names" in changed
    assert f"{NAME}, which holds the 48 matched rows of night.xlsx, is gone" in gone

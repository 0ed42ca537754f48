"""What LibreOffice makes of the workbook: its pages, and a save of it that comes back."""

from datetime import date
from typing import Any

import openpyxl
import pytest

from recon.model.resolutions import BreakAnswer
from reports.reading.read_back import read_back
from reports.workbook_io import returned_differences
from tests.reports.conftest import example_night
from tests.reports.drawn_sheets import SHEETS
from tests.reports.pictures import convert, missing_programs, page_texts, pictures_of, sheet_of

pytestmark = pytest.mark.skipif(
    bool(missing_programs()), reason=f"not installed: {', '.join(missing_programs())}"
)
FEW_DOTS_PER_INCH = 50
"""That there is a picture of each page needs no more."""


def test_pages_are_whole(workbook, tmp_path):
    (pdf,) = convert([workbook], kind="pdf", folder=tmp_path)
    pictures = pictures_of(pdf, folder=tmp_path, dots_per_inch=FEW_DOTS_PER_INCH)
    texts = page_texts(pdf)

    assert list(pictures) == list(SHEETS[:-1])
    assert len(pictures["Summary"]) == len(pictures["Breaks"]) == 1
    for label in ("###", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "Err:"):
        assert [sheet_of(text) for text in texts if label in text] == [], label


def test_a_workbook_that_another_program_saved_is_still_read(workbook, tmp_path):
    book: Any = openpyxl.load_workbook(workbook)
    sheet = book["Breaks"]
    columns = {cell.value: cell.column for cell in sheet[4]}
    sheet.cell(5, columns["Owner"]).value = "Jo Hill"
    sheet.cell(5, columns["Resolved on"]).value = date(2026, 11, 21)
    book.save(workbook)
    (tmp_path / "again").mkdir()

    (again,) = convert([workbook], kind="xlsx", folder=tmp_path / "again")
    back = read_back(again)

    assert back.refusals == ()
    assert len(back.rows) == len(example_night().breaks)
    answers = [row.answer for row in back.rows if not row.answer.is_blank]
    assert answers == [BreakAnswer(owner="Jo Hill", resolved_on=date(2026, 11, 21))]
    assert list(returned_differences(example_night(), again)) == []

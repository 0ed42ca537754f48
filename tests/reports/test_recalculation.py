"""Another program computes the workbook again: formulas, looks and pages."""

import math
import re
import zipfile
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from recon.model.figures import NightFigures
from recon.model.resolutions import BreakAnswer
from reports.drawing.listing import rows_of
from reports.reading.read_back import altered_cells, read_back
from reports.sheets.breaks_sheet import HEADER_ROW
from reports.workbook import SHEETS, write_workbook
from tests.reports.pictures import convert, missing_programs, page_texts, pictures_of, sheet_of

pytestmark = pytest.mark.skipif(
    bool(missing_programs()), reason=f"not installed: {', '.join(missing_programs())}"
)
ALWAYS_RECALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""


def recalculated(workbook: Path, *, folder: Path) -> Path:
    """The workbook with every formula computed anew; cached values are not trusted."""
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True, exist_ok=True)
    (profile / "user" / "registrymodifications.xcu").write_text(ALWAYS_RECALCULATE)
    (folder / "again").mkdir(exist_ok=True)
    return convert(workbook, kind="xlsx", folder=folder / "again", profile=profile)


def formulas_that_differ(workbook: Path, *, again: Path) -> tuple[int, set[str]]:
    """How many formulas there are, and those whose value another program does not find."""
    written, told, found = (
        openpyxl.load_workbook(workbook),
        openpyxl.load_workbook(workbook, data_only=True),
        openpyxl.load_workbook(again, data_only=True),
    )
    count, differing = 0, set()
    for sheet in written.worksheets:
        for row in sheet.iter_rows():
            for cell in (one for one in row if one.data_type == "f"):
                count += 1
                place = f"{sheet.title}!{cell.coordinate}"
                sides = (told[sheet.title][cell.coordinate], found[sheet.title][cell.coordinate])
                if not is_same(sides[0].value, sides[1].value):
                    differing.add(f"{place}: {sides[0].value!r} is {sides[1].value!r}")
    return count, differing


def is_same(told: Any, found: Any) -> bool:
    """Equal text, or numbers equal in every digit that a sheet keeps."""
    if isinstance(told, str) or isinstance(found, str) or told is None or found is None:
        return bool(told == found)
    return math.isclose(told, found, rel_tol=1e-14, abs_tol=1e-9)


def falsified(workbook: Path) -> Path:
    """One wrong cached value on Control totals, one wrong amount on a row of Breaks."""
    wrong = workbook.with_name("wrong.xlsx")
    with zipfile.ZipFile(workbook) as source, zipfile.ZipFile(wrong, "w") as target:
        for part in source.infolist():
            text = source.read(part.filename)
            if part.filename == "xl/worksheets/sheet2.xml":
                text, times = re.subn(rb'(<c r="D6"[^>]*><f>[^<]*</f><v>)[^<]*', rb"\g<1>1.5", text)
                assert times == 1
            if part.filename == "xl/worksheets/sheet3.xml":
                text, times = re.subn(rb'(<c r="I8"[^>]*><v>)[^<]*', rb"\g<1>-98", text)
                assert times == 1
            target.writestr(part.filename, text)
    return wrong


@pytest.mark.parametrize(
    ("rows_max", "open_max"), [(200_000, 10_000), (47, 1)], ids=["rows", "sums"]
)
def test_every_formula_has_the_value_that_another_program_computes(
    figures: NightFigures, tmp_path: Path, rows_max: int, open_max: int
) -> None:
    """The engine's values and the formulas agree, all of them, over rows and over their sums."""
    shown = replace(figures, matched_rows_max=rows_max, matched_rows_shown=5)
    cut = replace(shown, open_rows_max=open_max, open_rows_shown=1)
    workbook = write_workbook(cut, tmp_path / "night.xlsx")

    count, differing = formulas_that_differ(workbook, again=recalculated(workbook, folder=tmp_path))

    assert count > 150
    assert differing == set()


def test_a_wrong_value_and_a_wrong_row_are_both_caught(
    figures: NightFigures, tmp_path: Path
) -> None:
    """The check above can fail: a stale value and a changed amount both show."""
    wrong = falsified(write_workbook(figures, tmp_path / "night.xlsx"))

    _, differing = formulas_that_differ(wrong, again=recalculated(wrong, folder=tmp_path))

    places = {place.partition(":")[0] for place in differing}
    assert "Control totals!D6" in places
    assert {"Control totals!F6", "Control totals!L6", "Control totals!M6"} <= places
    assert "Summary!B4: 'BREAKS OPEN' is 'NOT PROVEN'" in differing


def test_pages_are_whole(figures: NightFigures, tmp_path: Path) -> None:
    """Page one is one page; no cell is too narrow, no reference broken; each sheet has pictures."""
    workbook = write_workbook(figures, tmp_path / "night.xlsx")
    pdf = convert(workbook, kind="pdf", folder=tmp_path)
    pictures, texts = pictures_of(pdf, folder=tmp_path), page_texts(pdf)

    assert list(pictures) == list(SHEETS[:-1])
    assert len(pictures["Summary"]) == 1
    assert [sheet_of(text) for text in texts].count("Summary") == 1
    for word in ("###", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "Err:"):
        assert [sheet_of(text) for text in texts if word in text] == [], word


def test_a_workbook_that_another_program_saved_is_still_read(
    figures: NightFigures, tmp_path: Path
) -> None:
    """Answers survive a save by LibreOffice, and nothing looks altered by it."""
    written = write_workbook(figures, tmp_path / "night.xlsx")
    book: Any = openpyxl.load_workbook(written)
    sheet = book["Breaks"]
    columns = {cell.value: cell.column for cell in sheet[HEADER_ROW]}
    sheet.cell(HEADER_ROW + 1, columns["Owner"]).value = "Jo Hill"
    sheet.cell(HEADER_ROW + 1, columns["Resolved on"]).value = date(2026, 11, 21)
    book.save(written)

    back = read_back(recalculated(written, folder=tmp_path))
    stored = {str(row["break_id"]): row for row in rows_of(figures.breaks)}
    answered = [row.answer for row in back.rows if not row.answer.is_blank]

    assert answered == [BreakAnswer(owner="Jo Hill", resolved_on=date(2026, 11, 21))]
    assert sorted(back.keys) == sorted(stored)
    assert altered_cells(back.rows, breaks=stored) == []

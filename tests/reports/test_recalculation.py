"""Another program computes the workbook again: formulas, looks and pages."""

import math
import re
import zipfile
from collections.abc import Sequence
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
from tests.reports.conftest import example_night
from tests.reports.pictures import convert, missing_programs, page_texts, pictures_of, sheet_of

pytestmark = pytest.mark.skipif(
    bool(missing_programs()), reason=f"not installed: {', '.join(missing_programs())}"
)
FEW_DOTS_PER_INCH = 50
"""That there is a picture of each page needs no more."""
ALWAYS_RECALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""


def recalculated(workbooks: Sequence[Path], *, folder: Path) -> list[Path]:
    """The workbooks with every formula computed anew; cached values are not trusted."""
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True, exist_ok=True)
    (profile / "user" / "registrymodifications.xcu").write_text(ALWAYS_RECALCULATE)
    (folder / "again").mkdir(exist_ok=True)
    return convert(workbooks, kind="xlsx", folder=folder / "again", profile=profile)


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


def answered(workbook: Path) -> Path:
    """With what people would write into the first row of Breaks."""
    book: Any = openpyxl.load_workbook(workbook)
    sheet = book["Breaks"]
    columns = {cell.value: cell.column for cell in sheet[HEADER_ROW]}
    sheet.cell(HEADER_ROW + 1, columns["Owner"]).value = "Jo Hill"
    sheet.cell(HEADER_ROW + 1, columns["Resolved on"]).value = date(2026, 11, 21)
    path = workbook.with_name("answered.xlsx")
    book.save(path)
    return path


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Workbooks of the night, each with what LibreOffice, which starts once, makes of it."""
    folder, night = tmp_path_factory.mktemp("books"), example_night()
    rows = replace(night, matched_rows_max=200_000, matched_rows_shown=5, open_rows_max=10_000)
    sums = replace(rows, matched_rows_max=47, open_rows_max=1)
    whole = write_workbook(night, folder / "night.xlsx")
    written = [
        write_workbook(replace(rows, open_rows_shown=1), folder / "rows.xlsx"),
        write_workbook(replace(sums, open_rows_shown=1), folder / "sums.xlsx"),
        falsified(whole),
        answered(whole),
    ]
    again = recalculated(written, folder=folder)
    return {path.stem: (path, other) for path, other in zip(written, again, strict=True)}


@pytest.mark.parametrize("name", ["rows", "sums"])
def test_every_formula_has_the_value_that_another_program_computes(
    books: dict[str, tuple[Path, Path]], name: str
) -> None:
    """The engine's values and the formulas agree, all of them, over rows and over their sums."""
    workbook, again = books[name]

    count, differing = formulas_that_differ(workbook, again=again)

    assert count > 150
    assert differing == set()


def test_a_wrong_value_and_a_wrong_row_are_both_caught(
    books: dict[str, tuple[Path, Path]],
) -> None:
    """The check above can fail: a stale value and a changed amount both show."""
    wrong, again = books["wrong"]

    _, differing = formulas_that_differ(wrong, again=again)

    places = {place.partition(":")[0] for place in differing}
    assert "Control totals!D6" in places
    assert {"Control totals!F6", "Control totals!L6", "Control totals!M6"} <= places
    assert "Summary!B4: 'BREAKS OPEN' is 'NOT PROVEN'" in differing


def test_pages_are_whole(figures: NightFigures, tmp_path: Path) -> None:
    """Page one is one page; no cell is too narrow, no reference broken; each sheet has pictures."""
    workbook = write_workbook(figures, tmp_path / "night.xlsx")
    (pdf,) = convert([workbook], kind="pdf", folder=tmp_path)
    pictures = pictures_of(pdf, folder=tmp_path, dots_per_inch=FEW_DOTS_PER_INCH)
    texts = page_texts(pdf)

    assert list(pictures) == list(SHEETS[:-1])
    assert len(pictures["Summary"]) == 1
    assert [sheet_of(text) for text in texts].count("Summary") == 1
    for word in ("###", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "Err:"):
        assert [sheet_of(text) for text in texts if word in text] == [], word


def test_a_workbook_that_another_program_saved_is_still_read(
    figures: NightFigures, books: dict[str, tuple[Path, Path]]
) -> None:
    """Answers survive a save by LibreOffice, and nothing looks altered by it."""
    back = read_back(books["answered"][1])
    stored = {str(row["break_id"]): row for row in rows_of(figures.breaks)}
    answers = [row.answer for row in back.rows if not row.answer.is_blank]

    assert answers == [BreakAnswer(owner="Jo Hill", resolved_on=date(2026, 11, 21))]
    assert sorted(back.keys) == sorted(stored)
    assert altered_cells(back.rows, breaks=stored) == []

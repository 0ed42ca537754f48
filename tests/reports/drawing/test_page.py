from pathlib import Path
from typing import Any

import pytest

from recon.model.errors import ConfigurationError
from recon.model.figures import NightFigures
from reports.drawing.draft import Draft
from reports.drawing.page import PAPER_ROWS_MAX, print_first_rows
from reports.workbook import drawn
from tests.reports.pictures import picture_the_documents


def test_the_breaks_are_printed_one_page_wide_and_none_is_left_out(figures: NightFigures) -> None:
    """Paper shows every break from its key to why it is one, fitted to the width of one page."""
    sheet: Any = drawn(figures).workbook["Breaks"]

    assert sheet.page_setup.fitToWidth == 1
    last = 6 + len(figures.breaks)
    answers = f"'Breaks'!$Y$6:$AE${last}"  # on pages of their own behind them
    assert sheet.print_area == f"'Breaks'!$A$1:$O${last},{answers}"
    assert (sheet["A6"].value, sheet["O6"].value) == ("Break key", "Why")


def test_page_one_stands_upright_and_every_list_lies(figures: NightFigures) -> None:
    """Page one is taller than wide: landscape, its letters came to four points."""
    sheets = drawn(figures).workbook

    assert {sheet.title for sheet in sheets if sheet.page_setup.orientation == "portrait"} == {
        "Summary"
    }


def test_every_batch_stands_on_paper(figures: NightFigures) -> None:
    """The list of batches is printed to its last row, not to its titles."""
    assert len(figures.batches) > 0
    sheet: Any = drawn(figures).workbook["Instructions"]
    (top,) = [
        cell.row for cell in sheet["A"] if str(cell.value or "").startswith("Batches as they were")
    ]

    assert sheet.print_area.rstrip("'").endswith(f"${top + 1 + len(figures.batches)}")


@pytest.mark.parametrize(
    ("last", "printed", "told"),
    [
        (4 + PAPER_ROWS_MAX, 4 + PAPER_ROWS_MAX, None),
        (
            4 + 444,
            4 + PAPER_ROWS_MAX,
            "On paper: the first 40 of 444 rows. All of them stand in the file.",
        ),
    ],
)
def test_paper_that_leaves_rows_out_says_so(last: int, printed: int, told: str | None) -> None:
    """A list longer than the limit is cut on paper, and row 3 says of how many rows."""
    draft = Draft(timezone="UTC")
    sheet = draft.sheet("Long")

    assert print_first_rows(draft, sheet, columns=12, rows=(5, last)) == printed
    assert sheet.print_area == f"'Long'!$A$1:$L${printed}"
    assert sheet["A3"].value == told


def test_pictures_of_no_workbook_say_what_to_run(tmp_path: Path) -> None:
    """Where no workbook stands, the command names the folder and the way to one."""
    with pytest.raises(ConfigurationError, match=r"no workbook in .*: run `make demo` first"):
        picture_the_documents(tmp_path, folder=tmp_path)

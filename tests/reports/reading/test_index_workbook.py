"""The index over all accounts of a night."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from recon.model.errors import OutputError
from recon.steps.night.lookout import IndexLine
from recon.steps.people.sign_off import Night
from recon.store.nights.sign_off_rows import Signature
from reports.reading.index_workbook import write_index

DAY = date(2026, 11, 20)


def lines(folder: Path) -> list[IndexLine]:
    """One night that was signed, one that never ran."""
    at = datetime(2026, 11, 21, 9, tzinfo=UTC)
    signed = Signature("reviewer", "Dan Orr", authenticated=True, at=at, workbook_sha256="0")
    path = str(folder / "a 1" / "night#1.xlsx")
    ran = Night("1", "11", DAY, "r1", "BREAKS OPEN", (signed,), "", 1, path)
    missing = Night("1", "12", DAY, "", "missing", (), "", 1)
    return [IndexLine(ran, 7, 2, 3), IndexLine(missing, None, None, None)]


def rows_of(path: Path) -> list[list[Any]]:
    """The lines of the list."""
    sheet = load_workbook(path)["Nights"]
    return [[cell.value for cell in row] for row in sheet.iter_rows(min_row=5)]


def test_every_account_has_its_line(tmp_path: Path) -> None:
    """What ran with its counts, what never ran as missing and without a count."""
    ran, missing = rows_of(write_index(lines(tmp_path), day=DAY, folder=tmp_path))

    assert ran[:7] == ["1", "11", "BREAKS OPEN", 7, 2, 3, "Dan Orr (reviewer)"]
    assert missing[2:7] == ["missing", None, None, None, "not signed"]
    assert missing[8] == "no workbook"


def test_a_line_leads_to_its_workbook(tmp_path: Path) -> None:
    """Relative to the index, and written so that blanks and # survive in a link."""
    path = write_index(lines(tmp_path), day=DAY, folder=tmp_path)
    cell = load_workbook(path)["Nights"]["I5"]

    assert cell.value == "night#1.xlsx"
    assert cell.hyperlink.target == "a%201/night%231.xlsx"


def test_another_index_is_never_overwritten(tmp_path: Path) -> None:
    """The same night gives the same file; a changed one is version 2."""
    found = lines(tmp_path)
    first, again = (write_index(found, day=DAY, folder=tmp_path) for _ in range(2))
    changed = write_index(found[:1], day=DAY, folder=tmp_path)

    assert first == again
    assert changed.name == "nights-2026-11-20-v2.xlsx"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """People are told where it could not be written."""
    with pytest.raises(OutputError, match="nowhere"):
        write_index(lines(tmp_path), day=DAY, folder=tmp_path / "nowhere")


def test_the_footer_says_what_the_index_is(tmp_path: Path) -> None:
    """It belongs to a night of all accounts, not to a run."""
    sheet = load_workbook(write_index(lines(tmp_path), day=DAY, folder=tmp_path))["Nights"]

    assert sheet.oddFooter.left.text.endswith("All accounts, night of 2026-11-20")

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from recon.files.formats.xlsx_book import FormCell, read_form
from recon.model.errors import SourceUnreadableError


def saved(path: Path, *rows: list[Any]) -> Path:
    """A workbook with one sheet `Form`."""
    book: Any = Workbook()
    book.active.title = "Form"
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_cells_come_with_their_types(tmp_path: Path) -> None:
    """Text, numbers, days and blanks are what the sheet says."""
    path = saved(tmp_path / "f.xlsx", ["x", 7, date(2026, 11, 21), True])

    (row,) = read_form(path, titles=("Form",)).sheets["Form"]

    assert [cell.value for cell in row] == ["x", 7, date(2026, 11, 21), True]


def test_a_formula_is_given_as_a_formula(tmp_path: Path) -> None:
    """What a program computed for a formula is not what a person wrote."""
    path = saved(tmp_path / "f.xlsx", ["=1+1"])

    assert read_form(path, titles=("Form",)).sheets["Form"][0][0] == FormCell(
        "=1+1", is_formula=True
    )


def test_a_missing_sheet_is_named(tmp_path: Path) -> None:
    """A workbook that is not ours is refused with what it lacks."""
    path = saved(tmp_path / "f.xlsx", ["x"])

    with pytest.raises(SourceUnreadableError, match="'Breaks'"):
        read_form(path, titles=("Breaks",))


def test_macros_are_refused(tmp_path: Path) -> None:
    """A workbook with a program in it is not opened."""
    import zipfile

    path = saved(tmp_path / "f.xlsx", ["x"])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/vbaProject.bin", b"x")

    with pytest.raises(SourceUnreadableError, match="macros"):
        read_form(path, titles=("Form",))


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    """No part of a workbook needs a DOCTYPE."""
    import zipfile

    path = saved(tmp_path / "f.xlsx", ["x"])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/more.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')

    with pytest.raises(SourceUnreadableError, match="document type"):
        read_form(path, titles=("Form",))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"name,amount\n"])
def test_what_is_no_workbook_is_refused(tmp_path: Path, content: bytes) -> None:
    """Bytes that are no workbook end in a sentence, never in a traceback."""
    path = tmp_path / "f.xlsx"
    path.write_bytes(content)

    with pytest.raises(SourceUnreadableError, match=r"f\.xlsx"):
        read_form(path, titles=("Form",))

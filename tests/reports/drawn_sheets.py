"""What stands on the sheets of a drawn night, for the tests that read it."""

import io
from typing import Any

from python_calamine import CalamineWorkbook

from recon.model.figures import NightFigures
from reports.workbook import drawn


def content_of(figures: NightFigures) -> bytes:
    """A night as a file."""
    return drawn(figures).content()


def values_of(content: bytes, sheet: str) -> list[list[Any]]:
    """The values that stand in the file, by another library."""
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
    return workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=False)


def words_on(content: bytes, sheet: str) -> list[str]:
    """Every text of a sheet."""
    return [cell for row in values_of(content, sheet) for cell in row if isinstance(cell, str)]

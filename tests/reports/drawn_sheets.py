"""What stands on the sheets of a drawn night, for the tests that read it."""

import io
from collections.abc import Mapping
from functools import cache
from typing import Any

import openpyxl

from recon.model.figures import NightFigures
from reports.workbook import drawn

SHEETS = (
    *("Summary", "Breaks", "Pending", "Instructions", "Matched", "Journals"),
    *("Assurance", "Guide", "_run"),
)


def content_of(figures: NightFigures) -> bytes:
    """A night as a file."""
    return drawn(figures).content()


@cache
def _sheets(content: bytes) -> Mapping[str, list[list[Any]]]:
    book = openpyxl.load_workbook(io.BytesIO(content))
    return {
        sheet.title: [
            ["" if cell is None else cell for cell in row]
            for row in sheet.iter_rows(values_only=True)
        ]
        for sheet in book
    }


def values_of(content: bytes, sheet: str) -> list[list[Any]]:
    """The values that stand in the file, by another library than the one that wrote them."""
    return _sheets(content)[sheet]


def words_on(content: bytes, sheet: str) -> list[str]:
    """Every text of a sheet."""
    return [cell for row in values_of(content, sheet) for cell in row if isinstance(cell, str)]


def list_on(content: bytes, sheet: str, *titles: str) -> list[dict[str, Any]]:
    """The rows of the list with these titles, up to the first row that is empty."""
    rows = values_of(content, sheet)
    top = next(number for number, row in enumerate(rows) if set(titles) <= set(row))
    header = rows[top]
    listed = []
    for row in rows[top + 1 :]:
        if not any(cell != "" for cell in row):
            break
        listed.append({t: c for t, c in zip(reversed(header), reversed(row), strict=True) if t})
    return listed

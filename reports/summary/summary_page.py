"""What every block of page one needs: the sheet, the night, and how text is put on it."""

from dataclasses import dataclass
from typing import Any

from recon.model.figures import NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.look import Look
from reports.sheets.totals import Rows, Totals
from reports.sheets.totals_sheet import Places

WIDTHS = (2, 25, *(14,) * 7, 3, 19, 19, 19, 2)
LEFT, RIGHT = 2, 11
"""First columns of the wide left and the narrow right half."""
LAST = 13
CHART_ROWS_MIN = 9


@dataclass(frozen=True, slots=True)
class Page:
    """What every block of the page needs."""

    draft: Draft
    sheet: Any
    figures: NightFigures
    rows: Rows
    totals: Totals
    places: Places

    def text(self, row: int, column: int, text: str, look: Look = looks.PLAIN) -> None:
        """Text on the page."""
        self.draft.text(self.sheet, (row, column), text, look)

    def merged(self, row: int, columns: tuple[int, int], text: str, look: Look) -> None:
        """Text over several columns, cut at the last of them."""
        for column in range(columns[0], columns[1] + 1):
            self.draft.cell(self.sheet, (row, column), look)
        self.text(row, columns[0], text, look)
        self.sheet.merge_cells(
            start_row=row, end_row=row, start_column=columns[0], end_column=columns[1]
        )

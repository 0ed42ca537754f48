"""How long the lists of a workbook may be that nobody answers, as it is declared for an account."""

from typing import Self

from pydantic import Field, model_validator

from recon.config.declared import DeclaredTable
from recon.model.figures import OPEN_ROWS_MAX, OPEN_ROWS_SHOWN

SHEET_ROWS_MAX = 200_000
"""More rows than this nobody scrolls, and the file would be slow to open."""


class WorkbookLists(DeclaredTable):
    """Sets that wait or could not be verified: how many stand on the sheet (breaks always do)."""

    open_rows_max: int = Field(default=OPEN_ROWS_MAX, ge=1, le=SHEET_ROWS_MAX)
    """Of more, the sheet has sums and the first `open_rows_shown`; all are a file."""
    open_rows_shown: int = Field(default=OPEN_ROWS_SHOWN, ge=1, le=SHEET_ROWS_MAX)

    @model_validator(mode="after")
    def _shown_are_fewer(self) -> Self:
        if self.open_rows_shown > self.open_rows_max:
            msg = "open_rows_shown: more rows than open_rows_max lets stand on the sheet"
            raise ValueError(msg)
        return self

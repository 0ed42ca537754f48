"""How long the lists of a workbook may be that nobody answers, as it is declared for an account."""

from typing import Self

from pydantic import Field, model_validator

from recon.config.declared import DeclaredTable
from recon.model.figures import (
    MATCHED_ROWS_MAX,
    MATCHED_ROWS_SHOWN,
    OPEN_ROWS_MAX,
    OPEN_ROWS_SHOWN,
)

OPEN_SHEET_ROWS_MAX = 200_000
"""More rows than this nobody scrolls, and the file would be slow to open."""
MATCHED_SHEET_ROWS_MAX = 50_000
"""As above; the sums of all stand there anyway, and the file has each row."""


class WorkbookLists(DeclaredTable):
    """Matches, and sets that wait or are not verified: how many stand on the sheet."""

    matched_rows_max: int = Field(default=MATCHED_ROWS_MAX, ge=1, le=MATCHED_SHEET_ROWS_MAX)
    """Of more, the sheet has sums and the first `matched_rows_shown`; all are a file."""
    matched_rows_shown: int = Field(default=MATCHED_ROWS_SHOWN, ge=1, le=MATCHED_SHEET_ROWS_MAX)
    open_rows_max: int = Field(default=OPEN_ROWS_MAX, ge=1, le=OPEN_SHEET_ROWS_MAX)
    """The same of what waits and is not verified; breaks are never cut."""
    open_rows_shown: int = Field(default=OPEN_ROWS_SHOWN, ge=1, le=OPEN_SHEET_ROWS_MAX)

    @model_validator(mode="after")
    def _shown_are_fewer(self) -> Self:
        for name in ("matched_rows", "open_rows"):
            if getattr(self, f"{name}_shown") > getattr(self, f"{name}_max"):
                msg = f"{name}_shown: more rows than {name}_max lets stand on the sheet"
                raise ValueError(msg)
        return self

"""Where the gateway's settlement files of an account come from, as it is declared.

The keys are those of the order files: a folder, what is fetched into it from elsewhere, which files
must be there for a night, and how they are written.
"""

from pathlib import Path
from typing import Self

from pydantic import model_validator

from recon.config.declared import DeclaredTable
from recon.config.file_layouts import FileLayout
from recon.config.file_sources import ExpectedFile, RemoteSource


class SettlementFolder(DeclaredTable):
    """The settlement files of one account (`[accounts."<merchant>/<account>".settlement]`)."""

    inbox: Path
    """The folder they lie in; never that of the order files."""
    layouts: tuple[FileLayout, ...] = ()
    """How they are written; the first whose pattern fits a name holds."""
    sources: tuple[RemoteSource, ...] = ()
    """Folders elsewhere whose files are fetched into the inbox."""
    expected: tuple[ExpectedFile, ...] = ()
    """Files that must be there for a night."""

    @model_validator(mode="after")
    def _only_what_holds(self) -> Self:
        if any(layout.trailer is not None and layout.trailer.amount for layout in self.layouts):
            msg = "layouts: trailer.amount: a settlement line has three amounts; count its rows"
            raise ValueError(msg)
        return self

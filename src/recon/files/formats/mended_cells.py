"""Cells of a mended file: no spreadsheet may run them, and they come back as they were.

People open such a file in a spreadsheet. Our reader takes exactly one apostrophe of `defused` away
again, in files that have the columns of mended ones.
"""

from dataclasses import replace

import pyarrow.compute as pc

from recon.files.formats.raw_table import RawTable
from recon.privacy.shown_text import BEGINNING, FORMULA

TOLD_COLUMNS = ("rejected_line", "rejected_column", "rejected_reason", "rejected_text")

_UNDO = f"{BEGINNING}'{FORMULA}"


def as_before(table: RawTable) -> RawTable:
    """The table with its cells as they were; only a mended file has any that differ."""
    if not set(TOLD_COLUMNS).issubset(table.header):
        return table
    columns = {
        name: pc.replace_substring_regex(cells, pattern=_UNDO, replacement=r"\1\2\3")
        for name, cells in table.columns.items()
    }
    return replace(table, columns=columns)

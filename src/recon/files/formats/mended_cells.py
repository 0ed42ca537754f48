"""Cells of a mended file: no spreadsheet may run them, and they come back as they were.

People open such a file in a spreadsheet, which takes a cell that begins with = + - or @ for a
formula, also behind a separator that is not ours. An apostrophe before that character makes it text
there; our reader takes exactly one away again, in files that have the columns of mended ones.
"""

import re
from dataclasses import replace

import pyarrow.compute as pc

from recon.files.formats.raw_table import RawTable

TOLD_COLUMNS = ("rejected_line", "rejected_column", "rejected_reason", "rejected_text")

_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_BEGINNING = r"(^|[;\t|])(\s*)"
_FORMULA = "('*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_DEFUSE = re.compile(_BEGINNING + _FORMULA)
_UNDO = f"{_BEGINNING}'{_FORMULA}"


def defused(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    if _PLAIN_NUMBER.fullmatch(text):
        return text
    return _DEFUSE.sub(r"\1\2'\3", text)


def as_before(table: RawTable) -> RawTable:
    """The table with its cells as they were; only a mended file has any that differ."""
    if not set(TOLD_COLUMNS).issubset(table.header):
        return table
    columns = {
        name: pc.replace_substring_regex(cells, pattern=_UNDO, replacement=r"\1\2\3")
        for name, cells in table.columns.items()
    }
    return replace(table, columns=columns)

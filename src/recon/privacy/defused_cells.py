"""Cells that no spreadsheet takes for a formula.

A spreadsheet runs a cell that begins with = + - or @, also behind a separator that is not ours. An
apostrophe before that character makes it text.
"""

import re

BEGINNING = r"(^|[;\t|])(\s*)"
FORMULA = "('*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_DEFUSE = re.compile(BEGINNING + FORMULA)


def defused(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    if _PLAIN_NUMBER.fullmatch(text):
        return text
    return _DEFUSE.sub(r"\1\2'\3", text)

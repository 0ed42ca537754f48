"""Make external text safe to show to people and to write to files, databases and logs.

Cards, bank accounts and card codes are masked; unprintable characters are written as escapes, so
that every file, database, terminal and log accepts them. Spreadsheets execute a cell that begins
with = + - or @, also after a separator other than ours: an apostrophe in front makes it text.
"""

import re

from recon.privacy.bank_accounts import masked_accounts
from recon.privacy.card_numbers import holds_card, masked_cards

DISPLAYED_CHARACTERS_MAX = 120
"""Maximum length of an external value in a reject or a message."""

CODE_HIDDEN = "***"
NAME_PROBLEM_CARD = "has a card number in its name; rename it, then it is read"
NAME_PROBLEM_BYTES = (
    "has a name that is not UTF-8 or cannot be printed (what is foreign is shown as \\x or \\u); "
    "rename it, then it is read"
)

_BYTE_ESCAPES = range(0xDC80, 0xDD00)
"""Surrogates by which Python represents non-UTF-8 bytes of file names."""
_CODE_NAMES = r"(?:cvv2?|cvc2?|cvn2?|csc|(?:security|verification)[ _-]?(?:code|value))"
_FILLERS = r"(?:(?:is|as|was|of|not|no|a|an|the|your|for|valid|invalid|wrong|code|number)[\W_]+)"
_NAMED_CODE = re.compile(
    rf"({_CODE_NAMES}[\W_]*{_FILLERS}{{0,4}})(?<!\d)\d{{3,4}}(?!\d)", re.IGNORECASE
)
_CODE_BEFORE = re.compile(
    rf"(?<!\d)\d{{3,4}}(?!\d)([\W_]{{1,3}}{_FILLERS}{{1,5}}{_CODE_NAMES})", re.IGNORECASE
)


def masked(text: str) -> str:
    """Mask card numbers, card codes and bank accounts in a text of any length.

    Line breaks are kept.
    """
    if not any(character.isdecimal() for character in text):
        return text
    return masked_codes(masked_cards(masked_accounts(text)))


def masked_codes(text: str) -> str:
    """Mask the three or four digits after, or before, the name of a card's security code."""
    shown = _NAMED_CODE.sub(rf"\g<1>{CODE_HIDDEN}", text)
    return _CODE_BEFORE.sub(rf"{CODE_HIDDEN}\g<1>", shown)


def redacted(text: str, *, characters_max: int = DISPLAYED_CHARACTERS_MAX) -> str:
    """Return the text masked, printable, on one line and limited in length."""
    shown = printable(masked(text))
    if len(shown) <= characters_max:
        return shown
    return f"{shown[:characters_max]}… ({len(text)} characters)"


def for_people(text: str) -> str:
    """Return a text of one or more lines for people, logs and tables: masked and printable."""
    return "\n".join(map(printable, masked(text).split("\n")))


def printable(text: str) -> str:
    r"""Escape unprintable characters: `\xe9` for a byte, `\u202e` for others."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _number(character) for character in text
    )


def _number(character: str) -> str:
    if ord(character) in _BYTE_ESCAPES:
        return f"\\x{ord(character) - _BYTE_ESCAPES.start + 0x80:02x}"
    return f"\\u{ord(character):04x}"


def displayed_name(name: str) -> str:
    """Return the name of a file or folder for use in messages, tables and reports."""
    return printable(masked(name))


def name_problem(name: str) -> str:
    """Return why a file of this name is not read; "" if it may be."""
    if not name.isprintable():
        return NAME_PROBLEM_BYTES
    return NAME_PROBLEM_CARD if holds_card(name) else ""


BEGINNING = r"(^|[;\t|])(\s*)"
FORMULA = "('*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_DEFUSE = re.compile(BEGINNING + FORMULA)


def defused(text: str) -> str:
    """Return a cell text that no spreadsheet takes for a formula."""
    if _PLAIN_NUMBER.fullmatch(text):
        return text
    return _DEFUSE.sub(r"\1\2'\3", text)

"""Text from outside, made fit for every place where people or machines read it.

Cards, bank accounts and card codes are starred; what cannot be printed is written as its number, so
that every file, database, terminal and log can take it. A spreadsheet runs a cell that begins with
= + - or @, also behind a separator that is not ours: an apostrophe before it makes it text.
"""

import re

from recon.privacy.bank_accounts import masked_accounts
from recon.privacy.card_numbers import holds_card, masked_cards

SHOWN_CHARACTERS_MAX = 120
"""Characters of a foreign value that a reject or a message shows."""

CODE_HIDDEN = "***"
NAME_PROBLEM_CARD = "has a card number in its name; rename it, then it is read"
NAME_PROBLEM_BYTES = (
    "has a name that is not UTF-8 or cannot be printed (what is foreign is shown as \\x or \\u); "
    "rename it, then it is read"
)

_BYTE_ESCAPES = range(0xDC80, 0xDD00)
"""How Python writes bytes of file names that are not UTF-8."""
_CODE_NAMES = r"(?:cvv2?|cvc2?|cvn2?|csc|(?:security|verification)[ _-]?(?:code|value))"
_FILLERS = r"(?:(?:is|as|was|of|not|no|a|an|the|your|for|valid|invalid|wrong|code|number)[\W_]+)"
_NAMED_CODE = re.compile(
    rf"({_CODE_NAMES}[\W_]*{_FILLERS}{{0,4}})(?<!\d)\d{{3,4}}(?!\d)", re.IGNORECASE
)
_CODE_BEFORE = re.compile(
    rf"(?<!\d)\d{{3,4}}(?!\d)([\W_]{{1,3}}{_FILLERS}{{1,5}}{_CODE_NAMES})", re.IGNORECASE
)


def masked(text: str) -> str:
    """The text without the middles of card numbers, without card codes, accounts cut to their ends.

    Of any length, on as many lines as it has.
    """
    if not any(character.isdecimal() for character in text):
        return text
    return masked_codes(masked_cards(masked_accounts(text)))


def masked_codes(text: str) -> str:
    """The text without the three or four digits behind, or before, the name of a card's code."""
    shown = _NAMED_CODE.sub(rf"\g<1>{CODE_HIDDEN}", text)
    return _CODE_BEFORE.sub(rf"{CODE_HIDDEN}\g<1>", shown)


def redacted(text: str, *, characters_max: int = SHOWN_CHARACTERS_MAX) -> str:
    """The text masked, on one line, of bounded length, every character of it printable."""
    shown = printable(masked(text))
    if len(shown) <= characters_max:
        return shown
    return f"{shown[:characters_max]}… ({len(text)} characters)"


def for_people(text: str) -> str:
    """A sentence, or some lines, as it may go to people, logs and tables: masked, printable."""
    return "\n".join(map(printable, masked(text).split("\n")))


def printable(text: str) -> str:
    r"""The text with what cannot be printed as its number: `\xe9` a byte, `\u202e` another."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _number(character) for character in text
    )


def _number(character: str) -> str:
    if ord(character) in _BYTE_ESCAPES:
        return f"\\x{ord(character) - _BYTE_ESCAPES.start + 0x80:02x}"
    return f"\\u{ord(character):04x}"


def shown_name(name: str) -> str:
    """The name of a file or folder as it stands in every sentence, table and report."""
    return printable(masked(name))


def name_problem(name: str) -> str:
    """Why a file of this name is not read; "" when it may be."""
    if not name.isprintable():
        return NAME_PROBLEM_BYTES
    return NAME_PROBLEM_CARD if holds_card(name) else ""


BEGINNING = r"(^|[;\t|])(\s*)"
FORMULA = "('*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_DEFUSE = re.compile(BEGINNING + FORMULA)


def defused(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    if _PLAIN_NUMBER.fullmatch(text):
        return text
    return _DEFUSE.sub(r"\1\2'\3", text)

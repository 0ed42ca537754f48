"""Untyped records of a bank statement: text, a credit or debit flag, and the line number.

All bank formats are parsed into these records; amounts are unsigned and the sign is a flag.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from recon.matching.frames.bank_sources import STATEMENT

ENTRIES_MAX = 1_000_000
"""Maximum number of entries in one file."""
STATEMENTS_MAX = 10_000
"""Maximum number of statements in one file."""
TEXT_CHARACTERS_MAX = 4_000
"""Maximum length of an entry's text; the rest is cut off, as references come before that."""


@dataclass(frozen=True, slots=True)
class RawBalance:
    """An opening or closing balance."""

    amount: str
    """Unsigned, with a decimal point."""
    currency: str
    credit: bool
    day: str
    """ISO date."""
    intermediate: bool = False
    """True if it opens a page other than the first, or closes one other than the last."""


@dataclass(slots=True)
class RawEntry:
    """One entry of a statement."""

    line: int
    amount: str
    """Unsigned, with a decimal point."""
    currency: str
    credit: bool
    """The mark as written in the file, before reversals are considered."""
    booked_on: str
    value_on: str
    reversal: bool = False
    entry_no: str = ""
    booked: bool = True
    end_to_end_id: str = ""
    reference: str = ""
    counterparty: str = ""
    text: str = ""
    charges: tuple[tuple[str, str, bool], ...] = ()
    """(amount, currency, is credit) of each charge."""
    instructed_currency: str = ""
    instructed_amount: str = ""
    details: tuple["RawEntry", ...] = ()
    """The individual payments of a batched entry."""


@dataclass(slots=True)
class RawStatement:
    """One statement, or one page of it, for one account."""

    account: str
    number: str
    currency: str = ""
    form: str = STATEMENT
    page: int = 1
    last_page: bool = True
    from_day: str = ""
    """ISO date; "" if the document states no period and only its balances are dated."""
    to_day: str = ""
    created: str = ""
    opening: RawBalance | None = None
    closing: RawBalance | None = None
    entries: list[RawEntry] = field(default_factory=list)
    line: int = 1


def glued(pieces: Sequence[str], *, full: int) -> str:
    """Join wrapped lines; a space is added only after a line shorter than `full`."""
    return "".join(piece if len(piece) >= full else f"{piece} " for piece in pieces).strip()

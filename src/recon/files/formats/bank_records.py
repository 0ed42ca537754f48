"""What a bank statement says before anybody typed it: text, the mark of a sign, and where it stood.

Every format of banks is read into these; a sign is a mark beside an amount, never part of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from recon.matching.frames.bank_sources import STATEMENT

ENTRIES_MAX = 1_000_000
"""Entries of one file."""
STATEMENTS_MAX = 10_000
"""Statements of one file."""
TEXT_CHARACTERS_MAX = 4_000
"""Of the words that one entry carries; what is longer is cut: a reference stands before that."""


@dataclass(frozen=True, slots=True)
class RawBalance:
    """One balance."""

    amount: str
    """Unsigned, with a point."""
    currency: str
    credit: bool
    day: str
    """ISO date."""
    intermediate: bool = False
    """Of a page that is not the first (opening) or the last (closing)."""


@dataclass(slots=True)
class RawEntry:
    """One entry of a statement."""

    line: int
    amount: str
    """Unsigned, with a point."""
    currency: str
    credit: bool
    """The mark as it stands, before anything is said about reversals."""
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
    """Amount, currency and whether they are a credit."""
    instructed_currency: str = ""
    instructed_amount: str = ""
    details: tuple["RawEntry", ...] = ()
    """Payments that one entry stands for."""


@dataclass(slots=True)
class RawStatement:
    """One statement of one account."""

    account: str
    number: str
    currency: str = ""
    form: str = STATEMENT
    page: int = 1
    last_page: bool = True
    from_day: str = ""
    """ISO date; "" where the document names no period and only its balances have days."""
    to_day: str = ""
    created: str = ""
    opening: RawBalance | None = None
    closing: RawBalance | None = None
    entries: list[RawEntry] = field(default_factory=list)
    line: int = 1


def glued(pieces: Sequence[str], *, full: int) -> str:
    """Pieces as one text: behind a full one a word may go on, behind another it ends."""
    return "".join(piece if len(piece) >= full else f"{piece} " for piece in pieces).strip()

"""Lines of journals as every format writes them: in order, balanced, their texts harmless."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby

from recon.model.errors import UsageError
from recon.model.money import format_minor_units
from recon.privacy.shown_text import printable


@dataclass(frozen=True, slots=True)
class BookLine:
    """One line of a journal; one of debit and credit is 0."""

    kind: str
    journal_id: str
    day: date
    account: str
    debit: int
    """Minor units."""
    credit: int
    currency: str
    order_no: str = ""
    break_id: str = ""
    text: str = ""

    @property
    def amount(self) -> int:
        """Debit positive, credit negative."""
        return self.debit - self.credit

    @property
    def journal(self) -> tuple[date, str, str]:
        """What balances: the lines of one journal, on one day, in one currency."""
        return (self.day, self.journal_id, self.currency)


def in_books_order(lines: Iterable[BookLine]) -> list[BookLine]:
    """By day, journal and currency; the lines of a journal as they were, each journal of one day.

    Raises:
        UsageError: a journal does not balance, or a line is on both sides.
    """
    ordered = sorted(lines, key=lambda line: line.journal)
    first: dict[tuple[str, str], date] = {}
    for line in ordered:
        first.setdefault((line.journal_id, line.currency), line.day)
    ordered = [
        line
        if line.day == first[line.journal_id, line.currency]
        else replace(line, journal_id=f"{line.journal_id}-{line.day}")
        for line in ordered
    ]
    for (_, name, currency), own in journals_of(ordered):
        if any(min(line.debit, line.credit) < 0 or line.debit * line.credit for line in own):
            msg = f"journal {name} has a line that is on both sides, or below 0: nothing is written"
            raise UsageError(msg)
        if left := sum(line.amount for line in own):
            off = format_minor_units(left, currency=currency)
            msg = (
                f"journal {name} does not balance: debits less credits of one day are {off} "
                f"{currency}; nothing is written"
            )
            raise UsageError(msg)
    return ordered


def journals_of(
    ordered: Sequence[BookLine],
) -> Iterator[tuple[tuple[date, str, str], list[BookLine]]]:
    """Each journal with its lines."""
    for journal, own in groupby(ordered, key=lambda line: line.journal):
        yield journal, [*own]


def one_line(text: str) -> str:
    """A text on one line, what cannot be printed as its number."""
    return printable(" ".join(text.split()))


def amount_of(minor_units: int, *, currency: str) -> str:
    """With the decimals of the currency; nothing for the side that a line is not on."""
    return format_minor_units(minor_units, currency=currency) if minor_units else ""

"""Lines of journals as every format writes them: in order, balanced, their texts harmless."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import groupby

from recon.model.errors import UsageError
from recon.model.money import format_minor_units
from recon.privacy.shown_text import printable


@dataclass(frozen=True, slots=True)
class DatevBooks:
    """Whose books DATEV's files are for, by its numbers, and how they are kept."""

    consultant: int
    client: int
    fiscal_year_month: int
    """In which it begins."""
    account_digits: int
    """Of an account; a person's has one more."""
    base_currency: str | None = None
    """In which they are kept; None: not declared, and no batch has rates."""
    rates: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    """Month such as 2026-11 -> currency -> how much of it is one of the base currency."""


@dataclass(frozen=True, slots=True)
class BookCodes:
    """What is declared for files of the books (`[journal.export]`); "" where nothing is."""

    tax_code: str = ""
    """Of every account that `tax_codes` does not name."""
    tax_codes: Mapping[str, str] = field(default_factory=dict)
    company_code: str = ""
    datev: DatevBooks | None = None

    def tax_code_of(self, account: str) -> str:
        """The account's own, else the one of all."""
        return self.tax_codes.get(account, self.tax_code)


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
    ordered = _each_of_one_day(sorted(lines, key=lambda line: line.journal))
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


def _each_of_one_day(ordered: Sequence[BookLine]) -> list[BookLine]:
    """A journal of several days as one of each: of the later ones the number has the day."""
    first: dict[tuple[str, str], date] = {}
    for line in ordered:
        first.setdefault((line.journal_id, line.currency), line.day)
    return [
        line
        if line.day == first[line.journal_id, line.currency]
        else replace(line, journal_id=f"{line.journal_id}-{line.day}")
        for line in ordered
    ]


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

"""DATEV's Buchungsstapel, EXTF 700, version 13: one file for one month and one currency.

A row books one account against another, so the debits of a journal are set against its credits
until both are used up; the sums by account stay what they are.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from recon.model.errors import UsageError
from recon.model.money import exponent, format_minor_units
from recon.period.book_files.book_lines import BookLine, journals_of, one_line
from recon.privacy.defused_cells import defused

COLUMNS = (
    *("Umsatz (ohne Soll/Haben-Kz)", "Soll/Haben-Kennzeichen", "WKZ Umsatz", "Kurs"),
    *("Basis-Umsatz", "WKZ Basis-Umsatz", "Konto", "Gegenkonto (ohne BU-Schlüssel)"),
    *("BU-Schlüssel", "Belegdatum", "Belegfeld 1", "Belegfeld 2", "Skonto", "Buchungstext"),
)
DECIMALS = 2
DIGITS_MAX = 10
"""Before the comma of an amount."""
ACCOUNT_DIGITS_MIN, ACCOUNT_DIGITS_MAX = 4, 8
REFERENCE_CHARACTERS_MAX = 36
TEXT_CHARACTERS_MAX = 60
ENCODING = "cp1252"
"""What it does not have is refused: a text that was changed on the way names nothing any more."""
_ACCOUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_CLIENT = re.compile(r"([1-9][0-9]{3,6})/([1-9][0-9]{0,4})", re.ASCII)
_NO_REFERENCE = re.compile(r"[^A-Za-z0-9$%&*+/-]")


@dataclass(frozen=True, slots=True)
class DatevClient:
    """Whose books they are, by DATEV's numbers."""

    consultant: str
    client: str

    @classmethod
    def parse(cls, text: str) -> "DatevClient":
        """`CONSULTANT/CLIENT`, such as 29098/55003.

        Raises:
            UsageError: anything else.
        """
        match = _CLIENT.fullmatch(text)
        if match is None:
            msg = (
                f"--datev {text!r} is not the consultant's and the client's number such as "
                "29098/55003; nothing is written"
            )
            raise UsageError(msg)
        return cls(match[1], match[2])


def datev_text(lines: Sequence[BookLine], *, client: DatevClient, written_at: datetime) -> str:
    """One batch; its lines are of one month and one currency.

    Raises:
        UsageError: an account is no number of DATEV's, or an amount does not fit.
    """
    rows = [row for (_, _, _), own in journals_of(lines) for row in _rows(own)]
    head = _head(lines, client=client, written_at=written_at)
    return "".join(f"{';'.join(row)}\r\n" for row in (head, COLUMNS, *rows))


def datev_bytes(text: str) -> bytes:
    """A batch as DATEV reads it.

    Raises:
        UsageError: a character that it cannot read, named with its row.
    """
    try:
        return text.encode(ENCODING)
    except UnicodeEncodeError as error:
        row = text.count("\r\n", 0, error.start) + 1
        reference = text[: error.start].rsplit("\r\n", 1)[-1]
        character = text[error.start]
        named = f"U+{ord(character):04X}" + (f" ({character})" if character.isprintable() else "")
        msg = (
            f"row {row} of the batch, {_reference(reference)}: DATEV's files cannot hold the "
            f"character {named}, they are {ENCODING}; nothing is written: take another format for "
            "these journals, or correct the text and close the month anew"
        )
        raise UsageError(msg) from error


def _reference(before: str) -> str:
    """Which journal a row is of, by what stands in it before its text."""
    cells = before.split(";")
    at = COLUMNS.index("Belegfeld 1")
    return f"journal {cells[at].strip(chr(34))}" if len(cells) > at else "its head"


def _head(
    lines: Sequence[BookLine], *, client: DatevClient, written_at: datetime
) -> tuple[str, ...]:
    first = lines[0].day.replace(day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    digits = max(ACCOUNT_DIGITS_MIN, *(len(_account(line.account)) for line in lines))
    if digits > ACCOUNT_DIGITS_MAX:
        msg = f"an account has {digits} digits, DATEV's have {ACCOUNT_DIGITS_MAX} at most"
        raise UsageError(msg)
    return (
        *('"EXTF"', "700", "21", '"Buchungsstapel"', "13"),
        *(f"{written_at:%Y%m%d%H%M%S}000", "", '"RE"', '""', '""'),
        *(client.consultant, client.client, _day(date(first.year, 1, 1)), str(digits)),
        *(_day(first), _day(last), _quoted(f"recon {first:%Y-%m}"), '""', "1", "0", "0"),
        *(_quoted(lines[0].currency), "", '""', "", "", '""', "", "", '""', '""'),
    )


def _rows(own: Sequence[BookLine]) -> Iterator[tuple[str, ...]]:
    for debit, credit, amount in _pairs(own):
        yield (
            *(_amount(amount, currency=debit.currency), '"S"', _quoted(debit.currency)),
            *("", "", '""', _account(debit.account), _account(credit.account), '""'),
            f"{debit.day:%d%m}",
            _quoted(_NO_REFERENCE.sub("", debit.journal_id)[-REFERENCE_CHARACTERS_MAX:]),
            *('""', "", _quoted(defused(one_line(debit.text))[:TEXT_CHARACTERS_MAX])),
        )


def _pairs(own: Sequence[BookLine]) -> Iterator[tuple[BookLine, BookLine, int]]:
    """Debit, credit and what of both is booked against each other."""
    to_use = [(line, line.credit) for line in own if line.credit]
    for debit in own:
        left = debit.debit
        while left:
            credit, open_still = to_use.pop(0)
            used = min(left, open_still)
            yield debit, credit, used
            left -= used
            if open_still > used:
                to_use.insert(0, (credit, open_still - used))


def _amount(minor_units: int, *, currency: str) -> str:
    """With two decimals and a comma, whatever the currency.

    Raises:
        UsageError: it has a third decimal, or too many digits.
    """
    text = format_minor_units(minor_units, currency=currency)
    whole, _, fraction = text.partition(".")
    if fraction[DECIMALS:].strip("0") or len(whole) > DIGITS_MAX:
        msg = (
            f"{text} {currency} does not fit DATEV's amounts ({DIGITS_MAX} digits, {DECIMALS} "
            f"decimals; {currency} has {exponent(currency)}); nothing is written: take another "
            "format for this currency"
        )
        raise UsageError(msg)
    return f"{whole},{fraction[:DECIMALS].ljust(DECIMALS, '0')}"


def _account(account: str) -> str:
    if not _ACCOUNT.fullmatch(account):
        msg = (
            f"account {one_line(account)!r} is no number of DATEV's; nothing is written: "
            "[journal.accounts] names the accounts"
        )
        raise UsageError(msg)
    return account


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'

"""Every format by its name, and the files into which it splits what it is given."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby

from recon.model.errors import UsageError
from recon.period.book_files.book_lines import BookCodes, BookLine, in_books_order, journals_of
from recon.period.book_files.comma_files import netsuite_csv, own_csv, sap_csv, xero_csv
from recon.period.book_files.datev_batch import datev_bytes, datev_text
from recon.period.book_files.plain_text_books import beancount_text, hledger_text

DATEV, XERO = "datev", "xero"
FORMATS = ("csv", DATEV, XERO, "netsuite", "sap-csv", "beancount", "hledger")
XERO_LINES_MAX = 300
"""Lines that Xero takes from one file."""
DATEV_LINES_MAX = 99_999
"""Rows that DATEV takes from one batch; lines are never fewer than their rows."""
_ENDINGS = {XERO: "csv", "netsuite": "netsuite.csv", "sap-csv": "sap.csv", "hledger": "journal"}
_WRITERS: Mapping[str, Callable[[Sequence[BookLine], BookCodes], str]] = {
    "csv": own_csv,
    XERO: xero_csv,
    "netsuite": netsuite_csv,
    "sap-csv": sap_csv,
    "beancount": beancount_text,
    "hledger": hledger_text,
}


@dataclass(frozen=True, slots=True)
class WantedBooks:
    """How journals are to be written."""

    name: str
    """With which file names begin."""
    format: str
    """One of FORMATS."""
    written_at: datetime
    codes: BookCodes = field(default_factory=BookCodes)


def book_files(lines: Sequence[BookLine], *, wanted: WantedBooks) -> dict[str, bytes]:
    """Name -> content of the files that have these lines; of no lines there is none.

    Raises:
        UsageError: a journal does not balance, or the format cannot hold a line.
    """
    if wanted.format not in FORMATS:
        msg = f"--format is one of {', '.join(FORMATS)}, not {wanted.format!r}"
        raise UsageError(msg)
    ordered = in_books_order(lines)
    if not ordered:
        return {}
    if wanted.format == DATEV:
        return _datev(ordered, wanted=wanted)
    parts = _for_xero(ordered) if wanted.format == XERO else {"": ordered}
    ending = _ENDINGS.get(wanted.format, wanted.format)
    write = _WRITERS[wanted.format]
    return {
        f"{wanted.name}{part}.{ending}": write(own, wanted.codes).encode()
        for part, own in parts.items()
    }


def _datev(ordered: Sequence[BookLine], *, wanted: WantedBooks) -> dict[str, bytes]:
    """One file for each month and currency: a row has no year, and a batch has one currency."""
    if wanted.codes.datev is None:
        msg = (
            "DATEV asks whose books they are, and [journal.export.datev] of rules.toml declares "
            "none; nothing is written: it names consultant, client, fiscal_year_month and "
            "account_digits, as your accountant has them"
        )
        raise UsageError(msg)
    keys = wanted.codes.tax_codes
    write = partial(datev_text, books=wanted.codes.datev, keys=keys, written_at=wanted.written_at)

    def batch_of(line: BookLine) -> tuple[str, str]:
        return f"{line.day:%Y-%m}", line.currency

    return {
        f"EXTF_{wanted.name}-{currency}-{month}{further}.csv": datev_bytes(write(part))
        for (month, currency), own in groupby(sorted(ordered, key=batch_of), key=batch_of)
        for number, part in enumerate(_whole_journals([*own], lines_max=DATEV_LINES_MAX), start=1)
        for further in (f"-{number}" if number > 1 else "",)
    }


def _for_xero(ordered: Sequence[BookLine]) -> dict[str, list[BookLine]]:
    """One file for each currency, and no more lines than Xero takes; a journal stays whole."""
    parts: dict[str, list[BookLine]] = {}
    for currency in sorted({line.currency for line in ordered}):
        own = [line for line in ordered if line.currency == currency]
        for number, part in enumerate(_whole_journals(own, lines_max=XERO_LINES_MAX), start=1):
            parts[f"-xero-{currency}-{number}"] = part
    return parts


def _whole_journals(ordered: Sequence[BookLine], *, lines_max: int) -> Iterator[list[BookLine]]:
    part: list[BookLine] = []
    for _, own in journals_of(ordered):
        if part and len(part) + len(own) > lines_max:
            yield part
            part = []
        part += own
    if part:
        yield part

"""File formats for accounting software (`journal_formats.toml`), and how journals split into files.

Our own columns, Xero, NetSuite and SAP are comma-separated; beancount and hledger are plain text.
Dates are written so that no import can swap day and month. A row of DATEV books one account against
another, so the debits of a journal are matched with its credits until both are used up; the sums by
account do not change.
"""

import csv
import hashlib
import io
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

from recon.config.rules import DatevExport, JournalExport
from recon.model.errors import UsageError
from recon.model.money import exponent, format_minor_units
from recon.privacy.displayed_text import defused, printable

FORMATS: Mapping[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One line of a journal; either debit or credit is 0."""

    kind: str
    journal_id: str
    day: date
    account: str
    debit: int
    """In minor units, like `credit`."""
    credit: int
    currency: str
    order_no: str = ""
    break_id: str = ""
    text: str = ""

    @property
    def amount(self) -> int:
        """The signed amount in minor units: debit positive, credit negative."""
        return self.debit - self.credit

    @property
    def journal(self) -> tuple[date, str, str]:
        """The key of a group of lines that balances: one journal, on one day, in one currency."""
        return (self.day, self.journal_id, self.currency)


@dataclass(frozen=True, slots=True)
class JournalFiles:
    """How journals are to be written."""

    name: str
    """The prefix of file names."""
    format: str
    """One of FORMATS."""
    written_at: datetime
    codes: JournalExport = field(default_factory=JournalExport)


def journal_files(lines: Sequence[JournalLine], *, layout: JournalFiles) -> dict[str, bytes]:
    """Return name -> content of the files with these lines; no files for no lines.

    Raises:
        UsageError: a journal does not balance, a setting that the format needs is not declared, or
            the format cannot hold a line.
    """
    if layout.format not in FORMATS:
        msg = f"--format is one of {', '.join(FORMATS)}, not {layout.format!r}"
        raise UsageError(msg)
    how, ordered = FORMATS[layout.format], in_order(lines)
    write = _WRITERS.get(layout.format, _table)

    def file_of(line: JournalLine) -> list[str]:
        own = {"month": f"{line.day:%Y-%m}", "currency": line.currency}
        return [own[name] for name in how.get("split", ())]

    files = {}
    for _, group in groupby(sorted(ordered, key=file_of), key=file_of):
        for number, piece in enumerate(
            _pieces_of([*group], lines_max=how.get("lines_max")), start=1
        ):
            name = how["file"].format(
                name=layout.name,
                currency=piece[0].currency,
                month=f"{piece[0].day:%Y-%m}",
                part=number,
                further=f"-{number}" if number > 1 else "",
            )
            files[name] = write(piece, layout)
    return files


def _pieces_of(
    ordered: Sequence[JournalLine], *, lines_max: int | None
) -> Iterator[list[JournalLine]]:
    """Split lines into the number that a program accepts in one file; a journal stays whole."""
    piece: list[JournalLine] = []
    for _, own in journals_of(ordered):
        if piece and lines_max and len(piece) + len(own) > lines_max:
            yield piece
            piece = []
        piece += own
    yield piece


def in_order(lines: Iterable[JournalLine]) -> list[JournalLine]:
    """Sort by day, journal and currency; the later days of a journal get an id of their own.

    Raises:
        UsageError: a journal does not balance, or a line has both debit and credit, or one below 0.
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
    ordered: Sequence[JournalLine],
) -> Iterator[tuple[tuple[date, str, str], list[JournalLine]]]:
    """Yield each journal of sorted lines, with its lines."""
    for journal, own in groupby(ordered, key=lambda line: line.journal):
        yield journal, [*own]


def _one_line(text: str) -> str:
    """Return a text on one line, with unprintable characters as their numbers."""
    return printable(" ".join(text.split()))


def _cell(text: str) -> str:
    return defused(_one_line(text))


_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
SAP_REFERENCE_CHARACTERS_MAX = 16
SAP_HASH_DIGITS = 8
"""Of a reference that replaces a journal id too long for it."""


def _table(lines: Sequence[JournalLine], layout: JournalFiles) -> bytes:
    how, codes = FORMATS[layout.format], layout.codes
    rows = [
        _cells(line, number=number, codes=codes)
        for number, (_, own) in enumerate(journals_of(lines), start=1)
        for line in own
    ]
    for needed, sentence in how.get("needs", {}).items():
        if bare := sorted({row["account"] for row in rows if not row[needed]}):
            raise UsageError(sentence.format(accounts=", ".join(bare)))
    columns: dict[str, str] = dict(how["columns"])
    if (optional := how.get("optional")) and not any(row[columns[optional]] for row in rows):
        del columns[optional]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_filled(cell, row) for cell in columns.values()] for row in rows)
    return text.getvalue().encode()


def _filled(cell: str, row: Mapping[str, str]) -> str:
    if cell.startswith("="):
        return cell[1:]
    name, _, most = cell.partition(":")
    return row[name][: int(most) if most else None]


def _cells(line: JournalLine, *, number: int, codes: JournalExport) -> dict[str, str]:
    """Return the values a column can have; `number` is that of the line's journal in the file."""
    day, journal = line.day, _cell(line.journal_id)
    reference = journal
    if len(journal) > SAP_REFERENCE_CHARACTERS_MAX:
        # If only cut, a break's journals in two currencies or on two days would be one.
        digits = hashlib.sha256(line.journal_id.encode()).hexdigest()[:SAP_HASH_DIGITS]
        reference = f"{journal[: SAP_REFERENCE_CHARACTERS_MAX - SAP_HASH_DIGITS - 1]}~{digits}"

    def shown(minor_units: int) -> str:
        return format_minor_units(minor_units, currency=line.currency)

    return {
        "kind": line.kind,
        "number": str(number),
        "journal": journal,
        "reference": reference,
        "day": day.isoformat(),
        "day_in_words": f"{day.day:02} {_MONTHS[day.month - 1]} {day.year}",
        "day_in_digits": f"{day:%Y%m%d}",
        "account": _cell(line.account),
        "debit": shown(line.debit) if line.debit else "",
        "credit": shown(line.credit) if line.credit else "",
        "amount": shown(line.amount),
        "unsigned": shown(abs(line.amount)),
        "posting_key": "40" if line.debit else "50",
        "currency": line.currency,
        "tax": _cell(codes.tax_code_of(line.account)),
        "company": codes.company_code or "",
        "order": _cell(line.order_no),
        "break": line.break_id,
        "text": _cell(line.text),
    }


def _beancount(lines: Sequence[JournalLine], _chosen: JournalFiles) -> bytes:
    """Format beancount transactions, without `open`: the accounts are already open."""
    accounts = _beancount_accounts({line.account for line in lines})
    blocks = []
    for (day, name, _), own in journals_of(lines):
        blocks.append(f'{day.isoformat()} * "{_escaped(own[0].text)}"')
        blocks.append(f'  journal: "{_escaped(name)}"')
        blocks += [f"  {accounts[line.account]}  {_signed(line)}" for line in own]
        blocks.append("")
    return "\n".join(blocks).encode()


def _hledger(lines: Sequence[JournalLine], _chosen: JournalFiles) -> bytes:
    """Format hledger transactions; the decimal mark is declared, so that 1.000 means one."""
    blocks = ["decimal-mark .", ""]
    for (day, name, _), own in journals_of(lines):
        code = _plain(name).replace(")", "")
        blocks.append(f"{day.isoformat()} * ({code}) {_plain(own[0].text)}".rstrip())
        blocks += [f"    {_hledger_account(line.account)}  {_signed(line)}" for line in own]
        blocks.append("")
    return "\n".join(blocks).encode()


UNMAPPED = "Equity:Unmapped"
"""Parent of accounts whose name is not valid in beancount."""
_BEANCOUNT_ACCOUNT = re.compile(
    r"(?:Assets|Liabilities|Equity|Income|Expenses)(?::[A-Z0-9][A-Za-z0-9-]*)+"
)
_HLEDGER_ACCOUNT = re.compile(r"\w(?:[\w.:/-]| (?=[\w.:/-]))*")


def _signed(line: JournalLine) -> str:
    return f"{format_minor_units(line.amount, currency=line.currency)} {line.currency}"


def _escaped(text: str) -> str:
    return _one_line(text).replace("\\", "\\\\").replace('"', '\\"')


def _plain(text: str) -> str:
    """Return the text without the character that starts a comment."""
    return _one_line(text).replace(";", ",")


def _beancount_accounts(accounts: set[str]) -> dict[str, str]:
    """Map account -> its name in beancount.

    Raises:
        UsageError: two accounts would get one name.
    """
    names = {account: _beancount_account(account) for account in sorted(accounts)}
    for name in {*names.values()}:
        own = [account for account, other in names.items() if other == name]
        if len(own) > 1:
            msg = (
                f"accounts {' and '.join(own)} would both be {name}; nothing is written: name them "
                "as beancount does under [journal.accounts], or take another format"
            )
            raise UsageError(msg)
    return names


def _beancount_account(account: str) -> str:
    if _BEANCOUNT_ACCOUNT.fullmatch(account):
        return account
    name = re.sub(r"[^A-Za-z0-9]", "-", account) or "-"
    return f"{UNMAPPED}:{name if name[0].isupper() or name[0].isdigit() else f'X{name}'}"


def _hledger_account(account: str) -> str:
    if not _HLEDGER_ACCOUNT.fullmatch(account):
        msg = (
            f"account {_one_line(account)!r} is no name of hledger's; nothing is written: name it "
            "with letters, digits and single spaces under [journal.accounts]"
        )
        raise UsageError(msg)
    return account


DECIMALS = 2
DIGITS_MAX = 10
"""Before the decimal comma of an amount in DATEV."""
REFERENCE_CHARACTERS_MAX = 36
TEXT_CHARACTERS_MAX = 60
NOTE_CHARACTERS_MAX = 210
NOTES_MAX = 20
KEY_DIGITS = 4
ENCODING = "cp1252"
"""A character outside it is refused: a changed text would no longer identify anything."""
OPEN = "0"
"""Not locked (Festschreibung): the import locks a row that leaves this empty."""
EMPTY: Mapping[str, str] = {
    name.strip('"'): '""' * name.startswith('"') for name in FORMATS["datev"]["columns"]
}
"""Column of DATEV -> its empty value, in the order of the file."""
REFERENCE = "Belegfeld 1"
_KEY = re.compile(r"[0-9]{1,4}", re.ASCII)
_ACCOUNT = re.compile(r"(?!0+$)[0-9]+", re.ASCII)
_NO_REFERENCE = re.compile(r"[^A-Za-z0-9$%&*+/-]")


def _datev(lines: Sequence[JournalLine], layout: JournalFiles) -> bytes:
    """Format a DATEV Buchungsstapel: one batch, with lines of one month and one currency."""
    datev = layout.codes.datev
    if datev is None:
        msg = (
            "DATEV asks whose ledger it is, and [journal.export.datev] of rules.toml declares "
            "none; nothing is written: it names consultant, client, fiscal_year_month and "
            "account_digits, as your accountant has them"
        )
        raise UsageError(msg)
    for line in lines:
        if not _ACCOUNT.fullmatch(line.account) or len(line.account) > datev.account_digits + 1:
            msg = (
                f"{_one_line(line.account)!r} is no account of DATEV's ledger with "
                f"{datev.account_digits} digits (a person's has one more); nothing is written: "
                "[journal.accounts] names the accounts, [journal.export.datev] account_digits says "
                "how long they are"
            )
            raise UsageError(msg)
    rate, keys = _rate(lines[0], datev=datev), layout.codes.tax_codes
    rows = [row for _, own in journals_of(lines) for row in _rows(own, keys=keys, rate=rate)]
    head = _head(lines, datev=datev, written_at=layout.written_at)
    text = "".join(f"{';'.join(row)}\r\n" for row in (head, EMPTY, *rows))
    try:
        return text.encode(ENCODING)
    except UnicodeEncodeError as error:
        row = text.count("\r\n", 0, error.start) + 1
        cells = text[: error.start].rsplit("\r\n", 1)[-1].split(";")
        at = [*EMPTY].index(REFERENCE)
        which = f"journal {cells[at].strip(chr(34))}" if len(cells) > at else "its head"
        character = text[error.start]
        named = f"U+{ord(character):04X}" + (f" ({character})" if character.isprintable() else "")
        msg = (
            f"row {row} of the batch, {which}: DATEV's files cannot hold the character {named}, "
            f"they are {ENCODING}; nothing is written: take another format for these journals, or "
            "correct the text and close the month anew"
        )
        raise UsageError(msg) from error


def _head(
    lines: Sequence[JournalLine], *, datev: DatevExport, written_at: datetime
) -> tuple[str, ...]:
    first = lines[0].day.replace(day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    currency = datev.base_currency or lines[0].currency
    began = first.year - (first.month < datev.fiscal_year_month)
    return (
        *('"EXTF"', "700", "21", '"Buchungsstapel"', "13"),
        *(f"{written_at:%Y%m%d%H%M%S}000", "", '"RE"', '""', '""'),
        *(str(datev.consultant), str(datev.client)),
        *(_day(date(began, datev.fiscal_year_month, 1)), str(datev.account_digits)),
        *(_day(first), _day(last), _quoted(f"recon {first:%Y-%m}"), '""', "1", "0", OPEN),
        *(_quoted(currency), "", '""', "", "", '""', "", "", '""', '""'),
    )


def _rate(line: JournalLine, *, datev: DatevExport) -> tuple[str, Decimal] | None:
    """Return the base currency and the rate (units per base unit); None in the base currency."""
    base, month = datev.base_currency, f"{line.day:%Y-%m}"
    if base is None or line.currency == base:
        return None
    rate = datev.rates.get(month, {}).get(line.currency)
    if rate is None:
        msg = (
            f"[journal.export.datev] rates names none of {line.currency} for {month}, and the "
            f"ledger is kept in {base}; nothing is written: declare how much {line.currency} is "
            f"one {base}, or take --currency for the others"
        )
        raise UsageError(msg)
    return base, rate


def _rows(
    own: Sequence[JournalLine], *, keys: Mapping[str, str], rate: tuple[str, Decimal] | None
) -> Iterator[tuple[str, ...]]:
    for debit, credit, amount in _pairs(own):
        reference = _NO_REFERENCE.sub("", debit.journal_id)[-REFERENCE_CHARACTERS_MAX:]
        row = {
            **EMPTY,
            "Umsatz (ohne Soll/Haben-Kz)": _amount(amount, currency=debit.currency),
            "Soll/Haben-Kennzeichen": _quoted("S"),
            "WKZ Umsatz": _quoted(debit.currency),
            **({} if rate is None else _in_base(amount, of=debit, rate=rate)),
            "Konto": debit.account,
            "Gegenkonto (ohne BU-Schlüssel)": credit.account,
            "BU-Schlüssel": _quoted(_tax_key(debit, credit, keys=keys)),
            "Belegdatum": f"{debit.day:%d%m}",
            REFERENCE: _quoted(reference),
            "Buchungstext": _quoted(defused(_one_line(debit.text))[:TEXT_CHARACTERS_MAX]),
            **_notes(debit, reference=reference),
            "Festschreibung": OPEN,
        }
        yield tuple(row.values())


def _in_base(minor_units: int, *, of: JournalLine, rate: tuple[str, Decimal]) -> dict[str, str]:
    """Return the rate, and the amount in the base currency, rounded half up to its minor units."""
    base, of_base = rate
    units = Decimal(minor_units).scaleb(exponent(base) - exponent(of.currency))
    based = int((units / of_base).to_integral_value(ROUND_HALF_UP))
    if not based:
        msg = (
            f"journal {of.journal_id}: {format_minor_units(minor_units, currency=of.currency)} "
            f"{of.currency} is nothing in {base}, and DATEV takes no amount of 0; nothing is "
            "written: take another format for this currency, and --currency for the others"
        )
        raise UsageError(msg)
    whole, _, fraction = f"{of_base:f}".partition(".")
    return {
        "Kurs": f"{whole},{fraction.rstrip('0').ljust(DECIMALS, '0')}",
        "Basis-Umsatz": _amount(based, currency=base),
        "WKZ Basis-Umsatz": _quoted(base),
    }


def _tax_key(debit: JournalLine, credit: JournalLine, *, keys: Mapping[str, str]) -> str:
    """Return the one tax key of a row, from either account."""
    declared = {
        line.account: keys[line.account] for line in (debit, credit) if line.account in keys
    }
    for account, key in declared.items():
        if not _KEY.fullmatch(key):
            msg = (
                f"the tax code {key!r} of account {account} is no tax key of DATEV's (one to "
                f"{KEY_DIGITS} digits); nothing is written: [journal.export] tax_codes declares it"
            )
            raise UsageError(msg)
    if len({key.zfill(KEY_DIGITS) for key in declared.values()}) > 1:
        msg = (
            f"journal {debit.journal_id}: {' and '.join(declared)} have the tax keys "
            f"{' and '.join(declared.values())}, and a row of DATEV's has one; nothing is written: "
            "[journal.export] tax_codes declares a key for one of the two"
        )
        raise UsageError(msg)
    return next(iter(declared.values()), "").zfill(KEY_DIGITS) if declared else ""


def note(number: int) -> tuple[str, str]:
    """Return the two column names of one note (Zusatzinformation): its kind and its content."""
    return f"Zusatzinformation - Art {number}", f"Zusatzinformation- Inhalt {number}"


def _notes(line: JournalLine, *, reference: str) -> dict[str, str]:
    """Return journal id, order and text as notes, where the row itself cannot hold them."""
    text = _one_line(line.text)
    whole = {
        "Journal": "" if reference == line.journal_id else _one_line(line.journal_id),
        "Order": _one_line(line.order_no),
        "Text": text if len(defused(text)) > TEXT_CHARACTERS_MAX else "",
    }
    notes = [(kind, piece) for kind, words in whole.items() for piece in _pieces(words)]
    if len(notes) > NOTES_MAX:
        msg = (
            f"journal {line.journal_id}: DATEV has no room for a text of {len(text)} characters; "
            "nothing is written: take another format for these journals"
        )
        raise UsageError(msg)
    columns = (note(number) for number in range(1, NOTES_MAX + 1))
    return {
        column: _quoted(cell)
        for names, cells in zip(columns, notes, strict=False)
        for column, cell in zip(names, cells, strict=True)
    }


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that fit a note, none of them a formula."""
    while text:
        size = NOTE_CHARACTERS_MAX
        while len(piece := defused(text[:size])) > NOTE_CHARACTERS_MAX:
            size -= 1
        yield piece
        text = text[size:]


def _pairs(own: Sequence[JournalLine]) -> Iterator[tuple[JournalLine, JournalLine, int]]:
    """Yield debit line, credit line, and the amount of both booked against each other."""
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
    text = format_minor_units(minor_units, currency=currency)
    whole, _, fraction = text.partition(".")
    if fraction[DECIMALS:].strip("0") or len(whole) > DIGITS_MAX:
        msg = (
            f"{text} {currency} does not fit DATEV's amounts ({DIGITS_MAX} digits, {DECIMALS} "
            f"decimals; {currency} has {exponent(currency)}); nothing is written: take another "
            "format for this currency, and --currency for the others"
        )
        raise UsageError(msg)
    return f"{whole},{fraction[:DECIMALS].ljust(DECIMALS, '0')}"


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


_WRITERS: Mapping[str, Callable[[Sequence[JournalLine], JournalFiles], bytes]] = {
    "datev": _datev,
    "beancount": _beancount,
    "hledger": _hledger,
}
"""Formats that are not plain tables."""

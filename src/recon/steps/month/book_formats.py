"""Every format of books by its name, and the files into which it splits what it is given.

Our own columns, Xero, NetSuite and SAP separate by commas; beancount and hledger are plain text.
Dates are written so that no import reads day and month the other way round.
"""

import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby

from recon.config.rules import JournalExport
from recon.model.errors import UsageError
from recon.model.money import format_minor_units
from recon.privacy.shown_text import defused
from recon.steps.month.book_lines import (
    BookLine,
    amount_of,
    in_books_order,
    journals_of,
    one_line,
)
from recon.steps.month.datev_batch import datev_bytes, datev_text


def own_csv(lines: Sequence[BookLine], _codes: JournalExport) -> str:
    """The columns of the sheet Journals."""
    return _table(
        OWN_COLUMNS,
        (
            (
                *(line.kind, _cell(line.journal_id), line.day.isoformat(), _cell(line.account)),
                *_sides(line),
                *(line.currency, _cell(line.order_no), line.break_id, _cell(line.text)),
            )
            for line in lines
        ),
    )


def xero_csv(lines: Sequence[BookLine], codes: JournalExport) -> str:
    """Xero's manual journals: debits positive, credits negative, lines of one narration belong.

    Raises:
        UsageError: no tax rate is declared for an account; Xero takes no line without one.
    """
    bare = sorted({line.account for line in lines if not codes.tax_code_of(line.account)})
    if bare:
        msg = (
            f"Xero takes no line without a tax rate, and none is declared for {', '.join(bare)}; "
            "nothing is written: [journal.export] of rules.toml declares tax_code, or tax_codes by "
            "account, as Xero calls them (such as Tax Exempt)"
        )
        raise UsageError(msg)
    return _table(
        XERO_COLUMNS,
        (
            (
                _cell(line.journal_id),
                f"{line.day.day:02} {_MONTHS[line.day.month - 1]} {line.day.year}",
                _cell(line.text),
                _cell(line.account),
                _cell(codes.tax_code_of(line.account)),
                format_minor_units(line.amount, currency=line.currency),
            )
            for line in lines
        ),
    )


def netsuite_csv(lines: Sequence[BookLine], codes: JournalExport) -> str:
    """NetSuite's journal entries: lines of one external id belong together."""
    entity = (codes.company_code,) if codes.company_code else ()
    return _table(
        (*((NETSUITE_ENTITY,) if entity else ()), *NETSUITE_COLUMNS),
        (
            (
                *entity,
                *(_cell(line.journal_id), line.day.isoformat(), line.currency),
                *(_cell(line.account), *_sides(line), _cell(line.journal_id), _cell(line.text)),
            )
            for line in lines
        ),
    )


def sap_csv(lines: Sequence[BookLine], codes: JournalExport) -> str:
    """SAP's general ledger documents: amounts without sign, posting key 40 debit and 50 credit.

    Raises:
        UsageError: no company code is declared; SAP books nothing without one.
    """
    if not codes.company_code:
        msg = (
            "SAP books nothing without a company code, and none is declared; nothing is written: "
            "[journal.export] company_code of rules.toml names it"
        )
        raise UsageError(msg)
    rows = (
        (str(number), *_of_sap(line, codes=codes))
        for number, (_, own) in enumerate(journals_of(lines), start=1)
        for line in own
    )
    return _table(SAP_COLUMNS, rows)


def beancount_text(lines: Sequence[BookLine], _codes: JournalExport) -> str:
    """Transactions of beancount, without `open`: the accounts are open in the books."""
    accounts = _beancount_accounts({line.account for line in lines})
    blocks = []
    for (day, name, _), own in journals_of(lines):
        blocks.append(f'{day.isoformat()} * "{_escaped(own[0].text)}"')
        blocks.append(f'  journal: "{_escaped(name)}"')
        blocks += [f"  {accounts[line.account]}  {_signed(line)}" for line in own]
        blocks.append("")
    return "\n".join(blocks)


def hledger_text(lines: Sequence[BookLine], _codes: JournalExport) -> str:
    """Transactions of hledger; the decimal mark is said, so that 1.000 is one."""
    blocks = ["decimal-mark .", ""]
    for (day, name, _), own in journals_of(lines):
        code = _plain(name).replace(")", "")
        blocks.append(f"{day.isoformat()} * ({code}) {_plain(own[0].text)}".rstrip())
        blocks += [f"    {_hledger_account(line.account)}  {_signed(line)}" for line in own]
        blocks.append("")
    return "\n".join(blocks)


DATEV, XERO = "datev", "xero"
FORMATS = ("csv", DATEV, XERO, "netsuite", "sap-csv", "beancount", "hledger")
XERO_LINES_MAX = 300
"""Lines that Xero takes from one file."""
DATEV_LINES_MAX = 99_999
"""Rows that DATEV takes from one batch; lines are never fewer than their rows."""
_ENDINGS = {XERO: "csv", "netsuite": "netsuite.csv", "sap-csv": "sap.csv", "hledger": "journal"}
_WRITERS: Mapping[str, Callable[[Sequence[BookLine], JournalExport], str]] = {
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
    codes: JournalExport = field(default_factory=JournalExport)


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


UNMAPPED = "Equity:Unmapped"
"""Below it stand accounts of the books that have no name of beancount's."""
_BEANCOUNT_ACCOUNT = re.compile(
    r"(?:Assets|Liabilities|Equity|Income|Expenses)(?::[A-Z0-9][A-Za-z0-9-]*)+"
)
_HLEDGER_ACCOUNT = re.compile(r"\w(?:[\w.:/-]| (?=[\w.:/-]))*")


def _signed(line: BookLine) -> str:
    return f"{format_minor_units(line.amount, currency=line.currency)} {line.currency}"


def _escaped(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')


def _plain(text: str) -> str:
    """Without what begins a comment."""
    return one_line(text).replace(";", ",")


def _beancount_accounts(accounts: set[str]) -> dict[str, str]:
    """Account -> its name for beancount.

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
            f"account {one_line(account)!r} is no name of hledger's; nothing is written: name it "
            "with letters, digits and single spaces under [journal.accounts]"
        )
        raise UsageError(msg)
    return account


OWN_COLUMNS = (
    *("kind", "journal_id", "date", "account", "debit", "credit", "currency"),
    *("order_no", "break_id", "text"),
)
XERO_COLUMNS = ("*Narration", "*Date", "Description", "*AccountCode", "*TaxRate", "*Amount")
NETSUITE_COLUMNS = (
    *("External ID", "Date", "Currency", "Account", "Debit", "Credit", "Memo", "Line Memo"),
)
NETSUITE_ENTITY = "Subsidiary"
"""A column only where it is declared: books of a single company know none."""
SAP_COLUMNS = (
    *("Document", "Company Code", "Document Type", "Document Date", "Posting Date", "Currency"),
    *("Posting Key", "G/L Account", "Amount", "Tax Code", "Assignment", "Reference", "Item Text"),
)
SAP_GENERAL_LEDGER = "SA"
SAP_DEBIT, SAP_CREDIT = "40", "50"
SAP_ASSIGNMENT_CHARACTERS_MAX = 18
SAP_REFERENCE_CHARACTERS_MAX = 16
SAP_HASH_DIGITS = 8
"""Of a reference whose journal's number is too long for it."""
SAP_TEXT_CHARACTERS_MAX = 50
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def _of_sap(line: BookLine, *, codes: JournalExport) -> tuple[str, ...]:
    day = f"{line.day:%Y%m%d}"
    return (
        *(codes.company_code or "", SAP_GENERAL_LEDGER, day, day, line.currency),
        SAP_DEBIT if line.debit else SAP_CREDIT,
        _cell(line.account),
        format_minor_units(abs(line.amount), currency=line.currency),
        _cell(codes.tax_code_of(line.account)),
        _cell(line.order_no, characters_max=SAP_ASSIGNMENT_CHARACTERS_MAX),
        sap_reference(line.journal_id),
        _cell(line.text, characters_max=SAP_TEXT_CHARACTERS_MAX),
    )


def sap_reference(journal_id: str) -> str:
    """A journal's number, whole or as its beginning with digits of its hash.

    Cut, the journals of a break in two currencies or of two days would be one.
    """
    name = _cell(journal_id)
    if len(name) <= SAP_REFERENCE_CHARACTERS_MAX:
        return name
    digits = hashlib.sha256(journal_id.encode()).hexdigest()[:SAP_HASH_DIGITS]
    return f"{name[: SAP_REFERENCE_CHARACTERS_MAX - SAP_HASH_DIGITS - 1]}~{digits}"


def _sides(line: BookLine) -> tuple[str, str]:
    return (
        amount_of(line.debit, currency=line.currency),
        amount_of(line.credit, currency=line.currency),
    )


def _cell(text: str, *, characters_max: int | None = None) -> str:
    return defused(one_line(text))[:characters_max]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()

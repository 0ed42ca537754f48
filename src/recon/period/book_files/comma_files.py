"""Comma separated files: our own columns, Xero, NetSuite and SAP.

Dates are written so that no import reads day and month the other way round.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from recon.model.money import format_minor_units
from recon.period.book_files.book_lines import BookLine, amount_of, journals_of, one_line
from recon.privacy.defused_cells import defused

OWN_COLUMNS = (
    *("kind", "journal_id", "date", "account", "debit", "credit", "currency"),
    *("order_no", "break_id", "text"),
)
XERO_COLUMNS = ("*Narration", "*Date", "Description", "*AccountCode", "*TaxRate", "*Amount")
XERO_NO_TAX = "Tax Exempt"
NETSUITE_COLUMNS = (
    *("External ID", "Date", "Currency", "Account", "Debit", "Credit", "Memo", "Line Memo"),
)
SAP_COLUMNS = (
    *("Document", "Company Code", "Document Type", "Document Date", "Posting Date", "Currency"),
    *("Posting Key", "G/L Account", "Amount", "Tax Code", "Assignment", "Reference", "Item Text"),
)
SAP_GENERAL_LEDGER = "SA"
SAP_DEBIT, SAP_CREDIT = "40", "50"
SAP_ASSIGNMENT_CHARACTERS_MAX = 18
SAP_REFERENCE_CHARACTERS_MAX = 16
SAP_TEXT_CHARACTERS_MAX = 50
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def own_csv(lines: Sequence[BookLine]) -> str:
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


def xero_csv(lines: Sequence[BookLine]) -> str:
    """Xero's manual journals: debits positive, credits negative, lines of one narration belong."""
    return _table(
        XERO_COLUMNS,
        (
            (
                _cell(line.journal_id),
                f"{line.day.day:02} {_MONTHS[line.day.month - 1]} {line.day.year}",
                _cell(line.text),
                _cell(line.account),
                XERO_NO_TAX,
                format_minor_units(line.amount, currency=line.currency),
            )
            for line in lines
        ),
    )


def netsuite_csv(lines: Sequence[BookLine]) -> str:
    """NetSuite's journal entries: lines of one external id belong together."""
    return _table(
        NETSUITE_COLUMNS,
        (
            (
                *(_cell(line.journal_id), line.day.isoformat(), line.currency),
                *(_cell(line.account), *_sides(line), _cell(line.journal_id), _cell(line.text)),
            )
            for line in lines
        ),
    )


def sap_csv(lines: Sequence[BookLine]) -> str:
    """SAP's general ledger documents: amounts without sign, posting key 40 debit and 50 credit."""
    rows = (
        (str(number), *_of_sap(line))
        for number, (_, own) in enumerate(journals_of(lines), start=1)
        for line in own
    )
    return _table(SAP_COLUMNS, rows)


def _of_sap(line: BookLine) -> tuple[str, ...]:
    day = f"{line.day:%Y%m%d}"
    return (
        *("", SAP_GENERAL_LEDGER, day, day, line.currency),
        SAP_DEBIT if line.debit else SAP_CREDIT,
        _cell(line.account),
        format_minor_units(abs(line.amount), currency=line.currency),
        "",
        _cell(line.order_no, characters_max=SAP_ASSIGNMENT_CHARACTERS_MAX),
        _cell(line.journal_id, characters_max=SAP_REFERENCE_CHARACTERS_MAX),
        _cell(line.text, characters_max=SAP_TEXT_CHARACTERS_MAX),
    )


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

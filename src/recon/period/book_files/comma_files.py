"""Comma separated files: our own columns, Xero, NetSuite and SAP.

Dates are written so that no import reads day and month the other way round.
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence

from recon.model.errors import UsageError
from recon.model.money import format_minor_units
from recon.period.book_files.book_lines import BookCodes, BookLine, amount_of, journals_of, one_line
from recon.privacy.defused_cells import defused

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


def own_csv(lines: Sequence[BookLine], _codes: BookCodes) -> str:
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


def xero_csv(lines: Sequence[BookLine], codes: BookCodes) -> str:
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


def netsuite_csv(lines: Sequence[BookLine], codes: BookCodes) -> str:
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


def sap_csv(lines: Sequence[BookLine], codes: BookCodes) -> str:
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


def _of_sap(line: BookLine, *, codes: BookCodes) -> tuple[str, ...]:
    day = f"{line.day:%Y%m%d}"
    return (
        *(codes.company_code, SAP_GENERAL_LEDGER, day, day, line.currency),
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

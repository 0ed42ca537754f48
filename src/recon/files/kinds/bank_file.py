"""One file of a bank, in whatever form it comes: camt.05x, MT940, CSV or XLSX."""

from dataclasses import dataclass

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.formats.camt import camt_statements
from recon.files.formats.mt940 import mt940_statements
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.files.kinds.bank_messages import typed_statements
from recon.files.kinds.bank_table import bank_table
from recon.matching.frames.bank_sources import BankSource
from recon.model.words import SourceFile, SourceKind

TABLES = frozenset({".csv", ".xlsx"})
MESSAGES = frozenset({".sta", ".940", ".mt940", ".swi", ".txt"})
ENDINGS = tuple(sorted((".xml", *TABLES, *MESSAGES)))
"""Of the names of a bank's files."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class BankFile:
    """One file of a bank, read."""

    source: BankSource
    source_file: SourceFile


def bank_file_of(file: FileBytes, *, rules: Rules, layout: FileLayout = STANDARD) -> BankFile:
    """The statements of a file; all of them, or it is refused.

    Raises:
        SourceUnreadableError: it is none, a row or entry cannot be read, or T15 fails.
    """
    source = _source(file, rules=rules, layout=layout)
    rows = int(source.entries["part"].eq(0).sum())
    return BankFile(
        source,
        SourceFile(
            SourceKind.BANK, file.path.name, file.sha256, len(file.content), rows, rows, 0, 0
        ),
    )


def _source(file: FileBytes, *, rules: Rules, layout: FileLayout) -> BankSource:
    suffix = file.path.suffix.lower()
    ibans = [bank.iban for bank in rules.bank.values()]
    if suffix in TABLES:
        return bank_table(file, rules=rules, layout=layout)
    name = file.path.name
    if file.content.removeprefix(_BOM).lstrip()[:1] == b"<":
        statements = camt_statements(file)
    elif suffix in MESSAGES:
        statements = mt940_statements(file)
    else:
        known = ", ".join(ENDINGS)
        refuse(name, f"is no bank statement that is known: XML (camt), or one of {known}")
    return typed_statements(statements, name=name, sha256=file.sha256, ibans=ibans)

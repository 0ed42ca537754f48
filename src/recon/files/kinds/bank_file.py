"""One file of a bank, in whatever form it comes: camt.05x, MT940, CSV or XLSX."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.formats.camt import camt_statements
from recon.files.formats.mt940 import mt940_statements
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.files.kinds.bank_batches import frame_of_batches
from recon.files.kinds.bank_messages import typed_statements
from recon.files.kinds.bank_table import bank_table
from recon.matching.frames.bank_sources import BankSource, BankStatement
from recon.model.words import SourceFile, SourceKind

TABLES = frozenset({".csv", ".xlsx"})
MESSAGES = frozenset({".sta", ".940", ".mt940", ".swi", ".txt"})
ENDINGS = tuple(sorted((".xml", *TABLES, *MESSAGES)))
"""Of the names of a bank's files."""
HEAD_BYTES = 4_096
"""Within which a document says what it is."""


@dataclass(frozen=True, slots=True)
class BankFile:
    """One file of a bank, read; its entries are made whole a batch at a time."""

    batches: Callable[[], Iterator[pa.RecordBatch]]
    """ENTRY_SCHEMA."""
    statements: tuple[BankStatement, ...]
    notes: tuple[str, ...]
    source_file: SourceFile

    @property
    def source(self) -> BankSource:
        """With all entries in memory."""
        return BankSource(frame_of_batches(self.batches()), self.statements, notes=self.notes)


def bank_file_of(file: FileBytes, *, rules: Rules, layout: FileLayout = STANDARD) -> BankFile:
    """The statements of a file; all of them, or it is refused.

    Raises:
        SourceUnreadableError: it is none, a row or entry cannot be read, or T15 fails.
    """
    if file.path.suffix.lower() in TABLES:
        return _table(file, rules=rules, layout=layout)
    name = file.path.name
    if file.content[:HEAD_BYTES].removeprefix(BOM_UTF8).lstrip()[:1] == b"<":
        raw = camt_statements(file)
    elif file.path.suffix.lower() in MESSAGES:
        raw = mt940_statements(file)
    else:
        known = ", ".join(ENDINGS)
        refuse(name, f"is no bank statement that is known: XML (camt), or one of {known}")
    ibans = [bank.iban for bank in rules.bank.values()]
    typed = typed_statements(raw, name=name, sha256=file.sha256, ibans=ibans)
    return BankFile(
        lambda: (batch for each in typed for batch in each.entries.batches()),
        tuple(each.statement for each in typed),
        tuple(note for each in typed for note in each.notes),
        _source_file(file, rows=sum(len(each.entries.amounts) for each in typed)),
    )


def _table(file: FileBytes, *, rules: Rules, layout: FileLayout) -> BankFile:
    table = bank_table(file, rules=rules, layout=layout)
    source = _source_file(file, rows=len(table.entries))
    return BankFile(lambda: iter(table.entries.to_batches()), table.statements, (), source)


def _source_file(file: FileBytes, *, rows: int) -> SourceFile:
    size = len(file.content)
    return SourceFile(SourceKind.BANK, file.path.name, file.sha256, size, rows, rows, 0, 0)

"""One file of a bank, in whatever form it comes: camt.05x, MT940, CSV or XLSX.

A bank's entries as a table: CSV or XLSX in the columns of the contract, or by a layout.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.formats.camt import camt_statements
from recon.files.formats.mt940 import mt940_statements
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import refuse
from recon.files.kinds.bank_amounts import StatementPlace, refuse_unbalanced
from recon.files.kinds.bank_batches import ENTRY_SCHEMA, frame_of_batches
from recon.files.kinds.bank_messages import typed_statements
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.table_schema import BANK
from recon.files.typing.typed_table import proven_table
from recon.matching.frames.bank_sources import BOOKED, BankSource, BankStatement
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


_OF_STATEMENT = ["iban", "statement_no", "from_date", "to_date"]
Key = tuple[str, str, str, str]
"""IBAN, number, first and last day."""


class BankTable(NamedTuple):
    """The statements of a table, and their entries in ENTRY_SCHEMA."""

    statements: tuple[BankStatement, ...]
    entries: pa.Table


def bank_table(file: FileBytes, *, rules: Rules, layout: FileLayout) -> BankTable:
    """The statements of a table, each proven by its balances where it has them.

    Raises:
        SourceUnreadableError: a row cannot be read, or a statement does not add up.
    """
    name = file.path.name
    raw = raw_of(file, wanted=read_of(BANK, layout=layout), layout=layout)
    table = proven_table(file.path, raw, schema=BANK, rules=rules, layout=layout)
    if table.rejects:
        first = table.rejects[0]
        refuse(
            name,
            f"has {len(table.rejects)} rows that cannot be read, and a statement is whole or "
            f"nothing; the first is line {first.line}, {first.column}: {first.reason}",
        )
    frame = table.frame
    frame["status"] = frame["status"].where(frame["status"].ne(""), BOOKED)
    frame["charges"] = frame["charges"].fillna(0)
    frame["statement"] = np.zeros(len(frame), dtype=np.int64)
    frame["part"] = 0
    statements = []
    for number, (key, rows) in enumerate(frame.groupby(_OF_STATEMENT).indices.items()):
        named: Key = key  # type: ignore[assignment] # of four columns
        frame.loc[rows, "statement"] = number
        where = StatementPlace(name, named[0], named[1])
        own = frame.iloc[rows]
        statements.append(_statement(own, key=named, where=where, sha256=file.sha256))
    entries = frame.loc[frame["amount"].notna(), ENTRY_SCHEMA.names]
    return BankTable(
        tuple(statements),
        pa.Table.from_pandas(entries, schema=ENTRY_SCHEMA, preserve_index=False),
    )


def _statement(
    rows: pd.DataFrame, *, key: Key, where: StatementPlace, sha256: str
) -> BankStatement:
    once: dict[str, Any] = {}
    for name in ("opening", "closing", "currency"):
        cells = rows[name].unique()
        if len(cells) > 1:
            where.refuse(f"its rows have more than one {name}")
        once[name] = None if pd.isna(cells[0]) else cells[0]
    entries = rows[rows["amount"].notna()]
    if len(entries) < len(rows) and len(rows) > 1:
        where.refuse("it has entries, and a row that says it has none")
    if entries["entry_no"].duplicated().any():
        where.refuse("it has two entries of one number (entry_no)")
    opening, closing, currency = once["opening"], once["closing"], str(once["currency"])
    booked = entries.loc[entries["status"].eq(BOOKED), "amount"]
    total = sum(booked.tolist())
    if (opening is None) != (closing is None):
        where.refuse("it has only one of its two balances")
    if opening is not None and opening + total != closing:
        refuse_unbalanced(int(opening), total, int(closing), statement=where, currency=currency)
    if key[2] > key[3]:
        where.refuse("its from_date is behind its to_date")
    return BankStatement(
        source=where.name,
        sha256=sha256,
        iban=where.account,
        statement_no=where.number,
        currency=currency,
        from_date=key[2],
        to_date=key[3],
        opening=None if opening is None else int(opening),
        closing=None if closing is None else int(closing),
        booked=total,
        entries=len(booked),
    )

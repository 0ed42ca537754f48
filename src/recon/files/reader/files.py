"""Files as the steps ask for them: the same values that their readers give, through the door."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple
from zoneinfo import ZoneInfo

import pandas as pd

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.kinds.bank_file import ENTRY_SCHEMA
from recon.files.kinds.instruction_file import NO_TABLES, sealed
from recon.files.kinds.ledger_file import layout_of, refuse_wrong_mapping
from recon.files.kinds.spooled_file import ACTION_COLUMNS, SpooledRows
from recon.files.proposing.proposal import Proposal
from recon.files.reader import parcel, readings
from recon.files.reader.bounds import size_of
from recon.files.reader.door import file_reader
from recon.files.reader.readings import BankFacts, InstructionFacts, TableFacts
from recon.files.typing.mending import MendableRow
from recon.files.typing.table_schema import (
    LEDGER,
    ORDER_FILE,
    SETTLEMENT_FILE,
    TableSchema,
    schema_of,
)
from recon.instructions.sealing import Seal
from recon.matching.frames.bank_sources import BANK_ENTRY_COLUMNS, BankSource, no_entries
from recon.matching.frames.sources import LEDGER_COLUMNS, ORDER_COLUMNS, SETTLEMENT_COLUMNS
from recon.model.errors import SourceMissingError
from recon.model.words import SourceKind


class TableRead(NamedTuple):
    """A file whose rows are one frame."""

    frame: pd.DataFrame
    facts: TableFacts


class OrderRead(NamedTuple):
    """An order file, whose rows lie aside until the end of the block."""

    facts: TableFacts
    rows: IO[bytes]

    def parts(self) -> Iterator[SpooledRows]:
        """The rows, in their order, some at a time."""
        self.rows.seek(0)
        for frame in parcel.read_parts(self.rows):
            with_action = frame[frame["action"] != ""].reset_index(drop=True)
            yield SpooledRows(frame[list(ORDER_COLUMNS)], with_action[list(ACTION_COLUMNS)])


@contextmanager
def order_file(path: Path, *, rules: Rules, layout: FileLayout, keep: bool) -> Iterator[OrderRead]:
    """An order file whose rows can be had until the end of the block; `keep`: it may be archived.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
        OutputError: there is no room for its rows.
    """
    task = {"path": path, "schema": ORDER_FILE, "rules": rules, "layout": layout, "keep": keep}
    with file_reader().read(path, readings.table, **task) as read:
        yield OrderRead(read.facts, read.rows)


def instruction_file(
    path: Path,
    *,
    rules: Rules,
    seal: Seal | None,
    review_flags: frozenset[str],
    layout: FileLayout,
    interface: Mapping[str, Any] = NO_TABLES,
    keep: bool = False,
) -> InstructionFacts:
    """An instruction file, payees sealed, and why it must not be archived where it is to be.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
    """
    task = {
        "path": path,
        "rules": rules,
        "review_flags": review_flags,
        "interface": interface,
        "layout": layout,
    }
    with file_reader().read(path, readings.instructions, **task, keep=keep) as read:
        facts: InstructionFacts = read.facts
    # Here, and not where the file was read: no key goes through the door.
    return facts._replace(file=sealed(facts.file, seal=seal))


def settlement_file(
    path: Path, *, rules: Rules, layout: FileLayout, keep: bool = False
) -> TableRead:
    """A settlement file, SETTLEMENT_COLUMNS.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
    """
    task = {"path": path, "schema": SETTLEMENT_FILE, "rules": rules, "layout": layout, "keep": keep}
    with file_reader().read(path, readings.table, **task) as read:
        return TableRead(parcel.read_frame(read.rows)[list(SETTLEMENT_COLUMNS)], read.facts)


class BankRead(NamedTuple):
    """A file of a bank, whose entries lie aside until the end of the block."""

    facts: BankFacts
    rows: IO[bytes]

    def parts(self) -> Iterator[pd.DataFrame]:
        """BANK_ENTRY_COLUMNS, some thousand rows at a time; an entry and its payments together."""
        self.rows.seek(0)
        for batch in parcel.read_batches(self.rows, schema=ENTRY_SCHEMA):
            yield batch.to_pandas()[list(BANK_ENTRY_COLUMNS)]

    @property
    def source(self) -> BankSource:
        """With all entries in memory."""
        entries = pd.concat([no_entries(), *self.parts()], ignore_index=True)
        return BankSource(entries, self.facts.statements, notes=self.facts.notes)


@contextmanager
def bank_file(path: Path, *, rules: Rules, layout: FileLayout = STANDARD) -> Iterator[BankRead]:
    """A file of a bank: all of its statements, each proven where it has balances.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
    """
    task = {"path": path, "rules": rules, "layout": layout}
    with file_reader().read(path, readings.bank, **task) as read:
        yield BankRead(read.facts, read.rows)


def bank_facts(path: Path, *, rules: Rules, layout: FileLayout = STANDARD) -> BankFacts:
    """The statements of a file of a bank, proven as by `bank_file`, without their entries.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
    """
    task = {"path": path, "rules": rules, "layout": layout}
    with file_reader().read(path, readings.bank_statements, **task) as read:
        facts: BankFacts = read.facts
        return facts


class LedgerRead(NamedTuple):
    """A ledger that is a file, whose entries lie aside until the end of the block."""

    facts: TableFacts
    rows: IO[bytes]

    def parts(self) -> Iterator[pd.DataFrame]:
        """LEDGER_COLUMNS, some thousand entries at a time."""
        self.rows.seek(0)
        for frame in parcel.read_parts(self.rows):
            yield frame[list(LEDGER_COLUMNS)]


@contextmanager
def ledger_file(source: LedgerSource, *, rules: Rules, keep: bool = False) -> Iterator[LedgerRead]:
    """A ledger that is a file.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
        ConfigurationError: the mapping names what no ledger has.
    """
    if source.path is None:
        msg = "the ledger is no file"
        raise SourceMissingError(msg)
    refuse_wrong_mapping(source)
    zone = ZoneInfo(source.zone) if source.zone else None
    task = {"path": source.path, "schema": LEDGER, "rules": rules, "layout": layout_of(source)}
    with file_reader().read(source.path, readings.table, **task, keep=keep, zone=zone) as read:
        yield LedgerRead(read.facts, read.rows)


def plain_table(
    path: Path, *, kind: SourceKind, rules: Rules, layout: FileLayout = STANDARD
) -> TableRead:
    """A file of any kind, in the columns of the contract.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
    """
    task = {"path": path, "schema": schema_of(kind), "rules": rules, "layout": layout}
    with file_reader().read(path, readings.table, **task) as read:
        return TableRead(parcel.read_frame(read.rows), read.facts)


def layout_proposal(
    paths: Sequence[Path],
    *,
    schema: TableSchema,
    constants: Mapping[str, str],
    answers: Mapping[str, str],
) -> Proposal:
    """A layout for files like these samples; they are read in one process.

    Raises:
        SourceMissingError: one of them does not exist.
        SourceUnreadableError: one of them is no table, or broke its reader.
    """
    task = {"paths": paths, "schema": schema, "constants": constants, "answers": answers}
    largest = max(paths, key=size_of)
    with file_reader().read(largest, readings.proposal, **task) as read:
        proposal: Proposal = read.facts
        return proposal


def mendable_rows(path: Path, *, rules: Rules, layout: FileLayout) -> list[MendableRow]:
    """The refused rows of an order file, in the order of its lines.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
    """
    task = {"path": path, "rules": rules, "layout": layout}
    with file_reader().read(path, readings.mendable_orders, **task) as read:
        return list(read.facts)


def mendable_instructions(
    path: Path,
    *,
    rules: Rules,
    review_flags: frozenset[str],
    layout: FileLayout,
    interface: Mapping[str, Any] = NO_TABLES,
) -> list[MendableRow]:
    """The refused rows of an instruction file, in the order of its lines.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as its reader says, or it broke its reader.
    """
    task = {
        "path": path,
        "rules": rules,
        "review_flags": review_flags,
        "interface": interface,
        "layout": layout,
    }
    with file_reader().read(path, readings.mendable_instructions, **task) as read:
        return list(read.facts)

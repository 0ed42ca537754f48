"""What a fork does with its one file: rows into the file it was handed, all else as facts.

Each is a function of the readers that this process would call by itself; nothing is judged here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.ledger_source import LedgerSource
from recon.config.rules import Rules
from recon.files.formats.named_bytes import FileBytes, open_pieces, read_bytes
from recon.files.kinds.archive import private_content
from recon.files.kinds.bank_batches import ENTRY_SCHEMA
from recon.files.kinds.bank_file import bank_file_of
from recon.files.kinds.instruction_file import InstructionFile, instruction_file_of
from recon.files.kinds.ledger_file import read_ledger
from recon.files.kinds.mendable_file import refused_instructions, refused_rows
from recon.files.kinds.settlement_file import settlement_file_of
from recon.files.kinds.spooled_file import spool_file
from recon.files.kinds.typed_parts import HowToRead
from recon.files.proposing.proposal import Proposal, proposal_of
from recon.files.proposing.sample import SAMPLE_BYTES_MAX
from recon.files.reader import parcel
from recon.files.typing.mending import MendableRow
from recon.files.typing.table_schema import TableSchema, schema_of
from recon.files.typing.typed_table import read_table
from recon.matching.frames.bank_sources import BankStatement
from recon.model.words import Reject, SourceFile, SourceKind


class OrderFacts(NamedTuple):
    """Of an order file, whose rows lie aside in parts."""

    rejects: tuple[Reject, ...]
    source_file: SourceFile
    private: str
    header: tuple[str, ...]
    ignored_columns: tuple[str, ...]


class TableFacts(NamedTuple):
    """Of a file whose rows are one frame."""

    rejects: tuple[Reject, ...]
    source_file: SourceFile
    ignored_columns: tuple[str, ...] = ()
    private: str = ""
    """Why it must not be archived; "" too where it is not to be."""


class BankFacts(NamedTuple):
    """Of a file of a bank, whose entries are one frame."""

    statements: tuple[BankStatement, ...]
    notes: tuple[str, ...]
    source_file: SourceFile


class InstructionFacts(NamedTuple):
    """Of an instruction file, which is small: its rows are facts, payouts not sealed yet."""

    file: InstructionFile
    private: str


def orders(
    rows: IO[bytes], *, path: Path, rules: Rules, layout: FileLayout, keep: bool
) -> OrderFacts:
    """An order file."""
    read = spool_file(path, how=HowToRead(rules, layout, keep=keep), spool=rows)
    return OrderFacts(
        read.rejects, read.source_file, read.private, read.header, read.ignored_columns
    )


def instructions(
    rows: IO[bytes],  # noqa: ARG001 - its rows are facts
    *,
    path: Path,
    rules: Rules,
    review_flags: frozenset[str],
    interface: Mapping[str, Any],
    layout: FileLayout,
    keep: bool,
) -> InstructionFacts:
    """An instruction file."""
    file = read_bytes(path)
    read = instruction_file_of(
        file, rules=rules, review_flags=review_flags, interface=interface, layout=layout
    )
    return InstructionFacts(read, _private(file, layout=layout, keep=keep))


def settlement(
    rows: IO[bytes], *, path: Path, rules: Rules, layout: FileLayout, keep: bool
) -> TableFacts:
    """A settlement file."""
    file = read_bytes(path)
    read = settlement_file_of(file, rules=rules, layout=layout)
    parcel.write_frame(read.lines, into=rows)
    private = _private(file, layout=layout, keep=keep)
    return TableFacts(read.rejects, read.source_file, read.ignored_columns, private)


def bank(rows: IO[bytes], *, path: Path, rules: Rules, layout: FileLayout) -> BankFacts:
    """A file of a bank, with its entries."""
    read = bank_file_of(open_pieces(path), rules=rules, layout=layout)
    parcel.write_batches(read.batches(), schema=ENTRY_SCHEMA, into=rows)
    return BankFacts(read.statements, read.notes, read.source_file)


def bank_statements(
    rows: IO[bytes],  # noqa: ARG001 - its entries stay where they are
    *,
    path: Path,
    rules: Rules,
    layout: FileLayout,
) -> BankFacts:
    """What a file of a bank proves; its entries are let go."""
    read = bank_file_of(open_pieces(path), rules=rules, layout=layout)
    return BankFacts(read.statements, read.notes, read.source_file)


def ledger(rows: IO[bytes], *, source: LedgerSource, rules: Rules, keep: bool) -> TableFacts:
    """A ledger that is a file."""
    read = read_ledger(source, environment={}, rules=rules)
    parcel.write_frame(read.entries, into=rows)
    private = ""
    if keep and source.path is not None:
        layout = source.layout or STANDARD
        private = _private(read_bytes(source.path), layout=layout, keep=True)
    return TableFacts(read.rejects, read.source_file, private=private)


def table(
    rows: IO[bytes], *, path: Path, kind: SourceKind, rules: Rules, layout: FileLayout
) -> TableFacts:
    """A file of any kind, in the columns of the contract; a layout's control figures are held."""
    # CSV are the large ones: what was just read is still at hand.
    if path.suffix.lower() == ".csv" or layout != STANDARD:
        how = HowToRead(rules, layout, keep=False, schema=schema_of(kind))
        spooled = spool_file(path, how=how, spool=rows)
        return TableFacts(spooled.rejects, spooled.source_file, spooled.ignored_columns)
    read = read_table(path, kind=kind, rules=rules)
    parcel.write_frame(read.frame, into=rows)
    return TableFacts(read.rejects, read.source_file, read.ignored_columns)


def mendable_orders(
    rows: IO[bytes],  # noqa: ARG001 - its rows are facts
    *,
    path: Path,
    rules: Rules,
    layout: FileLayout,
) -> list[MendableRow]:
    """The refused rows of an order file."""
    return refused_rows(path, rules=rules, layout=layout)


def mendable_instructions(
    rows: IO[bytes],  # noqa: ARG001 - its rows are facts
    *,
    path: Path,
    rules: Rules,
    review_flags: frozenset[str],
    interface: Mapping[str, Any],
    layout: FileLayout,
) -> list[MendableRow]:
    """The refused rows of an instruction file."""
    return refused_instructions(
        path, rules=rules, review_flags=review_flags, interface=interface, layout=layout
    )


def proposal(
    rows: IO[bytes],  # noqa: ARG001 - a proposal has none
    *,
    paths: Sequence[Path],
    schema: TableSchema,
    constants: Mapping[str, str],
    answers: Mapping[str, str],
) -> Proposal:
    """A layout for files like these."""
    files = [read_bytes(path, bytes_max=SAMPLE_BYTES_MAX) for path in paths]
    return proposal_of(files, schema=schema, constants=constants, answers=answers)


def _private(file: FileBytes, *, layout: FileLayout, keep: bool) -> str:
    return private_content(file, layout=layout) if keep else ""

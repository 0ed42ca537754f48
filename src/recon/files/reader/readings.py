"""What a fork does with its one file: rows into the file it was handed, all else as facts.

Each is a function of the readers that this process would call by itself; nothing is judged here.

The refused rows of a file, as a night refuses them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple
from zoneinfo import ZoneInfo

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_reader import raw_of, read_raw
from recon.files.formats.raw_table import EveryColumn
from recon.files.kinds.archive import private_content
from recon.files.kinds.bank_file import ENTRY_SCHEMA, bank_file_of
from recon.files.kinds.instruction_file import (
    INSTRUCTION_FILE,
    NO_TABLES,
    PAYOUT_COLUMNS,
    InstructionFile,
    instruction_file_of,
)
from recon.files.proposing.proposal import Proposal, proposal_of
from recon.files.proposing.sample import SAMPLE_BYTES_MAX
from recon.files.reader import parcel
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.mending import MendableRow, mendable_rows
from recon.files.typing.table_schema import ORDER_FILE, TableSchema
from recon.files.typing.typed_table import proven_table, reading_of
from recon.matching.frames.bank_sources import BankStatement
from recon.model.words import Reject, SourceFile
from recon.privacy.shown_text import scrubbed


class TableFacts(NamedTuple):
    """Of a file whose rows are one frame."""

    rejects: tuple[Reject, ...]
    source_file: SourceFile
    ignored_columns: tuple[str, ...]
    private: str
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


def table(
    rows: IO[bytes],
    *,
    path: Path,
    schema: TableSchema,
    rules: Rules,
    layout: FileLayout,
    keep: bool = False,
    zone: ZoneInfo | None = None,
) -> TableFacts:
    """A file as the columns of a schema; a layout's control figures are held.

    `keep`: it may be archived, so every column is looked through for cards.
    """
    read = read_of(schema, layout=layout)
    raw = read_raw(path, wanted=EveryColumn(read) if keep else read, layout=layout)
    private = private_content(raw) if keep else ""
    typed = proven_table(path, raw, schema=schema, rules=rules, layout=layout, zone=zone)
    parcel.write_frame(typed.frame, into=rows)
    return TableFacts(typed.rejects, typed.source_file, typed.ignored_columns, private)


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
    private = private_content(raw_of(file, wanted=EveryColumn(), layout=layout)) if keep else ""
    return InstructionFacts(read, private)


def bank(rows: IO[bytes], *, path: Path, rules: Rules, layout: FileLayout) -> BankFacts:
    """A file of a bank, with its entries."""
    read = bank_file_of(read_bytes(path), rules=rules, layout=layout)
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
    read = bank_file_of(read_bytes(path), rules=rules, layout=layout)
    return BankFacts(read.statements, read.notes, read.source_file)


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


def refused_rows(path: Path, *, rules: Rules, layout: FileLayout) -> list[MendableRow]:
    """Every refused row of an order file, in the order of its lines.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it cannot be read row by row, or changed meanwhile.
    """
    raw = read_raw(path, wanted=read_of(ORDER_FILE, layout=layout), layout=layout)
    reading = reading_of(raw, schema=ORDER_FILE, rules=rules, layout=layout)
    refused = {row: (column, reading.reason(row)) for row, (column, _) in reading.problems.items()}
    return mendable_rows(reading, schema=ORDER_FILE, refused=refused)


def refused_instructions(
    path: Path,
    *,
    rules: Rules,
    review_flags: frozenset[str],
    layout: FileLayout,
    interface: Mapping[str, Any] = NO_TABLES,
) -> list[MendableRow]:
    """Every refused row of an instruction file, in the order of its lines.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it cannot be read row by row.
    """
    file, schema, layout = read_bytes(path), INSTRUCTION_FILE, layout.of_all_rows()
    wanted = read_of(schema, layout=layout) | frozenset(PAYOUT_COLUMNS)
    raw = raw_of(file, wanted=wanted, layout=layout)
    reading = reading_of(raw, schema=schema, rules=rules, layout=layout)
    refused = {row: (column, reading.reason(row)) for row, (column, _) in reading.problems.items()}
    judged = instruction_file_of(
        file, rules=rules, review_flags=review_flags, interface=interface, layout=layout
    )
    refused |= {row: (column, scrubbed(why)) for row, (column, why) in judged.refused.items()}
    return mendable_rows(reading, schema=schema, refused=refused, also=PAYOUT_COLUMNS)

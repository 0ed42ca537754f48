"""Files as the steps ask for them, and what a fork of the reading process does with each.

A task (`table`, `bank`, …) runs in the fork: rows go into the file that it was handed, all else is
facts. The functions below it run here and give the same values as if there were no other process.
Each raises what the reader says of the file, SourceMissingError where there is none, and
ReaderBrokenError or SourceUnreadableError where it broke its reader.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_reader import raw_of, read_raw
from recon.files.formats.raw_table import EveryColumn
from recon.files.kinds.archive import private_content
from recon.files.kinds.bank_file import ENTRY_SCHEMA, bank_file_of
from recon.files.kinds.instruction_file import (
    INSTRUCTION_FILE,
    PAYOUT_COLUMNS,
    InstructionFile,
    checked_instructions,
    instruction_file_of,
    sealed,
)
from recon.files.kinds.layouts import layout_of_ledger, refuse_wrong_mapping
from recon.files.proposing.proposal import Proposal, proposal_of
from recon.files.proposing.sample import SAMPLE_BYTES_MAX
from recon.files.reader.reader_process import (
    file_reader,
    read_batches,
    read_frame,
    size_of,
    write_batches,
    write_frame,
)
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.mending import MendableRow, mendable_rows
from recon.files.typing.table_schema import (
    LEDGER,
    ORDER_FILE,
    SETTLEMENT_FILE,
    TableSchema,
)
from recon.files.typing.typed_table import proven_table, reading_of
from recon.instructions.sealing import Seal
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BankSource,
    BankStatement,
    no_entries,
)
from recon.matching.frames.sources import LEDGER_COLUMNS, ORDER_COLUMNS, SETTLEMENT_COLUMNS
from recon.model.errors import SourceMissingError
from recon.model.terms import Reject, SourceFile

ACTION_COLUMNS = (
    *("merchant_id", "account_id", "order_no", "transaction_id", "currency", "amount", "status"),
    *("expected_captured_amount", "refund_amount", "action", "action_amount", "action_reason"),
    *("request_id", "source", "line"),
)
"""One row per order row with an action. `amount` is the order's, int64 minor units; `action_amount`
is Int64, blank for the row's own figure; `transaction_id` may be blank until the gateway is asked.
"""


class TableFacts(NamedTuple):
    """Of a file whose rows are one frame."""

    rejects: tuple[Reject, ...]
    source_file: SourceFile
    ignored_columns: tuple[str, ...]
    private: str
    """Why it must not be archived; "" too where it is not to be."""


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
    write_frame(typed.frame, into=rows)
    return TableFacts(typed.rejects, typed.source_file, typed.ignored_columns, private)


class TableRead(NamedTuple):
    """A file whose rows are one frame."""

    frame: pd.DataFrame
    facts: TableFacts


def plain_table(
    path: Path,
    *,
    schema: TableSchema,
    rules: Rules,
    layout: FileLayout = STANDARD,
    keep: bool = False,
) -> TableRead:
    """A file as a table of the contract; `keep`: it may be archived."""
    how = {"schema": schema, "rules": rules, "layout": layout, "keep": keep}
    with file_reader().read(path, table, path=path, **how) as read:
        return TableRead(read_frame(read.rows), read.facts)


def settlement_file(
    path: Path, *, rules: Rules, layout: FileLayout, keep: bool = False
) -> TableRead:
    """A settlement file, SETTLEMENT_COLUMNS."""
    found = plain_table(path, schema=SETTLEMENT_FILE, rules=rules, layout=layout, keep=keep)
    return found._replace(frame=found.frame[list(SETTLEMENT_COLUMNS)])


def _frames(rows: IO[bytes], *, schema: pa.Schema | None = None) -> Iterator[pd.DataFrame]:
    """What lies aside, in its order, some thousand rows at a time."""
    rows.seek(0)
    return (batch.to_pandas() for batch in read_batches(rows, schema=schema))


class SpooledRows(NamedTuple):
    """Some rows of an order file as a night takes them: as orders, and as what they instruct."""

    orders: pd.DataFrame
    """ORDER_COLUMNS."""
    actions: pd.DataFrame
    """ACTION_COLUMNS."""


class OrderRead(NamedTuple):
    """An order file, whose rows lie aside until the end of the block."""

    facts: TableFacts
    rows: IO[bytes]

    def parts(self) -> Iterator[SpooledRows]:
        """The rows, in their order, some at a time."""
        for frame in _frames(self.rows):
            with_action = frame[frame["action"] != ""].reset_index(drop=True)
            yield SpooledRows(frame[list(ORDER_COLUMNS)], with_action[list(ACTION_COLUMNS)])


@contextmanager
def order_file(path: Path, *, rules: Rules, layout: FileLayout, keep: bool) -> Iterator[OrderRead]:
    """An order file whose rows can be had until the end of the block; `keep`: it may be archived.

    Raises:
        OutputError: there is no room for its rows.
    """
    how = {"schema": ORDER_FILE, "rules": rules, "layout": layout, "keep": keep}
    with file_reader().read(path, table, path=path, **how) as read:
        yield OrderRead(read.facts, read.rows)


class LedgerRead(NamedTuple):
    """A ledger that is a file, whose entries lie aside until the end of the block."""

    facts: TableFacts
    rows: IO[bytes]

    def parts(self) -> Iterator[pd.DataFrame]:
        """LEDGER_COLUMNS, some thousand entries at a time."""
        return (frame[list(LEDGER_COLUMNS)] for frame in _frames(self.rows))


@contextmanager
def ledger_file(source: LedgerSource, *, rules: Rules, keep: bool = False) -> Iterator[LedgerRead]:
    """A ledger that is a file.

    Raises:
        ConfigurationError: the mapping names what no ledger has.
    """
    if source.path is None:
        msg = "the ledger is no file"
        raise SourceMissingError(msg)
    refuse_wrong_mapping(source)
    zone = ZoneInfo(source.zone) if source.zone else None
    how = {"schema": LEDGER, "rules": rules, "layout": layout_of_ledger(source), "keep": keep}
    with file_reader().read(source.path, table, path=source.path, **how, zone=zone) as read:
        yield LedgerRead(read.facts, read.rows)


class BankFacts(NamedTuple):
    """Of a file of a bank, whose entries are one frame."""

    statements: tuple[BankStatement, ...]
    notes: tuple[str, ...]
    source_file: SourceFile


def bank(rows: IO[bytes], *, path: Path, rules: Rules, layout: FileLayout) -> BankFacts:
    """A file of a bank."""
    read = bank_file_of(read_bytes(path), rules=rules, layout=layout)
    write_batches(read.batches(), schema=ENTRY_SCHEMA, into=rows)
    return BankFacts(read.statements, read.notes, read.source_file)


class BankRead(NamedTuple):
    """A file of a bank, whose entries lie aside until the end of the block."""

    facts: BankFacts
    rows: IO[bytes]

    def parts(self) -> Iterator[pd.DataFrame]:
        """BANK_ENTRY_COLUMNS, some thousand rows at a time; an entry and its payments together."""
        frames = _frames(self.rows, schema=ENTRY_SCHEMA)
        return (frame[list(BANK_ENTRY_COLUMNS)] for frame in frames)

    @property
    def source(self) -> BankSource:
        """With all entries in memory."""
        entries = pd.concat([no_entries(), *self.parts()], ignore_index=True)
        return BankSource(entries, self.facts.statements, notes=self.facts.notes)


@contextmanager
def bank_file(path: Path, *, rules: Rules, layout: FileLayout = STANDARD) -> Iterator[BankRead]:
    """A file of a bank: all of its statements, each proven where it has balances."""
    with file_reader().read(path, bank, path=path, rules=rules, layout=layout) as read:
        yield BankRead(read.facts, read.rows)


class InstructionFacts(NamedTuple):
    """Of an instruction file, which is small: its rows are facts, payouts not sealed yet."""

    file: InstructionFile
    private: str


def instructions(
    rows: IO[bytes],  # noqa: ARG001 - its rows are facts
    *,
    path: Path,
    keep: bool,
    layout: FileLayout,
    **how: Any,
) -> InstructionFacts:
    """An instruction file; `how` it is read, see `instruction_file_of`."""
    file = read_bytes(path)
    read = instruction_file_of(file, layout=layout, **how)
    private = private_content(raw_of(file, wanted=EveryColumn(), layout=layout)) if keep else ""
    return InstructionFacts(read, private)


def instruction_file(
    path: Path, *, seal: Seal | None, keep: bool = False, **how: Any
) -> InstructionFacts:
    """An instruction file, payees sealed, and why it must not be archived where it is to be.

    `how` it is read: rules, review_flags, layout and interface, see `instruction_file_of`.
    """
    with file_reader().read(path, instructions, path=path, keep=keep, **how) as read:
        facts: InstructionFacts = read.facts
    # Here, and not where the file was read: no key goes through the door.
    return facts._replace(file=sealed(facts.file, seal=seal))


def refused_orders(
    rows: IO[bytes],  # noqa: ARG001 - its rows are facts
    *,
    path: Path,
    rules: Rules,
    layout: FileLayout,
) -> list[MendableRow]:
    """Every refused row of an order file, in the order of its lines."""
    raw = read_raw(path, wanted=read_of(ORDER_FILE, layout=layout), layout=layout)
    reading = reading_of(raw, schema=ORDER_FILE, rules=rules, layout=layout)
    return mendable_rows(reading, schema=ORDER_FILE)


def refused_instructions(
    rows: IO[bytes],  # noqa: ARG001 - its rows are facts
    *,
    path: Path,
    **how: Any,
) -> list[MendableRow]:
    """Every refused row of an instruction file, in the order of its lines."""
    reading, _ = checked_instructions(read_bytes(path), **how)
    return mendable_rows(reading, schema=INSTRUCTION_FILE, also=PAYOUT_COLUMNS)


def rows_to_mend(path: Path, *, instructs: bool = False, **how: Any) -> list[MendableRow]:
    """The refused rows of an order file, or of an instruction file, in the order of its lines.

    `how` it is read: rules and layout, of instructions also review_flags and interface.
    """
    work = refused_instructions if instructs else refused_orders
    with file_reader().read(path, work, path=path, **how) as read:
        return list(read.facts)


def proposal(
    rows: IO[bytes],  # noqa: ARG001 - a proposal has none
    *,
    paths: Sequence[Path],
    **how: Any,
) -> Proposal:
    """A layout for files like these; `how`, see `proposal_of`."""
    return proposal_of([read_bytes(path, bytes_max=SAMPLE_BYTES_MAX) for path in paths], **how)


def layout_proposal(
    paths: Sequence[Path],
    *,
    schema: TableSchema,
    constants: Mapping[str, str],
    answers: Mapping[str, str],
) -> Proposal:
    """A layout for files like these samples; they are read in one process."""
    how = {"schema": schema, "constants": constants, "answers": answers}
    with file_reader().read(max(paths, key=size_of), proposal, paths=paths, **how) as read:
        found: Proposal = read.facts
        return found

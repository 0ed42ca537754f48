"""Read external files: each in a separate process with limits, or refused.

A file that exceeds its limits or crashes its reader ends only that process. Its content comes back
as Arrow and JSON through unnamed files; nothing is ever unpickled here.

A task (`table`, `bank`, ...) runs in that process: it writes rows to the file it is given and
returns everything else as facts. The functions named after a kind of file run here and return the
same values as if there were no other process. They raise the reader's own errors,
SourceMissingError if there is no file, and ReaderBrokenError or SourceUnreadableError if the reader
failed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import EveryColumn
from recon.files.kinds.archive import private_content
from recon.files.kinds.bank_file import ENTRY_SCHEMA, BankFacts, bank_file_of
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
from recon.files.reader_process import (
    file_reader,
    read_batches,
    read_frame,
    size_of,
    write_batches,
)
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.mending import MendableRow, mendable_rows
from recon.files.typing.table_schema import LEDGER, ORDER_FILE, SETTLEMENT_FILE, TableSchema
from recon.files.typing.typed_table import proven_table, reading_of
from recon.instructions.sealing import Seal
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BankSource,
    no_entries,
)
from recon.matching.frames.sources import LEDGER_COLUMNS, ORDER_COLUMNS, SETTLEMENT_COLUMNS
from recon.model.errors import SourceMissingError
from recon.model.terms import Reject, SourceFile

ROWS_AT_ONCE = 65_536
ACTION_COLUMNS = (
    *("merchant_id", "account_id", "order_no", "transaction_id", "currency", "amount", "status"),
    *("expected_captured_amount", "refund_amount", "action", "action_amount", "action_reason"),
    *("request_id", "source", "line"),
)
"""One row per order row with an action. `amount` is the order's, int64 minor units; `action_amount`
is Int64, blank for the row's own figure; `transaction_id` may be blank until the gateway is
queried."""
Summary = TypeVar("Summary")
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class FileRead(Generic[Summary, Part]):
    """A file whose rows stay in a temporary file until the end of the block."""

    facts: Summary
    parts: Callable[[], Iterator[Part]]
    """Returns an iterator over the rows, in order, some thousand at a time."""


def frames(rows: IO[bytes], *, schema: pa.Schema | None = None) -> Iterator[pd.DataFrame]:
    """Yield the stored rows as frames, from the beginning."""
    rows.seek(0)
    return (batch.to_pandas() for batch in read_batches(rows, schema=schema))


class TableFacts(NamedTuple):
    """Everything but the rows of a file that is read as one frame."""

    rejects: tuple[Reject, ...]
    source_file: SourceFile
    ignored_columns: tuple[str, ...]
    private: str
    """Why it must not be archived; also "" if it is not to be archived."""


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
    """Task: read a file into the columns of a schema and check its control totals.

    `keep`: the file may be archived, so every column is scanned for card numbers.
    """
    read = read_of(schema, layout=layout)
    raw = raw_of(read_bytes(path), columns_read=EveryColumn(read) if keep else read, layout=layout)
    private = private_content(raw) if keep else ""
    typed = proven_table(path, raw, schema=schema, rules=rules, layout=layout, zone=zone)
    found = pa.Table.from_pandas(typed.frame, preserve_index=False)
    write_batches(found.to_batches(max_chunksize=ROWS_AT_ONCE), schema=found.schema, into=rows)
    return TableFacts(typed.rejects, typed.source_file, typed.ignored_columns, private)


class TableRead(NamedTuple):
    """A file that is read as one frame."""

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
    """Read a file as a table of a schema; `keep`: it may be archived."""
    how = {"schema": schema, "rules": rules, "layout": layout, "keep": keep}
    with file_reader().read(path, table, path=path, **how) as read:
        return TableRead(read_frame(read.rows), read.facts)


def settlement_file(
    path: Path, *, rules: Rules, layout: FileLayout, keep: bool = False
) -> TableRead:
    """Read a settlement file into SETTLEMENT_COLUMNS; `keep`: it may be archived."""
    found = plain_table(path, schema=SETTLEMENT_FILE, rules=rules, layout=layout, keep=keep)
    return found._replace(frame=found.frame[list(SETTLEMENT_COLUMNS)])


class SpooledRows(NamedTuple):
    """Some rows of an order file, once as orders and once as instructions."""

    orders: pd.DataFrame
    """The rows in ORDER_COLUMNS."""
    actions: pd.DataFrame
    """The rows with an action, in ACTION_COLUMNS."""


OrderRead = FileRead[TableFacts, SpooledRows]


def order_rows(facts: TableFacts, rows: IO[bytes]) -> OrderRead:
    """Return the stored rows of an order file."""

    def parts() -> Iterator[SpooledRows]:
        for frame in frames(rows):
            with_action = frame[frame["action"] != ""].reset_index(drop=True)
            yield SpooledRows(frame[list(ORDER_COLUMNS)], with_action[list(ACTION_COLUMNS)])

    return FileRead(facts, parts)


@contextmanager
def order_file(path: Path, *, rules: Rules, layout: FileLayout, keep: bool) -> Iterator[OrderRead]:
    """Read an order file; its rows are available in the block. `keep`: it may be archived.

    Raises:
        OutputError: there is no disk space for its rows.
    """
    how = {"schema": ORDER_FILE, "rules": rules, "layout": layout, "keep": keep}
    with file_reader().read(path, table, path=path, **how) as read:
        yield order_rows(read.facts, read.rows)


@contextmanager
def ledger_file(
    source: LedgerSource, *, rules: Rules, keep: bool = False
) -> Iterator[FileRead[TableFacts, pd.DataFrame]]:
    """Read a ledger that is a file into LEDGER_COLUMNS.

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
        columns = [*LEDGER_COLUMNS]
        yield FileRead(read.facts, lambda: (frame[columns] for frame in frames(read.rows)))


def bank(rows: IO[bytes], *, path: Path, rules: Rules, layout: FileLayout) -> BankFacts:
    """Task: read a bank file."""
    facts, batches = bank_file_of(read_bytes(path), rules=rules, layout=layout)
    write_batches(batches, schema=ENTRY_SCHEMA, into=rows)
    return facts


class BankRead(FileRead[BankFacts, pd.DataFrame]):
    """A bank file in BANK_ENTRY_COLUMNS; an entry and its payments are in the same part."""

    @property
    def source(self) -> BankSource:
        """The file with all entries in memory."""
        entries = pd.concat([no_entries(), *self.parts()], ignore_index=True)
        return BankSource(entries, self.facts.statements, notes=self.facts.notes)


@contextmanager
def bank_file(path: Path, *, rules: Rules, layout: FileLayout = STANDARD) -> Iterator[BankRead]:
    """Read a bank file: all of its statements, each checked against its balances if it has any."""
    with file_reader().read(path, bank, path=path, rules=rules, layout=layout) as read:
        columns = [*BANK_ENTRY_COLUMNS]
        entries = partial(frames, read.rows, schema=ENTRY_SCHEMA)
        yield BankRead(read.facts, lambda: (frame[columns] for frame in entries()))


def instructions(
    rows: IO[bytes],  # noqa: ARG001 - its rows are facts
    *,
    path: Path,
    keep: bool,
    layout: FileLayout,
    **how: Any,
) -> InstructionFile:
    """Task: read an instruction file, its payees in clear; `how`: see `instruction_file_of`."""
    file = read_bytes(path)
    read = instruction_file_of(file, layout=layout, **how)
    private = (
        private_content(raw_of(file, columns_read=EveryColumn(), layout=layout)) if keep else ""
    )
    return replace(read, private=private)


def instruction_file(
    path: Path, *, seal: Seal | None, keep: bool = False, **how: Any
) -> InstructionFile:
    """Read an instruction file and encrypt its payees.

    `how`: rules, review_flags, layout and interface, see `instruction_file_of`.
    """
    with file_reader().read(path, instructions, path=path, keep=keep, **how) as read:
        # Here, and not in the reader process, which is never given a key.
        return sealed(read.facts, seal=seal)


def refused_rows(
    rows: IO[bytes],  # noqa: ARG001 - its rows are facts
    *,
    path: Path,
    instructs: bool,
    rules: Rules,
    layout: FileLayout,
    **how: Any,
) -> list[MendableRow]:
    """Task: return every rejected row of an order or instruction file, in line order."""
    file = read_bytes(path)
    if instructs:
        reading, _ = checked_instructions(file, rules=rules, layout=layout, **how)
        return mendable_rows(reading, schema=INSTRUCTION_FILE, also=PAYOUT_COLUMNS)
    raw = raw_of(file, columns_read=read_of(ORDER_FILE, layout=layout), layout=layout)
    reading = reading_of(raw, schema=ORDER_FILE, rules=rules, layout=layout)
    return mendable_rows(reading, schema=ORDER_FILE)


def rows_to_mend(path: Path, *, instructs: bool = False, **how: Any) -> list[MendableRow]:
    """Return the rejected rows of an order or instruction file, in line order.

    `how`: rules and layout, for instructions also review_flags and interface.
    """
    with file_reader().read(path, refused_rows, path=path, instructs=instructs, **how) as read:
        return list(read.facts)


def proposal(
    rows: IO[bytes],  # noqa: ARG001 - a proposal has none
    *,
    paths: Sequence[Path],
    **how: Any,
) -> Proposal:
    """Task: propose a layout for files like these; `how`: see `proposal_of`."""
    return proposal_of([read_bytes(path, bytes_max=SAMPLE_BYTES_MAX) for path in paths], **how)


def layout_proposal(paths: Sequence[Path], **how: Any) -> Proposal:
    """Propose a layout for files like these, read in one process; `how`: see `proposal_of`."""
    with file_reader().read(max(paths, key=size_of), proposal, paths=paths, **how) as read:
        found: Proposal = read.facts
        return found

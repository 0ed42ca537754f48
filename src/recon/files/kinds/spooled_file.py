"""A file of any size: read once, a part at a time, its rows laid aside until all is known.

Nothing of a file may be stored before its last byte was read: only then are its hash and control
figures known, and that it did not change. Until then its typed rows rest in an unnamed temporary
file, which goes when it is closed, so that a file of five million rows needs hardly more memory
than one of half a million.
"""

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import pandas as pd
import pyarrow as pa

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.format_limits import REJECTED_ROWS_MAX
from recon.files.formats.named_bytes import CHANGED, ReadSoFar
from recon.files.formats.raw_reader import raw_parts
from recon.files.formats.raw_table import (
    Declared,
    refuse,
    refuse_too_many_rejects,
    refuse_too_many_rows,
)
from recon.files.kinds.payout_columns import PAYOUT_COLUMNS
from recon.files.kinds.typed_parts import BAD_ROWS, HowToRead, TypedPart, typed_part
from recon.files.kinds.whole_file import refuse_unproven
from recon.files.typing.card_columns import CardTally
from recon.files.typing.control_figures import Counted
from recon.files.typing.mapped_columns import needed_of
from recon.matching.frames.sources import ORDER_COLUMNS
from recon.model.errors import OutputError
from recon.model.words import Reject, SourceFile
from recon.privacy.shown_text import scrubbed

ACTION_COLUMNS = (
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "currency",
    "amount",
    "status",
    "expected_captured_amount",
    "refund_amount",
    "action",
    "action_amount",
    "action_reason",
    "request_id",
    "source",
    "line",
)
"""One row per order row with an action. `amount` is the order's, int64 minor units; `action_amount`
is Int64, blank for the row's own figure; `transaction_id` may be blank until the gateway is asked.
"""


class SpooledRows(NamedTuple):
    """Some rows of an order file."""

    orders: pd.DataFrame
    """ORDER_COLUMNS."""
    actions: pd.DataFrame
    """ACTION_COLUMNS."""


@dataclass(frozen=True, slots=True)
class SpooledFile:
    """One file, read to its end."""

    rejects: tuple[Reject, ...]
    source_file: SourceFile
    private: str
    """Why it must not be archived, or ""."""
    header: tuple[str, ...]
    """All column names of the file."""
    ignored_columns: tuple[str, ...]
    """Columns of the file that recon does not know; nothing was read from them."""
    _spool: IO[bytes]

    def parts(self) -> Iterator[SpooledRows]:
        """The rows of an order file, in their order."""
        if not self._spool.seek(0, io.SEEK_END):
            return
        self._spool.seek(0)
        for batch in pa.ipc.open_stream(self._spool):
            frame = batch.to_pandas()
            with_action = frame[frame["action"] != ""].reset_index(drop=True)
            yield SpooledRows(frame[list(ORDER_COLUMNS)], with_action[list(ACTION_COLUMNS)])


@dataclass(slots=True)
class _Tally:
    """What adds up over the parts of a file."""

    rejects: list[Reject] = field(default_factory=list)
    read: int = 0
    accepted: int = 0
    unread: int = 0
    sums: dict[str, int] = field(default_factory=dict)
    runs: dict[str, list[int]] = field(default_factory=dict)
    """Column -> runs of digits that are cards, and that only look so."""
    cards: CardTally = field(default_factory=CardTally)
    header: tuple[str, ...] = ()
    declared: Declared | None = None
    ignored_columns: tuple[str, ...] = ()

    def add(self, part: TypedPart, *, name: str) -> None:
        """Count one part."""
        self.rejects += part.rejects
        if len(self.rejects) > REJECTED_ROWS_MAX:
            last = self.rejects[-1]
            refuse_too_many_rejects(name, line=last.line, reason=last.reason)
        self.read += part.counted.rows
        refuse_too_many_rows(self.read, name=name)
        self.accepted += part.accepted
        self.unread += part.counted.unread
        self.cards.add(part.cards)
        for currency, units in part.counted.sums.items():
            self.sums[currency] = self.sums.get(currency, 0) + units
        for column, (hits, misses) in part.runs.items():
            seen = self.runs.setdefault(column, [0, 0])
            seen[0], seen[1] = seen[0] + hits, seen[1] + misses
        self.header, self.declared = part.header, part.declared
        self.ignored_columns = part.ignored_columns

    @property
    def private(self) -> str:
        """Why nobody may keep the file."""
        if any(name in PAYOUT_COLUMNS for name in self.header):
            return "it has columns of payees' bank details, which rest nowhere in clear"
        names = [name for name, (hits, misses) in self.runs.items() if hits > misses]
        if not names:
            return ""
        where = BAD_ROWS if names == [BAD_ROWS] else f"column {scrubbed(names[0])}"
        return f"it holds card numbers in {where}; remove it and ask for another"


@contextmanager
def spooled_file(
    path: Path, *, rules: Rules, layout: FileLayout, keep: bool
) -> Iterator[SpooledFile]:
    """An order file whose rows can be had until the end of the block; `keep`: it may be archived.

    A last line without a line end is a reject: it may have been cut.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not what its name says, columns are missing, its control
            figures differ, or a row is bad where all or nothing holds.
        OutputError: there is no room for its rows.
    """
    with _spool() as spool:
        how = HowToRead(rules, layout, keep=keep)
        yield spool_file(path, how=how, spool=spool)


def spool_file(path: Path, *, how: HowToRead, spool: IO[bytes]) -> SpooledFile:
    """As `spooled_file`, of any schema, its rows laid aside in a file of the caller's."""
    sha256 = ""
    while True:
        reading, cards = _read(path, how=how, spool=spool)
        if sha256 not in {"", reading.source_file.sha256}:
            refuse(path.name, CHANGED)
        sha256 = reading.source_file.sha256
        if how.decided or cards.agrees:
            return reading
        # What looks like cards in one part is how the whole column is numbered, or the other way.
        how = replace(how, decided=cards.whole)
        spool.seek(0)
        spool.truncate()


@contextmanager
def _spool() -> Iterator[IO[bytes]]:
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, whatever is still unwritten
    try:
        yield spool
    finally:
        with suppress(OSError):
            spool.close()


def _read(path: Path, *, how: HowToRead, spool: IO[bytes]) -> tuple[SpooledFile, CardTally]:
    seen, tally = ReadSoFar(), _Tally()
    writer: Any = None
    parts = raw_parts(
        path,
        wanted=how.wanted,
        needed=needed_of(how.schema, layout=how.layout),
        layout=how.layout,
        seen=seen,
    )
    for part in (typed_part(raw, how=how) for raw in parts):
        tally.add(part, name=path.name)
        with _room_for(path):
            writer = writer or pa.ipc.new_stream(spool, part.rows.schema)
            writer.write_table(part.rows)
    with _room_for(path):
        writer.close()
    return _proven(path, seen=seen, tally=tally, how=how, spool=spool), tally.cards


@contextmanager
def _room_for(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = (
            f"the rows of {path.name} cannot be laid aside in {tempfile.gettempdir()}: "
            f"{error.strerror or error}; nothing of it was stored: make room there, or set TMPDIR"
        )
        raise OutputError(msg) from error


def _proven(
    path: Path, *, seen: ReadSoFar, tally: _Tally, how: HowToRead, spool: IO[bytes]
) -> SpooledFile:
    rejects = tuple(tally.rejects)
    counted = Counted(tally.read, tally.sums, tally.unread, seen.sha256)
    source = SourceFile(
        kind=how.schema.kind,
        name=path.name,
        sha256=seen.sha256,
        size_bytes=seen.size_bytes,
        rows_read=tally.read,
        rows_accepted=tally.accepted,
        rows_rejected=len(rejects),
        rows_skipped=0,
        rows_unassigned=sum(not (r.merchant_id and r.account_id) for r in rejects),
    )
    declared = tally.declared
    refuse_unproven(path, declared=declared, counted=counted, rejects=rejects, layout=how.layout)
    return SpooledFile(rejects, source, tally.private, tally.header, tally.ignored_columns, spool)

"""An order file of any size: read once, a part at a time, its rows laid aside until all is known.

Nothing of a file may be stored before its last byte was read: only then are its hash and control
figures known, and that it did not change. Until then its typed rows rest in an unnamed temporary
file, which goes when it is closed, so that a file of five million rows needs hardly more memory
than one of half a million.
"""

import tempfile
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import pandas as pd
import pyarrow as pa

from recon.errors import OutputError
from recon.file_layouts import FileLayout
from recon.foreign_bytes import ORDER_FILE, type_table
from recon.foreign_bytes.card_numbers import CardTally, card_runs, scrubbed
from recon.foreign_bytes.control_figures import Counted
from recon.foreign_bytes.mapped_columns import names_of, needed_of
from recon.foreign_bytes.opening import CHANGED, Seen
from recon.foreign_bytes.raw_reader import raw_parts
from recon.foreign_bytes.raw_table import RawTable, refuse
from recon.foreign_bytes.typed_table import Table
from recon.matching.sources import ORDER_COLUMNS
from recon.model import Reject, SourceFile, SourceKind
from recon.order_file.payout_columns import PAYOUT_COLUMNS
from recon.order_file.reader import ACTION_COLUMNS
from recon.order_file.whole_file import refuse_unproven
from recon.rules import Rules

BAD_ROWS = "a row that cannot be read"


class EveryColumn(Container[str]):
    """Asks a reader for all columns, also those that recon does not know."""

    def __contains__(self, name: object) -> bool:
        return True


class Part(NamedTuple):
    """Some rows of an order file."""

    orders: pd.DataFrame
    """ORDER_COLUMNS."""
    actions: pd.DataFrame
    """ACTION_COLUMNS."""


@dataclass(frozen=True, slots=True)
class SpooledFile:
    """One order file, read to its end."""

    rejects: tuple[Reject, ...]
    source_file: SourceFile
    private: str
    """Why it must not be archived, or ""."""
    _spool: IO[bytes]

    def parts(self) -> Iterator[Part]:
        """Its rows, in their order."""
        if not self._spool.tell():
            return
        self._spool.seek(0)
        for batch in pa.ipc.open_stream(self._spool):
            frame = batch.to_pandas()
            with_action = frame[frame["action"] != ""].reset_index(drop=True)
            yield Part(frame[list(ORDER_COLUMNS)], with_action[list(ACTION_COLUMNS)])


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
    header: tuple[str, ...] = ()
    last: RawTable | None = None

    def add(self, raw: RawTable, table: Table) -> None:
        """Count one part."""
        self.rejects += table.rejects
        self.read += table.source_file.rows_read
        self.accepted += table.source_file.rows_accepted
        self.unread += table.counted.unread
        for currency, units in table.counted.sums.items():
            self.sums[currency] = self.sums.get(currency, 0) + units
        self.header, self.last = raw.header, raw

    def look_for_cards(self, raw: RawTable) -> None:
        """Count what looks like a card number, in any column and in rows that cannot be read."""
        bad = pa.array([row.text for row in raw.bad_rows], pa.large_string())
        for name, cells in {**raw.columns, BAD_ROWS: bad}.items():
            hits, misses = card_runs(cells)
            seen = self.runs.setdefault(name, [0, 0])
            seen[0], seen[1] = seen[0] + hits, seen[1] + misses

    @property
    def private(self) -> str:
        """Why nobody may keep the file."""
        if any(name in PAYOUT_COLUMNS for name in self.header):
            return "it has columns of payees' bank details, which rest nowhere in clear"
        found = [name for name, (hits, misses) in self.runs.items() if hits > misses]
        if not found:
            return ""
        place = BAD_ROWS if found == [BAD_ROWS] else f"column {scrubbed(found[0])}"
        return f"it holds card numbers in {place}; remove it and ask for another"


@contextmanager
def spooled_file(
    path: Path, *, rules: Rules, layout: FileLayout, keep: bool
) -> Iterator[SpooledFile]:
    """An order file whose rows can be had until the end of the block; `keep`: it may be archived.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: as `read_order_file`.
        OutputError: there is no room for its rows.
    """
    decided: Mapping[str, bool] = {}
    sha256 = ""
    while True:
        cards = CardTally(decided)
        with _spool() as spool:
            found = _read(path, rules=rules, layout=layout, keep=keep, cards=cards, spool=spool)
            if sha256 not in {"", found.source_file.sha256}:
                refuse(path.name, CHANGED)
            sha256 = found.source_file.sha256
            if decided or cards.agrees:
                yield found
                return
        # What looks like cards in one part is how the whole column is numbered, or the other way.
        decided = cards.whole


@contextmanager
def _spool() -> Iterator[IO[bytes]]:
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, whatever is still unwritten
    try:
        yield spool
    finally:
        with suppress(OSError):
            spool.close()


def _read(
    path: Path,
    *,
    rules: Rules,
    layout: FileLayout,
    keep: bool,
    cards: CardTally,
    spool: IO[bytes],
) -> SpooledFile:
    seen, tally = Seen(), _Tally()
    writer: Any = None
    wanted, needed = _wanted(layout, keep=keep), needed_of(ORDER_FILE, layout=layout)
    for raw in raw_parts(path, wanted=wanted, needed=needed, layout=layout, seen=seen):
        table = type_table(raw, schema=ORDER_FILE, rules=rules, layout=layout, cards=cards)
        tally.add(raw, table)
        if keep:
            tally.look_for_cards(raw)
        rows = pa.Table.from_pandas(table.frame, preserve_index=False).combine_chunks()
        with _room_for(path):
            writer = writer or pa.ipc.new_stream(spool, rows.schema)
            writer.write_table(rows)
    if writer is not None:
        with _room_for(path):
            writer.close()
    return _proven(path, seen=seen, tally=tally, layout=layout, spool=spool)


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


def _wanted(layout: FileLayout, *, keep: bool) -> Container[str]:
    return EveryColumn() if keep else frozenset(names_of(ORDER_FILE, layout=layout).values())


def _proven(
    path: Path, *, seen: Seen, tally: _Tally, layout: FileLayout, spool: IO[bytes]
) -> SpooledFile:
    rejects = tuple(tally.rejects)
    counted = Counted(tally.read, tally.sums, tally.unread, seen.sha256)
    source = SourceFile(
        kind=SourceKind.ORDERS,
        name=path.name,
        sha256=seen.sha256,
        size_bytes=seen.size_bytes,
        rows_read=tally.read,
        rows_accepted=tally.accepted,
        rows_rejected=len(rejects),
        rows_skipped=0,
        rows_unassigned=sum(not (r.merchant_id and r.account_id) for r in rejects),
    )
    if tally.last is not None:
        refuse_unproven(path, raw=tally.last, counted=counted, rejects=rejects, layout=layout)
    return SpooledFile(rejects, source, tally.private, spool)

"""Where the keys of an inbox's files lie: beside each file's rows, and merged for many files.

Each order file is held against the keys of all that came before, and each night asks which
settlement files of before its window tell of its payments. So that nobody ever opens all files of
years, the keys of MERGED_FROM files lie once more in one file, those of as many such files in one,
and so on, order files and settlement files each by themselves. Merged keys are no more than those
of their files: without a row that names them the files' own are read.
"""

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import Connection, Select, insert, select

from recon.archive.facts_files import FactsFile, read_facts, write_facts
from recon.archive.facts_schemas import MERGED_KEYS, ORDER_KEYS
from recon.archive.storage import MAKE_WRITABLE, Storage
from recon.model.words import SourceKind
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import Event, append
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import Account, StoredFacts
from recon.store.nights.order_facts import UNREAD, StorageOf, problems_of
from recon.store.nights.order_keys import Hashes
from recon.store.nights.order_merge import met
from recon.store.schema import history, merged_keys, order_file

MERGED_FROM = 16
"""So many files of keys become one: opening few more costs less than writing keys again."""
KEYS_MAX = 4_000_000
"""Of a file of merged keys: so many are sorted within 200 MiB."""
FULL = KEYS_MAX // MERGED_FROM
"""A file with more keys is merged no more: opening it costs less than reading it."""
KEYS_A_ROW = {SourceKind.ORDERS: 1, SourceKind.SETTLEMENT: 3}
"""At most; a line is found by its order, its transaction and our own reference."""
Numbers = npt.NDArray[np.int64]
ENTITY = "order keys"
MERGED = "merged"
UNMERGED = f"the keys of files could not be merged; nothing is lost by it: {MAKE_WRITABLE}"


@dataclass(frozen=True, slots=True)
class MergedKeys:
    """A file of merged keys, as the database knows it."""

    last_file: int
    first_file: int
    merchant_id: str
    account_id: str
    """Whose inbox it is."""
    folder: str
    sha256: str
    size_bytes: int
    row_count: int
    file_count: int


@dataclass(frozen=True, slots=True)
class KeyFile:
    """One file of keys that is read: of one file, or of many of an inbox."""

    inbox: Account
    first_file: int
    last_file: int
    file: FactsFile
    row_count: int
    """Keys in it, at most."""
    file_count: int
    is_merged: bool

    @classmethod
    def own(cls, facts: StoredFacts, *, kind: SourceKind) -> "KeyFile":
        """The one beside the rows of a file."""
        number, keys = facts.file_id, facts.row_count * KEYS_A_ROW[kind]
        return cls(facts.inbox, number, number, facts.keys, keys, 1, is_merged=False)

    @classmethod
    def of(cls, merged: MergedKeys) -> "KeyFile":
        """The one of many files."""
        return cls(
            (merged.merchant_id, merged.account_id),
            merged.first_file,
            merged.last_file,
            FactsFile(merged.folder, merged.sha256, merged.size_bytes),
            merged.row_count,
            merged.file_count,
            is_merged=True,
        )

    @property
    def level(self) -> int | None:
        """How often it was merged, had it been MERGED_FROM files each time; None: it is full."""
        if self.row_count > FULL:
            return None
        files, level = self.file_count, 0
        while files >= MERGED_FROM:
            files, level = files // MERGED_FROM, level + 1
        return level

    def keys(self, *, storages: StorageOf) -> tuple[Hashes, Numbers]:
        """Its keys, sorted, and the file of each.

        Raises:
            ArchiveError: it cannot be read, or is not the one whose hash the database has.
        """
        schema = MERGED_KEYS if self.is_merged else ORDER_KEYS
        table = read_facts(storages(self.inbox), self.file, schema=schema, doing=UNREAD)
        hashes: Hashes = table["key"].to_numpy()
        if self.is_merged:
            return hashes, table["file_id"].to_numpy()
        return hashes, np.full(hashes.size, self.last_file)


class Counting:
    """Which files of an inbox count."""

    def __init__(
        self,
        kind: SourceKind = SourceKind.ORDERS,
        *,
        until: int | None = None,
        only: Collection[int] | None = None,
    ) -> None:
        """Those of a kind, `until` the last of them, and `only` some numbers; None: all."""
        self.kind = kind
        self._until = until
        self._only = None if only is None else np.array(sorted(only), np.int64)

    def has_any(self, file: KeyFile) -> bool:
        """Whether a file of keys may have some of files that count."""
        if self._until is not None and file.first_file > self._until:
            return False
        if self._only is None:
            return True
        first = int(np.searchsorted(self._only, file.first_file))
        return first < self._only.size and int(self._only[first]) <= file.last_file

    def count(self, files: Numbers) -> npt.NDArray[np.bool_]:
        """Which of these do."""
        counts = np.ones(files.size, dtype=bool)
        if self._until is not None:
            counts &= files <= self._until
        if self._only is not None:
            counts &= np.isin(files, self._only)
        return counts


def files_having(
    connection: Connection,
    accounts: Collection[Account],
    *,
    hashes: Hashes,
    storages: StorageOf,
    counting: Counting | None = None,
) -> tuple[list[StoredFacts], Hashes]:
    """Files with rows of some keys of accounts, oldest first, and those keys, sorted.

    Args:
        connection: the store.
        accounts: those that the keys are of.
        hashes: of the keys, sorted.
        storages: where files lie.
        counting: the files that count; None: all order files.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    having: set[int] = set()
    again = [np.empty(0, np.int64)]
    those = counting or Counting()
    for inbox in facts_rows.inboxes_of(connection, accounts, kind=those.kind):
        for file in key_files(connection, inbox, kind=those.kind):
            if not those.has_any(file):
                continue
            keys, files = file.keys(storages=storages)
            rows = met(keys, arriving=hashes)
            rows = rows[those.count(files[rows])]
            having.update(np.unique(files[rows]).tolist())
            again.append(keys[rows])
    return facts_rows.of_files(connection, having), np.unique(np.concatenate(again))


def write_keys(storage: Storage, hashes: Hashes, *, folder: str, doing: str) -> FactsFile:
    """Write the keys of a file's rows beside them, sorted and each once; see `write_facts`."""
    table = pa.table([np.unique(hashes)], schema=ORDER_KEYS.columns)
    return write_facts(storage, [table], folder=folder, schema=ORDER_KEYS, doing=doing)


def key_files(
    connection: Connection, inbox: Account, *, kind: SourceKind = SourceKind.ORDERS
) -> list[KeyFile]:
    """The fewest files with the keys of all files of a kind of an inbox, oldest first."""
    outermost = [KeyFile.of(each) for each in _outermost(_merged(connection, inbox, kind=kind))]
    beside = facts_rows.of_inbox(
        connection, inbox, kind=kind, but=[(each.first_file, each.last_file) for each in outermost]
    )
    every = [*outermost, *(KeyFile.own(each, kind=kind) for each in beside)]
    return sorted(every, key=lambda each: each.first_file)


def merge(
    connection: Connection,
    inbox: Account,
    *,
    storages: StorageOf,
    kind: SourceKind = SourceKind.ORDERS,
    at_least: int = MERGED_FROM,
) -> MergedKeys | None:
    """Write the keys of the newest files once more as one; nothing where these are few.

    Raises:
        ArchiveError: the archive cannot be written, or a file of keys cannot be read.
        OutputError: there is no room to lay the keys aside.
    """
    every = key_files(connection, inbox, kind=kind)
    alike = _alike(every)
    room = itertools.accumulate(each.row_count for each in alike)
    some = [each for each, keys in zip(alike, room, strict=True) if keys <= KEYS_MAX]
    if len(some) < at_least:
        return None
    return _written(some, storages=storages)


def _written(some: Sequence[KeyFile], *, storages: StorageOf) -> MergedKeys:
    """Write the keys of files of one inbox, oldest first, as one file."""
    columns = zip(*(each.keys(storages=storages) for each in some), strict=True)
    keys, files = (np.concatenate(column) for column in columns)
    order = np.lexsort((files, keys))
    table = pa.table([keys[order], files[order]], schema=MERGED_KEYS.columns)
    newest = some[-1]
    written = write_facts(
        storages(newest.inbox),
        [table],
        folder=newest.file.folder,
        schema=MERGED_KEYS,
        doing=UNMERGED,
    )
    return MergedKeys(
        newest.last_file,
        some[0].first_file,
        *newest.inbox,
        written.folder,
        written.sha256,
        written.size_bytes,
        table.num_rows,
        sum(each.file_count for each in some),
    )


def every_merged(connection: Connection) -> list[KeyFile]:
    """All files of merged keys."""
    query = select(merged_keys).order_by(merged_keys.c.last_file, merged_keys.c.first_file)
    return [*map(KeyFile.of, _read(connection, query))]


def merge_again(connection: Connection, file: KeyFile, *, storages: StorageOf) -> None:
    """Write merged keys once more, from the keys beside the rows of each file."""
    (kind,) = {each.kind for each in facts_rows.of_files(connection, [file.last_file])}
    beside = facts_rows.of_inbox(connection, file.inbox, kind=kind, but=[])
    some = [KeyFile.own(each, kind=kind) for each in beside]
    _written(
        [each for each in some if file.first_file <= each.first_file <= file.last_file],
        storages=storages,
    )


def save(connection: Connection, merged: MergedKeys, *, at: datetime) -> None:
    """Keep a file of merged keys, and bind it in the history; nothing where it is kept already."""
    known = select(merged_keys).where(
        merged_keys.c.last_file == merged.last_file, merged_keys.c.first_file == merged.first_file
    )
    if merged in _read(connection, known):
        return
    values = _values(merged)
    connection.execute(insert(merged_keys).values(**values))
    join_turn(connection, Turn.JOURNAL)
    append(connection, [Event(ENTITY, _name(merged), MERGED, values)], at=at)


def changed_facts(connection: Connection) -> Iterator[str]:
    """Files of facts, and of merged keys, that are not those which the history bound, in words."""
    yield from facts_rows.changed(connection)
    yield from _changed(connection)


def key_problems(connection: Connection, *, storages: StorageOf) -> Iterator[str]:
    """What of the files of merged keys is not as it was written, each as a sentence."""
    for file in every_merged(connection):
        yield from problems_of(file.file, inbox=file.inbox, storages=storages)


def _changed(connection: Connection) -> Iterator[str]:
    """Files of merged keys that are not those which the history bound, in words."""
    rows = select(merged_keys).order_by(merged_keys.c.last_file, merged_keys.c.first_file)
    known = {_name(each): each for each in _read(connection, rows)}
    bound = select(history.c.entity_id, history.c.data).where(history.c.entity == ENTITY)
    documents = dict(connection.execute(bound).tuples().all())
    for name, each in known.items():
        if facts_rows.document(documents.get(name)) != _values(each):
            yield (
                f"the merged keys of files {each.first_file} to {each.last_file} are not "
                "those that the history bound: they were changed past the journal"
            )
    for name in documents:
        if name not in known:
            yield f"the history knows merged keys ({name}), their table does not: they were taken"


def _alike(every: Sequence[KeyFile]) -> list[KeyFile]:
    """The newest ones that were merged as often as the very newest, oldest first."""
    if not every or (level := every[-1].level) is None:
        return []
    alike = itertools.takewhile(lambda each: each.level == level, reversed(every))
    return [*alike][::-1]


def _outermost(every: Sequence[MergedKeys]) -> Iterator[MergedKeys]:
    """Those that lie in no other one, by the files that they begin with."""
    last = 0
    for each in sorted(every, key=lambda it: (it.first_file, -it.last_file)):
        if each.first_file > last:
            last = each.last_file
            yield each


def _merged(connection: Connection, inbox: Account, *, kind: SourceKind) -> list[MergedKeys]:
    """Of one kind: a file of keys never has files of two."""
    table = merged_keys.c
    of_inbox = (
        select(merged_keys)
        .join(order_file, order_file.c.file_id == table.last_file)
        .where(
            table.merchant_id == inbox[0],
            table.account_id == inbox[1],
            order_file.c.kind == kind.value,
        )
    )
    return _read(connection, of_inbox)


def _read(connection: Connection, query: Select[Any]) -> list[MergedKeys]:
    return [MergedKeys(**row) for row in connection.execute(query).mappings()]


def _values(merged: MergedKeys) -> dict[str, object]:
    return {name: getattr(merged, name) for name in MergedKeys.__dataclass_fields__}


def _name(merged: MergedKeys) -> str:
    """Under which the history has it: numbers of files are of all inboxes together."""
    return f"keys {merged.first_file} to {merged.last_file}"

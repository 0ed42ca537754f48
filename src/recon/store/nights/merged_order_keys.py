"""Where the keys of an inbox's order files lie: beside each file's rows, and merged for many files.

Each order file is held against the keys of all that came before. So that this never opens all files
of years, the keys of MERGED_FROM files lie once more in one file, those of as many such files in
one, and so on. Merged keys are no more than those of their files: without a row that names them the
files' own are read.
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
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import Event, append
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import Account, StoredFacts
from recon.store.nights.order_facts import UNREAD, StorageOf, problems_of
from recon.store.nights.order_keys import Hashes
from recon.store.nights.order_merge import met
from recon.store.schema import history, merged_keys

MERGED_FROM = 16
"""So many files of keys become one: opening few more costs less than writing keys again."""
KEYS_MAX = 4_000_000
"""Of a file of merged keys: so many are sorted within 200 MiB."""
FULL = KEYS_MAX // MERGED_FROM
"""A file with more keys is merged no more: opening it costs less than reading it."""
Numbers = npt.NDArray[np.int64]
ENTITY = "order keys"
MERGED = "merged"
UNMERGED = (
    "the keys of order files could not be merged; nothing is lost by it: make the archive "
    "writable, or name another in archive.toml, then start the night again"
)


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
    """One file of keys that is read: of one order file, or of many of an inbox."""

    inbox: Account
    first_file: int
    last_file: int
    file: FactsFile
    row_count: int
    """Keys in it, at most."""
    file_count: int
    is_merged: bool

    @classmethod
    def own(cls, facts: StoredFacts) -> "KeyFile":
        """The one beside the rows of an order file."""
        number = facts.file_id
        return cls(facts.inbox, number, number, facts.keys, facts.row_count, 1, is_merged=False)

    @classmethod
    def of(cls, merged: MergedKeys) -> "KeyFile":
        """The one of many order files."""
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
        """Its keys, sorted, and the order file of each.

        Raises:
            ArchiveError: it cannot be read, or is not the one whose hash the database has.
        """
        schema = MERGED_KEYS if self.is_merged else ORDER_KEYS
        table = read_facts(storages(self.inbox), self.file, schema=schema, doing=UNREAD)
        hashes: Hashes = table["key"].to_numpy()
        if self.is_merged:
            return hashes, table["file_id"].to_numpy()
        return hashes, np.full(hashes.size, self.last_file)


def files_having(
    connection: Connection,
    accounts: Collection[Account],
    *,
    hashes: Hashes,
    storages: StorageOf,
    until: int | None = None,
) -> tuple[list[StoredFacts], Hashes]:
    """Order files with rows of some keys of accounts, oldest first, and those keys, sorted.

    Args:
        connection: the store.
        accounts: those that the keys are of.
        hashes: of the keys, sorted.
        storages: where files lie.
        until: the last order file that counts.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    having: set[int] = set()
    again = [np.empty(0, np.int64)]
    for inbox in facts_rows.inboxes_of(connection, accounts):
        for file in key_files(connection, inbox):
            if until is not None and file.first_file > until:
                continue
            keys, files = file.keys(storages=storages)
            rows = met(keys, arriving=hashes)
            if until is not None:
                rows = rows[files[rows] <= until]
            having.update(np.unique(files[rows]).tolist())
            again.append(keys[rows])
    return facts_rows.of_files(connection, having), np.unique(np.concatenate(again))


def key_files(connection: Connection, inbox: Account) -> list[KeyFile]:
    """The fewest files with the keys of all order files of an inbox, oldest first."""
    outermost = [KeyFile.of(each) for each in _outermost(_merged(connection, inbox))]
    beside = facts_rows.of_inbox(
        connection, inbox, but=[(each.first_file, each.last_file) for each in outermost]
    )
    every = [*outermost, *map(KeyFile.own, beside)]
    return sorted(every, key=lambda each: each.first_file)


def merge(
    connection: Connection, inbox: Account, *, storages: StorageOf, at_least: int = MERGED_FROM
) -> MergedKeys | None:
    """Write the keys of the newest files once more as one; nothing where these are few.

    Raises:
        ArchiveError: the archive cannot be written, or a file of keys cannot be read.
        OutputError: there is no room to lay the keys aside.
    """
    every = key_files(connection, inbox)
    alike = _alike(every)
    room = itertools.accumulate(each.row_count for each in alike)
    some = [each for each, keys in zip(alike, room, strict=True) if keys <= KEYS_MAX]
    if len(some) < at_least:
        return None
    columns = zip(*(each.keys(storages=storages) for each in some), strict=True)
    keys, files = (np.concatenate(column) for column in columns)
    order = np.lexsort((files, keys))
    table = pa.table([keys[order], files[order]], schema=MERGED_KEYS.columns)
    newest = some[-1]
    written = write_facts(
        storages(inbox), [table], folder=newest.file.folder, schema=MERGED_KEYS, doing=UNMERGED
    )
    return MergedKeys(
        newest.last_file,
        some[0].first_file,
        *inbox,
        written.folder,
        written.sha256,
        written.size_bytes,
        table.num_rows,
        sum(each.file_count for each in some),
    )


def save(connection: Connection, merged: MergedKeys, *, at: datetime) -> None:
    """Keep a file of merged keys, and bind it in the history; nothing where it is kept already."""
    if merged in _merged(connection, (merged.merchant_id, merged.account_id)):
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
    every = select(merged_keys).order_by(merged_keys.c.last_file, merged_keys.c.first_file)
    for file in map(KeyFile.of, _read(connection, every)):
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
                f"the merged keys of order files {each.first_file} to {each.last_file} are not "
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


def _merged(connection: Connection, inbox: Account) -> list[MergedKeys]:
    table = merged_keys.c
    of_inbox = select(merged_keys).where(
        table.merchant_id == inbox[0], table.account_id == inbox[1]
    )
    return _read(connection, of_inbox)


def _read(connection: Connection, query: Select[Any]) -> list[MergedKeys]:
    return [MergedKeys(**row) for row in connection.execute(query).mappings()]


def _values(merged: MergedKeys) -> dict[str, object]:
    return {name: getattr(merged, name) for name in MergedKeys.__dataclass_fields__}


def _name(merged: MergedKeys) -> str:
    """Under which the history has it: numbers of order files are of all inboxes together."""
    return f"keys {merged.first_file} to {merged.last_file}"

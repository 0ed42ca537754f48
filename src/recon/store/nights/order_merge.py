"""The rows of one order file, held against all that stand: which is new, a repeat, or a successor.

Most keys come once and nobody had them: their rows are kept as they are. Only the others, keys that
come twice or that an earlier file has, are looked at one by one, in the order of the file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recon.archive.facts_schemas import ORDER_FACTS
from recon.archive.rows_file import sorted_keys
from recon.store.nights.facts_rows import OWN, Account, OfAccountRows
from recon.store.nights.order_keys import Hashes, hashes_of

CONTENT_COLUMNS = (
    "currency",
    "amount",
    "status",
    "ordered_at",
    "transaction_id",
    "expected_captured_amount",
    "refund_amount",
    "updated_at",
)
"""Rows of one order with these equal are the same row."""
KEY_COLUMNS = ("merchant_id", "account_id", "order_no")
_UPDATED_AT = CONTENT_COLUMNS.index("updated_at")
Key = tuple[str, str, str]
Content = tuple[Any, ...]


class Gone(NamedTuple):
    """A row whose place another one took."""

    file_id: int
    """OWN: of the arriving file."""
    row: int


@dataclass(slots=True)
class _Current:
    """One row of an order that stands: of an earlier file, or of this one."""

    file_id: int
    content: Content
    row: int
    position: int = -1
    """In the part that is looked at, while its row is not known."""


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Rows of earlier files that stand, of keys that may come again; by their hashes."""

    table: pa.Table
    """KEY_COLUMNS, CONTENT_COLUMNS and `file_id`, `row`."""
    hashes: Hashes
    """Of the rows, sorted."""

    @classmethod
    def of(cls, tables: Sequence[pa.Table]) -> "KnownRows":
        """Those of some files."""
        if not tables:
            return cls(ORDER_FACTS.columns.empty_table(), np.empty(0, np.int64))
        table = pa.concat_tables(tables).unify_dictionaries()
        hashes = hashes_of(table)
        order = np.argsort(hashes, kind="stable")
        return cls(table.take(pa.array(order)), hashes[order])

    def having(self, hashes: Hashes) -> dict[Key, list[_Current]]:
        """Those of keys with some (different) hashes."""
        if not self.hashes.size:
            return {}
        from_, to = (np.searchsorted(self.hashes, hashes, side) for side in ("left", "right"))
        rows = [np.arange(a, b) for a, b in zip(from_, to, strict=True) if b > a]
        if not rows:
            return {}
        table = self.table.take(pa.array(np.concatenate(rows)))
        known: dict[Key, list[_Current]] = {}
        places = (table[name].to_pylist() for name in ("file_id", "row"))
        for key, content, file_id, row in zip(_keys(table), _contents(table), *places, strict=True):
            known.setdefault(key, []).append(_Current(file_id, content, row))
        return known


@dataclass(slots=True)
class KeptRows:
    """What adds up over the rows of a file that are kept."""

    count: int = 0
    hashes: list[Hashes] = field(default_factory=list)
    accounts: dict[Account, OfAccountRows] = field(default_factory=dict)

    def add(self, table: pa.Table, *, hashes: Hashes) -> None:
        """Some more: whose they are, and from when to when they were ordered."""
        self.count += table.num_rows
        self.hashes.append(hashes)
        by = KEY_COLUMNS[:2]
        columns = {name: table[name].cast(pa.string()) for name in by}
        rows = pa.table({**columns, "at": table["ordered_at"]})
        sums = rows.group_by([*by], use_threads=False).aggregate(
            [("at", "min"), ("at", "max"), ("at", "count")]
        )
        for row in sums.to_pylist():
            account, count = (row[by[0]], row[by[1]]), row["at_count"]
            since: datetime = row["at_min"]
            to: datetime = row["at_max"]
            if (before := self.accounts.get(account)) is not None:
                since, to = min(since, before.ordered_from), max(to, before.ordered_to)
                count += before.row_count
            self.accounts[account] = OfAccountRows(*account, count, since, to)


@dataclass(slots=True)
class Merge:
    """One file while its rows are sorted out, part by part."""

    earlier: frozenset[int]
    """Earlier files of its name."""
    known: KnownRows
    odd: Hashes
    """Of keys that come twice or stood before, sorted."""
    twice: Hashes
    """Of those that come twice in this file, sorted."""
    accepted: int = 0
    repeat: int = 0
    superseding: int = 0
    gone: list[Gone] = field(default_factory=list)
    rows: KeptRows = field(default_factory=KeptRows)
    _again: dict[Key, list[_Current]] = field(default_factory=dict)
    """What stands of keys that come twice, as far as the file was looked at."""

    def kept(self, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The rows of each part that are kept, by key; parts of which none is are left out."""
        for part in parts:
            self.accepted += part.num_rows
            hashes = hashes_of(part)
            positions, placed, replaced = self._sorted_out(part, hashes=hashes)
            if not positions.size:
                continue
            positions = positions[_by_key(part.take(pa.array(positions)))]
            if placed:
                places = {position: at for at, position in enumerate(positions.tolist())}
                for each in placed:
                    each.row, each.position = self.rows.count + places[each.position], -1
            self.gone.extend(Gone(OWN, each.row) for each in replaced)
            table = part.take(pa.array(positions))
            self.rows.add(table, hashes=hashes[positions])
            yield table

    def _sorted_out(
        self, part: pa.Table, *, hashes: Hashes
    ) -> tuple[npt.NDArray[np.int64], list[_Current], list[_Current]]:
        """Which positions are kept; of those looked at, all that are, and those replaced."""
        is_odd = is_among(hashes, self.odd)
        if not is_odd.any():
            return np.arange(part.num_rows), [], []
        at = np.flatnonzero(is_odd)
        rows = part.take(pa.array(at))
        keys = _keys(rows)
        known = self.known.having(np.unique(hashes[at]))
        known.update((key, self._again[key]) for key in {*keys} & self._again.keys())
        placed: list[_Current] = []
        replaced: list[_Current] = []
        for position, key, content in zip(at.tolist(), keys, _contents(rows), strict=True):
            arrived = _Current(OWN, content, -1, position)
            beside = known.setdefault(key, [])
            if self._place(arrived, beside, replaced=replaced):
                placed.append(arrived)
        again = {*_keys(rows.filter(pa.array(is_among(hashes[at], self.twice))))}
        self._again.update((key, known[key]) for key in again)
        keep = np.concatenate(
            [np.flatnonzero(~is_odd), np.array([each.position for each in placed], np.int64)]
        )
        return np.sort(keep), placed, replaced

    def _place(
        self, arrived: _Current, beside: list[_Current], *, replaced: list[_Current]
    ) -> bool:
        """Put one row beside, or in the place of, what stands of its order; whether it is kept."""
        if any(old.content == arrived.content for old in beside):
            self.repeat += 1
            return False
        older = [old for old in beside if self._takes_place(arrived, old)]
        self.superseding += bool(older)
        for old in older:
            if old.position >= 0:
                replaced.append(old)
            else:
                self.gone.append(Gone(old.file_id, old.row))
        beside[:] = [old for old in beside if old not in older] + [arrived]
        return True

    def _takes_place(self, arrived: _Current, old: _Current) -> bool:
        newer, older = arrived.content[_UPDATED_AT], old.content[_UPDATED_AT]
        if newer is not None and older is not None:
            return bool(newer > older)
        return old.file_id in self.earlier


def repeated(hashes: Hashes) -> Hashes:
    """Of sorted hashes those that come more than once, sorted."""
    again: Hashes = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    return again


def met(keys: Hashes, *, arriving: Hashes) -> npt.NDArray[np.int64]:
    """The places of a file's sorted keys that arrive again, by sorted arriving ones."""
    if keys.size <= arriving.size:
        return np.flatnonzero(is_among(keys, arriving))
    # Far more keys are known than arrive: those that arrive are looked for.
    wanted = np.unique(arriving)
    from_, to = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    counts = to - from_
    skipped = np.repeat(from_ - (np.cumsum(counts) - counts), counts)
    places: npt.NDArray[np.int64] = skipped + np.arange(skipped.size)
    return places


def is_among(hashes: Hashes, wanted: Hashes) -> npt.NDArray[np.bool_]:
    """Which hashes are among sorted ones."""
    if not wanted.size:
        return np.zeros(hashes.size, dtype=bool)
    places = np.minimum(np.searchsorted(wanted, hashes), wanted.size - 1)
    rows: npt.NDArray[np.bool_] = wanted[places] == hashes
    return rows


def _by_key(table: pa.Table) -> npt.NDArray[np.int64]:
    order: npt.NDArray[np.int64] = sorted_keys(table, names=KEY_COLUMNS).to_numpy()
    return order


def _keys(table: pa.Table) -> list[Key]:
    return list(zip(*(_values(table[name]) for name in KEY_COLUMNS), strict=True))


def _contents(table: pa.Table) -> list[Content]:
    return list(zip(*(_values(table[name]) for name in CONTENT_COLUMNS), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values

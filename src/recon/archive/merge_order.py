"""Which row comes next, of sorted rows that lie in several places: found by their keys alone.

Parts of a night have order numbers of their own: of an account the rows of one part come behind
those of another. A row of the rest stands among those of one part, and is looked up there. Where
rows of several parts stand among each other all the same, they are sorted.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.fields import BY_KEY
from recon.archive.rows_file import ROWS_PER_BATCH, sorted_keys
from recon.archive.sorted_rows import SortedRows
from recon.model.errors import Defect

Which: TypeAlias = "npt.NDArray[np.uint16]"
"""For each row of all, the origin that it comes from."""
REST = 0
"""The origin of the rows in memory; those of the parts follow."""
PARTS_MAX = 2**16 - 1
_Ints: TypeAlias = "npt.NDArray[np.intp]"
_Account: TypeAlias = tuple[str, ...]
_Key: TypeAlias = tuple[_Account, str]


class _Run(NamedTuple):
    """Neighbouring rows of one origin and one account."""

    account: _Account
    start: int
    stop: int
    names: pa.Array
    """Their order numbers."""

    @property
    def first(self) -> _Key:
        return (self.account, self.names[0].as_py())

    @property
    def last(self) -> _Key:
        return (self.account, self.names[-1].as_py())


class _Among(NamedTuple):
    """A run of a part, and the rows of the rest that stand inside it."""

    origin: int
    run: _Run
    begins: int
    """Which of the rest is the first that stands inside."""
    before: _Ints
    """For each that does, how many rows of the run come before it."""
    not_behind: _Ints
    """The same, and those that have its key: all columns tell them apart."""

    @property
    def ends(self) -> int:
        """Which of the rest is the first behind them."""
        return self.begins + len(self.before)

    @property
    def tied(self) -> "npt.NDArray[np.bool_]":
        """Which of the rest inside have the key of a row of the run."""
        return self.before < self.not_behind

    def which(self) -> Which:
        """The origins of all of them; the rest first of those that are tied."""
        size = self.run.stop - self.run.start + len(self.before)
        which = np.full(size, self.origin, dtype=np.uint16)
        which[self._spots_of_rest()] = REST
        return which

    def tied_rows(self) -> _Ints:
        """Which rows of the run have the key of one of the rest."""
        tied, size = self.tied, self.run.stop - self.run.start
        steps = np.zeros(size + 1, dtype=np.intp)
        np.add.at(steps, self.before[tied], 1)
        np.add.at(steps, self.not_behind[tied], -1)
        return np.flatnonzero(np.cumsum(steps) > 0)

    def tied_spots(self) -> _Ints:
        """Where in `which` those of both stand."""
        spots = self._spots_of_rest()
        own = np.ones(self.run.stop - self.run.start + len(self.before), dtype=np.bool_)
        own[spots] = False
        both = [spots[self.tied], np.flatnonzero(own)[self.tied_rows()]]
        return np.sort(np.concatenate(both))

    def _spots_of_rest(self) -> _Ints:
        return self.before + np.arange(len(self.before))


class _Placed(NamedTuple):
    """Neighbours in the order of all."""

    among: _Among
    which: Which


class _Rest:
    """The rows in memory by account."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._runs = [*_runs(table)]
        self._accounts = [run.account for run in self._runs]
        self._names = [_texts(run.names) for run in self._runs]

    def position(self, key: _Key, *, side: Any = "left") -> int:
        """How many rows come before this key, or (`right`) are not behind it."""
        account, name = key
        number = bisect_left(self._accounts, account)
        if number == len(self._runs):
            return int(self.table.num_rows)
        run = self._runs[number]
        if run.account != account:
            return run.start
        return run.start + int(np.searchsorted(self._names[number], name, side=side))

    def among(self, run: _Run, *, origin: int) -> _Among:
        """The rows that stand inside a run of a part."""
        begins, ends = self.position(run.first), self.position(run.last, side="right")
        if begins == ends:
            return _Among(origin, run, begins, _NONE, _NONE)
        number = bisect_left(self._accounts, run.account)
        start, names = self._runs[number].start, _texts(run.names)
        wanted = self._names[number][begins - start : ends - start]
        before = np.searchsorted(names, wanted)
        named = np.flatnonzero(names[before] == wanted)
        not_behind = before.copy()
        not_behind[named] = np.searchsorted(names, wanted[named], side="right")
        return _Among(origin, run, begins, before, not_behind)


_NONE: _Ints = np.zeros(0, dtype=np.intp)


def merge_order(parts: Sequence[SortedRows], *, rest: pa.Table, by: Sequence[str]) -> Which:
    """Where each row of all comes from; rows of one origin stay in their order.

    Args:
        parts: in any order, each sorted by `by`.
        rest: sorted alike; of equal rows its own come first.
        by: the columns that tell the order: merchant, account and order number before others.

    Raises:
        Defect: a part has other rows than it says, or in another order; there are too many parts.
    """
    if len(parts) > PARTS_MAX or tuple(by[: len(BY_KEY)]) != BY_KEY:
        msg = f"{len(parts)} parts by {by} cannot be merged: at most {PARTS_MAX} by {BY_KEY} can"
        raise Defect(msg)
    known = _Rest(rest)
    placed = [
        each
        for origin, part in enumerate(parts, start=REST + 1)
        for each in _placed(part, origin=origin, rest=known, by=by)
    ]
    which = np.full(rest.num_rows + sum(part.num_rows for part in parts), REST, dtype=np.uint16)
    if not placed:
        return which
    neighbours = [*_neighbours(placed)]
    firsts = [known.position(each[0].among.run.first) for each in neighbours]
    at = 0
    for together, (begins, ends) in zip(
        neighbours, pairwise([0, *firsts[1:], rest.num_rows]), strict=True
    ):
        if len(together) == 1:
            among, own = together[0]
            own_at = at + among.begins - begins
            which[own_at : own_at + len(own)] = own
            at += ends - begins + among.run.stop - among.run.start
        else:
            own = _sorted(together, parts=parts, rest=rest.slice(begins, ends - begins), by=by)
            which[at : at + len(own)] = own
            at += len(own)
    return which


def _placed(part: SortedRows, *, origin: int, rest: _Rest, by: Sequence[str]) -> Iterator[_Placed]:
    """The runs of a part with what stands inside of them."""
    keys = [*part.batches(BY_KEY, rows_max=ROWS_PER_BATCH)]
    if (rows := sum(map(len, keys))) != part.num_rows:
        msg = f"a part has {rows} rows and says {part.num_rows}"
        raise Defect(msg)
    if not rows:
        return
    amongs = [rest.among(run, origin=origin) for run in _runs(pa.concat_tables(keys))]
    is_ours = _told_apart(part, amongs, rest=rest.table, by=by)
    at = 0
    for among in amongs:
        which = among.which()
        if among.tied.any():
            spots = among.tied_spots()
            which[spots] = np.where(is_ours[at : at + len(spots)], REST, origin)
            at += len(spots)
        yield _Placed(among, which)


def _told_apart(
    part: SortedRows, amongs: Iterable[_Among], *, rest: pa.Table, by: Sequence[str]
) -> "npt.NDArray[np.bool_]":
    """Rows of the rest and of a part that have the same keys, in order: whether it is the rest's.

    Tied rows stand together, so sorted as a whole they fit their places.
    """
    tied = [each for each in amongs if each.tied.any()]
    if not tied:
        return np.zeros(0, dtype=np.bool_)
    ours = np.concatenate([each.begins + np.flatnonzero(each.tied) for each in tied])
    theirs = np.concatenate([each.run.start + each.tied_rows() for each in tied])
    both = [rest.select([*by]).take(pa.array(ours)), *_rows_at(part, rows=theirs, columns=by)]
    order = sorted_keys(pa.concat_tables(both), names=by)
    return np.asarray(order.to_numpy() < len(ours), dtype=np.bool_)


def _rows_at(part: SortedRows, *, rows: _Ints, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Some rows of a part, in order."""
    at = 0
    for batch in part.batches(columns, rows_max=ROWS_PER_BATCH):
        first, last = np.searchsorted(rows, [at, at + len(batch)])
        if first < last:
            yield batch.take(pa.array(rows[first:last] - at))
        at += len(batch)


def _neighbours(placed: Iterable[_Placed]) -> Iterator[list[_Placed]]:
    """Runs in order, those together that stand among each other."""
    together: list[_Placed] = []
    last: _Key | None = None
    for each in sorted(placed, key=lambda each: each.among.run.first):
        run = each.among.run
        if last is not None and last < run.first:
            yield together
            together = []
        together.append(each)
        last = run.last if last is None else max(last, run.last)
    if together:
        yield together


def _sorted(
    together: Sequence[_Placed], *, parts: Sequence[SortedRows], rest: pa.Table, by: Sequence[str]
) -> Which:
    """Where the rows of runs that stand among each other, and of the rest there, come from."""
    tables, origins = [rest.select([*by])], [np.full(len(rest), REST, dtype=np.uint16)]
    for among, _ in together:
        run = among.run
        rows = np.arange(run.start, run.stop)
        tables += _rows_at(parts[among.origin - REST - 1], rows=rows, columns=by)
        origins.append(np.full(len(rows), among.origin, dtype=np.uint16))
    order = sorted_keys(pa.concat_tables(tables), names=by)
    which: Which = np.concatenate(origins)[order.to_numpy()]
    return which


def _runs(table: pa.Table) -> Iterator[_Run]:
    """The rows of each account.

    Raises:
        Defect: they do not lie in the order of their accounts and order numbers.
    """
    if not len(table):
        return
    accounts = [_codes(table[name]) for name in BY_KEY[:-1]]
    names = table[BY_KEY[-1]].cast(pa.large_string()).combine_chunks()
    changes = np.any([np.diff(codes) != 0 for codes, _ in accounts], axis=0)
    starts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(table)]
    behind = pc.less_equal(names[:-1], names[1:]).to_numpy(zero_copy_only=False) | changes
    last: _Account = ()
    for start, stop in pairwise(starts):
        account = tuple(words[codes[start]] for codes, words in accounts)
        if account <= last or not behind[start : stop - 1].all():
            msg = f"rows of {account} do not lie in the order of their key"
            raise Defect(msg)
        last = account
        yield _Run(account, start, stop, names.slice(start, stop - start))


def _codes(column: pa.ChunkedArray) -> "tuple[npt.NDArray[np.int32], list[str]]":
    """The number of each row's word, and the words."""
    words = column.unify_dictionaries().combine_chunks()
    words = words.chunk(0) if isinstance(words, pa.ChunkedArray) else words
    return words.indices.to_numpy(), words.dictionary.to_pylist()


def _texts(names: pa.Array) -> "npt.NDArray[np.object_]":
    texts: npt.NDArray[np.object_] = names.to_numpy(zero_copy_only=False)
    return texts

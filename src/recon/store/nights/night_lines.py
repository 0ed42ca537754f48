"""The settlement lines that a night compares, some at a time: nobody has to hold all of them.

Those of its window, older ones of payments that it asks about, and all other older ones summed up.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, case, func, select

from recon.matching.frames.arrays import text_column
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, TEXT, VOLUME_COLUMNS, frame_of
from recon.matching.sides.contract_lines import PRICED
from recon.matching.sides.settlement_side import EARLIER
from recon.model.words import REVERSAL_SUFFIX, EntryType
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import StoredFacts
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settled_lines import (
    PLAIN,
    Repeats,
    is_of,
    lines_named,
    repeats_of,
    tables_of,
)
from recon.store.nights.settled_sums import BY, files_of, of_account
from recon.store.schema import order_file, settled_sum

OLDER = "older files"
"""Source of lines that stand for all of a batch from before the window."""
_AMOUNTS = ("gross", "fee", "net")
_GROUP = ("merchant_id", "account_id", "batch_id", "settled_on", "currency")
_PAYOUT, _RESERVE = EntryType.PAYOUT.value, EntryType.RESERVE.value


@dataclass(frozen=True, slots=True)
class AskedFor:
    """Payments whose lines count one by one, however old they are."""

    order_nos: pa.Array
    transactions: pa.Array
    by_payment: bool = False
    """Whether fees of all other older lines are summed up by payment, not by batch."""

    @classmethod
    def of(cls, order_nos: Collection[str] = (), transactions: Collection[str] = ()) -> "AskedFor":
        """Of texts of Python."""
        return cls(*(pa.array(sorted({*each}), pa.string()) for each in (order_nos, transactions)))


@dataclass(frozen=True, slots=True)
class NightLines:
    """Which lines of an account a night compares."""

    run: Run
    since: str
    files: Sequence[StoredFacts]
    """Those with lines settled since then."""
    older: pa.Table
    """SETTLEMENT_COLUMNS of those settled before `since`: few."""
    repeats: Repeats
    """Lines of the files that do not count."""
    storages: StorageOf

    @classmethod
    def of(
        cls,
        connection: Connection,
        run: Run,
        *,
        since: str,
        asked: AskedFor,
        storages: StorageOf,
        until: int | None = None,
    ) -> "NightLines":
        """Look which they are.

        Args:
            connection: the store.
            run: of the account.
            since: the first day whose lines all count one by one.
            asked: payments whose older lines do, too.
            storages: where files lie.
            until: the last file that counts; None: all do.

        Raises:
            ArchiveError: a file cannot be read, or is not the one whose hash the database has.
        """
        day = settled_sum.c.settled_on
        recent = files_of(connection, run, until=until, where=day >= since)
        files = facts_rows.of_files(connection, recent)
        repeats = repeats_of(connection, run, storages=storages, until=until)
        lines = cls(run, since, files, PLAIN.empty_table(), repeats, storages)
        before = files_of(connection, run, until=until, where=day < since)
        if not before:
            return lines
        listed = lines._listed(connection, before, asked=asked)
        sums = _sums(connection, run, since=since, repeats=repeats, until=until)
        sums.take(listed)
        if asked.by_payment:
            # Which fees are of which payment no sum says: all files of before are read.
            every = facts_rows.of_files(connection, before)
            for table in lines._of_payments(every, asked=asked):
                sums.take(table)
                sums.add(table, kinds=_kinds(table), payments=True)
        older = pa.concat_tables([sums.table(), listed])
        return replace(lines, older=older.combine_chunks())

    def batches(
        self,
        *,
        columns: Sequence[str] = (*SETTLEMENT_COLUMNS,),
        entry_types: Collection[str] = (),
        telling: Collection[str] = (),
    ) -> Iterator[pa.Table]:
        """Columns of the lines, some rows at a time: the older ones first, then as they came.

        Args:
            columns: of SETTLEMENT_COLUMNS.
            entry_types: only lines of these; empty: of all.
            telling: only lines with a text in one of these columns; empty: all.

        Raises:
            ArchiveError: a file cannot be read, or is not the one whose hash the database has.
        """
        also = {"merchant_id", "account_id", "settled_on", *telling}
        also |= {"entry_type"} if entry_types else set()
        asked = [*dict.fromkeys((*columns, *sorted(also)))]
        tables = [self.older.select(asked)]
        yield _chosen(tables[0], entry_types=entry_types, telling=telling).select([*columns])
        for file in self.files:
            for table in self._of_file(file, columns=asked):
                recent = pc.greater_equal(table["settled_on"], self.since)
                own = table.filter(pc.and_(is_of(table, self.run), recent))
                yield _chosen(own, entry_types=entry_types, telling=telling).select([*columns])

    def _of_file(
        self, file: StoredFacts, *, columns: Sequence[str] = (*SETTLEMENT_COLUMNS,)
    ) -> Iterator[pa.Table]:
        return tables_of(file, storages=self.storages, repeats=self.repeats, columns=columns)

    def frame(self) -> pd.DataFrame:
        """SETTLEMENT_COLUMNS of all of them."""
        return frame_of_lines(pa.concat_tables(self.batches()))

    def _listed(
        self, connection: Connection, files: Collection[int], *, asked: AskedFor
    ) -> pa.Table:
        """The older lines that stand there by themselves."""
        wanted = {"order_no": asked.order_nos, "transaction_id": asked.transactions}
        table = lines_named(
            connection,
            self.run,
            wanted=wanted,
            files=files,
            repeats=self.repeats,
            storages=self.storages,
        )
        # Of older pay-outs nobody asks: what booked them lies outside the window, too.
        rows = pc.and_(
            pc.less(table["settled_on"], self.since), pc.not_equal(table["entry_type"], _PAYOUT)
        )
        return table.filter(rows)

    def _of_payments(self, files: Sequence[StoredFacts], *, asked: AskedFor) -> Iterator[pa.Table]:
        """The older lines with fees of payments, without those that stand there by themselves."""
        orders, transactions = (
            each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each
            for each in (asked.order_nos, asked.transactions)
        )
        for file in files:
            for table in self._of_file(file):
                rows = pc.and_(is_of(table, self.run), pc.less(table["settled_on"], self.since))
                own = table.filter(pc.and_(rows, pc.not_equal(table["fee"], 0)))
                own = own.filter(pc.equal(_kinds(own), EARLIER))
                named = pc.or_(
                    _is_named(own["order_no"], keys=orders),
                    _is_named(own["transaction_id"], keys=transactions),
                )
                is_paid = pc.equal(own["entry_type"], _PAYOUT)
                yield own.filter(pc.or_(pc.invert(named), is_paid))


def _is_named(texts: pa.ChunkedArray, *, keys: pa.Array) -> pa.ChunkedArray:
    named = pc.is_in(texts, value_set=keys.cast(pa.string()))
    return pc.and_(named, pc.not_equal(texts, ""))


def _chosen(table: pa.Table, *, entry_types: Collection[str], telling: Collection[str]) -> pa.Table:
    if entry_types:
        words = pa.array([*entry_types], pa.string())
        table = table.filter(pc.is_in(table["entry_type"], value_set=words))
    if telling:
        is_given = (pc.not_equal(table[name], "") for name in telling)
        table = table.filter(reduce(pc.or_, is_given))
    return table


def _kind(entry_type: str, *, is_own: bool) -> str:
    """What older lines are summed up as: pay-outs and reserves stay what they are."""
    if entry_type == _PAYOUT and not is_own:
        return _PAYOUT
    return _RESERVE if entry_type.replace(REVERSAL_SUFFIX, "") == _RESERVE else EARLIER


def _kinds(table: pa.Table) -> pa.ChunkedArray:
    pairs = zip(table["entry_type"].to_pylist(), table["own_reference"].to_pylist(), strict=True)
    return pa.chunked_array([[_kind(word, is_own=own != "") for word, own in pairs]], pa.string())


class _Sums:
    """What older lines come to, a few of each batch: what the gateway owes is of all days."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def add_sum(self, key: tuple[str, ...], numbers: Sequence[int]) -> None:
        """Count lines, gross, fee and net of one group, kind and payment."""
        self._of[key] = [old + new for old, new in zip(self._of[key], numbers, strict=True)]

    def take(self, table: pa.Table) -> None:
        """Lines that stand somewhere else, too, count here no more."""
        self.add(table, kinds=_kinds(table), sign=-1)

    def add(
        self,
        table: pa.Table,
        *,
        kinds: pa.ChunkedArray,
        payments: bool = False,
        sign: int = 1,
    ) -> None:
        """Count lines, each with its kind; under its payment, or under none."""
        by = [*_GROUP, "kind", *(("order_no", "transaction_id") if payments else ())]
        groups = (
            table.append_column("kind", kinds)
            .group_by(by, use_threads=False)
            .aggregate([("gross", "count"), *((name, "sum") for name in _AMOUNTS)])
        )
        for row in groups.to_pylist():
            key = tuple(row[name] for name in by)
            numbers = [row["gross_count"], *(row[f"{name}_sum"] for name in _AMOUNTS)]
            blank = () if payments else ("", "")
            self.add_sum((*key, *blank), [sign * number for number in numbers])

    def table(self) -> pa.Table:
        """SETTLEMENT_COLUMNS of what is left, by its group."""
        names = (*_GROUP, "entry_type", "order_no", "transaction_id")
        rows = [
            {
                **dict(zip(names, key, strict=True)),
                **dict(zip(_AMOUNTS, numbers[1:], strict=True)),
                "source": OLDER,
                "line": 0,
            }
            for key, numbers in sorted(self._of.items())
            if numbers[0]
        ]
        blank = {name: "" for name, kind in SETTLEMENT_COLUMNS.items() if kind == TEXT}
        return pa.Table.from_pylist([{**blank, **row} for row in rows], schema=PLAIN)


def _sums(
    connection: Connection, run: Run, *, since: str, repeats: Repeats, until: int | None
) -> _Sums:
    """Those of all older lines that count."""
    table, sums = settled_sum, _Sums()
    columns = [table.c[name] for name in (*_GROUP, "entry_type", "is_own")]
    amounts = [func.sum(table.c[name]).label(name) for name in ("line_count", *_AMOUNTS)]
    query = (
        select(*columns, *amounts)
        .where(*of_account(run, until=until), table.c.settled_on < since)
        .group_by(*columns)
    )
    twice = repeats.sums.filter(is_of(repeats.sums, run))
    twice = twice.filter(pc.less(twice["settled_on"], since))
    for sign, rows in ((1, connection.execute(query).mappings()), (-1, twice.to_pylist())):
        for row in rows:
            kind = _kind(row["entry_type"], is_own=bool(row["is_own"]))
            key = (*(row[name] for name in _GROUP), kind, "", "")
            sums.add_sum(key, [sign * int(row[name]) for name in ("line_count", *_AMOUNTS)])
    return sums


def frame_of_lines(table: pa.Table) -> pd.DataFrame:
    """A typed frame of lines."""
    columns = {
        name: text_column(table[name].cast(pa.large_string()))
        if SETTLEMENT_COLUMNS[name] == TEXT
        else table[name].to_numpy()
        for name in table.column_names
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(table)))


_ONE_SUM = ("file_id", *BY, "is_own")
_COUNTED = ("line_count", "base")


def volumes_of(
    connection: Connection, run: Run, *, since: str, repeats: Repeats, until: int | None
) -> pd.DataFrame:
    """VOLUME_COLUMNS of all lines settled since a day, as of the last file that counts.

    Late is what files of the business date tell of days up to the last one that was told before.
    """
    line = settled_sum.c
    before = (
        select(func.max(line.settled_on))
        .join(order_file, order_file.c.file_id == line.file_id)
        .where(*of_account(run, until=until), order_file.c.business_date < run.business_date)
        .scalar_subquery()
    )
    tonight = order_file.c.business_date == run.business_date
    late = case((tonight & (line.settled_on <= before), 1), else_=0).label("late")
    query = (
        select(*(line[name] for name in (*_ONE_SUM, *_COUNTED)), late)
        .join(order_file, order_file.c.file_id == line.file_id)
        .where(*of_account(run, until=until), line.settled_on >= since)
        .where(line.entry_type.in_(PRICED))
    )
    names = [name for name in VOLUME_COLUMNS if name in {*BY, "late"}]
    twice = {tuple(row[n] for n in _ONE_SUM): row for row in repeats.sums.to_pylist()}
    volumes: dict[tuple[str | int, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in connection.execute(query).mappings():
        repeat = twice.get(tuple(row[name] for name in _ONE_SUM), {})
        counted = volumes[tuple(row[name] for name in names)]
        for at, name in enumerate(_COUNTED):
            counted[at] += row[name] - repeat.get(name, 0)
    rows = [
        {**dict(zip(names, key, strict=True)), "lines": lines, "base": base}
        for key, (lines, base) in sorted(volumes.items())
        if lines
    ]
    return frame_of(rows, columns=VOLUME_COLUMNS)

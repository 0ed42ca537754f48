"""The settlement lines that a night compares, some at a time: nobody has to hold all of them.

Those of its window, older ones of payments that it asks about, and all other older ones summed up.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    case,
    func,
    literal,
    or_,
    select,
    true,
)

from recon.matching.frames.arrays import text_column
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, TEXT
from recon.matching.sides.settlement_side import EARLIER
from recon.model.words import REVERSAL_SUFFIX, EntryType
from recon.store.database.bulk_rows import among
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import days_told, of_account
from recon.store.schema import order_file, settlement_line

OLDER = "older files"
"""Source of lines that stand for all of a batch from before the window."""
LINES_AT_ONCE = 50_000
"""So many are rows of Python at a time."""
KEYS_AT_ONCE = 1_000_000
"""So many keys the database is told at a time."""
_SCHEMA = pa.schema(
    [
        (name, pa.string() if kind == TEXT else pa.int64())
        for name, kind in SETTLEMENT_COLUMNS.items()
    ]
)
_AMOUNTS = ("gross", "fee", "net")


@dataclass(frozen=True, slots=True)
class AskedFor:
    """Payments whose lines count one by one, however old they are."""

    order_nos: pa.Array
    transactions: pa.Array

    @classmethod
    def of(cls, order_nos: Collection[str] = (), transactions: Collection[str] = ()) -> "AskedFor":
        """Of texts of Python."""
        return cls(*(pa.array(sorted({*each}), pa.string()) for each in (order_nos, transactions)))


@dataclass(frozen=True, slots=True)
class NightLines:
    """Which lines of an account a night compares."""

    run: Run
    since: str
    until: int | None
    older: pa.Table
    """SETTLEMENT_COLUMNS of those settled before `since`: few."""

    @classmethod
    def of(
        cls,
        connection: Connection,
        run: Run,
        *,
        since: str,
        asked: AskedFor,
        by_payment: bool = False,
        until: int | None = None,
    ) -> "NightLines":
        """Look which they are.

        Args:
            connection: the store.
            run: of the account.
            since: the first day whose lines all count one by one.
            asked: payments whose older lines do, too.
            by_payment: whether fees of the others are summed up by payment, not by batch.
            until: the last file that counts; None: all do.
        """
        lines = cls(run, since, until, _SCHEMA.empty_table())
        first, _ = days_told(connection, run, until=until)
        if not first or first >= since:
            return lines
        listed = lines._listed(connection, asked=asked)
        summed = lines._summed(connection, listed=listed, by_payment=by_payment)
        named = lines._told([*SETTLEMENT_COLUMNS]).where(
            among(connection, settlement_line.c.line_id, listed)
        )
        older = pa.concat_tables([summed, *_tables(connection, named)])
        return cls(run, since, until, older.combine_chunks())

    def batches(
        self,
        connection: Connection,
        *,
        columns: Sequence[str] = (*SETTLEMENT_COLUMNS,),
        entry_types: Collection[str] = (),
        telling: Collection[str] = (),
    ) -> Iterator[pa.Table]:
        """Columns of the lines, some rows at a time: the older ones first, then as they came.

        Args:
            connection: the store.
            columns: of SETTLEMENT_COLUMNS.
            entry_types: only lines of these; empty: of all.
            telling: only lines with a text in one of these columns; empty: all.
        """
        older = self.older
        if entry_types:
            words = pa.array([*entry_types], pa.string())
            older = older.filter(pc.is_in(older["entry_type"], value_set=words))
        if telling:
            is_given = (pc.not_equal(older[name], "") for name in telling)
            older = older.filter(reduce(pc.or_, is_given))
        yield older.select([*columns])
        line = settlement_line
        query = self._told(columns).where(line.c.settled_on >= self.since)
        if entry_types:
            query = query.where(line.c.entry_type.in_([*entry_types]))
        if telling:
            query = query.where(or_(*(line.c[name] != "" for name in telling)))
        yield from _tables(connection, query)

    def frame(self, connection: Connection) -> pd.DataFrame:
        """SETTLEMENT_COLUMNS of all of them."""
        return frame_of_lines(pa.concat_tables(self.batches(connection)))

    def _told(self, columns: Sequence[str]) -> Select[tuple[object, ...]]:
        """Lines of the account's files, as they came."""
        cells = [
            order_file.c.name.label("source") if name == "source" else settlement_line.c[name]
            for name in columns
        ]
        return (
            select(*cells)
            .join(order_file, order_file.c.file_id == settlement_line.c.file_id)
            .where(*of_account(self.run, until=self.until))
            .order_by(settlement_line.c.line_id)
        )

    def _listed(self, connection: Connection, *, asked: AskedFor) -> list[int]:
        """The older lines that stand there by themselves, by their numbers."""
        line, listed = settlement_line, set[int]()
        for name, keys in (("order_no", asked.order_nos), ("transaction_id", asked.transactions)):
            for at in range(0, len(keys), KEYS_AT_ONCE):
                some = [key for key in keys.slice(at, KEYS_AT_ONCE).to_pylist() if key]
                # Of older pay-outs nobody asks: what booked them lies outside the window, too.
                query = select(line.c.line_id).where(
                    *self._before(),
                    line.c.entry_type != EntryType.PAYOUT.value,
                    among(connection, line.c[name], some),
                )
                listed.update(connection.execute(query).scalars())
        return sorted(listed)

    def _before(self) -> tuple[ColumnElement[bool], ...]:
        own = of_account(self.run, until=self.until)
        return (*own, settlement_line.c.settled_on < self.since)

    def _summed(
        self, connection: Connection, *, listed: Sequence[int], by_payment: bool
    ) -> pa.Table:
        """The older lines, a few of each batch: what the gateway owes is of all days.

        Pay-outs and reserves stay what they are; all else is told of payments that are not
        compared, with the fees of what it stands for.
        """
        line = settlement_line
        base = func.replace(line.c.entry_type, REVERSAL_SUFFIX, "")
        is_paid = (line.c.entry_type == EntryType.PAYOUT.value) & (line.c.own_reference == "")
        kind = case(
            (is_paid, EntryType.PAYOUT.value),
            (base == EntryType.RESERVE.value, EntryType.RESERVE.value),
            else_=EARLIER,
        )
        # Where the books have a fee of each payment, a sum of several would be of none of them.
        fee_of = (kind == EARLIER) & (line.c.fee != 0)
        payment = [
            (case((fee_of, line.c[name]), else_="") if by_payment else literal("")).label(name)
            for name in ("order_no", "transaction_id")
        ]
        names = ("merchant_id", "account_id", "batch_id", "settled_on", "currency")
        columns = [line.c[name] for name in names]
        amounts = [func.sum(line.c[name]).label(name) for name in _AMOUNTS]
        query = (
            select(*columns, kind.label("entry_type"), *payment, *amounts)
            .where(*self._before())
            .where(~among(connection, line.c.line_id, listed) if listed else true())
            .group_by(*columns, kind, *payment)
            .order_by(*columns, kind, *payment)
        )
        nowhere = {"source": OLDER, "line": 0}
        rows = [
            {**row, **{name: int(row[name]) for name in _AMOUNTS}, **nowhere}
            for row in connection.execute(query).mappings()
        ]
        return _table({name: [row.get(name) for row in rows] for name in SETTLEMENT_COLUMNS})


def frame_of_lines(table: pa.Table) -> pd.DataFrame:
    """A typed frame of lines."""
    columns = {
        name: text_column(table[name].cast(pa.large_string()))
        if SETTLEMENT_COLUMNS[name] == TEXT
        else table[name].to_numpy()
        for name in table.column_names
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(table)))


def _tables(connection: Connection, query: Select[tuple[object, ...]]) -> Iterator[pa.Table]:
    """The rows of a query, some at a time; at least one table."""
    names = [column.name for column in query.selected_columns]
    result = connection.execute(query, execution_options={"yield_per": LINES_AT_ONCE})
    yield _table({name: [] for name in names})
    for rows in result.partitions():
        yield _table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def _table(cells: Mapping[str, Sequence[object]]) -> pa.Table:
    """A text that is not given is blank."""
    fields = [_SCHEMA.field(name) for name in cells]
    columns = (pa.array(cells[each.name], each.type) for each in fields)
    whole = [
        column.fill_null("") if pa.types.is_string(column.type) else column for column in columns
    ]
    return pa.table(whole, schema=pa.schema(fields))

"""From the order rows that tonight's files brought to the rows that a night compares, counted.

Every number is counted where the rows lie, none is the rest of the others: that they add up is a
check.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, func, select

from recon.model.words import SourceKind
from recon.proof.bridge import (
    BEFORE_WINDOW,
    KNOWN_BEFORE,
    OTHER_ACCOUNTS,
    REPEATS,
    REPLACED,
    UNDECLARED,
)
from recon.store.nights import facts_rows, order_facts, stored_orders
from recon.store.nights.facts_rows import Account
from recon.store.nights.order_facts import Bools, StorageOf
from recon.store.nights.order_rows import of_night
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import NUMBERED, ordered
from recon.store.schema import order_file


class InView(NamedTuple):
    """What a night compares of an account's orders."""

    since: datetime
    """The instant from which orders are in the window."""
    older: Sequence[str]
    """Order numbers that are compared however old they are."""


def order_steps(
    connection: Connection,
    run: Run,
    *,
    view: InView,
    until: int,
    declared: Collection[Account],
    storages: StorageOf,
) -> Mapping[str, int]:
    """Step -> how many rows it adds, in the order in which they are told.

    Args:
        connection: the store.
        run: whose night it is.
        view: what it compares.
        until: the last file that counts.
        declared: accounts that have a night of their own.
        storages: where files of facts lie.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    tonight, since = _newest_files(connection, run, until=until), view.since
    stored, steps = 0, dict.fromkeys((REPLACED, OTHER_ACCOUNTS, UNDECLARED, BEFORE_WINDOW), 0)
    groups = _groups(connection, tonight, since=since, until=until, storages=storages)
    for account, current, recent, count in groups:
        stored += count
        step = _step(account, run=run, current=current, recent=recent, declared=declared)
        if step:
            steps[step] -= count
    named = stored_orders.counted_of_keys(
        connection, run, order_nos=view.older, storages=storages, until=until
    )
    steps[BEFORE_WINDOW] += sum(named.get(file_id, 0) for file_id in tonight)
    known = sum(count for file_id, count in named.items() if file_id not in tonight)
    known += _recent_before(
        connection, run, without=tonight, since=since, until=until, storages=storages
    )
    repeats = stored - _accepted(connection, tonight)
    return {REPEATS: repeats, **steps, KNOWN_BEFORE: known}


def undeclared_accounts(
    connection: Connection, run: Run, *, until: int, declared: Collection[Account]
) -> list[str]:
    """Accounts that rows of tonight's files name and nobody declared."""
    tonight = _newest_files(connection, run, until=until)
    named = facts_rows.accounts_of(connection, tonight)
    return sorted("/".join(account) for account in named - {*declared, _own(run)})


def _own(run: Run) -> Account:
    return run.merchant_id, run.account_id


def _step(
    account: Account, *, run: Run, current: bool, recent: bool, declared: Collection[Account]
) -> str:
    """Where a stored row of tonight's files leaves the comparison; "" when it does not."""
    if not current:
        return REPLACED
    if account != _own(run):
        return OTHER_ACCOUNTS if account in declared else UNDECLARED
    return "" if recent else BEFORE_WINDOW


def _newest_files(connection: Connection, run: Run, *, until: int) -> list[int]:
    """The newest version of each order file of the night."""
    newest = (
        select(func.max(order_file.c.file_id))
        .where(*of_night(run, until=until), order_file.c.kind == SourceKind.ORDERS.value)
        .group_by(order_file.c.name)
    )
    return list(connection.execute(newest).scalars())


def _accepted(connection: Connection, files: Sequence[int]) -> int:
    counted = select(func.sum(order_file.c.rows_accepted)).where(order_file.c.file_id.in_(files))
    return connection.execute(counted).scalar() or 0


def _groups(
    connection: Connection,
    files: Sequence[int],
    *,
    since: datetime,
    until: int,
    storages: StorageOf,
) -> Iterator[tuple[Account, bool, bool, int]]:
    """Stored rows by account, whether they have no successor and are in the window."""
    by = ("merchant_id", "account_id", "current", "recent")
    for _, table, stands in order_facts.standing(
        connection,
        facts_rows.of_files(connection, files),
        storages=storages,
        columns=NUMBERED,
        until=until,
    ):
        rows = pa.table(
            {
                **{name: table[name].cast(pa.string()) for name in by[:2]},
                "current": stands,
                "recent": ordered(table, since=since),
            }
        )
        for row in (
            rows.group_by([*by], use_threads=False).aggregate([([], "count_all")]).to_pylist()
        ):
            account = row["merchant_id"], row["account_id"]
            yield account, row["current"], row["recent"], row["count_all"]


def _recent_before(
    connection: Connection,
    run: Run,
    *,
    without: Sequence[int],
    since: datetime,
    until: int,
    storages: StorageOf,
) -> int:
    """Rows of the account that stand and are in the window, of other files than tonight's."""
    files = [
        file
        for file in facts_rows.of_account(
            connection, [_own(run)], spans=[(since, None)], until=until
        )
        if file.file_id not in without
    ]
    return sum(
        int(np.count_nonzero(_recent(table, stands, run=run, since=since)))
        for _, table, stands in order_facts.standing(
            connection, files, storages=storages, columns=NUMBERED, until=until
        )
    )


def _recent(table: pa.Table, stands: Bools, *, run: Run, since: datetime) -> Bools:
    return stands & ordered(table, since=since) & order_facts.is_of(table, [_own(run)])

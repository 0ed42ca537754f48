"""From the order rows that tonight's files brought to the rows that a night compares, counted.

Every number is asked of the database, none is the rest of the others: that they add up is a check.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from recon.model.words import SourceKind
from recon.proof.bridge import (
    BEFORE_WINDOW,
    KNOWN_BEFORE,
    OTHER_ACCOUNTS,
    REPEATS,
    REPLACED,
    UNDECLARED,
)
from recon.store.nights.order_rows import KEYS_AT_ONCE, not_gone, of_night
from recon.store.nights.runs import Run
from recon.store.schema import order_file, order_row

Account = tuple[str, str]
"""Merchant and account."""


def order_steps(
    connection: Connection,
    run: Run,
    *,
    since: Any,
    older: Sequence[str],
    until: int,
    declared: Collection[Account],
) -> Mapping[str, int]:
    """Step -> how many rows it adds, in the order in which they are told.

    Args:
        connection: the store.
        run: whose night it is.
        since: the instant from which orders are in the window.
        older: order numbers that are compared however old they are.
        until: the last file that counts.
        declared: accounts that have a night of their own.
    """
    tonight = _newest_files(connection, run, until=until)
    mine = order_row.c.file_id.in_(tonight)
    stored, steps = 0, dict.fromkeys((REPLACED, OTHER_ACCOUNTS, UNDECLARED, BEFORE_WINDOW), 0)
    for account, current, recent, count in _groups(connection, mine, since=since, until=until):
        stored += count
        step = _step(account, run=run, current=current, recent=recent, declared=declared)
        if step:
            steps[step] -= count
    steps[BEFORE_WINDOW] += _of_keys(connection, run, mine, keys=older, until=until)
    recent_before = _count(connection, run, ~mine, order_row.c.ordered_at >= since, until=until)
    known = recent_before + _of_keys(connection, run, ~mine, keys=older, until=until)
    repeats = stored - _accepted(connection, tonight)
    return {REPEATS: repeats, **steps, KNOWN_BEFORE: known}


def undeclared_accounts(
    connection: Connection, run: Run, *, until: int, declared: Collection[Account]
) -> list[str]:
    """Accounts that rows of tonight's files name and nobody declared."""
    tonight = _newest_files(connection, run, until=until)
    rows = connection.execute(
        select(order_row.c.merchant_id, order_row.c.account_id)
        .where(order_row.c.file_id.in_(tonight))
        .distinct()
    )
    named = {(row.merchant_id, row.account_id) for row in rows}
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
    connection: Connection, mine: ColumnElement[bool], *, since: Any, until: int
) -> list[tuple[Account, bool, bool, int]]:
    """Stored rows by account, whether they have no successor and are in the window."""
    current = case((and_(*not_gone(until)), 1), else_=0).label("current")
    recent = case((order_row.c.ordered_at >= since, 1), else_=0).label("recent")
    columns = (order_row.c.merchant_id, order_row.c.account_id, current, recent)
    rows = connection.execute(select(*columns, func.count()).where(mine).group_by(*columns))
    return [((row[0], row[1]), bool(row[2]), bool(row[3]), row[4]) for row in rows]


def _of_keys(
    connection: Connection,
    run: Run,
    files: ColumnElement[bool],
    *,
    keys: Sequence[str],
    until: int,
) -> int:
    """Current rows of the account with one of these order numbers."""
    parts = (keys[at : at + KEYS_AT_ONCE] for at in range(0, len(keys), KEYS_AT_ONCE))
    return sum(
        _count(connection, run, files, order_row.c.order_no.in_(part), until=until)
        for part in parts
    )


def _count(
    connection: Connection,
    run: Run,
    files: ColumnElement[bool],
    rows: ColumnElement[bool],
    *,
    until: int,
) -> int:
    counted = select(func.count()).where(
        files,
        rows,
        order_row.c.merchant_id == run.merchant_id,
        order_row.c.account_id == run.account_id,
        *not_gone(until),
    )
    return connection.execute(counted).scalar_one()

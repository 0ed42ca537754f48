"""From the order rows that tonight's files brought to the rows that a night compares, counted.

Every number is counted where the rows lie, none is the rest of the others: that they add up is a
check.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import pyarrow.compute as pc
from sqlalchemy import Connection, func, select

from recon.matching.frames.sources import LoadCounts
from recon.model.words import SourceKind
from recon.proof.bridge import (
    BEFORE_WINDOW,
    KNOWN_BEFORE,
    OTHER_ACCOUNTS,
    REPEATS,
    REPLACED,
    UNDECLARED,
)
from recon.store.nights import facts_rows, order_facts
from recon.store.nights.facts_rows import Account
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.order_rows import of_night
from recon.store.nights.runs import Run
from recon.store.nights.standing_rows import looked_up, standing
from recon.store.nights.stored_orders import NUMBERED, counted_in_view
from recon.store.schema import order_file


class InView(NamedTuple):
    """What a night compares of an account's orders."""

    since: datetime
    """The instant from which orders are in the window."""
    older: Sequence[str]
    """Numbers of the orders whose rows from before are compared, too."""


class OrderSteps(NamedTuple):
    """What became of the order rows of a night's files."""

    steps: Mapping[str, int]
    """Step -> how many rows it adds, in the order in which they are told."""
    taken: Mapping[str, LoadCounts]
    """Name of a file -> which of its rows were new, repeats, or took the place of another."""


def order_steps(
    connection: Connection,
    run: Run,
    *,
    view: InView,
    until: int,
    declared: Collection[Account],
    storages: StorageOf,
) -> OrderSteps:
    """Count what became of the rows of the newest versions of the night's files.

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
    tonight = facts_rows.of_files(connection, _newest_files(connection, run, until=until))
    own = run.merchant_id, run.account_id
    named = {own, *facts_rows.accounts_of(connection, [file.file_id for file in tonight])}
    looked = looked_up(
        connection, run, accounts=sorted(named), files=tonight, storages=storages, until=until
    )
    others = {account for account in named if account != own}
    steps = dict.fromkeys(
        (REPEATS, REPLACED, OTHER_ACCOUNTS, UNDECLARED, BEFORE_WINDOW, KNOWN_BEFORE), 0
    )
    taken: dict[str, LoadCounts] = {}
    found = looked[1].rows
    for file, table, stands in standing(looked, columns=NUMBERED, storages=storages):
        of_file = found.filter(pc.equal(found["file_id"], file.file_id))
        repeats, replaces = (pc.sum(of_file[name]).as_py() or 0 for name in ("repeats", "replaces"))
        new = table.num_rows - repeats - replaces
        taken[file.name] = LoadCounts(table.num_rows, new, repeats, replaces)
        steps[REPEATS] -= repeats
        steps[REPLACED] -= int((~stands).sum()) - repeats
        for account in others:
            step = OTHER_ACCOUNTS if account in declared else UNDECLARED
            steps[step] -= int((stands & order_facts.is_of(table, [account])).sum())
        steps[BEFORE_WINDOW] -= int((stands & order_facts.is_of(table, [own])).sum())
    came = {file.file_id for file in tonight}
    in_view = counted_in_view(
        connection, run, since=view.since, older=view.older, storages=storages, until=until
    )
    for file_id, rows in in_view.items():
        steps[BEFORE_WINDOW if file_id in came else KNOWN_BEFORE] += rows
    return OrderSteps(steps, taken)


def undeclared_accounts(
    connection: Connection, run: Run, *, until: int, declared: Collection[Account]
) -> list[str]:
    """Accounts that rows of tonight's files name and nobody declared."""
    tonight = _newest_files(connection, run, until=until)
    named = facts_rows.accounts_of(connection, tonight)
    own = run.merchant_id, run.account_id
    return sorted("/".join(account) for account in named - {*declared, own})


def _newest_files(connection: Connection, run: Run, *, until: int) -> list[int]:
    """The newest version of each order file of the night, each content once."""
    newest = (
        select(func.max(order_file.c.file_id))
        .where(*of_night(run, until=until), order_file.c.kind == SourceKind.ORDERS.value)
        .group_by(order_file.c.name)
    )
    counted = select(order_file.c.file_id).where(
        order_file.c.file_id.in_(newest), order_file.c.rows_accepted > 0
    )
    return list(connection.execute(counted).scalars())

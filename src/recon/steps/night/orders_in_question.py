"""Which orders a night asks the gateway about: whatever names one, held as a column of each.

Orders in the window, ledger references, unfinished instructions and those of files that no night
has planned, orders that verified notifications or settlement files named, what the night before
left open (breaks, pending, without a usable answer), old orders whose rows came late, and orders
that come of an age at which they are asked about again.
"""

from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from recon.proof.night_tables import frame_of_table
from recon.steps.ground import kept_results, shown_answers
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import entry_batches
from recon.steps.ground.night_folder import storages_of
from recon.steps.ground.order_numbers import Numbers, OrderNumbers, order_numbers
from recon.steps.ground.predecessor import previous_night
from recon.steps.ground.window import (
    BEFORE_ALL,
    OF_WINDOW,
    in_window_by_parts,
    ledger_start,
    looked_back,
    opening,
    window_start,
)
from recon.steps.money.settled import settled_since
from recon.store import Connection
from recon.store.money import instruction_rows, planning_rows
from recon.store.nights import (
    input_rows,
    ledger_rows,
    notification_rows,
    quarantine_rows,
    settlement_rows,
    stored_orders,
)
from recon.store.nights.runs import Run


def orders_in_question(run: Run, *, environment: Environment) -> OrderNumbers:
    """Every order that the gateway is asked about before money moves.

    Raises:
        ArchiveError: what was kept cannot be read.
    """
    before = previous_night(run, environment=environment)
    with environment.store.reading() as connection:
        named = _named(connection, run, before=before, environment=environment)
        every = order_numbers(named).column
    return OrderNumbers(every.filter(pc.not_equal(every, "")))


def _named(
    connection: Connection, run: Run, *, before: Run | None, environment: Environment
) -> Iterator[Numbers]:
    """What names orders that are to be asked about."""
    rules = environment.settings.rules
    since = window_start(run, rules=rules)
    storages = storages_of(environment)
    window = [(since, None)]
    yield from stored_orders.numbers_ordered(connection, run, spans=window, storages=storages)
    yield from _booked(connection, run, environment=environment)
    unfinished = instruction_rows.of_account(connection, run, states=instruction_rows.UNFINISHED)
    yield (item.order_no for item in unfinished)
    # Of files that came tonight: they are planned after this, and judged by these answers.
    yield planning_rows.unplanned_orders(connection, run)
    yield notification_rows.order_nos_told(
        connection, merchant_id=run.merchant_id, account_id=run.account_id, since=since
    )
    yield (row.order_no for row in quarantine_rows.outstanding(connection, run))
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    if account.settlement is not None:
        day = settled_since(run, rules=rules)
        yield from settlement_rows.order_nos_told(connection, run, since=day, storages=storages)
        # Which order a transaction has is known where an earlier answer showed it.
        unnamed = settlement_rows.unnamed_transactions(
            connection, run, since=day, storages=storages
        )
        yield shown_answers.orders_of_transactions(
            connection, run, transactions=unnamed, environment=environment
        )
    spans = list(looked_back(run, before=before))
    ended = [(since, environment.clock()), *spans]
    yield planning_rows.ended_orders(connection, run, spans=ended)
    # Of age is who was ordered after the one instant, and up to the other.
    of_age = [(after + datetime.resolution, up_to + datetime.resolution) for after, up_to in spans]
    yield from stored_orders.numbers_ordered(connection, run, spans=of_age, storages=storages)
    yield from _came_late(connection, run, before=before, environment=environment)
    if before is not None:
        yield kept_results.orders_left_open(connection, before.run_id, environment=environment)
        yield shown_answers.failed_keys(connection, before, environment=environment)


def _booked(connection: Connection, run: Run, *, environment: Environment) -> Iterator[pa.Array]:
    """Orders that the account's books name in the window; older entries name none that is new."""
    if ledger_rows.source_of(connection, run.run_id) is None:
        return
    batches = entry_batches(connection, run, columns=OF_WINDOW, environment=environment)
    since = ledger_start(run, rules=environment.settings.rules)
    for entries in in_window_by_parts(map(frame_of_table, batches), since=since, asked=()):
        ours = entries["merchant_id"].eq(run.merchant_id) & entries["account_id"].eq(run.account_id)
        yield pa.array(entries.loc[ours, "order_no"], pa.string())


def _came_late(
    connection: Connection, run: Run, *, before: Run | None, environment: Environment
) -> Iterator[pa.ChunkedArray]:
    """Old orders of files that no night has read; those of a first night are opening balance."""
    read = None if before is None else input_rows.load(connection, before.run_id)
    if read is None:
        return iter(())
    rules = environment.settings.rules
    first = opening(rules) or BEFORE_ALL
    return stored_orders.numbers_ordered(
        connection,
        run,
        spans=[(first, window_start(run, rules=rules))],
        behind=read.last_file,
        storages=storages_of(environment),
    )

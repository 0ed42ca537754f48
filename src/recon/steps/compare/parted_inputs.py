"""What a night read as the tables that are sealed before money, one after another.

The same rows as `inputs.sources_of` gives, which holds all of them beside each other to compare
them: here orders are read when they are written, answers not at all, and of the books no more than
what says which entries belong to the night.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import SCHEMAS
from recon.config.rules import Rules
from recon.matching.frames.arrays import text_column
from recon.matching.frames.names import is_among
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    Sources,
    frame_of,
)
from recon.model.freed_memory import give_back
from recon.model.words import KeyAnswer
from recon.proof.night_tables import FRAMES, frame_of_table, input_tables, table_of
from recon.steps.compare.bank_inputs import bank_source
from recon.steps.compare.inputs import of_this_account, settlement_begins, settlement_of
from recon.steps.compare.siblings import SIBLING_KEYS_MAX, with_siblings
from recon.steps.files.keep_ledger import unread_files
from recon.steps.files.never_read import WHOLE_FILE
from recon.steps.ground.booked_payouts import PAYOUTS, with_payouts
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_answers import asked_keys, newest_of_run
from recon.steps.ground.kept_books import LEDGER, entries_of_run, entry_batches
from recon.steps.ground.night_folder import storages_of
from recon.steps.ground.window import (
    OF_WINDOW,
    in_question,
    in_window_by_parts,
    ledger_start,
    opening,
    window_start,
)
from recon.store import Connection
from recon.store.nights import facts_rows, input_rows, ledger_rows, order_rows, stored_orders
from recon.store.nights.answer_parts import OWN_PHASES
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run

Rows = npt.NDArray[np.int64]
_Read = Callable[..., Iterator[pd.DataFrame]]
"""Columns -> entries of the account, see `_frames`."""
_Orders = Callable[..., pa.Table]
"""See `_own_orders`."""
_PLACE = ("merchant_id", "account_id")
_NAMED = (*_PLACE, "entry_id")
_OF_PAYOUTS = (
    *(*_NAMED, "order_no", "transaction_id", "entry_type", "booked_at"),
    *("reference_no", "reverses_entry_id", "currency", "amount"),
)
"""What says of a pay-out of the books whether it is told here."""


@dataclass(frozen=True, slots=True)
class PartedInputs:
    """What a night read."""

    tables: Iterator[tuple[str, pa.Table]]
    """As `night_tables.input_tables`, without the answers; each is made when it is asked for."""
    absent: tuple[str, ...]
    """Files without a row because the source was not given at all."""
    is_ledger_whole: bool
    """Whether it is the books as they lie in the archive; then its table has no row here."""


def parted_inputs(
    run: Run, *, inputs: Inputs, books_rows: int | None, environment: Environment
) -> PartedInputs | None:
    """What the run read so far, table by table.

    `books_rows`: of the books as they lie in the archive, None where they do not; a ledger that is
    all of them need not be written again.

    None where payments are from before the opening date, which decide over rows of all sources.

    Raises:
        ArchiveError: what was kept cannot be read.
        HistoryBrokenError: the rows of an order file are not those that the history bound.
    """
    rules = environment.settings.rules
    with environment.store.reading() as connection:
        keys = asked_keys(connection, run, phases=OWN_PHASES, environment=environment)
        asked = keys.take(pc.sort_indices(keys))
        read: _Orders = partial(_own_orders, run, asked=asked, inputs=inputs)
        joined = _joined(connection, run, inputs=inputs, orders=read, environment=environment)
        if _has_opening(connection, run, joined=joined, environment=environment):
            return None
        small, entries = _small(
            connection, run, asked=asked, inputs=inputs, rules=rules, environment=environment
        )
    give_back()
    places: dict[str, Callable[[], pa.Table]] = {
        "orders": partial(_orders, read, joined=joined, environment=environment),
        "universe": partial(_universe, run, asked=asked, joined=joined),
    }
    is_whole = entries is not None and len(entries) == books_rows
    if entries is not None and not is_whole:
        places[LEDGER] = partial(_ledger, run, rows=entries, environment=environment)
    absent = tuple(name for name, (field, _) in FRAMES.items() if getattr(small, field) is None)
    return PartedInputs(_tables(small, places=places), absent, is_whole)


def _tables(
    small: Sources, *, places: Mapping[str, Callable[[], pa.Table]]
) -> Iterator[tuple[str, pa.Table]]:
    for name, table in input_tables(small):
        if name != "answers":
            yield name, places[name]() if name in places else table


def _small(
    connection: Connection,
    run: Run,
    *,
    asked: pa.Array,
    inputs: Inputs,
    rules: Rules,
    environment: Environment,
) -> tuple[Sources, Rows | None]:
    """All sources but the rows of those with a row an order; the entries, None without books."""
    until = inputs.last_file
    names = text_column(asked.cast(pa.large_string()))
    loaded = order_rows.files_of_night(connection, run, until=until)
    rejected = order_rows.rejects_of_night(connection, run, until=until)
    files, rejects = of_this_account(loaded, rejected, run=run, siblings=inputs.siblings)
    source = ledger_rows.source_of(connection, run.run_id)
    lines, days, volumes = settlement_of(
        connection,
        run,
        asked=names,
        gateway=_payments(connection, run, inputs=inputs, environment=environment),
        inputs=inputs,
        rules=rules,
    )
    every = input_rows.instruction_frame(connection, run, until=inputs.last_instruction_version)
    moves = in_question(every, asked=names)
    sources = Sources(
        orders=frame_of((), columns=ORDER_COLUMNS),
        gateway=frame_of((), columns=GATEWAY_COLUMNS),
        ledger=frame_of((), columns=LEDGER_COLUMNS),
        instructions=moves,
        rejects=rejects,
        files=(*files, *((source,) if source else unread_files(rejects))),
        universe=frame_of((), columns=KEY_COLUMNS),
        settlement=lines,
        settled=days,
        volumes=volumes,
        bank=bank_source(connection, run, until=until, rules=rules),
    )
    if source is None or ledger_rows.unread(connection, run.run_id, whole_file=WHOLE_FILE):
        return replace(sources, ledger=None), None
    entries = _entries(
        connection, run, sources=sources, moves=moves, asked=names, environment=environment
    )
    return sources, entries


def _payments(
    connection: Connection, run: Run, *, inputs: Inputs, environment: Environment
) -> pd.DataFrame:
    """The transactions that the gateway showed, where settlement lines may be of them."""
    if not inputs.settlement:
        return pd.DataFrame({"transaction_id": text_column([])})
    table = newest_of_run(connection, run, environment=environment, columns=["transaction_id"])
    shown = pc.unique(table["transaction_id"])
    return pd.DataFrame({"transaction_id": text_column(shown.cast(pa.large_string()))})


def _entries(
    connection: Connection,
    run: Run,
    *,
    sources: Sources,
    moves: pd.DataFrame,
    asked: "pd.Series[str]",
    environment: Environment,
) -> Rows:
    """As `inputs.sources_of` chooses them: those of the window, and pay-outs that are told here."""
    rules, days = environment.settings.rules, sources.settled
    since = ledger_start(run, rules=rules)
    begins = None if days is None else settlement_begins(days, rules=rules)
    read = partial(_frames, connection, run, environment=environment)
    parts = in_window_by_parts(
        read(columns=OF_WINDOW), since=since, asked=asked, settled_from=begins
    )
    kept = np.sort(np.concatenate([np.zeros(0, np.int64), *map(_numbers, parts)]))
    return _with_payouts(
        kept,
        read=read,
        settlement=sources.settlement,
        moves=moves,
        begins=begins or since,
        rules=rules,
    )


def _with_payouts(
    kept: Rows,
    *,
    read: _Read,
    settlement: pd.DataFrame | None,
    moves: pd.DataFrame,
    begins: datetime,
    rules: Rules,
) -> Rows:
    """The entries with the pay-outs that are told here, and without those of batches before."""
    payouts = [frame[frame["entry_type"].isin(PAYOUTS)] for frame in read(columns=_OF_PAYOUTS)]
    if not any(map(len, payouts)):
        return kept
    booked = pd.concat(payouts, ignore_index=True)
    named = [
        frame[is_among(frame["entry_id"], booked["entry_id"])] for frame in read(columns=_NAMED)
    ]
    beside = pd.concat(named, ignore_index=True)
    beside = beside[beside["row"].isin(kept)]
    chosen = _numbers(
        with_payouts(
            beside,
            entries=booked,
            settlement=settlement,
            instructions=moves,
            since=begins,
            rules=rules,
        )
    )
    # What joins comes last, as there: words are numbered in the order in which they come.
    left = kept[~np.isin(kept, np.setdiff1d(_numbers(beside), chosen))]
    return np.concatenate([left, chosen[~np.isin(chosen, left)]])


def _frames(
    connection: Connection, run: Run, *, columns: Sequence[str], environment: Environment
) -> Iterator[pd.DataFrame]:
    """Entries of the account with the number of each row, some at a time."""
    at = 0
    for table in entry_batches(connection, run, columns=columns, environment=environment):
        frame = frame_of_table(table).assign(row=np.arange(at, at + len(table)))
        at += len(table)
        ours = frame["merchant_id"].eq(run.merchant_id) & frame["account_id"].eq(run.account_id)
        yield frame[ours]


def _numbers(frame: pd.DataFrame) -> Rows:
    return frame["row"].to_numpy(dtype=np.int64)


def _ledger(run: Run, *, rows: Rows, environment: Environment) -> pa.Table:
    with environment.store.reading() as connection:
        every = entries_of_run(connection, run, environment=environment)
    return _coded(every.take(pa.array(rows)), schema=SCHEMAS[LEDGER].columns)


def _own_orders(
    run: Run,
    connection: Connection,
    *,
    asked: pa.Array,
    inputs: Inputs,
    environment: Environment,
) -> pa.Table:
    """The orders of the window, and the older ones that this night asked about."""
    span: dict[str, Any] = {"storages": storages_of(environment), "until": inputs.last_file}
    since = window_start(run, rules=environment.settings.rules)
    table = stored_orders.current_rows(connection, run, since=since, **span)
    is_recent = pc.is_in(asked, value_set=table["order_no"])
    older = asked.filter(pc.invert(is_recent)).to_pylist()
    if not older:
        return table
    named = stored_orders.rows_of_keys(
        connection,
        merchant_id=run.merchant_id,
        accounts=[run.account_id],
        order_nos=older,
        **span,
    )
    return pa.concat_tables([table, named])


def _orders(read: _Orders, *, joined: Sources, environment: Environment) -> pa.Table:
    """These, and those of other accounts that complete one of this."""
    with environment.store.reading() as connection:
        facts_rows.refuse_changed(connection)
        own = read(connection, environment=environment)
    others = table_of(joined.orders, name="orders")
    return _coded(
        pa.concat_tables([own, others]) if len(others) else own, schema=SCHEMAS["orders"].columns
    )


def _joined(
    connection: Connection,
    run: Run,
    *,
    inputs: Inputs,
    orders: _Orders,
    environment: Environment,
) -> Sources:
    """Rows of the merchant's other accounts that complete a lonely key of this one, nothing else.

    Keys are lonely that only orders or only payments name; where there are many, nothing joins.
    """
    nothing = Sources(
        orders=frame_of((), columns=ORDER_COLUMNS),
        gateway=frame_of((), columns=GATEWAY_COLUMNS),
        ledger=None,
        instructions=None,
        universe=frame_of((), columns=KEY_COLUMNS),
    )
    if not inputs.siblings:
        return nothing
    ordered = pc.unique(orders(connection, environment=environment)["order_no"])
    paid = _paid(connection, run, environment=environment)
    unpaid = ordered.filter(pc.invert(pc.is_in(ordered, value_set=paid)))
    unordered = paid.filter(pc.invert(pc.is_in(paid, value_set=ordered)))
    if not 0 < len(unpaid) + len(unordered) <= SIBLING_KEYS_MAX:
        return nothing
    blank = {"amount": 0, "line": 0}
    rows = ({"order_no": key, **blank} for key in unpaid.to_pylist())
    payments = (
        {"order_no": key, **blank, "answer": KeyAnswer.FOUND.value} for key in unordered.to_pylist()
    )
    lonely = replace(
        nothing,
        orders=frame_of(rows, columns=ORDER_COLUMNS),
        gateway=frame_of(payments, columns=GATEWAY_COLUMNS),
    )
    whole = with_siblings(
        lonely,
        run=run,
        siblings=inputs.siblings,
        last_file=inputs.last_file,
        environment=environment,
    )
    return replace(
        whole,
        orders=whole.orders.iloc[len(lonely.orders) :],
        gateway=whole.gateway.iloc[len(lonely.gateway) :],
    )


def _paid(connection: Connection, run: Run, *, environment: Environment) -> pa.Array:
    """The orders of which the gateway showed a payment."""
    shown = newest_of_run(connection, run, environment=environment, columns=["answer"])
    is_found = pc.equal(shown["answer"].cast(pa.string()), KeyAnswer.FOUND.value)
    return pc.unique(shown["order_no"].filter(is_found))


def _has_opening(
    connection: Connection, run: Run, *, joined: Sources, environment: Environment
) -> bool:
    """Whether any payment is from before the opening date."""
    start = opening(environment.settings.rules)
    if start is None:
        return False
    if joined.gateway["transaction_date"].lt(start).any():
        return True
    name = "transaction_date"
    table = newest_of_run(connection, run, environment=environment, columns=[name])
    oldest = pc.min(table[name]).as_py()
    return oldest is not None and oldest < start


def _universe(run: Run, *, asked: pa.Array, joined: Sources) -> pa.Table:
    words = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    names, size = SCHEMAS["universe"].columns.names, len(asked)
    own = pa.table([pa.repeat(words[n], size) if n in words else asked for n in names], names)
    if joined.universe is not None and len(joined.universe):
        own = pa.concat_tables([own, table_of(joined.universe, name="universe").cast(own.schema)])
    return _coded(own, schema=SCHEMAS["universe"].columns)


def _coded(table: pa.Table, *, schema: pa.Schema) -> pa.Table:
    """The rows as the schema has them."""
    columns = [
        table[field.name].cast(pa.string()).dictionary_encode().cast(field.type)
        if pa.types.is_dictionary(field.type)
        else table[field.name]
        for field in schema
    ]
    return pa.table(columns, schema=schema).combine_chunks()

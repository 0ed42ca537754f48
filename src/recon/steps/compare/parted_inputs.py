"""What a night read as the tables that are sealed before money, one after another.

The same rows as `inputs.sources_of` gives, which holds all of them beside each other to compare
them: here orders are read when they are written, answers not at all, and of the books no more than
what says which entries belong to the night.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.answer_schemas import ANSWERS
from recon.archive.schemas import SCHEMAS
from recon.matching.frames.arrays import text_column
from recon.matching.frames.grouping import Rows
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
from recon.proof.night_tables import FRAMES, TARIFFS, frame_of_table, input_tables, table_of
from recon.steps.compare.bank_inputs import bank_source
from recon.steps.compare.coded_rows import coded
from recon.steps.compare.inputs import instructions_of, of_this_account, quarantined
from recon.steps.compare.parted_ledger import chosen_entries, ledger_table
from recon.steps.compare.parted_settlement import PartedSettlement, parted_settlement
from recon.steps.compare.siblings import SIBLING_KEYS_MAX, with_siblings
from recon.steps.files.keep_ledger import unread_files
from recon.steps.files.never_read import WHOLE_FILE
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_answers import asked_keys
from recon.steps.ground.kept_books import LEDGER
from recon.steps.ground.newest_answers import newest_of_run
from recon.steps.ground.night_folder import storages_of
from recon.steps.ground.window import (
    NOTHING_BEFORE,
    BeforeOpening,
    in_question,
    opening,
    window_start,
)
from recon.store import Connection
from recon.store.nights import facts_rows, ledger_rows, order_rows, stored_orders
from recon.store.nights.answer_parts import OWN_PHASES
from recon.store.nights.input_rows import Inputs
from recon.store.nights.night_lines import AskedFor
from recon.store.nights.runs import Run

_Orders = Callable[..., pa.Table]
"""See `_own_orders`."""


@dataclass(frozen=True, slots=True)
class PartedInputs:
    """What a night read."""

    small: Sources
    """What is no row of an order, an answer, an entry or a key that was asked for."""
    asked: pa.Array
    """What the gateway was asked for, sorted; without orders of the opening balance."""
    joined: Sources
    """Rows of the merchant's other accounts that complete a lonely key of this one."""
    entries: Rows | None
    """The numbers of the entries of the books that are compared; None: there are no books."""
    is_ledger_whole: bool
    """Whether these are the books as they lie in the archive; then their table has no row here."""
    before: BeforeOpening
    """The orders of the opening balance, of which no table has a row."""
    made: Mapping[str, Callable[[], pa.Table]]
    """The tables that are made when they are asked for, by their names."""

    @property
    def absent(self) -> tuple[str, ...]:
        """Files without a row because the source was not given at all."""
        return tuple(
            name for name, (field, _) in FRAMES.items() if getattr(self.small, field) is None
        )

    def tables(
        self,
        *,
        answers: Callable[[], pa.Table] | None = None,
        without: Collection[str] = (),
    ) -> Iterator[tuple[str, pa.Table]]:
        """As `night_tables.input_tables`; each table is made when it is asked for.

        Args:
            answers: makes the answers; None: they are not asked for.
            without: tables that nobody asks for.
        """
        for name, table in input_tables(self.small):
            if name == ANSWERS:
                if answers is not None:
                    yield name, answers()
            elif name not in {*without, TARIFFS}:
                yield name, self.made[name]() if name in self.made else table
        if TARIFFS in self.made and len(tariffs := self.made[TARIFFS]()):
            yield TARIFFS, tariffs


def parted_inputs(
    run: Run, *, inputs: Inputs, books_rows: int | None, environment: Environment
) -> PartedInputs:
    """What the run read so far, table by table.

    `books_rows`: of the books as they lie in the archive, None where they do not; a ledger that is
    all of them need not be written again.

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
        moves = in_question(
            instructions_of(connection, run, inputs=inputs, environment=environment),
            asked=text_column(asked.cast(pa.large_string())),
        )
        before = _before_opening(
            connection, run, orders=read, joined=joined, moves=moves, environment=environment
        )
        settled = parted_settlement(
            connection,
            run,
            asked=_asked_for(connection, run, asked=asked, inputs=inputs, environment=environment),
            inputs=inputs,
            before=before,
            rules=rules,
            environment=environment,
        )
        small, entries = _small(
            connection,
            run,
            asked=asked,
            moves=moves,
            settled=settled,
            inputs=inputs,
            environment=environment,
        )
    give_back()
    left = asked
    if before.order_nos:
        gone = pa.array(before.order_nos, pa.string())
        left = asked.filter(pc.invert(pc.is_in(asked, value_set=gone)))
    made: dict[str, Callable[[], pa.Table]] = {
        **(settled.made if settled else {}),
        "orders": partial(_orders, read, joined=joined, environment=environment),
        "universe": partial(_universe, run, asked=left, joined=joined, before=before),
    }
    is_whole = entries is not None and len(entries) == books_rows and not before.order_nos
    if entries is not None and not is_whole:
        made[LEDGER] = partial(
            ledger_table,
            run,
            rows=entries,
            before=before,
            is_settled=settled is not None,
            environment=environment,
        )
    return PartedInputs(small, left, joined, entries, is_whole, before, made)


def _small(
    connection: Connection,
    run: Run,
    *,
    asked: pa.Array,
    moves: pd.DataFrame,
    settled: PartedSettlement | None,
    inputs: Inputs,
    environment: Environment,
) -> tuple[Sources, Rows | None]:
    """All sources but the rows of those with a row an order; the entries, None without books."""
    until = inputs.last_file
    names = text_column(asked.cast(pa.large_string()))
    loaded = order_rows.files_of_night(connection, run, until=until)
    rejected = order_rows.rejects_of_night(connection, run, until=until)
    waiting = quarantined(connection, run, inputs=inputs)
    files, rejects = of_this_account(
        loaded, rejected, run=run, siblings=inputs.siblings, waiting=waiting
    )
    source = ledger_rows.source_of(connection, run.run_id)
    sources = Sources(
        orders=frame_of((), columns=ORDER_COLUMNS),
        gateway=frame_of((), columns=GATEWAY_COLUMNS),
        ledger=frame_of((), columns=LEDGER_COLUMNS),
        instructions=moves,
        rejects=rejects,
        quarantined=waiting,
        files=(*files, *((source,) if source else unread_files(rejects))),
        universe=frame_of((), columns=KEY_COLUMNS),
        settlement=settled.pay_outs if settled else None,
        settled=settled.days if settled else None,
        volumes=settled.volumes if settled else None,
        bank=bank_source(connection, run, until=until, rules=environment.settings.rules),
    )
    if source is None or ledger_rows.unread(connection, run.run_id, whole_file=WHOLE_FILE):
        return replace(sources, ledger=None), None
    entries = chosen_entries(
        connection, run, sources=sources, moves=moves, asked=names, environment=environment
    )
    return sources, entries


def _asked_for(
    connection: Connection,
    run: Run,
    *,
    asked: pa.Array,
    inputs: Inputs,
    environment: Environment,
) -> AskedFor:
    """Orders and transactions whose settlement lines count one by one, where there may be any."""
    if not inputs.settlement:
        return AskedFor.of()
    table = newest_of_run(connection, run, environment=environment, columns=["transaction_id"])
    return AskedFor(asked, pc.unique(table["transaction_id"]))


def _own_orders(
    run: Run,
    connection: Connection,
    *,
    asked: pa.Array,
    inputs: Inputs,
    environment: Environment,
) -> pa.Table:
    """The orders of the window, and the older ones that this night asked about."""
    return stored_orders.orders_in_view(
        connection,
        run,
        since=window_start(run, rules=environment.settings.rules),
        asked=asked,
        until=inputs.last_file,
        storages=storages_of(environment),
    )


def _orders(read: _Orders, *, joined: Sources, environment: Environment) -> pa.Table:
    """These, and those of other accounts that complete one of this."""
    with environment.store.reading() as connection:
        facts_rows.refuse_changed(connection)
        own = read(connection, environment=environment)
    others = table_of(joined.orders, name="orders")
    return coded(
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


def _before_opening(
    connection: Connection,
    run: Run,
    *,
    orders: _Orders,
    joined: Sources,
    moves: pd.DataFrame,
    environment: Environment,
) -> BeforeOpening:
    """The orders of payments from before the opening date of which nobody knows anything here."""
    start = opening(environment.settings.rules)
    if start is None:
        return NOTHING_BEFORE
    read = partial(newest_of_run, connection, run, environment=environment)
    oldest = pc.min(read(columns=["transaction_date"])["transaction_date"]).as_py()
    if not (joined.gateway["transaction_date"] < start).any() and (oldest or start) >= start:
        return NOTHING_BEFORE
    names = ["order_no", "transaction_id", "answer", "transaction_date"]
    own = read(columns=names).select(names)
    shown = pd.concat([frame_of_table(own), joined.gateway[names]], ignore_index=True)
    is_old = shown["answer"].eq(KeyAnswer.FOUND.value) & (shown["transaction_date"] < start)
    ordered = orders(connection, environment=environment)["order_no"].cast(pa.large_string())
    younger = shown.loc[shown["transaction_date"] >= start, "order_no"]
    known = pd.concat([text_column(ordered), joined.orders["order_no"], moves["order_no"], younger])
    gone = {*shown.loc[is_old & ~is_among(shown["order_no"], known), "order_no"]}
    payments = {*shown.loc[is_among(shown["order_no"], gone), "transaction_id"]} - {""}
    return BeforeOpening(frozenset(gone), frozenset(payments))


def _universe(run: Run, *, asked: pa.Array, joined: Sources, before: BeforeOpening) -> pa.Table:
    words = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    names, size = SCHEMAS["universe"].columns.names, len(asked)
    own = pa.table([pa.repeat(words[n], size) if n in words else asked for n in names], names)
    if joined.universe is not None and len(joined.universe):
        others = table_of(before.without(joined.universe), name="universe")
        own = pa.concat_tables([own, others.cast(own.schema)])
    return coded(own, schema=SCHEMAS["universe"].columns)

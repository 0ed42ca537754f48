"""What a night read as the tables that are sealed before money, one after another.

The same rows as `inputs.sources_of` gives, which holds all of them beside each other to compare
them: here orders are read when they are written, answers not at all, and of the books no more than
what says which entries belong to the night.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.answer_schemas import ANSWERS
from recon.archive.schemas import SCHEMAS
from recon.matching.frames.arrays import text_column
from recon.matching.frames.grouping import Rows
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
from recon.proof.night_tables import FRAMES, TARIFFS, input_tables, table_of
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
    """What the gateway was asked for, sorted."""
    joined: Sources
    """Rows of the merchant's other accounts that complete a lonely key of this one."""
    entries: Rows | None
    """The numbers of the entries of the books that are compared; None: there are no books."""
    is_ledger_whole: bool
    """Whether these are the books as they lie in the archive; then their table has no row here."""
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
        settled = parted_settlement(
            connection,
            run,
            asked=_asked_for(connection, run, asked=asked, inputs=inputs, environment=environment),
            inputs=inputs,
            rules=rules,
            environment=environment,
        )
        small, entries = _small(
            connection,
            run,
            asked=asked,
            settled=settled,
            inputs=inputs,
            environment=environment,
        )
    give_back()
    made: dict[str, Callable[[], pa.Table]] = {
        **(settled.made if settled else {}),
        "orders": partial(_orders, read, joined=joined, environment=environment),
        "universe": partial(_universe, run, asked=asked, joined=joined),
    }
    is_whole = entries is not None and len(entries) == books_rows
    if entries is not None and not is_whole:
        made[LEDGER] = partial(ledger_table, run, rows=entries, environment=environment)
    return PartedInputs(small, asked, joined, entries, is_whole, made)


def _small(
    connection: Connection,
    run: Run,
    *,
    asked: pa.Array,
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
    every = instructions_of(connection, run, inputs=inputs, environment=environment)
    moves = in_question(every, asked=names)
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
    return coded(own, schema=SCHEMAS["universe"].columns)

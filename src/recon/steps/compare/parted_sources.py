"""What a night compares without the rows of its orders, answers, entries and asked keys.

As `inputs.sources_of` gives it, which holds all of these rows; their tables are made one after
another, and only those that may say something else than what was sealed before money moved.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.answer_schemas import ANSWERS, REPLIES
from recon.archive.fields import INSTANT
from recon.archive.rows_file import row_batches
from recon.archive.schemas import SCHEMAS
from recon.matching.frames.sources import KEY_COLUMNS, LeftOut, Sources
from recon.matching.sides.gateway_side import shown
from recon.model.freed_memory import give_back
from recon.proof.bridge import FROM_OTHERS
from recon.proof.night_tables import frame_of_table, table_of
from recon.steps.compare.inputs import unread_batches
from recon.steps.compare.parted_inputs import PartedInputs, parted_inputs
from recon.steps.compare.parted_ledger import arrived_ledger, older_entries
from recon.steps.files.arrived_rows import order_steps, with_steps, with_taken
from recon.steps.files.lacking_orders import orders_lack_since
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import LEDGER
from recon.steps.ground.newest_answers import newest_of_run
from recon.steps.ground.night_folder import BOOKS, INPUTS, links, newest, storages_of
from recon.steps.ground.sealed_night import SealedNight, sealed_night
from recon.steps.ground.window import PAYMENTS, left_out, window_start
from recon.store import Connection
from recon.store.nights import facts_rows, order_rows, settlement_rows
from recon.store.nights.input_rows import Inputs
from recon.store.nights.order_bridge import OrderSteps
from recon.store.nights.runs import Run

_OF_ORDERS = ("account_id", "order_no", "ordered_at")
_ANSWERS = SCHEMAS[ANSWERS].columns
_SHARED = tuple(name for name in _ANSWERS.names if name in REPLIES.columns.names)


@dataclass(frozen=True, slots=True)
class PartedSources:
    """What a night compares."""

    small: Sources
    """Every field of it, with frames of no row for what its tables have."""
    parted: PartedInputs
    run: Run
    environment: Environment
    unchanged: frozenset[str]
    """Tables that say what was sealed before money moved; nobody has to make them."""

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """The inputs as they are compared."""
        return self.parted.tables(answers=self._answers, without=self.unchanged)

    def _answers(self) -> pa.Table:
        with self.environment.store.reading() as connection:
            table = _answers(connection, self.run, parted=self.parted, environment=self.environment)
        return table.filter(pc.invert(_are_before(table, parted=self.parted)))


def _answers(
    connection: Connection, run: Run, *, parted: PartedInputs, environment: Environment
) -> pa.Table:
    """The run's own answers and those of other accounts that join them.

    As columns: frames (`gateway_frame`) would hold each text of a large night twice more.
    """
    newest = newest_of_run(connection, run, environment=environment, columns=_SHARED)
    columns = [_of_replies(newest, field=field) for field in _ANSWERS]
    joined = table_of(parted.joined.gateway, name=ANSWERS)
    return pa.concat_tables([pa.table(columns, schema=_ANSWERS), joined]).unify_dictionaries()


def _are_before(answers: pa.Table, *, parted: PartedInputs) -> pa.ChunkedArray:
    """Which are of orders of the opening balance."""
    return pc.is_in(answers["order_no"], value_set=pa.array(parted.before.order_nos, pa.string()))


def _payments_before(
    connection: Connection, run: Run, *, parted: PartedInputs, environment: Environment
) -> tuple[LeftOut, ...]:
    """What is left out of the answers."""
    if not parted.before.order_nos:
        return ()
    answers = _answers(connection, run, parted=parted, environment=environment)
    left = frame_of_table(answers.filter(_are_before(answers, parted=parted)))
    net = shown(left, rules=environment.settings.rules).net
    return left_out(PAYMENTS, currency=left["currency"], net=net)


def _of_replies(replies: pa.Table, *, field: pa.Field) -> pa.ChunkedArray:
    if field.name in _SHARED:
        return replies[field.name].cast(field.type)
    cell = {"source": "gateway", "line": 0}.get(field.name)
    return pa.chunked_array([pa.repeat(pa.scalar(cell), len(replies)).cast(field.type)])


def parted_sources(run: Run, *, inputs: Inputs, environment: Environment) -> PartedSources:
    """What a run compares, from its tables as it read them.

    Raises:
        ArchiveError: what was kept cannot be read.
        HistoryBrokenError: the rows of an order file are not those that the history bound.
    """
    with environment.store.reading() as connection:
        facts_rows.refuse_changed(connection)
        night = sealed_night(connection, run, environment=environment)
        books = newest(links(connection, run.run_id)).get(BOOKS)
    inputs_step = night.steps.get(INPUTS)
    named = inputs_step.manifest.about.after.get(BOOKS) if inputs_step else None
    rows = night.steps[BOOKS].manifest.files[0].rows if named and named == books else None
    parted = parted_inputs(run, inputs=inputs, books_rows=rows, environment=environment)
    known = _SealedOrders.of(night, run=run, parted=parted, inputs=inputs)
    with environment.store.reading() as connection:
        small = _small(
            connection, run, parted=parted, inputs=inputs, sealed=known, environment=environment
        )
    unchanged = {"orders", "universe"} if known is not None and known.is_all else set()
    unchanged |= {LEDGER} if parted.is_ledger_whole else set()
    return PartedSources(small, parted, run, environment, frozenset(unchanged))


def _small(
    connection: Connection,
    run: Run,
    *,
    parted: PartedInputs,
    inputs: Inputs,
    sealed: "_SealedOrders | None",
    environment: Environment,
) -> Sources:
    """What tables of other rows say of the rows that are compared, and of those that are not."""
    until = inputs.last_file
    loaded = order_rows.files_of_night(connection, run, until=until)
    became = _steps(
        connection, run, parted=parted, until=until, sealed=sealed, environment=environment
    )
    settled = settlement_rows.taken(connection, run, storages=storages_of(environment), until=until)
    give_back()
    small = replace(
        parted.small,
        exported=inputs.exported,
        agreed_write_offs=inputs.agreed_write_offs,
        merged_rows=with_taken(loaded, taken={**became.taken, **settled}),
        unread_batches=unread_batches(connection, run, inputs=inputs),
        orders_lack_since=orders_lack_since(
            connection, run, until=until, calendar=environment.settings.rules.business_calendar
        ),
    )
    orders = {**became.steps, FROM_OTHERS: len(parted.joined.orders)}
    payments = _payments_before(connection, run, parted=parted, environment=environment)
    if parted.entries is None:
        return with_steps(replace(small, opening_balance=payments), orders=orders, books=None)
    books = arrived_ledger(
        connection,
        run,
        rows=parted.entries,
        before=parted.before,
        is_settled=small.settlement is not None,
        refused=order_rows.rejects_of_night(connection, run, until=until),
        environment=environment,
    )
    old = older_entries(connection, run, rows=parted.entries, environment=environment)
    return with_steps(replace(small, opening_balance=(*old, *payments)), orders=orders, books=books)


def _steps(
    connection: Connection,
    run: Run,
    *,
    parted: PartedInputs,
    until: int,
    sealed: "_SealedOrders | None",
    environment: Environment,
) -> OrderSteps:
    """What became of the order rows of tonight's files."""
    since = window_start(run, rules=environment.settings.rules)
    tables = [parted.made["orders"]()] if sealed is None else sealed.orders()
    older = set[str]()
    for table in tables:
        is_older = pc.less(table["ordered_at"], pa.scalar(since, INSTANT))
        own = pc.and_(is_older, _is_of(run, table))
        older.update(table["order_no"].filter(own).to_pylist())
    give_back()
    return order_steps(
        connection, run, since=since, older=sorted(older), until=until, environment=environment
    )


@dataclass(frozen=True, slots=True)
class _SealedOrders:
    """The orders that were sealed before money moved, where those of now are the same."""

    night: SealedNight
    is_all: bool
    """Whether no row of another account is there, then or now."""

    @classmethod
    def of(
        cls, night: SealedNight, *, run: Run, parted: PartedInputs, inputs: Inputs
    ) -> "_SealedOrders | None":
        """None where a file came since, or where other keys were asked for."""
        sealed = night.steps.get(INPUTS)
        if sealed is None or sealed.manifest.about.last_file != inputs.last_file:
            return None
        own, others = 0, len(parted.joined.orders) + len(parted.joined.gateway)
        for table in _inputs_of(night, name="universe", columns=[*KEY_COLUMNS]):
            numbers = table["order_no"].filter(_is_of(run, table))
            if not parted.asked.slice(own, len(numbers)).equals(numbers.combine_chunks()):
                return None
            own += len(numbers)
            others += len(table) - len(numbers)
        return cls(night, is_all=not others) if own == len(parted.asked) else None

    def orders(self) -> Iterator[pa.Table]:
        """When the account's orders were ordered."""
        return _inputs_of(self.night, name="orders", columns=_OF_ORDERS)


def _inputs_of(night: SealedNight, *, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Columns of a table that the inputs hold themselves, whatever was compared in its place."""
    earlier = replace(night, steps={INPUTS: night.steps[INPUTS]})
    with earlier.opened(name) as (file, path):
        yield from row_batches(file, name=path, columns=[*columns])


def _is_of(run: Run, table: pa.Table) -> pa.ChunkedArray:
    return pc.equal(table["account_id"].cast(pa.string()), run.account_id)

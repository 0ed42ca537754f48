"""The tables that a night compares, selected once, before money moves.

Orders and settlement lines are read when their table is written: all rows are never in memory
together.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import ANSWERS, INSTANT, SCHEMAS
from recon.config.fee_contract import FACTS, PRICED
from recon.config.rules import Rules
from recon.matching.frames.arrays import text_column
from recon.matching.frames.bank_sources import BankSource, NightOfBank
from recon.matching.frames.coding import is_among
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    LeftOut,
    SettledDays,
    Sources,
    frame_of,
)
from recon.matching.sides.gateway_side import answer_amounts
from recon.matching.sides.settlement_side import PAY_OUT
from recon.model.terms import KeyAnswer, Quarantined, Reject, SourceFile, SourceKind
from recon.model.uptime import give_back
from recon.proof.ledger_bridge import FROM_OTHERS
from recon.proof.night_tables import (
    OPENING,
    SETTLEMENT,
    TARIFFS,
    absent_of,
    compared_tables,
    frame_of_table,
    input_tables,
    table_of,
)
from recon.steps.compare.inputs import instructions_of
from recon.steps.compare.selected_entries import ChosenEntries, chosen_entries
from recon.steps.compare.siblings import (
    SIBLING_KEYS_MAX,
    OfSiblings,
    of_siblings,
)
from recon.steps.files.arrived_rows import (
    declared_accounts,
    orders_lack_since,
)
from recon.steps.files.incomplete import WHOLE_FILE
from recon.steps.files.store_ledger import unread_files
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import GatewayAnswers
from recon.steps.runtime.night_folder import (
    LEDGER,
    StoredLedger,
    storages_of,
)
from recon.steps.runtime.window import (
    NOTHING_BEFORE,
    PAYMENTS,
    BeforeOpening,
    in_question,
    left_out,
    opening,
    settled_since,
    window_start,
)
from recon.store import Connection
from recon.store.nights import (
    bank_rows,
    facts_rows,
    journal_rows,
    order_rows,
    settlement_rows,
)
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import (
    NO_ROWS,
    NamedPayments,
    NightLines,
    Settlements,
    frame_of_lines,
)
from recon.store.nights.stored_orders import StoredOrders, rows_by_file


@dataclass(frozen=True, slots=True)
class SelectedLines:
    """The settlement lines of an account that a night compares."""

    payout_lines: pd.DataFrame
    """SETTLEMENT_COLUMNS of the pay-out lines, which give the total of a batch."""
    days: SettledDays
    volumes: pd.DataFrame | None
    """See `Sources.volumes`."""
    lines: NightLines
    before: BeforeOpening

    def table(self, name: str) -> pa.Table:
        """The lines as a table with the file's columns; tariffs are empty without any."""
        schema, with_text = SCHEMAS[name].columns, FACTS if name == TARIFFS else ()
        if self.before.order_nos:
            frame = frame_of_lines(self.lines.table(with_text=with_text))
            return table_of(self.before.lines(frame), name=name)
        return self.lines.table(schema.names, with_text=with_text).cast(schema)


def _settled_days(settled: Settlements) -> SettledDays | None:
    """The days that the settlement files prove; None where no file has reported the account yet."""
    first, last = settled.days_reported()
    if not first:
        return None
    missing, waits_for = settled.missing(whole_file=WHOLE_FILE), ""
    if missing:
        business_date, waits_for = missing[0]
        last = min(last, (business_date - timedelta(days=1)).isoformat())
    return SettledDays(first, last, waits_for)


@dataclass(frozen=True, slots=True)
class RunReading:
    """A run, how far it reads, and the connection over which it reads.

    Its methods raise ArchiveError where stored rows cannot be read.
    """

    connection: Connection
    run: Run
    inputs: Inputs
    environment: Environment

    @property
    def _rules(self) -> Rules:
        return self.environment.settings.rules

    @property
    def _answered(self) -> GatewayAnswers:
        return GatewayAnswers(self.connection, self.run, self.environment)

    @property
    def _stored(self) -> StoredOrders:
        storages = storages_of(self.environment)
        return StoredOrders(self.connection, self.run, storages, self.inputs.last_file)

    @property
    def _settled(self) -> Settlements:
        storages = storages_of(self.environment)
        return Settlements(self.connection, self.run, storages, self.inputs.last_file)

    def queried(self) -> pa.Array:
        """Order numbers that the gateway was queried for, sorted."""
        keys = self._answered.queried_keys()
        return keys.take(pc.sort_indices(keys))

    def lines(self, *, payments: NamedPayments, before: BeforeOpening) -> SelectedLines | None:
        """Settlement lines; None where no files are declared, or none has reported the account."""
        if not self.inputs.settlement:
            return None
        settled, contract = self._settled, self._rules.fee_contract
        days = _settled_days(settled)
        if days is None:
            return None
        per_payment = replace(payments, by_payment=self._rules.ledger.fees_per == "payment")
        lines = settled.lines(
            since=settled_since(self.run, rules=self._rules), payments=per_payment
        )
        volumes = None
        if contract is not None and contract.asks_months:
            priced = lines.table(["settled_on"], entry_types=PRICED)
            days_priced = priced["settled_on"].unique().to_pylist()
            first = min(days_priced, default=self.run.business_date.isoformat())
            # The tier of a day is decided by its own month, or by the month before.
            oldest = date.fromisoformat(first).replace(day=1)
            since = (oldest - timedelta(days=1)).replace(day=1)
            volumes = settled.volumes(since=since.isoformat())
        paid = before.lines(frame_of_lines(lines.table(entry_types=[PAY_OUT])))
        return SelectedLines(paid, days, volumes, lines, before)

    def named_payments(self, queried: pa.Array) -> NamedPayments:
        """Orders and payments whose settlement lines count one by one, where there may be any."""
        if not self.inputs.settlement:
            return NamedPayments.of()
        table = self._answered.newest(["transaction_id"])
        return NamedPayments(queried, pc.unique(table["transaction_id"]))

    def own_orders(self, queried: pa.Array, *, columns: Sequence[str] = ()) -> pa.Table:
        """Orders of the window, and older ones that this night queried."""
        since = window_start(self.run, rules=self._rules)
        return self._stored.in_view(since=since, queried=queried, columns=columns)

    def orders(self, queried: pa.Array, *, joined: OfSiblings, files: Counter[int]) -> pa.Table:
        """The own orders and those of other accounts that complete a key; opens a new connection.

        `files` receives the number of those from before the window per order file, by its number.
        """
        with self.environment.store.reading() as connection:
            facts_rows.refuse_changed(connection)
            own = replace(self, connection=connection).own_orders(queried)
        since = pa.scalar(window_start(self.run, rules=self._rules), INSTANT)
        files.clear()
        files.update(rows_by_file(own.filter(pc.less(own["ordered_at"], since))))
        schema = SCHEMAS["orders"].columns
        tables = [own.select(schema.names).cast(schema), table_of(joined.orders, name="orders")]
        return pa.concat_tables(tables).unify_dictionaries()

    def small(
        self,
        queried: pa.Array,
        *,
        moves: pd.DataFrame,
        settled: SelectedLines | None,
        before: BeforeOpening,
    ) -> tuple[Sources, ChosenEntries | None]:
        """The small sources, and the ledger entries that are compared (None without a ledger)."""
        run, connection, inputs = self.run, self.connection, self.inputs
        loaded = order_rows.files_of_night(connection, run, until=inputs.last_file)
        rejected = order_rows.rejects_of_night(connection, run, until=inputs.last_file)
        waiting: tuple[Quarantined, ...] = ()
        if inputs.last_reject_end is not None:
            ends = {"last_file": inputs.last_file, "last_end": inputs.last_reject_end}
            waiting = order_rows.outstanding(connection, run, **ends)
        files, rejects = of_this_account(
            loaded, rejected, run=run, siblings=inputs.siblings, waiting=waiting
        )
        source = journal_rows.source_of(connection, run.run_id)
        sources = Sources(
            orders=frame_of((), columns=ORDER_COLUMNS),
            gateway=frame_of((), columns=GATEWAY_COLUMNS),
            ledger=frame_of((), columns=LEDGER_COLUMNS),
            instructions=moves,
            rejects=rejects,
            quarantined=waiting,
            files=(*files, *((source,) if source else unread_files(rejects))),
            universe=frame_of((), columns=KEY_COLUMNS),
            settlement=settled.payout_lines if settled else None,
            settled=settled.days if settled else None,
            volumes=settled.volumes if settled else None,
            bank=self._bank(),
        )
        if source is None or journal_rows.unread(connection, run.run_id, whole_file=WHOLE_FILE):
            return replace(sources, ledger=None), None
        entries = chosen_entries(
            StoredLedger(connection, run, self.environment),
            sources=sources,
            moves=moves,
            queried=text_column(queried.cast(pa.large_string())),
            before=before,
            rejected=rejected,
            rules=self._rules,
        )
        return sources, entries

    def joined(self, own_numbers: Callable[[], pa.ChunkedArray]) -> OfSiblings:
        """Rows of the merchant's other accounts that complete a one-sided key, nothing else.

        A key is one-sided if only orders or only payments have it; with too many, nothing joins.
        """
        if not self.inputs.siblings:
            return OfSiblings()
        ordered = pc.unique(own_numbers())
        newest = self._answered.newest(["answer"])
        is_found = pc.equal(newest["answer"].cast(pa.string()), KeyAnswer.FOUND.value)
        paid = pc.unique(newest["order_no"].filter(is_found))
        unpaid = ordered.filter(pc.invert(pc.is_in(ordered, value_set=paid)))
        unordered = paid.filter(pc.invert(pc.is_in(paid, value_set=ordered)))
        if not 0 < len(unpaid) + len(unordered) <= SIBLING_KEYS_MAX:
            return OfSiblings()
        return of_siblings(
            self.run,
            unpaid=unpaid.to_pylist(),
            unordered=unordered.to_pylist(),
            siblings=self.inputs.siblings,
            last_file=self.inputs.last_file,
            environment=self.environment,
        )

    def before_opening(
        self,
        own_numbers: Callable[[], pa.ChunkedArray],
        *,
        joined: OfSiblings,
        moves: pd.DataFrame,
    ) -> BeforeOpening:
        """Orders paid before the opening date, without order row, instruction or later payment."""
        start = opening(self._rules)
        if start is None:
            return NOTHING_BEFORE
        read = self._answered.newest
        oldest = pc.min(read(["transaction_date"])["transaction_date"]).as_py()
        if not (joined.gateway["transaction_date"] < start).any() and (oldest or start) >= start:
            return NOTHING_BEFORE
        names = ["order_no", "transaction_id", "answer", "transaction_date"]
        own = read(names).select(names)
        answered = pd.concat([frame_of_table(own), joined.gateway[names]], ignore_index=True)
        is_old = answered["answer"].eq(KeyAnswer.FOUND.value) & (
            answered["transaction_date"] < start
        )
        ordered = own_numbers().cast(pa.large_string())
        younger = answered.loc[answered["transaction_date"] >= start, "order_no"]
        known = [text_column(ordered), joined.orders["order_no"], moves["order_no"], younger]
        too_old = {
            *answered.loc[is_old & ~is_among(answered["order_no"], pd.concat(known)), "order_no"]
        }
        payments = {*answered.loc[is_among(answered["order_no"], too_old), "transaction_id"]} - {""}
        return BeforeOpening(frozenset(too_old), frozenset(payments))

    def _bank(self) -> BankSource | None:
        """Statements of the banks that receive the account's payouts; None where none has arrived.

        Payouts are those of every account that these banks serve: an entry may belong to any.
        """
        run, until, rules = self.run, self.inputs.last_file, self._rules
        account = (run.merchant_id, run.account_id)
        banks = tuple(name for name, bank in rules.bank.items() if account in bank.served)
        source = (
            bank_rows.source_of(self.connection, run, banks=banks, until=until) if banks else None
        )
        if source is None:
            return None
        served = {each for name in banks for each in rules.bank[name].served}
        settled = bank_rows.settled_to(self.connection, accounts=served, until=until)
        known = {}
        for name in banks:
            other_accounts = rules.bank[name].served - {account}
            others = [settled[each] for each in other_accounts if each in settled]
            if others:
                known[name] = min(others)
        payouts = bank_rows.payouts_of(
            self.connection,
            run,
            accounts=served,
            storages=storages_of(self.environment),
            until=until,
        )
        night = NightOfBank(account, banks, payouts, known, settled_since(run, rules=rules))
        return BankSource(source.entries, source.statements, source.refused, source.notes, night)

    def answered_keys(self, chosen: "Selected") -> pa.Table:
        """KEY_COLUMNS of the answers to tonight's queries."""
        own = self._answered.newest([*KEY_COLUMNS]).select([*KEY_COLUMNS])
        joined = table_of(chosen.joined.gateway, name=ANSWERS).select([*KEY_COLUMNS])
        keys = pa.concat_tables([own, joined.cast(own.schema)])
        too_old = pa.array(chosen.before.order_nos, pa.string())
        return keys.filter(pc.invert(pc.is_in(keys["order_no"], value_set=too_old)))

    def with_steps(self, chosen: "Selected", *, files: Counter[int]) -> Sources:
        """The small sources with what other tables record of the rows compared or left out.

        `files`: see `orders`.
        """
        connection, run, inputs, rules = self.connection, self.run, self.inputs, self._rules
        loaded = order_rows.files_of_night(connection, run, until=inputs.last_file)
        since, declared = window_start(run, rules=rules), declared_accounts(self.environment)
        became = self._stored.steps(files, since=since, declared=declared)
        repeats = chosen.settled.lines.repeats if chosen.settled else NO_ROWS
        taken = {**became.taken, **settlement_rows.repeat_counts(connection, repeats)}
        give_back()
        unread = None
        if inputs.settlement:
            batches = self._settled.unread_batches(siblings=inputs.siblings)
            unread = frozenset((run.merchant_id, run.account_id, *each) for each in batches)
        small = replace(
            chosen.small,
            exported=inputs.exported,
            agreed_write_offs=inputs.agreed_write_offs,
            merged_rows={file.name: taken.get(file.name, counts) for file, counts in loaded},
            unread_batches=unread,
            orders_lack_since=orders_lack_since(
                connection, run, until=inputs.last_file, calendar=rules.business_calendar
            ),
        )
        orders = {**became.steps, FROM_OTHERS: len(chosen.joined.orders)}
        arrived: dict[SourceKind, Mapping[str, int]] = {SourceKind.ORDERS: orders}
        payments: tuple[LeftOut, ...] = ()
        if chosen.before.order_nos:
            own, others = self._answered.gateway_frame(), chosen.joined.gateway
            last_reported = pd.concat([own, others[own.columns]], ignore_index=True)
            left = last_reported[is_among(last_reported["order_no"], chosen.before.order_nos)]
            net = answer_amounts(left, rules=rules).net
            payments = left_out(PAYMENTS, currency=left["currency"], net=net)
        if chosen.entries is None:
            return replace(small, opening_balance=payments, arrived=arrived)
        arrived[SourceKind.LEDGER] = chosen.entries.arrived
        balance = (*chosen.entries.older, *payments)
        sums = chosen.entries.sums
        return replace(small, opening_balance=balance, arrived=arrived, ledger_sums=sums)


@dataclass(frozen=True, slots=True)
class Selected:
    """The inputs that a night has selected."""

    read: RunReading
    """Its connection is closed: each table is made over a new one."""
    small: Sources
    """All sources except the rows of orders, answers, entries and queried keys."""
    queried: pa.Array
    """Queried order numbers, sorted."""
    joined: OfSiblings
    """Rows of the merchant's other accounts that complete a one-sided key of this account."""
    entries: ChosenEntries | None
    """Ledger entries; None: there is no ledger. Where all are compared, they have no table here but
    that of the ledger."""
    before: BeforeOpening
    """The orders of the opening balance, which have no row in any table."""
    settled: SelectedLines | None

    @property
    def absent(self) -> tuple[str, ...]:
        """Names of the files that have no row because their source was not given at all."""
        return absent_of(self.small)

    def tables(self, *, rules: Rules) -> Iterator[tuple[str, pa.Table]]:
        """Tables as from `input_tables`, each made on request; the small ones last.

        Left out are answers, which are queried again once money has moved, a ledger that is
        compared whole, and what an earlier night left open.
        """
        files = Counter[int]()
        for name, table in input_tables(self.small):
            if name == LEDGER and self.entries is not None and self.entries.are_all:
                continue
            if name == LEDGER and self.entries is not None:
                yield name, table_of(self.entries.compared, name=name)
            elif name == SETTLEMENT and self.settled:
                yield name, self.settled.table(name)
            elif name == "orders":
                yield name, self.read.orders(self.queried, joined=self.joined, files=files)
            elif name == "universe":
                yield name, self._universe()
            elif name not in {ANSWERS, TARIFFS}:
                yield name, table
        if self.settled and len(tariffs := self.settled.table(TARIFFS)):
            yield TARIFFS, tariffs
        with self.read.environment.store.reading() as connection:
            whole = replace(self.read, connection=connection).with_steps(self, files=files)
        small = compared_tables(whole, rules=rules, previous=None, ledger_sums=whole.ledger_sums)
        yield from ((name, table) for name, table in small.items() if name != OPENING)

    def _universe(self) -> pa.Table:
        """The queried keys, without those of the opening balance, and those of other accounts."""
        too_old = pa.array(self.before.order_nos, pa.string())
        left = self.queried.filter(pc.invert(pc.is_in(self.queried, value_set=too_old)))
        run, schema = self.read.run, SCHEMAS["universe"].columns
        words = {"merchant_id": run.merchant_id, "account_id": run.account_id}
        cells = [pa.repeat(words[n], len(left)) if n in words else left for n in schema.names]
        own = pa.table(cells, schema.names)
        keys = self.joined.gateway[[*KEY_COLUMNS]].drop_duplicates()
        others = table_of(self.before.without(keys), name="universe")
        return pa.concat_tables([own, others.cast(own.schema)]).cast(schema).unify_dictionaries()


def selected_inputs(run: Run, *, inputs: Inputs, environment: Environment) -> Selected:
    """Select what the run compares of what it has read so far.

    Raises:
        ArchiveError: stored rows cannot be read.
        HistoryBrokenError: the rows of an order file differ from those recorded in the history.
    """
    with environment.store.reading() as connection:
        # Files are opened only after their records were checked against the history.
        facts_rows.refuse_changed(connection)
        read = RunReading(connection, run, inputs, environment)
        queried = read.queried()
        own_numbers = cache(lambda: read.own_orders(queried, columns=["order_no"])["order_no"])
        joined = read.joined(own_numbers)
        moves = in_question(
            instructions_of(connection, run, inputs=inputs, environment=environment),
            queried=text_column(queried.cast(pa.large_string())),
        )
        before = read.before_opening(own_numbers, joined=joined, moves=moves)
        settled = read.lines(payments=read.named_payments(queried), before=before)
        small, entries = read.small(queried, moves=moves, settled=settled, before=before)
    give_back()
    return Selected(read, small, queried, joined, entries, before, settled)


def of_this_account(
    loaded: Iterable[tuple[SourceFile, object]],
    rejects: Sequence[Reject],
    *,
    run: Run,
    siblings: Collection[str],
    waiting: Collection[Quarantined],
) -> tuple[tuple[SourceFile, ...], tuple[Reject, ...]]:
    """Files and rejected rows of this account; rejected rows of other declared ones are skipped.

    A row that names an undeclared account (a header repeated inside the file, a misspelt account)
    would be reported by no night: it is reported here, without an account. So is an order row that
    no longer blocks its order (`waiting` are those that do), as another file delivered it.
    """
    still = {(item.source, item.line) for item in waiting}
    others = Counter(item.source for item in rejects if item.account_id in siblings)
    own = tuple(
        item
        if item.account_id == run.account_id
        and (item.kind is not SourceKind.ORDERS or (item.source, item.line) in still)
        else replace(item, account_id="")
        for item in rejects
        if item.account_id not in siblings
    )
    shared = tuple(
        replace(
            file,
            rows_rejected=file.rows_rejected - others[file.name],
            rows_skipped=file.rows_skipped + others[file.name],
        )
        for file, _ in loaded
    )
    return shared, own

"""What a night compares, table by table: chosen once, before money moves.

Orders are read when their table is written, and of the books no more than what says which entries
belong to the night: nobody holds all rows beside each other.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import ANSWERS, SCHEMAS
from recon.config.fee_contract import FACTS, PRICED
from recon.config.rules import Rules
from recon.matching.frames.arrays import text_column
from recon.matching.frames.bank_sources import BankSource, NightOfBank
from recon.matching.frames.coding import is_among
from recon.matching.frames.grouping import Bools
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
from recon.matching.sides.gateway_side import shown
from recon.matching.sides.settlement_side import PAY_OUT
from recon.model.terms import KeyAnswer, Quarantined, Reject, SourceFile, SourceKind
from recon.model.uptime import give_back
from recon.proof.books_bridge import FROM_OTHERS
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
    lines_of_night,
    month_volumes,
    of_siblings,
    settled_days,
    settled_since,
)
from recon.steps.files.arrived_rows import (
    declared_accounts,
    orders_lack_since,
)
from recon.steps.files.incomplete import WHOLE_FILE
from recon.steps.files.store_ledger import unread_files
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    LEDGER,
    StoredBooks,
    storages_of,
)
from recon.steps.runtime.shown_answers import ShownAnswers
from recon.steps.runtime.window import (
    NOTHING_BEFORE,
    PAYMENTS,
    BeforeOpening,
    in_question,
    left_out,
    opening,
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
    AskedFor,
    NightLines,
    Settlements,
    frame_of_lines,
)
from recon.store.nights.stored_orders import StoredOrders


@dataclass(frozen=True, slots=True)
class SelectedLines:
    """What settlement files told of an account."""

    pay_outs: pd.DataFrame
    """SETTLEMENT_COLUMNS of the lines that say what a batch came to."""
    days: SettledDays
    volumes: pd.DataFrame | None
    """See Sources.volumes."""
    repeats: pa.Table
    made: Mapping[str, Callable[[], pa.Table]]
    """Makes the tables of all lines, by their names; of tariffs no row where none tells any."""


def _table(
    name: str, lines: NightLines, *, before: BeforeOpening, with_text: tuple[str, ...]
) -> pa.Table:
    """The lines as a file has them."""
    schema = SCHEMAS[name].columns
    if before.order_nos:
        return table_of(before.lines(frame_of_lines(lines.table(with_text=with_text))), name=name)
    return lines.table(schema.names, with_text=with_text).cast(schema)


@dataclass(frozen=True, slots=True)
class RunReading:
    """A run, how far it reads, and one connection over which it does.

    Its methods raise ArchiveError where what was kept cannot be read.
    """

    connection: Connection
    run: Run
    inputs: Inputs
    environment: Environment

    @property
    def _rules(self) -> Rules:
        return self.environment.settings.rules

    @property
    def _answered(self) -> ShownAnswers:
        return ShownAnswers(self.connection, self.run, self.environment)

    @property
    def _stored(self) -> StoredOrders:
        storages = storages_of(self.environment)
        return StoredOrders(self.connection, self.run, storages, self.inputs.last_file)

    @property
    def _settled(self) -> Settlements:
        storages = storages_of(self.environment)
        return Settlements(self.connection, self.run, storages, self.inputs.last_file)

    @property
    def _books(self) -> StoredBooks:
        return StoredBooks(self.connection, self.run, self.environment)

    def asked(self) -> pa.Array:
        """What the gateway was asked for, sorted."""
        keys = self._answered.asked_keys()
        return keys.take(pc.sort_indices(keys))

    def lines(self, *, asked: AskedFor, before: BeforeOpening) -> SelectedLines | None:
        """Settlement lines; None where no files are declared, or none told of the account."""
        if not self.inputs.settlement:
            return None
        settled, contract = self._settled, self._rules.fee_contract
        days = settled_days(settled)
        if days is None:
            return None
        lines = lines_of_night(settled, asked=asked, rules=self._rules)
        volumes = None
        if contract is not None and contract.asks_months:
            priced = lines.table(["settled_on"], entry_types=PRICED)
            volumes = month_volumes(settled, days=priced["settled_on"].unique().to_pylist())
        paid = before.lines(frame_of_lines(lines.table(entry_types=[PAY_OUT])))
        made = {
            name: partial(_table, name, lines, before=before, with_text=with_text)
            for name, with_text in ((SETTLEMENT, ()), (TARIFFS, FACTS))
        }
        return SelectedLines(paid, days, volumes, lines.repeats, made)

    def asked_for(self, asked: pa.Array) -> AskedFor:
        """Orders and payments whose settlement lines count one by one, where there may be any."""
        if not self.inputs.settlement:
            return AskedFor.of()
        table = self._answered.newest(["transaction_id"])
        return AskedFor(asked, pc.unique(table["transaction_id"]))

    def own_orders(self, asked: pa.Array, *, columns: Sequence[str] = ()) -> pa.Table:
        """The orders of the window, and the older ones that this night asked about."""
        since = window_start(self.run, rules=self._rules)
        return self._stored.in_view(since=since, asked=asked, columns=columns)

    def orders(self, asked: pa.Array, *, joined: OfSiblings, files: Counter[int]) -> pa.Table:
        """These, and those of other accounts that complete one of this; connects anew.

        `files` takes how many of these rows each order file brought, by its number.
        """
        with self.environment.store.reading() as connection:
            facts_rows.refuse_changed(connection)
            own = replace(self, connection=connection).own_orders(asked)
        counts = own["file_id"].value_counts().to_pylist()
        files.clear()
        files.update({count["values"]: count["counts"] for count in counts})
        schema = SCHEMAS["orders"].columns
        tables = [own.select(schema.names).cast(schema), table_of(joined.orders, name="orders")]
        return pa.concat_tables(tables).unify_dictionaries()

    def small(
        self, asked: pa.Array, *, moves: pd.DataFrame, settled: SelectedLines | None
    ) -> tuple[Sources, Bools | None]:
        """All sources but rows of those with one an order; which entries, None without books."""
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
            settlement=settled.pay_outs if settled else None,
            settled=settled.days if settled else None,
            volumes=settled.volumes if settled else None,
            bank=self._bank(),
        )
        if source is None or journal_rows.unread(connection, run.run_id, whole_file=WHOLE_FILE):
            return replace(sources, ledger=None), None
        names = text_column(asked.cast(pa.large_string()))
        entries = chosen_entries(
            self._books, sources=sources, moves=moves, asked=names, rules=self._rules
        )
        return sources, entries

    def joined(self, asked: pa.Array) -> OfSiblings:
        """Rows of the merchant's other accounts that complete a lonely key, nothing else.

        Keys are lonely that only orders or only payments name; where many are, nothing joins.
        """
        if not self.inputs.siblings:
            return OfSiblings()
        ordered = pc.unique(self.own_orders(asked, columns=["order_no"])["order_no"])
        shown = self._answered.newest(["answer"])
        is_found = pc.equal(shown["answer"].cast(pa.string()), KeyAnswer.FOUND.value)
        paid = pc.unique(shown["order_no"].filter(is_found))
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
        self, asked: pa.Array, *, joined: OfSiblings, moves: pd.DataFrame
    ) -> BeforeOpening:
        """The orders of payments from before the opening date of which nobody knows anything."""
        start = opening(self._rules)
        if start is None:
            return NOTHING_BEFORE
        read = self._answered.newest
        oldest = pc.min(read(["transaction_date"])["transaction_date"]).as_py()
        if not (joined.gateway["transaction_date"] < start).any() and (oldest or start) >= start:
            return NOTHING_BEFORE
        names = ["order_no", "transaction_id", "answer", "transaction_date"]
        own = read(names).select(names)
        shown = pd.concat([frame_of_table(own), joined.gateway[names]], ignore_index=True)
        is_old = shown["answer"].eq(KeyAnswer.FOUND.value) & (shown["transaction_date"] < start)
        ordered = self.own_orders(asked, columns=["order_no"])["order_no"].cast(pa.large_string())
        younger = shown.loc[shown["transaction_date"] >= start, "order_no"]
        known = [text_column(ordered), joined.orders["order_no"], moves["order_no"], younger]
        gone = {*shown.loc[is_old & ~is_among(shown["order_no"], pd.concat(known)), "order_no"]}
        payments = {*shown.loc[is_among(shown["order_no"], gone), "transaction_id"]} - {""}
        return BeforeOpening(frozenset(gone), frozenset(payments))

    def _bank(self) -> BankSource | None:
        """Statements of the banks that the account is paid out at; None where none ever came.

        Payouts are those of every account that these banks serve: an entry may be of another one.
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
        """KEY_COLUMNS of the answers about what was asked for."""
        own = self._answered.newest([*KEY_COLUMNS]).select([*KEY_COLUMNS])
        joined = table_of(chosen.joined.gateway, name=ANSWERS).select([*KEY_COLUMNS])
        keys = pa.concat_tables([own, joined.cast(own.schema)])
        gone = pa.array(chosen.before.order_nos, pa.string())
        return keys.filter(pc.invert(pc.is_in(keys["order_no"], value_set=gone)))

    def with_steps(self, chosen: "Selected", *, files: Counter[int]) -> Sources:
        """What other tables say of the rows that are compared, and of those that are not.

        `files`: see `orders`.
        """
        connection, run, inputs, rules = self.connection, self.run, self.inputs, self._rules
        loaded = order_rows.files_of_night(connection, run, until=inputs.last_file)
        became = self._stored.steps(files, declared=declared_accounts(self.environment))
        taken = {**became.taken, **settlement_rows.taken(connection, chosen.repeats)}
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
            shown_then = pd.concat([own, others[own.columns]], ignore_index=True)
            left = shown_then[is_among(shown_then["order_no"], chosen.before.order_nos)]
            net = shown(left, rules=rules).net
            payments = left_out(PAYMENTS, currency=left["currency"], net=net)
        if chosen.entries is None:
            return replace(small, opening_balance=payments, arrived=arrived)
        refused = order_rows.rejects_of_night(connection, run, until=inputs.last_file)
        arrived[SourceKind.LEDGER], books = chosen.entries.arrived(self._books, refused=refused)
        balance = (*chosen.entries.older(self._books), *payments)
        return replace(small, opening_balance=balance, arrived=arrived, books=books)


@dataclass(frozen=True, slots=True)
class Selected:
    """What a night read."""

    small: Sources
    """What is no row of an order, an answer, an entry or a key that was asked for."""
    asked: pa.Array
    """What the gateway was asked for, sorted; without orders of the opening balance."""
    joined: OfSiblings
    """Rows of the merchant's other accounts that complete a lonely key of this one."""
    entries: ChosenEntries | None
    """Of the books; None: there are none. Where these are all, they have no table here but that
    of the books."""
    before: BeforeOpening
    """The orders of the opening balance, of which no table has a row."""
    repeats: pa.Table
    """Settlement lines that do not count."""
    made: Mapping[str, Callable[[], pa.Table]]
    """The tables that are made when they are asked for, by their names."""
    whole: Callable[[], Sources]
    """`small` with what becomes of the rows, once the table of orders was made."""

    @property
    def absent(self) -> tuple[str, ...]:
        """Files without a row because the source was not given at all."""
        return absent_of(self.small)

    def tables(self, *, rules: Rules) -> Iterator[tuple[str, pa.Table]]:
        """As `input_tables`, each made when it is asked for; the small ones last.

        Without answers, which are asked for anew once money has moved, without a ledger that is
        whole, and without what an earlier night left open.
        """
        for name, table in input_tables(self.small):
            if name == LEDGER and self.entries is not None and self.entries.are_all:
                continue
            if name not in {ANSWERS, TARIFFS}:
                yield name, self.made[name]() if name in self.made else table
        if TARIFFS in self.made and len(tariffs := self.made[TARIFFS]()):
            yield TARIFFS, tariffs
        whole = self.whole()
        small = compared_tables(whole, rules=rules, previous=None, books=whole.books)
        yield from ((name, table) for name, table in small.items() if name != OPENING)


def selected_inputs(run: Run, *, inputs: Inputs, environment: Environment) -> Selected:
    """What the run read so far, table by table.

    Raises:
        ArchiveError: what was kept cannot be read.
        HistoryBrokenError: the rows of an order file are not those that the history bound.
    """
    with environment.store.reading() as connection:
        # Files are opened where the history bound that they are these, and not before.
        facts_rows.refuse_changed(connection)
        read = RunReading(connection, run, inputs, environment)
        asked = read.asked()
        joined = read.joined(asked)
        moves = in_question(
            instructions_of(connection, run, inputs=inputs, environment=environment),
            asked=text_column(asked.cast(pa.large_string())),
        )
        before = read.before_opening(asked, joined=joined, moves=moves)
        settled = read.lines(asked=read.asked_for(asked), before=before)
        small, entries = read.small(asked, moves=moves, settled=settled)
    give_back()
    left = asked
    if before.order_nos:
        gone = pa.array(before.order_nos, pa.string())
        left = asked.filter(pc.invert(pc.is_in(asked, value_set=gone)))

    def universe() -> pa.Table:
        words = {"merchant_id": run.merchant_id, "account_id": run.account_id}
        schema, size = SCHEMAS["universe"].columns, len(left)
        cells = [pa.repeat(words[n], size) if n in words else left for n in schema.names]
        own = pa.table(cells, schema.names)
        if len(joined.gateway):
            keys = joined.gateway[[*KEY_COLUMNS]].drop_duplicates()
            others = table_of(before.without(keys), name="universe")
            own = pa.concat_tables([own, others.cast(own.schema)])
        return own.cast(schema).unify_dictionaries()

    files = Counter[int]()
    made: dict[str, Callable[[], pa.Table]] = {
        **(settled.made if settled else {}),
        "orders": partial(read.orders, asked, joined=joined, files=files),
        "universe": universe,
    }
    chosen_of_books = None
    if entries is not None:
        chosen_of_books = ChosenEntries(entries, before, settled is not None)
        made[LEDGER] = partial(chosen_of_books.table, run, environment=environment)
    repeats = settled.repeats if settled else NO_ROWS

    def whole() -> Sources:
        with environment.store.reading() as connection:
            return replace(read, connection=connection).with_steps(chosen, files=files)

    chosen = Selected(small, left, joined, chosen_of_books, before, repeats, made, whole)
    return chosen


def of_this_account(
    loaded: Iterable[tuple[SourceFile, object]],
    rejects: Sequence[Reject],
    *,
    run: Run,
    siblings: Collection[str],
    waiting: Collection[Quarantined],
) -> tuple[tuple[SourceFile, ...], tuple[Reject, ...]]:
    """Rejected rows of another declared account are that account's business: skipped here.

    A row that names an account nobody declared (a header repeated inside the file, a misspelt
    account) would be told by no night at all: it is told here, as one of no account. So is an order
    row that stands for its order no more (`waiting` are those that do): another file brought it.
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

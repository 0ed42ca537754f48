"""What a run compares, from the tables as it found them: the same tonight and a year later.

Before it compares, a run keeps how far it read. Everything is then read up to there and no further,
so that files, answers and instructions of later nights leave the night as it was.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from recon import __version__
from recon.config.rules import Rules
from recon.matching.breaks.reopened import split_ends
from recon.matching.breaks.write_offs import TYPES, booked_write_offs
from recon.matching.frames.names import is_among
from recon.matching.frames.same_words import held_once
from recon.matching.frames.sources import (
    ORDER_COLUMNS,
    AgreedWriteOffs,
    LeftOut,
    Previous,
    SettledDays,
    Sources,
)
from recon.matching.sides.ledger_side import left_behind
from recon.model.business_date import midnight
from recon.model.words import (
    DOUBTFUL_STATES,
    InstructionKind,
    Quarantined,
    Reject,
    SourceFile,
    SourceKind,
)
from recon.proof.books_bridge import FileMoney, rejected_sums
from recon.proof.night_tables import frame_of_table
from recon.steps.compare.bank_inputs import bank_source
from recon.steps.compare.sealed_orders import sealed_orders
from recon.steps.compare.siblings import siblings_of, with_siblings
from recon.steps.compare.vanished_entries import vanished_entries
from recon.steps.compare.whole_settlement import settlement_of
from recon.steps.files.arrived_rows import Extract, order_steps, with_arrived, with_taken
from recon.steps.files.keep_ledger import unread_files
from recon.steps.files.lacking_orders import orders_lack_since
from recon.steps.files.never_read import WHOLE_FILE
from recon.steps.ground import kept_results, shown_answers
from recon.steps.ground.answer_rows import chargeback_codes
from recon.steps.ground.booked_payouts import with_payouts
from recon.steps.ground.endorsed import endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_books import books_of_run, entries_of_types
from recon.steps.ground.night_folder import COMPARED, storages_of
from recon.steps.ground.predecessor import previous_night
from recon.steps.ground.sealed_night import SealedNight, sealed_night
from recon.steps.ground.window import (
    ENTRIES,
    in_question,
    in_window,
    ledger_start,
    left_out,
    window_start,
    without_opening_balance,
)
from recon.store import Connection
from recon.store.money import instruction_rows
from recon.store.money.endorsement_rows import Endorsed
from recon.store.nights import (
    break_rows,
    facts_rows,
    input_rows,
    journal_rows,
    ledger_rows,
    order_rows,
    quarantine_rows,
    rules_rows,
    runs,
    settlement_rows,
    stored_orders,
)
from recon.store.nights.input_rows import Inputs
from recon.store.nights.night_lines import AskedFor
from recon.store.nights.runs import Run
from recon.store.people import resolution_rows


def frozen_inputs(run: Run, *, environment: Environment) -> Inputs:
    """How far the run reads, and what it is told beside the tables; its rules are kept."""
    rules = environment.settings.rules
    before = previous_night(run, environment=environment)
    with environment.store.writing() as connection:
        rules_rows.keep(connection, rules, at=environment.clock())
        last_file, last_observation = input_rows.last_rows(connection)
        return Inputs(
            rules_digest=rules.digest,
            previous_run_id="" if before is None else before.run_id,
            last_file=last_file,
            last_observation=last_observation,
            product_version=__version__,
            siblings=siblings_of(run, environment=environment),
            settlement=_has_settlement(run, environment=environment),
            last_reject_end=quarantine_rows.last_end(connection),
            exported=journal_rows.exported(connection, run),
            agreed_write_offs=_agreed_write_offs(
                connection, run, words=endorsed(environment), environment=environment
            ),
        )


def instructions_of(
    connection: Connection, run: Run, *, inputs: Inputs, environment: Environment
) -> pd.DataFrame:
    """Every instruction of the account as it stands now, INSTRUCTION_COLUMNS.

    Of a capture in doubt `outcome_at` is when answers first showed it as taken: as the night before
    sealed it, else as this run's answers show it.

    Raises:
        ArchiveError: the folder of the night before cannot be reached, or is not as it was sealed.
    """
    doubtful = instruction_rows.of_account(connection, run, states=DOUBTFUL_STATES)
    captures = [item for item in doubtful if item.kind is InstructionKind.CAPTURE]
    taken = shown_answers.first_taken(
        connection,
        run,
        transactions={item.transaction_id for item in captures},
        rules=environment.settings.rules,
        environment=environment,
    )
    shown = {
        item.instruction_id: taken[item.transaction_id]
        for item in captures
        if item.transaction_id in taken
    }
    if captures and inputs.previous_run_id:
        before = runs.get(connection, inputs.previous_run_id)
        shown |= _doubts_shown(sealed_night(connection, before, environment=environment))
    return input_rows.instruction_frame(connection, run, shown=shown)


def _doubts_shown(night: SealedNight) -> dict[str, datetime]:
    """Instruction in doubt -> when answers first showed it as done, as a night sealed it."""
    if COMPARED not in night.steps or not night.has("instructions"):
        return {}
    rows = night.table("instructions").to_pylist()
    doubtful = (row for row in rows if row["state"] in DOUBTFUL_STATES)
    return {row["instruction_id"]: row["outcome_at"] for row in doubtful if row["outcome_at"]}


def _agreed_write_offs(
    connection: Connection, run: Run, *, words: Endorsed, environment: Environment
) -> AgreedWriteOffs:
    """What people agreed to, and what the books had before anybody could agree to it here."""
    entries = input_rows.first_write_offs(connection, run)
    books = None
    if entries is None:
        books = entries_of_types(connection, run, types=TYPES, environment=environment)
    if books is not None:
        write_offs = booked_write_offs(books)
        write_offs = write_offs[
            write_offs["merchant_id"].eq(run.merchant_id)
            & write_offs["account_id"].eq(run.account_id)
        ]
        columns = (write_offs[name].tolist() for name in ("entry_id", "currency", "amount"))
        entries = {entry: (money, amount) for entry, money, amount in zip(*columns, strict=True)}
    agreed = resolution_rows.agreed_write_offs(connection, (run.merchant_id, run.account_id))
    return AgreedWriteOffs(
        {
            break_id: money
            for break_id, money in agreed.items()
            if not words.write_off_problem(connection, break_id, money=money)
        },
        entries,
    )


def _has_settlement(run: Run, *, environment: Environment) -> bool:
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    return account.settlement is not None


def sources_of(run: Run, *, inputs: Inputs, rules: Rules, environment: Environment) -> Sources:
    """What the engine compares, from the run's tables as the run read them."""
    until, siblings, since = inputs.last_file, inputs.siblings, window_start(run, rules=rules)
    with environment.store.reading() as connection:
        loaded = order_rows.files_of_night(connection, run, until=until)
        rejected = order_rows.rejects_of_night(connection, run, until=until)
        waiting = quarantined(connection, run, inputs=inputs)
        files, rejects = of_this_account(
            loaded, rejected, run=run, siblings=siblings, waiting=waiting
        )
        extract, entries, money = _books(connection, run, refused=rejected, environment=environment)
        universe, gateway = _shown(connection, run, environment=environment)
        asked = universe["order_no"]
        named = AskedFor.of(asked.tolist(), gateway["transaction_id"].tolist())
        lines, days, volumes = settlement_of(
            connection, run, asked=named, inputs=inputs, rules=rules, environment=environment
        )
        moves = instructions_of(connection, run, inputs=inputs, environment=environment)
        instructions = in_question(moves, asked=asked)
        begins = ledger_start(run, rules=rules), settlement_begins(days, rules=rules)
        recent = _in_window(
            entries, begins=begins, asked=asked, lines=lines, moves=instructions, rules=rules
        )
        orders = _orders(
            connection, run, since=since, asked=asked, until=until, environment=environment
        )
        older = orders.loc[orders["ordered_at"] < since, "order_no"].unique().tolist()
        became = order_steps(
            connection, run, since=since, older=older, until=until, environment=environment
        )
        settled = settlement_rows.taken(
            connection, run, storages=storages_of(environment), until=until
        )
        own = Sources(
            orders=orders,
            gateway=gateway,
            ledger=recent,
            opening_balance=_older(entries, than=recent),
            instructions=instructions,
            rejects=rejects,
            files=(*files, *((extract[1],) if extract else unread_files(rejects))),
            universe=universe,
            exported=inputs.exported,
            agreed_write_offs=inputs.agreed_write_offs,
            merged_rows=with_taken(loaded, taken={**became.taken, **settled}),
            settlement=lines,
            settled=days,
            volumes=volumes,
            unread_batches=unread_batches(connection, run, inputs=inputs),
            bank=bank_source(connection, run, until=until, rules=rules),
            quarantined=waiting,
            orders_lack_since=orders_lack_since(
                connection, run, until=until, calendar=rules.business_calendar
            ),
        )
    whole = with_siblings(own, run=run, siblings=siblings, last_file=until, environment=environment)
    counted = _with_ids_once(without_opening_balance(whole, rules=rules))
    return with_arrived(
        counted, own=own, orders=became.steps, extract=extract, entries=entries, money=money
    )


def _shown(
    connection: Connection, run: Run, *, environment: Environment
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the gateway was asked about, and what it showed."""
    asked = shown_answers.universe(connection, run, environment=environment)
    return asked, shown_answers.gateway_frame(connection, run, environment=environment)


def _with_ids_once(sources: Sources) -> Sources:
    """The same, with what its columns have in common held once."""
    names = ("orders", "gateway", "ledger", "settlement", "universe")
    frames = {name: getattr(sources, name) for name in names}
    given = {name: frame for name, frame in frames.items() if frame is not None}
    once: dict[str, Any] = {**held_once(given)}
    return replace(sources, **once)


def unread_batches(
    connection: Connection, run: Run, *, inputs: Inputs
) -> frozenset[tuple[str, str, str, str]] | None:
    """Batches that nobody can judge, as the run found them; None where no files are declared."""
    if not inputs.settlement:
        return None
    batches = settlement_rows.unread_batches(
        connection, run, siblings=inputs.siblings, until=inputs.last_file
    )
    return frozenset((run.merchant_id, run.account_id, *each) for each in batches)


def quarantined(connection: Connection, run: Run, *, inputs: Inputs) -> tuple[Quarantined, ...]:
    """Order rows that could not be read and were not delivered since, as the run found them."""
    if inputs.last_reject_end is None:
        return ()
    ends = {"last_file": inputs.last_file, "last_end": inputs.last_reject_end}
    return quarantine_rows.outstanding(connection, run, **ends)


def _books(
    connection: Connection, run: Run, *, refused: Sequence[Reject], environment: Environment
) -> tuple[Extract, pd.DataFrame | None, FileMoney]:
    """The ledger as it was read, its entries of this account, and what it comes to.

    Books of which no row could be read are no books: every payment would lack its entry.
    """
    kept = books_of_run(connection, run, environment=environment)
    extract = kept.extract() if kept else None
    unread = ledger_rows.unread(connection, run.run_id, whole_file=WHOLE_FILE)
    # Refused entries count on both sides: here as the database adds them up.
    counted = Counter(ledger_rows.rejected_sums(connection, run.run_id))
    counted.update(kept.sums_by_type() if kept else {})
    money = FileMoney(counted, rejected_sums(refused))
    return extract, None if unread else _of_account(extract, run=run), money


def _in_window(
    entries: pd.DataFrame | None,
    *,
    begins: tuple[datetime, datetime | None],
    asked: "pd.Series[str]",
    lines: pd.DataFrame | None,
    moves: pd.DataFrame,
    rules: Rules,
) -> pd.DataFrame | None:
    """The entries of the window, of what is asked about, and of the payouts that are told.

    `begins`: where the window does, and where the first day does that was ever settled.
    """
    if entries is None:
        return None
    since, settled_from = begins
    return with_payouts(
        in_window(entries, since=since, asked=asked, settled_from=settled_from),
        entries=entries,
        settlement=lines,
        instructions=moves,
        since=settled_from or since,
        rules=rules,
    )


def settlement_begins(days: SettledDays | None, *, rules: Rules) -> datetime | None:
    """When the first settled day begins by the calendar of the rules, as its groups have it."""
    if days is None:
        return None
    return midnight(date.fromisoformat(days.first), zone=rules.business_calendar.zone)


def _orders(
    connection: Connection,
    run: Run,
    *,
    since: datetime,
    asked: "pd.Series[str]",
    until: int,
    environment: Environment,
) -> pd.DataFrame:
    """The orders of the window and the older ones that this night asked about.

    Raises:
        HistoryBrokenError: the rows of an order file are not those that the history bound.
    """
    facts_rows.refuse_changed(connection)
    kept = sealed_orders(connection, run, asked=asked, until=until, environment=environment)
    if kept is not None:
        return kept
    table = stored_orders.orders_in_view(
        connection,
        run,
        since=since,
        asked=pa.array(asked, pa.string()),
        until=until,
        storages=storages_of(environment),
    )
    return frame_of_table(table)[[*ORDER_COLUMNS]]


def _older(entries: pd.DataFrame | None, *, than: pd.DataFrame | None) -> tuple[LeftOut, ...]:
    """The ledger entries that are older than the window and asked about by nobody."""
    if entries is None or than is None or len(entries) == len(than):
        return ()
    old = entries[~is_among(entries["entry_id"], than["entry_id"])]
    currency, _, net = left_behind(old)
    return left_out(ENTRIES, currency=currency, net=net)


def previous_of(
    run: Run, *, inputs: Inputs, rules: Rules, environment: Environment
) -> Previous | None:
    """What the night before left open, when this run compared."""
    if not inputs.previous_run_id:
        return None
    with environment.store.reading() as connection:
        before = runs.get(connection, inputs.previous_run_id)
        left_open = kept_results.open_breaks(connection, before.run_id, environment=environment)
        if left_open is None:
            return None
        closed, away = split_ends(break_rows.ends_until(connection, before), breaks=left_open)
        return Previous(
            as_of=before.as_of,
            breaks=left_open,
            closed=closed,
            away=away,
            chargebacks=shown_answers.chargeback_keys(
                connection,
                run,
                codes=chargeback_codes(rules),
                until=inputs.last_observation,
                environment=environment,
            ),
            vanished=vanished_entries(
                connection, run, before=before, rules=rules, environment=environment
            ),
        )


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


def _of_account(
    extract: tuple[pd.DataFrame, SourceFile] | None, *, run: Run
) -> pd.DataFrame | None:
    if extract is None:
        return None
    entries = extract[0]
    ours = (entries["merchant_id"] == run.merchant_id) & (entries["account_id"] == run.account_id)
    return entries.loc[ours].reset_index(drop=True)

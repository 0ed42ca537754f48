"""Step 3: move the money that was instructed, once.

Sweep what an interrupted run left open, end doubts by evidence, plan what the order files ask for,
pass the gate, clear each instruction against the baseline, then send (mode live) or only tell what
would be sent (dry-run). Holds the account's night lock through its caller; there is one sender.

Answers that an earlier night could keep only in a file are written to the database first: a reply
is judged like every kept reply; a batch that surely did not leave is approved again. A file that
does not fit ends the night, for a guess would cost money.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from recon.instructions.eligibility import (
    ALONE,
    Baseline,
    Cleared,
    Queue,
    Refused,
    ShownPayment,
    clear,
    clear_alone,
    planned_batches,
    queue,
    shown_twice,
)
from recon.instructions.instruction import Instruction
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.planning import IF_MEANT, RULE_APPROVER, Known, OrderRow, plan, plan_again
from recon.instructions.sender import Sender, Sent
from recon.model.errors import ConfigurationError
from recon.model.nights import Mode, Part, StepSummary
from recon.model.words import InstructionKind, InstructionState, KeyAnswer, OrderStatus
from recon.steps.ground import kept_books, shown_answers
from recon.steps.ground.endorsed import words_for_signer
from recon.steps.ground.environment import Environment, held_back, seconds_left
from recon.steps.ground.night_folder import storages_of
from recon.steps.money import doubt
from recon.steps.money.approve import lapse
from recon.steps.money.doubt import note_contradictions, note_refund_numbers
from recon.steps.money.gate import (
    Gate,
    Notes,
    gate_of,
    halted,
    no_longer_by_rule,
    note_head,
    rule_allowance,
    rule_approves,
    sending_allowance,
)
from recon.store import Connection
from recon.store.money import case_rows, instruction_rows, sending_rows
from recon.store.money.bound_rows import events_of
from recon.store.money.journal import StoredJournal
from recon.store.money.lasting_journal import (
    FOLDER,
    REPLY,
    LastingJournal,
    Spill,
    Spilled,
    is_to_release,
    put_reply,
    remove,
)
from recon.store.nights import order_rows, runs
from recon.store.nights.runs import Run, Stop
from recon.store.nights.settlement_rows import Settlements
from recon.store.nights.stored_orders import StoredOrders

_PAYMENT = ("order_no", "transaction_id", "currency", "amount")

PaymentOf = Callable[[Mapping[Any, Any]], ShownPayment]
"""One row of an answer -> the payment, closed and charged back as far as we know."""
ChargedBack = Callable[[str, str, str, int], int]
"""Order, transaction, currency and amount of a payment -> minor units charged back of it."""


def payment_reader(connection: Connection, run: Run, *, environment: Environment) -> PaymentOf:
    """Reads rows of answers with the account's cases and chargebacks, each looked up once.

    Raises:
        ArchiveError: the books, or lines of settlement files, cannot be reached, or are not those
            that the history binds.
    """
    rules = environment.settings.rules
    closed = case_rows.closed_payments(connection, run)
    taken_back = charged_back(connection, run, environment=environment)

    def payment_of(row: Mapping[Any, Any]) -> ShownPayment:
        return ShownPayment(
            transaction_id=row["transaction_id"],
            state=rules.state_of(row["payment_status"]),
            payment_status=row["payment_status"],
            currency=row["currency"],
            amount=row["amount"],
            dated=row["transaction_date"],
            closed_because=closed.get(row["transaction_id"], ""),
            charged_back=taken_back(*(row[name] for name in _PAYMENT)),
        )

    return payment_of


def payments_by_order(
    rows: Iterable[Mapping[Any, Any]], *, payment_of: PaymentOf
) -> dict[str, tuple[ShownPayment, ...]]:
    """The payments of the answers by the order they were shown for."""
    payments = [(row["order_no"], payment_of(row)) for row in rows]
    twice = shown_twice(payment for _, payment in payments)
    payments_of: dict[str, tuple[ShownPayment, ...]] = {}
    for order_no, payment in payments:
        because = payment.closed_because or twice.get(payment.transaction_id, "")
        known = payments_of.get(order_no, ())
        payments_of[order_no] = (*known, replace(payment, closed_because=because))
    return payments_of


def charged_back(connection: Connection, run: Run, *, environment: Environment) -> ChargedBack:
    """What the account's settlement files and its books know, each read once."""
    settled = Settlements(connection, run, storages_of(environment)).charged_back()
    booked = kept_books.charged_back(connection, run, environment=environment)
    return larger_of(settled, booked=booked)


def larger_of(
    settled: Mapping[tuple[str, str], int], *, booked: Mapping[tuple[str, str, str], int]
) -> ChargedBack:
    """By the larger of two sources; what is in another currency counts as the whole payment.

    Args:
        settled: by transaction and currency.
        booked: by order, transaction ("" where the books have none) and currency.
    """
    in_files: dict[str, dict[str, int]] = defaultdict(dict)
    for (transaction_id, currency), amount in settled.items():
        in_files[transaction_id][currency] = amount
    in_books: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for (order_no, transaction_id, currency), amount in booked.items():
        sums = in_books["" if transaction_id else order_no, transaction_id]
        sums[currency] = sums.get(currency, 0) + amount

    def of_payment(order_no: str, transaction_id: str, currency: str, amount: int) -> int:
        account_currency = (currency, amount)
        named = _of(in_books.get(("", transaction_id), {}), account_currency)
        unnamed = _of(in_books.get((order_no, ""), {}), account_currency)
        return max(_of(in_files.get(transaction_id, {}), account_currency), named + unnamed)

    return of_payment


def _of(sums: Mapping[str, int], currency_amount: tuple[str, int]) -> int:
    currency, whole = currency_amount
    if any(amount > 0 for other, amount in sums.items() if other != currency):
        return whole
    return max(sums.get(currency, 0), 0)


def spill_of(run: Run, *, environment: Environment) -> Spill:
    """The spill files of a run's account: beside its reports, else beside the database."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    database = environment.store.path
    beside = () if database is None else (database.with_name(f"{database.name}.{FOLDER}"),)
    places = (account.reports / FOLDER, *beside)
    return Spill(places, account=f"{run.merchant_id}/{run.account_id}")


@contextmanager
def lasting(
    journal: StoredJournal, *, run: Run, environment: Environment
) -> Iterator[LastingJournal]:
    """The journal to send by, with room for an answer that the database might not take.

    All that was written is on the disk afterwards.

    Raises:
        OutputError: there is no such room; nothing was sent.
        StoreError: the disk refuses.
    """
    spill = spill_of(run, environment=environment)
    spill.reserve()
    try:
        yield LastingJournal(
            journal,
            spill=spill,
            pause=environment.pause,
            note_outside=Notes(run, environment=environment).note,
        )
    finally:
        spill.free()
        environment.store.flush()


def put_back(run: Run, *, journal: StoredJournal, environment: Environment) -> int:
    """Write every answer of the account's files to the database; returns how many there were.

    Raises:
        SpillError: a file is not whole, or does not fit the database; nothing was changed by it.
    """
    count = 0
    for path, spilled in spill_of(run, environment=environment).kept_files():
        if (spilled.merchant_id, spilled.account_id) != (run.merchant_id, run.account_id):
            continue
        _put_back(spilled, journal=journal, environment=environment)
        remove(path)
        count += 1
    return count


def _put_back(spilled: Spilled, *, journal: StoredJournal, environment: Environment) -> None:
    if spilled.kind == REPLY:
        with environment.store.writing() as connection:
            put_reply(connection, spilled, at=environment.clock())
        return
    with environment.store.reading() as connection:
        claimed = is_to_release(connection, spilled)
    if claimed:
        journal.release(spilled.batch_id, reason=spilled.reason, at=environment.clock())


STEP = "settle"
NOT_ASKED = "the gateway was not asked about this order tonight; the next night asks"
WITHDRAW_IT = "; withdraw it"
REPLACED = "a newer version of its order file no longer asks for it"


def settle(
    run_id: str, *, environment: Environment, before_money: Callable[[Run], object]
) -> StepSummary:
    """Carry out the account's approved instructions.

    `before_money` keeps what the run read; where it fails nothing is sent.

    Raises:
        ConfigurationError: live money without verified replies was not allowed in gateway.toml.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    _refuse_unverified_live(run, environment=environment)
    gateway = GatewayOfMoney.of(
        environment.settings,
        account=(run.merchant_id, run.account_id),
        clock=environment.clock,
        words=words_for_signer(environment),
    )
    journal = journal_of(run, environment=environment)
    if run.mode is Mode.LIVE:
        put_back(run, journal=journal, environment=environment)
    swept = doubt.sweep(run, journal=journal, gateway=gateway, environment=environment)
    resolved = doubt.resolve_doubts(run, environment=environment)
    contradicted = note_contradictions(run, environment=environment)
    lapse(environment)
    earlier, _ = _unsent(run, environment=environment)
    planned = _plan(run, environment=environment)
    gate = halted(gate_of(run, environment=environment), environment=environment)
    waiting = _clear(run, gate=gate, gateway=gateway, environment=environment)
    before_money(run)
    sent = _sent(run, waiting=waiting, sending=(gateway, journal), environment=environment)
    stopped = sent.stop_reason or gate.closed_because
    in_doubt = _note_end(run, waiting=waiting, sent=sent, stopped=stopped, environment=environment)
    left, unapproved = _unsent(run, environment=environment)
    figures: dict[str, int | str] = {
        "planned": planned,
        "earlier": earlier,
        "cleared": len(waiting.cleared),
        "unapproved": unapproved,
        "waiting": left - unapproved,
        "taken_back": earlier + planned - sent.rows - left,
        "batches": sent.batches,
        "sent": sent.rows,
        "swept": swept,
        "resolved": sum(resolved.values()),
        "contradicted": contradicted,
        "in_doubt": in_doubt,
        "stopped": stopped,
    }
    return StepSummary(STEP, _sentence(run, figures=figures, waiting=waiting, gate=gate), figures)


def _unsent(run: Run, *, environment: Environment) -> tuple[int, int]:
    """How many instructions of the account are not sent, and how many of those not approved."""
    with environment.store.reading() as connection:
        unapproved = sending_rows.unapproved(connection, run).count
        return unapproved + sending_rows.unsent(connection, run).count, unapproved


def _sent(
    run: Run,
    *,
    waiting: Queue,
    sending: tuple[GatewayOfMoney, StoredJournal],
    environment: Environment,
) -> Sent:
    """What a live run sent; a dry run sends nothing."""
    if run.mode is not Mode.LIVE or not waiting.cleared:
        return Sent()
    return send(waiting.cleared, run=run, sending=sending, environment=environment)


def journal_of(run: Run, *, environment: Environment) -> StoredJournal:
    """The journal of a run, which knows what the merchant declares of its request ids."""
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    return StoredJournal(
        environment.store,
        run_id=run.run_id,
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        ids_unique=account.instructions.are_unique,
        desk=environment.desk,
    )


def _note_end(
    run: Run, *, waiting: Queue, sent: Sent, stopped: str, environment: Environment
) -> int:
    """Keep what waits and why; how many instructions are in doubt now."""
    with environment.store.writing() as connection:
        doubt.note_doubts(connection, run, environment=environment)
        _note_waiting(connection, run, waiting=waiting, at=environment.clock())
        is_stopped = stopped and run.mode is Mode.LIVE
        # Only what is still approved keeps a note: not what was sent.
        holds = {each.instruction.instruction_id: stopped for each in waiting.cleared if is_stopped}
        for instruction_id, reason in (holds | sent.left_out).items():
            instruction_rows.note_hold(connection, instruction_id, hold=reason)
        runs.note_step(connection, run.run_id, step=STEP)
        if is_stopped:
            stop = Stop(stopped, sending_rows.unsent(connection, run).in_words)
            runs.note_stop(connection, run.run_id, stop=stop, now=environment.clock())
        return sending_rows.doubtful(connection, run).count


def send(
    cleared: Sequence[Cleared],
    *,
    run: Run,
    sending: tuple[GatewayOfMoney, StoredJournal],
    environment: Environment,
) -> Sent:
    """One pass of the sender; a signal that comes meanwhile waits for the end of its batch."""
    gateway, journal = sending
    note_head(run, environment=environment)
    with (
        held_back() as told_to_end,
        lasting(journal, run=run, environment=environment) as kept,
    ):
        sender = Sender(
            gateway=gateway,
            journal=kept,
            clock=environment.clock,
            new_id=environment.new_id,
            crash_point=environment.crash_point,
            interval=timedelta(seconds=1 / environment.settings.gateway.calls_per_second),
        )
        ends_in = timedelta(seconds=seconds_left(run, environment=environment))
        sending_all = sender.send_all(cleared, told_to_end=told_to_end, ends_in=ends_in)
        sent = asyncio.run(sending_all)
    # Before anything more can be sent for a payment whose numbers do not fit, and for page one.
    note_refund_numbers(run, environment=environment)
    # Only what is on the disk: a noted head that the database lacks would mean a restored backup.
    note_head(run, environment=environment)
    return sent


def _refuse_unverified_live(run: Run, *, environment: Environment) -> None:
    gateway = environment.settings.gateway
    verified = gateway.reply_signatures == "enforce" or gateway.allow_unverified_replies
    if run.mode is Mode.LIVE and not verified:
        msg = (
            f"gateway.toml has reply_signatures = {gateway.reply_signatures!r}: replies are not "
            'proven to be the gateway\'s; nothing was sent. Set it to "enforce", or set '
            "allow_unverified_replies = true if you accept that"
        )
        raise ConfigurationError(msg)


def _plan(run: Run, *, environment: Environment) -> int:
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    with environment.store.writing() as connection:
        allowance = rule_allowance(connection, run, environment=environment)
        by_rule = rule_approves(connection, run, environment=environment)
        # What was changed since it arrived waits as it is; the gate says so, and nothing leaves.
        is_changed = any(order_rows.changed_actions(connection, run))
        actions = [] if is_changed else instruction_rows.unplanned_actions(connection, run)
        made = plan(
            actions,
            known=_known(connection, run, environment=environment) if actions else Known(),
            new_id=environment.new_id,
            auto_approve=by_rule,
            allowance=allowance,
            ids_unique=account.instructions.are_unique,
        )
        ended = _captures_to_repeat(connection, run, environment=environment)
        ids = [item.instruction_id for item in ended]
        second = instruction_rows.find_by(connection, run, column="again_for", values=ids)
        again = plan_again(
            ended,
            have_second=second,
            new_id=environment.new_id,
            auto_approve=by_rule,
            allowance=allowance,
        )
        made = replace(made, new=made.new + again)
        instruction_rows.save_plan(connection, run, plan=made, at=environment.clock())
    return len(made.new)


def _known(connection: Connection, run: Run, *, environment: Environment) -> Known:
    """The account's instructions; where none names a payment, the gateway's answer may."""
    unnamed = instruction_rows.unnamed_orders(connection, run)
    shown = shown_answers.only_payments(connection, run, order_nos=unnamed, environment=environment)
    return instruction_rows.known(connection, run, shown=shown)


def _captures_to_repeat(
    connection: Connection, run: Run, *, environment: Environment
) -> list[Instruction]:
    """Captures that surely did not happen, still asked for; none unless that is switched on."""
    if not environment.settings.gateway.capture_replan:
        return []
    not_applied = (InstructionState.RESOLVED_NOT_APPLIED,)
    gone = instruction_rows.replaced(connection, run, states=not_applied)
    captures = (InstructionKind.CAPTURE,)
    return [
        item
        for item in instruction_rows.find(connection, run, kind=captures, state=not_applied)
        if item.file_id is not None
        and item.instruction_id not in gone
        and item.outcome_at is not None
        and item.outcome_at < run.started_at
    ]


def _clear(run: Run, *, gate: Gate, gateway: GatewayOfMoney, environment: Environment) -> Queue:
    with environment.store.reading() as connection:
        approved = [
            item
            for item in instruction_rows.find(connection, run, state=(InstructionState.APPROVED,))
            if run.part != Part.PAYOUTS or item.kind is InstructionKind.PAYOUT
        ]
        order_nos = {item.order_no for item in approved}
        baselines = _baselines(connection, run, order_nos=order_nos, environment=environment)
    return queue_of(
        approved,
        run=run,
        baselines=baselines,
        gate=gate,
        gateway=gateway,
        environment=environment,
    )


def queue_of(
    items: Sequence[Instruction],
    *,
    run: Run,
    baselines: Mapping[str, Baseline],
    gate: Gate,
    gateway: GatewayOfMoney,
    environment: Environment,
) -> Queue:
    """What of some instructions may leave now, in order, and why the others may not."""
    if not items:
        return Queue((), ())
    with environment.store.reading() as connection:
        about = {
            "transaction_id": [p.transaction_id for b in baselines.values() for p in b.payments],
            "recurring_id": [item.recurring_id for item in items],
            "payee_digest": [item.payee_digest for item in items],
        }
        others: dict[str, list[Instruction]] = {}
        for column, values in about.items():
            others |= instruction_rows.find_by(connection, run, column=column, values=values)
        replaced = instruction_rows.replaced(connection, run)
        unruled = no_longer_by_rule(connection, run, approved=items, environment=environment)
        against = _against_rows(
            connection, run, items, baselines=baselines, others=others, environment=environment
        )
        allowance = sending_allowance(connection, run, environment=environment)
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    refused_first = {wanted: (because, True) for wanted, because in against.items()}
    refused_first |= dict.fromkeys(replaced, (REPLACED, False))
    refused_first |= {wanted: (because, True) for wanted, because in unruled.items()}
    judged = [
        Refused(item, *refused_first[item.instruction_id])
        if item.instruction_id in refused_first
        else _judge(
            item,
            holds=(gate, gateway),
            baseline=baselines.get(item.order_no),
            others=others,
            multiple_captures=environment.settings.gateway.capture_multiple,
            ids_unique=account.instructions.are_unique,
        )
        for item in items
    ]

    def refusal(item: Instruction) -> str:
        """The limits count what leaves now, not what still waits for people."""
        return allowance.refusal(item) if item.state is InstructionState.APPROVED else ""

    queued = queue((item for item in judged if isinstance(item, Cleared)), refusal=refusal)
    refused = tuple(item for item in judged if isinstance(item, Refused))
    return Queue(queued.cleared, refused + queued.refused)


def _against_rows(
    connection: Connection,
    run: Run,
    approved: Sequence[Instruction],
    *,
    baselines: Mapping[str, Baseline],
    others: Mapping[str, Sequence[Instruction]],
    environment: Environment,
) -> dict[str, str]:
    """Instruction id -> how the newest rows of its order contradict it, unless people saw that.

    A rule or people approved what an order row asked for, and later rows may say otherwise.
    """
    of_rows = instruction_rows.of_order_files(connection, run)
    items = [item for item in approved if item.instruction_id in of_rows]
    standing: dict[str, list[tuple[int, str, OrderRow]]] = {}
    orders = StoredOrders(connection, run, storages_of(environment))
    for file_id, table in orders.by_file(sorted({item.order_no for item in items})):
        for row in table.to_pylist():
            names = ("currency", "amount", "expected_captured_amount", "refund_amount")
            own = OrderRow(OrderStatus(row["status"]), **{name: row[name] for name in names})
            standing.setdefault(row["order_no"], []).append((file_id, row["transaction_id"], own))
    reasons: dict[str, str] = {}
    for item in items:
        shown = baselines[item.order_no].payments if item.order_no in baselines else ()
        payments = {
            one.transaction_id for one in shown if item.transaction_id in {"", one.transaction_id}
        }
        before = sum(
            other.amount
            for payment in payments
            for other in others.get(payment, ())
            if other.kind is item.kind and other.may_have_taken_effect
        )
        for file_id, transaction_id, own in standing.get(item.order_no, ()):
            is_of_it = not transaction_id or not payments or transaction_id in payments
            if file_id < (item.file_id or 0) or not is_of_it:
                continue
            if against := own.against(item.kind, amount=item.amount, before=before):
                reasons[item.instruction_id] = f"{against}; {IF_MEANT}"
    events = events_of(connection, [*reasons])
    return {
        wanted: why
        for wanted, why in reasons.items()
        if not any(why in str(event.get("hold", "")) for event in events[wanted])
    }


def _judge(
    item: Instruction,
    *,
    holds: tuple[Gate, GatewayOfMoney],
    baseline: Baseline | None,
    others: Mapping[str, Sequence[Instruction]],
    multiple_captures: bool,
    ids_unique: bool,
) -> Cleared | Refused:
    """Gate, then the baseline and the journal, then the gateway's own grammar."""
    gate, gateway = holds
    held = gate.hold_on(item.kind)
    if held:
        return Refused(item, held)
    if item.kind in ALONE:
        beside = list(others.get(item.recurring_id or item.payee_digest, ()))
        judged = clear_alone(
            item, others=beside, rule_approver=RULE_APPROVER, ids_unique=ids_unique
        )
        return _unless_problem(judged, gateway=gateway)
    if baseline is None:
        return Refused(item, NOT_ASKED)
    beside = [other for p in baseline.payments for other in others.get(p.transaction_id, ())]
    judged = clear(
        item,
        baseline=baseline,
        others=beside,
        multiple_captures=multiple_captures,
        ids_unique=ids_unique,
    )
    return _unless_problem(judged, gateway=gateway)


def _unless_problem(judged: Cleared | Refused, *, gateway: GatewayOfMoney) -> Cleared | Refused:
    if isinstance(judged, Cleared) and (problem := gateway.problem(judged)):
        return Refused(
            judged.instruction, f"it is not sent, by our own checks: {problem}{WITHDRAW_IT}"
        )
    return judged


def _baselines(
    connection: Connection, run: Run, *, order_nos: set[str], environment: Environment
) -> Mapping[str, Baseline]:
    """What the baseline query showed of each order."""
    # What other orders' answers say of the same transactions counts as well.
    payments = payments_by_order(
        shown_answers.baseline_payments(
            connection, run, order_nos=order_nos, environment=environment
        ),
        payment_of=payment_reader(connection, run, environment=environment),
    )
    return {
        key: Baseline(KeyAnswer(answer), payments.get(key, ()))
        for key, answer in shown_answers.baseline_answers(
            connection, run, order_nos=order_nos, environment=environment
        ).items()
    }


def _note_waiting(connection: Connection, run: Run, *, waiting: Queue, at: datetime) -> None:
    """Keep why each one waits, and what a dry run would have sent.

    A dry run only tells: what it finds to be for people waits for them when a live one finds it.
    """
    if run.mode is Mode.DRY_RUN:
        plans = planned_batches(waiting.cleared)
        sending_rows.keep_dry_batches(connection, run.run_id, plans=plans)
    for refused in waiting.refused:
        instruction_rows.note_hold(
            connection, refused.instruction.instruction_id, hold=refused.reason
        )
        if refused.is_for_people and run.mode is Mode.LIVE:
            instruction_rows.give_to_people(connection, refused, at=at)


def would_send(cleared: Sequence[Cleared]) -> str:
    """What a dry run would send, in words: each batch with its kind, rows and sums."""
    plans = planned_batches(cleared)
    return "; ".join(f"batch {plan.position}: {plan}" for plan in plans)


def _sentence(run: Run, *, figures: Mapping[str, int | str], waiting: Queue, gate: Gate) -> str:
    earlier = f" and {figures['earlier']} earlier ones" if figures["earlier"] else ""
    sentence = f"{figures['planned']} new instructions{earlier}: "
    if run.mode is Mode.DRY_RUN:
        sentence += f"dry run, would send {would_send(waiting.cleared) or 'nothing'}"
    else:
        sentence += f"{figures['sent']} sent in {figures['batches']} batches"
    waits = int(figures["waiting"]) - len(waiting.cleared) * (run.mode is Mode.DRY_RUN)
    for count, became in (
        (figures["unapproved"], "wait for approval"),
        (waits, "approved and not sent"),
        (figures["taken_back"], "taken back meanwhile"),
    ):
        sentence += f"; {count} {became}" if count else ""
    if figures["resolved"]:
        sentence += f"; doubts ended: {figures['resolved']}"
    if figures["stopped"]:
        sentence += f"; sending stopped: {figures['stopped']}"
    elif gate.held_because:
        sentence += f"; {gate.held_because}"
    return f"{sentence}."

"""Step 3 of a night: send the instructed money movements, each at most once.

Closes what an interrupted run left open, ends doubts by evidence, plans what the order files
request, passes the gate, checks each instruction against the baseline, then sends (mode live) or
only reports what would be sent (dry run). The caller holds the account's lock: there is one sender.

Answers that an earlier night could store only in a file are written to the database first: a reply
is evaluated like any stored reply; a batch that surely did not leave is approved again. A file that
does not fit ends the night, since a guess would cost money.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from recon.instructions.eligibility import (
    ALONE,
    Baseline,
    Eligible,
    Ineligible,
    QueriedPayment,
    Queue,
    clear,
    clear_alone,
    conflicting_payments,
    planned_batches,
    queue,
)
from recon.instructions.instruction import Instruction
from recon.instructions.money_requests import EndorsementsOf, GatewayOfMoney, no_endorsements
from recon.instructions.planning import IF_MEANT, RULE_APPROVER, Known, OrderRow, plan, plan_again
from recon.model.errors import ConfigurationError
from recon.model.nights import Mode, Part, StepSummary
from recon.model.terms import (
    ControlTotal,
    InstructionKind,
    InstructionState,
    KeyAnswer,
    OrderStatus,
)
from recon.steps.money.approve import lapse
from recon.steps.money.doubt import Doubts
from recon.steps.money.gate import Allowances, Gate, gate_of, halted, note_head, tied
from recon.steps.money.sender import Sender, Sent
from recon.steps.runtime.environment import Environment, held_back, seconds_left
from recon.steps.runtime.gateway_answers import GatewayAnswers
from recon.steps.runtime.identity import endorsements_for_signer
from recon.steps.runtime.night_folder import StoredLedger, storages_of
from recon.store import Connection
from recon.store.money import case_rows, instruction_rows, sending_rows
from recon.store.money.endorsement_rows import events_of
from recon.store.money.journal import StoredJournal
from recon.store.money.spill import FOLDER, REPLY, Spill, is_to_release, put_reply, remove
from recon.store.nights import order_rows, runs
from recon.store.nights.runs import Run, Stop
from recon.store.nights.settlement_rows import Settlements
from recon.store.nights.stored_orders import StoredOrders

STEP = "settle"
NOT_QUERIED = "the gateway was not asked about this order tonight; the next night asks"
WITHDRAW_IT = "; withdraw it"
REPLACED = "a newer version of its order file no longer asks for it"

ChargedBack = Callable[[str, str, str, int], int]
"""Order, transaction, currency and amount of a payment -> minor units charged back of it."""


def settle(
    run_id: str, *, environment: Environment, before_money: Callable[[Run], Sequence[ControlTotal]]
) -> StepSummary:
    """Carry out the account's approved instructions.

    `before_money` stores what the run read and returns its control totals; if it fails, or one of
    the totals does not tie, nothing is sent.

    Raises:
        ConfigurationError: the run is live, and gateway.toml does not allow unverified replies.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    replies = environment.settings.gateway
    verified = replies.reply_signatures == "enforce" or replies.allow_unverified_replies
    if run.mode is Mode.LIVE and not verified:
        msg = (
            f"gateway.toml has reply_signatures = {replies.reply_signatures!r}: replies are not "
            'proven to be the gateway\'s; nothing was sent. Set it to "enforce", or set '
            "allow_unverified_replies = true if you accept that"
        )
        raise ConfigurationError(msg)
    money = MoneyOfRun(
        run, environment=environment, endorsements=endorsements_for_signer(environment)
    )
    if run.mode is Mode.LIVE:
        money.put_back()
    swept = money.doubts.sweep()
    resolved = money.doubts.resolve()
    contradicted = money.doubts.note_contradictions()
    lapse(environment)
    earlier, _ = money.unsent()
    planned = money.plan()
    totals = before_money(run)
    gate = tied(gate_of(run, environment=environment), totals=totals)
    gate = halted(gate, environment=environment)
    waiting = money.clear(gate)
    is_sending = run.mode is Mode.LIVE and waiting.eligible
    sent = money.send(waiting.eligible) if is_sending else Sent()
    stopped = sent.stop_reason or gate.closed_because
    in_doubt = money.note_end(waiting, sent=sent, stopped=stopped)
    left, unapproved = money.unsent()
    figures: dict[str, int | str] = {
        "planned": planned,
        "earlier": earlier,
        "eligible": len(waiting.eligible),
        "unapproved": unapproved,
        "waiting": left - unapproved,
        "taken_back": earlier + planned - sent.rows - left,
        "batches": sent.batches,
        "sent": sent.rows,
        "swept": swept,
        "resolved": resolved,
        "contradicted": contradicted,
        "in_doubt": in_doubt,
        "stopped": stopped,
    }
    return StepSummary(STEP, _sentence(run, figures=figures, waiting=waiting, gate=gate), figures)


class MoneyOfRun:
    """What one run does with the money of its account; a movement by hand uses the same code.

    Args:
        run: The night, or a placeholder value outside any night.
        environment: Store, settings and clock.
        endorsements: Returns people's endorsements of instructions for the signer; none by default.
    """

    def __init__(
        self, run: Run, *, environment: Environment, endorsements: EndorsementsOf = no_endorsements
    ) -> None:
        self._run, self._environment, self._store = run, environment, environment.store
        self._settings = environment.settings
        self._account = self._settings.account(run.merchant_id, account_id=run.account_id)
        self.ids_unique = self._account.instructions.are_unique
        self.gateway = GatewayOfMoney(
            self._settings,
            account=run.account,
            clock=environment.clock,
            endorsements=endorsements,
        )
        self._spill = self._spill_files()
        self.journal = StoredJournal(
            self._store,
            run,
            run_id=run.run_id,
            ids_unique=self.ids_unique,
            desk=environment.desk,
            spill=self._spill,
            pause=environment.pause,
            note_outside=self._note_head,
        )
        self.doubts = Doubts(
            run, environment=environment, journal=self.journal, gateway=self.gateway
        )

    def put_back(self) -> int:
        """Write every answer in the account's spill files to the database; return their number.

        Raises:
            SpillError: a file is incomplete or does not fit the database; nothing was changed by
                it.
        """
        count, ours = 0, self._run.account
        for path, spilled in self._spill.stored_files():
            if (spilled.merchant_id, spilled.account_id) != ours:
                continue
            if spilled.kind == REPLY:
                with self._store.writing() as connection:
                    put_reply(connection, spilled, at=self._environment.clock())
            else:
                with self._store.reading() as connection:
                    claimed = is_to_release(connection, spilled)
                if claimed:
                    at = self._environment.clock()
                    self.journal.release(spilled.batch_id, reason=spilled.reason, at=at)
            remove(path)
            count += 1
        return count

    def _spill_files(self) -> Spill:
        """Return the account's spill files, in its reports folder or else next to the database."""
        database = self._store.path
        related = () if database is None else (database.with_name(f"{database.name}.{FOLDER}"),)
        folders = (self._account.reports / FOLDER, *related)
        return Spill(folders, account=f"{self._run.merchant_id}/{self._run.account_id}")

    def unsent(self) -> tuple[int, int]:
        """Return how many of the account's instructions are unsent, and how many unapproved."""
        with self._store.reading() as connection:
            unapproved = sending_rows.unapproved(connection, self._run).count
            return unapproved + sending_rows.unsent(connection, self._run).count, unapproved

    def plan(self) -> int:
        """Create instructions for what the order files request; return how many."""
        run, environment = self._run, self._environment
        with self._store.writing() as connection:
            allowances = Allowances(connection, run, environment=environment)
            allowance, by_rule = allowances.rule(), allowances.rule_approves()
            # If actions changed after arrival, none is planned; the gate reports it.
            is_changed = any(order_rows.changed_actions(connection, run))
            actions = [] if is_changed else instruction_rows.unplanned_actions(connection, run)
            known = Known()
            if actions:
                # If an instruction names no payment, the gateway's answer may name it.
                unnamed = instruction_rows.unnamed_orders(connection, run)
                only_payments = GatewayAnswers(connection, run, environment).only_payments(unnamed)
                known = instruction_rows.known(connection, run, only_payments=only_payments)
            made = plan(
                actions,
                known=known,
                new_id=environment.new_id,
                auto_approve=by_rule,
                allowance=allowance,
                ids_unique=self.ids_unique,
            )
            ended = self._captures_to_repeat(connection)
            ids = [item.instruction_id for item in ended]
            again = plan_again(
                ended,
                have_second=instruction_rows.find_by(
                    connection, run, column="again_for", values=ids
                ),
                new_id=environment.new_id,
                auto_approve=by_rule,
                allowance=allowance,
            )
            made = replace(made, new=made.new + again)
            instruction_rows.save_plan(connection, run, plan=made, at=environment.clock())
        return len(made.new)

    def _captures_to_repeat(self, connection: Connection) -> list[Instruction]:
        """Return captures that did not happen and are still requested, if repeating is on."""
        if not self._settings.gateway.capture_replan:
            return []
        run, not_applied = self._run, (InstructionState.RESOLVED_NOT_APPLIED,)
        superseded = instruction_rows.replaced(connection, run, states=not_applied)
        captures = (InstructionKind.CAPTURE,)
        return [
            item
            for item in instruction_rows.find(connection, run, kind=captures, state=not_applied)
            if item.file_id is not None
            and item.instruction_id not in superseded
            and item.outcome_at is not None
            and item.outcome_at < run.started_at
        ]

    def clear(self, gate: Gate) -> Queue:
        """Return which approved instructions may be sent now; why the others may not."""
        run, environment = self._run, self._environment
        with self._store.reading() as connection:
            approved = [
                item
                for item in instruction_rows.find(
                    connection, run, state=(InstructionState.APPROVED,)
                )
                if run.part != Part.PAYOUTS or item.kind is InstructionKind.PAYOUT
            ]
            order_nos = {item.order_no for item in approved}
            stored = GatewayAnswers(connection, run, environment)
            # The answers for other orders about the same transactions count as well.
            payments = self.payments(connection, stored.payments(order_nos))
            answers = stored.before_money(order_nos)
        baselines = {
            key: Baseline(KeyAnswer(answer), payments.get(key, ()))
            for key, answer in answers.items()
        }
        return self.queue_of(approved, baselines=baselines, gate=gate)

    def payments(
        self, connection: Connection, rows: Iterable[Mapping[Any, Any]]
    ) -> dict[str, tuple[QueriedPayment, ...]]:
        """Return the payments in answers, by the order they were shown for.

        Each is marked closed or charged back as far as cases, settlement files and the ledger show.

        Raises:
            ArchiveError: the ledger, or lines of settlement files, cannot be reached, or are not
                those anchored in the history.
        """
        run, environment, state_of = self._run, self._environment, self._settings.rules.state_of
        closed = case_rows.closed_payments(connection, run)
        charged_back = larger_of(
            Settlements(connection, run, storages_of(environment)).charged_back(),
            booked=StoredLedger(connection, run, environment).charged_back(),
        )
        return payments_by_order(
            (
                row["order_no"],
                QueriedPayment(
                    transaction_id=row["transaction_id"],
                    state=state_of(row["payment_status"]),
                    payment_status=row["payment_status"],
                    currency=row["currency"],
                    amount=row["amount"],
                    dated=row["transaction_date"],
                    closed_because=closed.get(row["transaction_id"], ""),
                    charged_back=charged_back(
                        row["order_no"], row["transaction_id"], row["currency"], row["amount"]
                    ),
                ),
            )
            for row in rows
        )

    def queue_of(
        self, items: Sequence[Instruction], *, baselines: Mapping[str, Baseline], gate: Gate
    ) -> Queue:
        """Return which of the instructions may be sent now, in order; why the others may not."""
        if not items:
            return Queue((), ())
        run, environment = self._run, self._environment
        with self._store.reading() as connection:
            about = {
                "transaction_id": [
                    p.transaction_id for b in baselines.values() for p in b.payments
                ],
                "recurring_id": [item.recurring_id for item in items],
                "payee_digest": [item.payee_digest for item in items],
            }
            others: dict[str, list[Instruction]] = {}
            for column, values in about.items():
                others |= instruction_rows.find_by(connection, run, column=column, values=values)
            against = self._against_rows(connection, items, baselines=baselines, others=others)
            ineligible_first = {own: (because, True) for own, because in against.items()}
            replaced = instruction_rows.replaced(connection, run)
            ineligible_first |= dict.fromkeys(replaced, (REPLACED, False))
            allowances = Allowances(connection, run, environment=environment)
            unruled = allowances.no_longer_by_rule(items)
            ineligible_first |= {own: (because, True) for own, because in unruled.items()}
            allowance = allowances.sending()
        evaluated = [
            Ineligible(item, *ineligible_first[item.instruction_id])
            if item.instruction_id in ineligible_first
            else self._evaluate(
                item, gate=gate, baseline=baselines.get(item.order_no), others=others
            )
            for item in items
        ]

        def refusal(item: Instruction) -> str:
            """Limits count only what is sent now, not what still waits for people."""
            return allowance.refusal(item) if item.state is InstructionState.APPROVED else ""

        queued = queue((item for item in evaluated if isinstance(item, Eligible)), refusal=refusal)
        ineligible = tuple(item for item in evaluated if isinstance(item, Ineligible))
        return Queue(queued.eligible, ineligible + queued.ineligible)

    def _evaluate(
        self,
        item: Instruction,
        *,
        gate: Gate,
        baseline: Baseline | None,
        others: Mapping[str, Sequence[Instruction]],
    ) -> Eligible | Ineligible:
        """Check the gate, then the baseline and the journal, then the gateway's format rules."""
        if held := gate.hold_on(item.kind):
            return Ineligible(item, held)
        if item.kind in ALONE:
            related = list(others.get(item.recurring_id or item.payee_digest, ()))
            evaluated = clear_alone(
                item, others=related, rule_approver=RULE_APPROVER, ids_unique=self.ids_unique
            )
        elif baseline is None:
            return Ineligible(item, NOT_QUERIED)
        else:
            related = [o for p in baseline.payments for o in others.get(p.transaction_id, ())]
            evaluated = clear(
                item,
                baseline=baseline,
                others=related,
                multiple_captures=self._settings.gateway.capture_multiple,
                ids_unique=self.ids_unique,
            )
        if isinstance(evaluated, Eligible) and (problem := self.gateway.problem(evaluated)):
            return Ineligible(item, f"it is not sent, by our own checks: {problem}{WITHDRAW_IT}")
        return evaluated

    def _against_rows(
        self,
        connection: Connection,
        items: Sequence[Instruction],
        *,
        baselines: Mapping[str, Baseline],
        others: Mapping[str, Sequence[Instruction]],
    ) -> dict[str, str]:
        """Map instruction id -> how the newest rows of its order contradict it.

        Contradictions that people saw when they approved are left out. A rule or people approved
        what an order row requested, and later rows may say otherwise.
        """
        of_rows = instruction_rows.of_order_files(connection, self._run)
        ours = [item for item in items if item.instruction_id in of_rows]
        current: dict[str, list[tuple[int, str, OrderRow]]] = {}
        orders = StoredOrders(connection, self._run, storages_of(self._environment))
        order_nos = sorted({item.order_no for item in ours})
        for row in orders.named(order_nos).to_pylist():
            names = ("currency", "amount", "expected_captured_amount", "refund_amount")
            own = OrderRow(OrderStatus(row["status"]), **{name: row[name] for name in names})
            current.setdefault(row["order_no"], []).append(
                (row["file_id"], row["transaction_id"], own)
            )
        reasons: dict[str, str] = {}
        for item in ours:
            queried = baselines[item.order_no].payments if item.order_no in baselines else ()
            payments = {
                one.transaction_id
                for one in queried
                if item.transaction_id in {"", one.transaction_id}
            }
            before = sum(
                other.amount
                for payment in payments
                for other in others.get(payment, ())
                if other.kind is item.kind and other.may_have_taken_effect
            )
            for file_id, transaction_id, own in current.get(item.order_no, ()):
                is_of_it = not transaction_id or not payments or transaction_id in payments
                if file_id < (item.file_id or 0) or not is_of_it:
                    continue
                if against := own.against(item.kind, amount=item.amount, before=before):
                    reasons[item.instruction_id] = f"{against}; {IF_MEANT}"
        events = events_of(connection, [*reasons])
        return {
            instruction_id: why
            for instruction_id, why in reasons.items()
            if not any(why in str(event.get("hold", "")) for event in events[instruction_id])
        }

    def send(self, eligible: Sequence[Eligible]) -> Sent:
        """Run one pass of the sender; a signal that arrives meanwhile waits for its batch.

        Raises:
            OutputError: no space for an answer that the database might not take; nothing was sent.
            StoreError: the disk refuses a write.
        """
        environment = self._environment
        self._note_head()
        with held_back() as ending_signal:
            self._spill.reserve()
            try:
                sender = Sender(
                    gateway=self.gateway,
                    journal=self.journal,
                    clock=environment.clock,
                    new_id=environment.new_id,
                    crash_point=environment.crash_point,
                    interval=timedelta(seconds=1 / self._settings.gateway.calls_per_second),
                )
                ends_in = timedelta(seconds=seconds_left(self._run, environment=environment))
                sending_all = sender.send_all(
                    eligible, ending_signal=ending_signal, ends_in=ends_in
                )
                sent = asyncio.run(sending_all)
            finally:
                self._spill.free()
        # Now, so that nothing more is sent for a payment with wrong numbers, and for page one.
        self.doubts.note_refund_numbers()
        # Only what is on disk: a noted head that the database lacks would mean a restored database.
        self._note_head()
        return sent

    def _note_head(self) -> None:
        note_head(self._run, environment=self._environment)

    def note_end(self, waiting: Queue, *, sent: Sent, stopped: str) -> int:
        """Store what waits and why; return how many instructions are in doubt now.

        A dry run only notes what it would have sent: what it finds that people must decide is
        passed to them when a live run finds it.
        """
        run, environment = self._run, self._environment
        is_live = run.mode is Mode.LIVE
        with self._store.writing() as connection:
            self.doubts.note_clocks(connection)
            if run.mode is Mode.DRY_RUN:
                plans = planned_batches(waiting.eligible)
                at = environment.clock()
                sending_rows.note_dry_batches(connection, run.run_id, plans=plans, at=at)
            for ineligible in waiting.ineligible:
                instruction_rows.note_hold(
                    connection, ineligible.instruction.instruction_id, hold=ineligible.reason
                )
                if ineligible.is_for_people and is_live:
                    instruction_rows.give_to_people(connection, ineligible, at=environment.clock())
            # Only what is still approved keeps a note, not what was sent.
            holds = {
                each.instruction.instruction_id: stopped
                for each in waiting.eligible
                if stopped and is_live
            }
            for instruction_id, reason in (holds | sent.left_out).items():
                instruction_rows.note_hold(connection, instruction_id, hold=reason)
            runs.note_step(connection, run.run_id, step=STEP)
            if stopped and is_live:
                stop = Stop(stopped, sending_rows.unsent(connection, run).as_text)
                runs.note_stop(connection, run.run_id, stop=stop, now=environment.clock())
            return sending_rows.doubtful(connection, run).count


def payments_by_order(
    queried: Iterable[tuple[str, QueriedPayment]],
) -> dict[str, tuple[QueriedPayment, ...]]:
    """Group payments by order; a payment shown in two different ways is marked closed."""
    payments = [*queried]
    twice = conflicting_payments(payment for _, payment in payments)
    payments_of: dict[str, tuple[QueriedPayment, ...]] = {}
    for order_no, payment in payments:
        because = payment.closed_because or twice.get(payment.transaction_id, "")
        known = payments_of.get(order_no, ())
        payments_of[order_no] = (*known, replace(payment, closed_because=because))
    return payments_of


def larger_of(
    settled: Mapping[tuple[str, str], int], *, booked: Mapping[tuple[str, str, str], int]
) -> ChargedBack:
    """Return a function that gives the larger of two sources for one payment.

    An amount in another currency counts as the whole payment.

    Args:
        settled: Amounts by transaction and currency.
        booked: Amounts by order, transaction ("" where the ledger has none) and currency.
    """
    in_files: dict[str, dict[str, int]] = defaultdict(dict)
    for (transaction_id, currency), amount in settled.items():
        in_files[transaction_id][currency] = amount
    in_ledger: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for (order_no, transaction_id, currency), amount in booked.items():
        sums = in_ledger["" if transaction_id else order_no, transaction_id]
        sums[currency] = sums.get(currency, 0) + amount

    def of_payment(order_no: str, transaction_id: str, currency: str, amount: int) -> int:
        account_currency = (currency, amount)
        named = _of(in_ledger.get(("", transaction_id), {}), account_currency)
        unnamed = _of(in_ledger.get((order_no, ""), {}), account_currency)
        return max(_of(in_files.get(transaction_id, {}), account_currency), named + unnamed)

    return of_payment


def _of(sums: Mapping[str, int], currency_amount: tuple[str, int]) -> int:
    currency, whole = currency_amount
    if any(amount > 0 for other, amount in sums.items() if other != currency):
        return whole
    return max(sums.get(currency, 0), 0)


def _sentence(run: Run, *, figures: Mapping[str, int | str], waiting: Queue, gate: Gate) -> str:
    earlier = f" and {figures['earlier']} earlier ones" if figures["earlier"] else ""
    sentence = f"{figures['planned']} new instructions{earlier}: "
    if run.mode is Mode.DRY_RUN:
        batches = planned_batches(waiting.eligible)
        listing = "; ".join(f"batch {batch.position}: {batch}" for batch in batches)
        sentence += f"dry run, would send {listing or 'nothing'}"
    else:
        sentence += f"{figures['sent']} sent in {figures['batches']} batches"
    waits = int(figures["waiting"]) - len(waiting.eligible) * (run.mode is Mode.DRY_RUN)
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

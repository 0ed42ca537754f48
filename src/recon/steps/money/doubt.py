"""Resolve what an earlier, interrupted run left open, before anything new is sent.

A claimed batch whose sender has ended is never sent again. If its reply was stored, the reply is
evaluated now; otherwise its rows become IN_DOUBT. A doubt is ended only by later answers of the
gateway or by its settlement files. A case is opened where the gateway contradicts a final state, or
where refund numbers do not fit.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from recon.gateway_client import UnsignedError
from recon.instructions.account import gateway_account
from recon.instructions.contradiction import (
    Opposite,
    against,
    contradicted,
    contradicted_by,
    number_unexplained,
)
from recon.instructions.eligibility import Eligible, QueriedPayment
from recon.instructions.instruction import Instruction
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.queries import search_refunds
from recon.instructions.resolution import (
    DoubtEvidence,
    ObservedPayment,
    Resolution,
    SearchedRefund,
    SettledLine,
    by_settlement,
    lines_about,
    our_references,
    quarantine,
    resolve,
)
from recon.model.business_date import Grace
from recon.model.errors import AmountError, Defect, SignerError
from recon.model.money import parse_minor_units
from recon.model.nights import Mode
from recon.model.terms import CONFIRMED_STATES, GatewayState, InstructionKind, InstructionState
from recon.model.uptime import Uptime
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import GatewayAnswers, observed_of, uptime_in
from recon.steps.runtime.night_folder import storages_of
from recon.store import Connection
from recon.store.database.history import append
from recon.store.money import case_rows, instruction_rows
from recon.store.money.instruction_rows import OpenBatch, move
from recon.store.money.journal import StoredJournal
from recon.store.nights import facts_rows, notification_rows, runs
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import Settlements

PROFILE_WITH_SEARCH = "extended"
"""The profile whose gateway can search for refunds by our own reference."""
SENDER_ENDED = "the run that sent this ended before a reply was kept"
UNDECIDED = (InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN)
FINAL_STATES = frozenset({InstructionState.RESOLVED_APPLIED, InstructionState.RESOLVED_NOT_APPLIED})


class Doubts:
    """Resolves the doubts of one run's account; a dry run ends none and opens no case.

    Args:
        run: The night, or a placeholder value outside any night.
        environment: Store, settings and clocks.
        journal: Where batches are closed.
        gateway: Rebuilds the bytes of a batch, and reads its stored reply.
    """

    def __init__(
        self,
        run: Run,
        *,
        environment: Environment,
        journal: StoredJournal,
        gateway: GatewayOfMoney,
    ) -> None:
        self._run, self._environment, self._store = run, environment, environment.store
        self._journal, self._gateway = journal, gateway
        self._is_dry = run.mode is Mode.DRY_RUN
        self._settings, self._rules = environment.settings, environment.settings.rules
        deadline = timedelta(seconds=self._settings.gateway.deadline_seconds)
        self._quarantined_for = quarantine(deadline)

    def sweep(self) -> int:
        """Close every batch that a dead sender left open; return how many were open."""
        with self._store.reading() as connection:
            open_batches = instruction_rows.open_batches(connection, self._run)
        for stored in () if self._is_dry else open_batches:
            if not self._evaluate_again(stored):
                at = self._environment.clock()
                self._journal.doubt(stored.batch_id, reason=SENDER_ENDED, at=at)
        return len(open_batches)

    def _evaluate_again(self, stored: OpenBatch) -> bool:
        """Record outcomes of the stored reply; False without one or for other bytes."""
        if stored.reply is None:
            return False
        with self._store.reading() as connection:
            rows = instruction_rows.rows_of_batch(connection, stored.batch_id)
        try:
            request = self._gateway.prepare([Eligible(row, _payment_of(row)) for row in rows])
        except Defect:
            # Today's configuration cannot send it any more: a doubt, not a permanent failure.
            return False
        except UnsignedError as error:
            if error.final:
                return False
            # No signer answered. The reply stays stored, and is evaluated once there is a signer.
            raise SignerError(str(error)) from error
        if request.body_sha256 != stored.body_sha256:
            return False
        reply = self._gateway.read(request, stored.reply)
        self._journal.record(stored.batch_id, reply, at=self._environment.clock())
        return True

    def resolve(self) -> int:
        """End every doubt that the evidence decides; return how many instructions changed state."""
        if self._is_dry:
            return 0
        with self._store.writing() as connection:
            doubts = self.note_clocks(connection)
        searched = self._search_refunds()
        settled_lines = self._settled_lines()
        is_signed = False
        if doubts:
            # Whether the signature of a message covers all the fields that describe the payment.
            account = gateway_account(
                self._settings, merchant_id=self._run.merchant_id, account_id=self._run.account_id
            )
            is_signed = account.signed_in_messages.issuperset(notification_rows.SIGNED_FIELDS)
        ended = 0
        with self._store.writing() as connection:
            for item in instruction_rows.find(connection, self._run, state=UNDECIDED):
                resolution = None
                if about := lines_about(item, lines=settled_lines):
                    # Settlement lines also decide what was passed to a person (NEEDS_HUMAN).
                    known = {*self._own_refunds(connection, item)}
                    resolution = by_settlement(item, lines=about, known=known)
                if resolution is None and item.state is InstructionState.IN_DOUBT:
                    signed = self._signed(connection, item) if is_signed else []
                    search = searched.get(item.instruction_id)
                    resolution = self._by_answers(connection, item, signed=signed, search=search)
                if resolution is None or resolution.state is item.state:
                    continue
                values: dict[str, Any] = {"message": resolution.evidence[:400]}
                if resolution.state in FINAL_STATES:
                    values["outcome_at"] = self._environment.clock()
                event = move(connection, item, to=resolution.state, values=values)
                uptime = self._environment.uptime()
                read = case_rows.clock_event(item.instruction_id, uptime=uptime)
                append(connection, [event, read], at=self._environment.clock())
                ended += 1
        return ended

    def note_clocks(self, connection: Connection) -> int:
        """Start the uptime clock of each doubt that has none; return the number of doubts."""
        ids = [item.instruction_id for item in self._in_doubt(connection)]
        uptime, at = self._environment.uptime(), self._environment.clock()
        case_rows.note_clocks(connection, ids, uptime=uptime, at=at)
        return len(ids)

    def _in_doubt(self, connection: Connection) -> list[Instruction]:
        return instruction_rows.find(connection, self._run, state=(InstructionState.IN_DOUBT,))

    def _search_refunds(self) -> Mapping[str, SearchedRefund]:
        """Search for refunds in doubt by our own reference, if the gateway offers such a search.

        Returns today's results by instruction; earlier results prove nothing without them.
        """
        environment = self._environment
        if self._settings.gateway.profile != PROFILE_WITH_SEARCH:
            return {}
        with self._store.reading() as connection:
            refunds = {
                item.instruction_id: item
                for item in self._in_doubt(connection)
                if item.kind is InstructionKind.REFUND
            }
            known = case_rows.known_refund(connection, self._run)
        if not refunds:
            return {}
        uptime = environment.uptime()
        answers = asyncio.run(
            search_refunds(
                sorted({*refunds, *([known.instruction_id] if known else ())}),
                account=(self._run.merchant_id, self._run.account_id),
                settings=self._settings,
                clock=environment.clock,
                randomness=environment.randomness,
            )
        )
        known_id = ""  # the id of the known refund, if the search showed exactly that refund
        if known and (answer := answers.get(known.instruction_id)):
            number = answer.reference_of(amount=known.amount, currency=known.currency)
            known_id = known.refund_reference_id if number == known.refund_reference_id else ""
        searched: dict[str, SearchedRefund] = {}
        with self._store.writing() as connection:
            for instruction_id in sorted(answers.keys() & refunds.keys()):
                answer, ours = answers[instruction_id], refunds[instruction_id]
                reference = answer.reference_of(amount=ours.amount, currency=ours.currency)
                if reference is not None:
                    at = answer.queried_at or environment.clock()
                    waited = replace(uptime, gateway_at=answer.gateway_at)
                    searched[instruction_id] = SearchedRefund(reference, at, known_id, waited)
                    case_rows.note_search(
                        connection, instruction_id, search=searched[instruction_id]
                    )
        return searched

    def _settled_lines(self) -> list[SettledLine]:
        """Return the settlement lines about undecided instructions; files are read outside a write.

        Returns nothing if files differ from those anchored in the history: the gate reports that,
        and such files end no doubt.
        """
        with self._store.reading() as connection:
            undecided = instruction_rows.find(connection, self._run, state=UNDECIDED)
            if not undecided or any(facts_rows.changed(connection)):
                return []
            storages = storages_of(self._environment)
            return Settlements(connection, self._run, storages).evidence(
                transactions={item.transaction_id for item in undecided},
                references={each for item in undecided for each in our_references(item)},
            )

    def _own_refunds(self, connection: Connection, item: Instruction) -> list[str]:
        payment = item.transaction_id
        return case_rows.own_refunds(connection, self._run, transaction_id=payment)

    def _by_answers(
        self,
        connection: Connection,
        item: Instruction,
        *,
        signed: Sequence[ObservedPayment],
        search: SearchedRefund | None,
    ) -> Resolution | None:
        """Decide by answers, searches and messages since the doubt; None if undecided."""
        since = item.in_doubt_since
        if since is None:
            return None
        # Earlier search results count only together with an answer of this run.
        searches: list[SearchedRefund] = []
        if search is not None:
            stored = case_rows.searches(connection, item.instruction_id)
            silent = (one for one in stored if not one.refund_reference_id and one != search)
            searches = [*silent, search]
        observed, readings = self._observed(connection, item)
        visible = Grace.parse(self._rules.grace.refund_visible)
        return resolve(
            item,
            evidence=DoubtEvidence(
                observed=observed,
                refunds=searches,
                messages=self._reported(connection, item),
                signed=signed,
                readings=readings,
                uptime=self._environment.uptime(),
            ),
            now=self._environment.clock(),
            quarantined_for=self._quarantined_for,
            refund_visible_until=self._rules.business_calendar.due_at(since, grace=visible),
        )

    def _observed(
        self, connection: Connection, item: Instruction, *, is_ended: bool = False
    ) -> tuple[list[ObservedPayment], list[Uptime]]:
        """Return what answers since the last change of state show, and clock readings.

        With `is_ended`, readings noted before the doubt ended are left out as part of it.
        """
        since = case_rows.last_change(connection, item.instruction_id)
        rows = GatewayAnswers(connection, self._run, self._environment).evidence(
            item.order_no, after=since
        )
        observed = observed_of(rows, transaction_id=item.transaction_id, rules=self._rules)
        after = since if is_ended else 0
        noted = case_rows.readings(connection, item.instruction_id, after=after)
        return [*observed], [*noted, *map(uptime_in, rows)]

    def _reported(self, connection: Connection, item: Instruction) -> tuple[str, ...]:
        """Describe messages that may be about this refund; only partly signed."""
        if item.kind is not InstructionKind.REFUND:
            return ()
        of = {item.transaction_id} - {""}
        evidence = notification_rows.evidence_of(connection, self._run, transaction_ids=of)
        references = [message.fields.get("refund_reference_id", "") for message in evidence]
        known = self._own_refunds(connection, item)
        skipped = number_unexplained(known=known, refund_ids=references)
        named = (
            f"the gateway reported refund {reference or 'of ours'} with our reference at "
            f"{message.received_at:%Y-%m-%d %H:%M:%S} UTC (message {message.sha256[:12]})"
            for reference, message in zip(references, evidence, strict=True)
            if (message.fields.get("refund_reference") or message.fields.get("request_id"))
            == item.instruction_id
            and message.currency == item.currency
        )
        return tuple(filter(None, (skipped, *named)))

    def _signed(self, connection: Connection, item: Instruction) -> list[ObservedPayment]:
        """Return this payment's states in messages whose signature covers every field of them."""
        payment = item.transaction_id
        states = notification_rows.signed_states(connection, item, transaction_id=payment)
        return [
            ObservedPayment(self._rules.state_of(fields["order_status"]), state.received_at)
            for state in states
            for fields in [state.fields]
            if (fields["order_no"], fields["currency"]) == (item.order_no, item.currency)
            and _minor_units(fields["amount"], currency=fields["currency"]) == item.payment_amount
        ]

    def note_contradictions(self) -> int:
        """Open a case for each final instruction that the gateway contradicts; return how many.

        Checks the states that the gateway shows, and the numbers of refunds.
        """
        if self._is_dry:
            return 0
        with self._store.writing() as connection:
            against_us = self._contradicted(connection)
            cases = {item: one.text for item, one in against_us.items() if one.is_steady}
            for item, reason in cases.items():
                case_rows.open_case(connection, item, reason=reason, at=self._environment.clock())
            once = [
                # The first contradiction opens no case; it must be seen again.
                f"{item.kind} of {item.subject}: {one.text}; said again, two people decide"
                for item, one in against_us.items()
                if item not in cases
            ]
            now = self._environment.clock()
            runs.note_unverified(connection, self._run.run_id, sentences=once, now=now)
        return len(cases) + self.note_refund_numbers()

    def _contradicted(self, connection: Connection) -> dict[Instruction, Opposite]:
        """Return instructions whose payment is in an opposite state, by all answers so far."""
        run = self._run
        answers = GatewayAnswers(connection, run, self._environment)
        statuses = answers.statuses_reported(case_rows.ended_payments(connection, run))
        ended = case_rows.ended_and_reported(connection, run, statuses=statuses)
        payments = [item.transaction_id for item, _ in ended]
        others = instruction_rows.find_by(connection, run, column="transaction_id", values=payments)
        opposites: dict[Instruction, Opposite] = {}
        for item, status in ended:
            related = [
                other
                for other in others.get(item.transaction_id, ())
                if other.instruction_id != item.instruction_id
            ]
            states = against(item, others=related)
            if self._rules.state_of(status) not in states:
                continue
            if item.state not in CONFIRMED_STATES and status == item.baseline_status:
                continue  # it was in this state before anything was sent
            observed, readings = self._observed(connection, item, is_ended=True)
            opposite = contradicted_by(
                item,
                observed=[one for one in observed if one.state is not GatewayState.NONE],
                readings=readings,
                opposite=states,
                quarantined_for=self._quarantined_for,
            )
            if opposite is not None:
                opposites[item] = opposite
        return opposites

    def note_refund_numbers(self) -> int:
        """Open a case for each refund that the gateway's numbers contradict; return how many.

        A case that people closed is not opened again.
        """
        if self._is_dry:
            return 0
        with self._store.writing() as connection:
            numbered = case_rows.numbered_refunds(connection, self._run)
            known = case_rows.with_case(connection, self._run)
            new = {
                item: reason
                for refunds in numbered
                for item, reason in contradicted(refunds)
                if item.instruction_id not in known
            }
            for item, reason in new.items():
                case_rows.open_case(connection, item, reason=reason, at=self._environment.clock())
        return len(new)


def _payment_of(row: Instruction) -> QueriedPayment:
    return QueriedPayment(
        row.transaction_id, GatewayState.NONE, row.baseline_status, row.currency, row.payment_amount
    )


def _minor_units(text: str, *, currency: str) -> int | None:
    try:
        return parse_minor_units(text, currency=currency)
    except AmountError:
        return None

"""Before anything new is sent: what an earlier, interrupted run left open.

A batch that was claimed and whose sender is gone is never sent again. A kept reply is judged now;
without one the rows go to doubt. Doubts end only by later answers of the gateway, or by what its
settlement files show.

What the gateway shows against a final state, or numbers of refunds that do not fit, opens a case.
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
    number_unexplained,
    shown_against,
)
from recon.instructions.eligibility import Cleared, ShownPayment
from recon.instructions.instruction import Instruction
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.queries import search_refunds
from recon.instructions.resolution import (
    DoubtEvidence,
    Resolution,
    SearchedRefund,
    Seen,
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
from recon.model.words import CONFIRMED_STATES, GatewayState, InstructionKind, InstructionState
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.steps.ground.shown_answers import ShownAnswers, seen_of, uptime_in
from recon.store import Connection
from recon.store.database.history import append
from recon.store.money import case_rows, instruction_rows
from recon.store.money.instruction_rows import OpenBatch, move
from recon.store.money.journal import StoredJournal
from recon.store.nights import facts_rows, notification_rows, runs
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import Settlements

PROFILE_WITH_SEARCH = "extended"
"""The profile whose gateway can be asked for refunds by our own reference."""
SENDER_GONE = "the run that sent this ended before a reply was kept"
UNDECIDED = (InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN)
FINAL_STATES = frozenset({InstructionState.RESOLVED_APPLIED, InstructionState.RESOLVED_NOT_APPLIED})


def sweep(
    run: Run, *, journal: StoredJournal, gateway: GatewayOfMoney, environment: Environment
) -> int:
    """Close every batch that a dead sender left open; returns how many. A dry run only counts."""
    with environment.store.reading() as connection:
        open_batches = instruction_rows.open_batches(connection, run)
    if run.mode is Mode.DRY_RUN:
        return len(open_batches)
    for open_batch in open_batches:
        if not _judge_again(open_batch, journal=journal, gateway=gateway, environment=environment):
            journal.doubt(open_batch.batch_id, reason=SENDER_GONE, at=environment.clock())
    return len(open_batches)


def _judge_again(
    stored: OpenBatch,
    *,
    journal: StoredJournal,
    gateway: GatewayOfMoney,
    environment: Environment,
) -> bool:
    """T2b from the kept reply; False without one, or where the same bytes cannot be made again."""
    if stored.reply is None:
        return False
    with environment.store.reading() as connection:
        rows = instruction_rows.rows_of_batch(connection, stored.batch_id)
    try:
        request = gateway.prepare([Cleared(row, _payment_of(row)) for row in rows])
    except Defect:
        # Under today's configuration it could not be sent any more: doubt, not a dead end.
        return False
    except UnsignedError as error:
        if error.final:
            return False
        # Nobody is there to sign: the reply is kept, and is judged when somebody is.
        raise SignerError(str(error)) from error
    if request.body_sha256 != stored.body_sha256:
        return False
    reply = gateway.read(request, stored.reply)
    journal.record(stored.batch_id, reply, at=environment.clock())
    return True


def _payment_of(row: Instruction) -> ShownPayment:
    return ShownPayment(
        row.transaction_id, GatewayState.NONE, row.baseline_status, row.currency, row.payment_amount
    )


def resolve_doubts(run: Run, *, environment: Environment) -> dict[InstructionState, int]:
    """End every doubt that the evidence decides; returns how many came to which state.

    A dry run ends none.
    """
    if run.mode is Mode.DRY_RUN:
        return {}
    with environment.store.writing() as connection:
        doubts = note_doubts(connection, run, environment=environment)
    searched = _search_refunds(run, environment=environment)
    ended: dict[InstructionState, int] = {}
    settled_lines = _lines(run, environment=environment)
    is_signed = False
    if doubts:
        # Whether a message's signature covers all that it says of a payment.
        account = gateway_account(
            environment.settings, merchant_id=run.merchant_id, account_id=run.account_id
        )
        is_signed = account.signed_in_messages.issuperset(notification_rows.SIGNED_FIELDS)
    with environment.store.writing() as connection:
        for item in instruction_rows.find(connection, run, state=UNDECIDED):
            resolution = _settled(connection, item, run=run, lines=settled_lines)
            if resolution is None and item.state is InstructionState.IN_DOUBT:
                signed = _signed(connection, item, environment=environment) if is_signed else []
                resolution = _resolution_of(
                    connection,
                    item,
                    run=run,
                    signed=signed,
                    searched=searched.get(item.instruction_id),
                    environment=environment,
                )
            if resolution is None or resolution.state is item.state:
                continue
            values: dict[str, Any] = {"message": resolution.evidence[:400]}
            if resolution.state in FINAL_STATES:
                values["outcome_at"] = environment.clock()
            event = move(connection, item, to=resolution.state, values=values)
            read = case_rows.clock_event(item.instruction_id, uptime=environment.uptime())
            append(connection, [event, read], at=environment.clock())
            ended[resolution.state] = ended.get(resolution.state, 0) + 1
    return ended


def note_doubts(connection: Connection, run: Run, *, environment: Environment) -> int:
    """Start the clock that nobody can set for every doubt of the account that has none.

    Returns how many doubts there are.
    """
    doubtful = instruction_rows.find(connection, run, state=(InstructionState.IN_DOUBT,))
    ids = [item.instruction_id for item in doubtful]
    case_rows.note_clocks(connection, ids, uptime=environment.uptime(), at=environment.clock())
    return len(ids)


def _search_refunds(run: Run, *, environment: Environment) -> Mapping[str, SearchedRefund]:
    """Ask for doubtful refunds by our own reference, where the gateway has such a search.

    Returns what it said now, by instruction: rows of earlier searches prove nothing without it.
    """
    if environment.settings.gateway.profile != PROFILE_WITH_SEARCH:
        return {}
    with environment.store.reading() as connection:
        doubtful = instruction_rows.find(connection, run, state=(InstructionState.IN_DOUBT,))
        known = case_rows.known_refund(connection, run)
    refunds = {
        item.instruction_id: item for item in doubtful if item.kind is InstructionKind.REFUND
    }
    if not refunds:
        return {}
    uptime = environment.uptime()
    answers = asyncio.run(
        search_refunds(
            sorted({*refunds, *([known.instruction_id] if known else ())}),
            account=run.account,
            settings=environment.settings,
            clock=environment.clock,
            randomness=environment.randomness,
        )
    )
    shown = ""  # the id of the known refund where the search showed exactly it
    if known and (answer := answers.get(known.instruction_id)):
        number = answer.reference_of(amount=known.amount, currency=known.currency)
        shown = known.refund_reference_id if number == known.refund_reference_id else ""
    searched: dict[str, SearchedRefund] = {}
    with environment.store.writing() as connection:
        for wanted, answer in answers.items():
            ours = refunds.get(wanted)
            if ours is None:
                continue
            reference = answer.reference_of(amount=ours.amount, currency=ours.currency)
            if reference is not None:
                at = answer.queried_at or environment.clock()
                asked = replace(uptime, gateway_at=answer.gateway_at)
                searched[wanted] = SearchedRefund(reference, at, shown, asked)
                case_rows.save_search(connection, wanted, search=searched[wanted])
    return searched


def _lines(run: Run, *, environment: Environment) -> list[SettledLine]:
    """What settlement files tell of all that is undecided: files are read outside a turn.

    Nothing where files are not those that the history bound: the gate says so, and nothing is ended
    by them.
    """
    with environment.store.reading() as connection:
        undecided = instruction_rows.find(connection, run, state=UNDECIDED)
        if not undecided or any(facts_rows.changed(connection)):
            return []
        return Settlements(connection, run, storages_of(environment)).evidence(
            transactions={item.transaction_id for item in undecided},
            references={each for item in undecided for each in our_references(item)},
        )


def _settled(
    connection: Connection, item: Instruction, *, run: Run, lines: Sequence[SettledLine]
) -> Resolution | None:
    """What the gateway's settlement files decide, also of what was handed to a person."""
    about = lines_about(item, lines=lines)
    if not about:
        return None
    refunds = case_rows.own_refunds(connection, run, transaction_id=item.transaction_id)
    return by_settlement(item, lines=about, known={*refunds})


def _resolution_of(
    connection: Connection,
    item: Instruction,
    *,
    run: Run,
    signed: Sequence[Seen],
    searched: SearchedRefund | None,
    environment: Environment,
) -> Resolution | None:
    since = item.in_doubt_since
    if since is None:
        return None
    rules = environment.settings.rules
    deadline = timedelta(seconds=environment.settings.gateway.deadline_seconds)
    doubted = case_rows.last_change(connection, item.instruction_id)
    rows = ShownAnswers(connection, run, environment).evidence(item.order_no, after=doubted)
    seen = seen_of(rows, transaction_id=item.transaction_id, rules=rules)
    noted = case_rows.readings(connection, item.instruction_id)
    return resolve(
        item,
        evidence=DoubtEvidence(
            seen=[*seen],
            refunds=_searches_until(connection, item, last=searched),
            messages=_told(connection, item, run=run),
            signed=signed,
            readings=[*noted, *map(uptime_in, rows)],
            uptime=environment.uptime(),
        ),
        now=environment.clock(),
        quarantined_for=quarantine(deadline),
        refund_visible_until=rules.business_calendar.due_at(
            since, grace=Grace.parse(rules.grace.refund_visible)
        ),
    )


def _searches_until(
    connection: Connection, item: Instruction, *, last: SearchedRefund | None
) -> list[SearchedRefund]:
    """What tonight's search said, behind earlier ones that found nothing either.

    Whoever writes the table can add searches to it, but not make the gateway say so tonight.
    """
    if last is None:
        return []
    stored = case_rows.searches(connection, item.instruction_id)
    earlier = (each for each in stored if not each.refund_reference_id and each != last)
    return [*earlier, last]


def _told(connection: Connection, item: Instruction, *, run: Run) -> tuple[str, ...]:
    """Messages about a refund's payment that may be about it; their signature covers a part."""
    if item.kind is not InstructionKind.REFUND:
        return ()
    of = {item.transaction_id} - {""}
    evidence = notification_rows.evidence_of(connection, run, transaction_ids=of)
    known = case_rows.own_refunds(connection, run, transaction_id=item.transaction_id)
    references = [message.fields.get("refund_reference_id", "") for message in evidence]
    skipped = number_unexplained(known=known, refund_ids=references)
    named = (
        f"the gateway told of refund {reference or 'of ours'} with our reference at "
        f"{message.received_at:%Y-%m-%d %H:%M:%S} UTC (message {message.sha256[:12]})"
        for reference, message in zip(references, evidence, strict=True)
        if (message.fields.get("refund_reference") or message.fields.get("request_id"))
        == item.instruction_id
        and message.currency == item.currency
    )
    return tuple(filter(None, (skipped, *named)))


def _signed(connection: Connection, item: Instruction, *, environment: Environment) -> list[Seen]:
    """States of exactly this payment in messages whose signature covers all of it."""
    payment = item.transaction_id
    states = notification_rows.signed_states(connection, item, transaction_id=payment)
    rules = environment.settings.rules
    return [
        Seen(rules.state_of(fields["order_status"]), state.received_at)
        for state in states
        for fields in [state.fields]
        if (fields["order_no"], fields["currency"]) == (item.order_no, item.currency)
        and _minor_units(fields["amount"], currency=fields["currency"]) == item.payment_amount
    ]


def _minor_units(text: str, *, currency: str) -> int | None:
    try:
        return parse_minor_units(text, currency=currency)
    except AmountError:
        return None


def note_contradictions(run: Run, *, environment: Environment) -> int:
    """Open a case for each final instruction that the gateway contradicts; returns how many.

    A dry run opens none.
    """
    if run.mode is Mode.DRY_RUN:
        return 0
    with environment.store.writing() as connection:
        answers = ShownAnswers(connection, run, environment)
        shown = answers.statuses_shown(case_rows.ended_payments(connection, run))
        ended = case_rows.shown_ended(connection, run, shown=shown)
        others = instruction_rows.find_by(
            connection,
            run,
            column="transaction_id",
            values=[item.transaction_id for item, _ in ended],
        )
        against_us = _shown(connection, run, pairs=ended, others=others, environment=environment)
        cases = {
            item: opposite.words for item, opposite in against_us.items() if opposite.is_steady
        }
        for item, reason in cases.items():
            case_rows.open_case(connection, item, reason=reason, at=environment.clock())
        once = [
            # Until it comes again it opens no case.
            f"{item.kind} of {item.subject}: {opposite.words}; said again, two people decide"
            for item, opposite in against_us.items()
            if item not in cases
        ]
        runs.note_unverified(connection, run.run_id, sentences=once, now=environment.clock())
    return len(cases) + note_refund_numbers(run, environment=environment)


def _shown(
    connection: Connection,
    run: Run,
    *,
    pairs: Sequence[tuple[Instruction, str]],
    others: Mapping[str, Sequence[Instruction]],
    environment: Environment,
) -> dict[Instruction, Opposite]:
    """Those whose payment tonight is in an opposite state, held against all answers."""
    rules = environment.settings.rules
    deadline = timedelta(seconds=environment.settings.gateway.deadline_seconds)
    opposites: dict[Instruction, Opposite] = {}
    for item, status in pairs:
        beside = [
            other
            for other in others.get(item.transaction_id, ())
            if other.instruction_id != item.instruction_id
        ]
        if rules.state_of(status) not in against(item, others=beside):
            continue
        if item.state not in CONFIRMED_STATES and status == item.baseline_status:
            continue  # it stood so before anything was sent
        end = case_rows.last_change(connection, item.instruction_id)
        rows = ShownAnswers(connection, run, environment).evidence(item.order_no, after=end)
        seen = seen_of(rows, transaction_id=item.transaction_id, rules=rules)
        noted = case_rows.readings(connection, item.instruction_id, after=end)
        if opposite := shown_against(
            item,
            seen=[one for one in seen if one.state is not GatewayState.NONE],
            readings=[*noted, *map(uptime_in, rows)],
            others=beside,
            quarantined_for=quarantine(deadline),
        ):
            opposites[item] = opposite
    return opposites


def note_refund_numbers(run: Run, *, environment: Environment) -> int:
    """Open a case for each refund that the gateway's numbers contradict; returns how many.

    A dry run opens none. What people closed is not opened again.
    """
    if run.mode is Mode.DRY_RUN:
        return 0
    with environment.store.writing() as connection:
        numbered = case_rows.numbered_refunds(connection, run)
        cases = {item: reason for refunds in numbered for item, reason in contradicted(refunds)}
        known = case_rows.with_case(connection, run)
        new = {item: reason for item, reason in cases.items() if item.instruction_id not in known}
        for item, reason in new.items():
            case_rows.open_case(connection, item, reason=reason, at=environment.clock())
    return len(new)

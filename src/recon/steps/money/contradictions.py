"""Before anything new is sent: does the gateway now show the opposite of what we believe?"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from recon.model.nights import Mode
from recon.model.words import GatewayState
from recon.settlement.contradiction import Ended, Opposite, against, shown_against
from recon.settlement.instruction import Instruction
from recon.settlement.refund_numbers import contradicted
from recon.settlement.resolution import quarantine
from recon.steps.ground import shown_answers
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_answers import evidence
from recon.store import Connection
from recon.store.money import case_rows, evidence_rows, instruction_rows
from recon.store.nights import runs
from recon.store.nights.runs import Run

_ByPayment = Mapping[str, Sequence[Instruction]]


def note_contradictions(run: Run, *, environment: Environment) -> int:
    """Open a case for each final instruction that the gateway contradicts; returns how many.

    A dry run opens none.
    """
    if run.mode is Mode.DRY_RUN:
        return 0
    with environment.store.writing() as connection:
        shown = shown_answers.statuses_shown(
            connection,
            run,
            transactions=case_rows.ended_payments(connection, run),
            environment=environment,
        )
        ended = case_rows.shown_ended(connection, run, shown=shown)
        payments = {instruction.instruction.transaction_id for instruction, _ in ended}
        others = instruction_rows.of_payments(connection, run, transaction_ids=payments)
        against_us = _shown(connection, run, pairs=ended, others=others, environment=environment)
        cases = {
            item: opposite.words for item, opposite in against_us.items() if opposite.is_steady
        }
        for item, reason in cases.items():
            case_rows.open_case(connection, item, reason=reason, at=environment.clock())
        once = [_once(item, opposite) for item, opposite in against_us.items() if item not in cases]
        runs.note_unverified(connection, run.run_id, sentences=once, now=environment.clock())
    return len(cases) + note_refund_numbers(run, environment=environment)


def _once(item: Instruction, opposite: Opposite) -> str:
    """A first opposite answer in words: until it comes again it opens no case."""
    return f"{item.kind} of {item.subject}: {opposite.words}; said again, two people decide"


def _shown(
    connection: Connection,
    run: Run,
    *,
    pairs: Sequence[tuple[Ended, str]],
    others: _ByPayment,
    environment: Environment,
) -> dict[Instruction, Opposite]:
    """Those whose payment tonight is in an opposite state, held against all answers."""
    rules = environment.settings.rules
    deadline = timedelta(seconds=environment.settings.gateway.deadline_seconds)
    opposites: dict[Instruction, Opposite] = {}
    for ended, status in pairs:
        item = ended.instruction
        beside = [
            other
            for other in others.get(item.transaction_id, ())
            if other.instruction_id != item.instruction_id
        ]
        if rules.state_of(status) not in against(ended, others=beside):
            continue
        if not ended.is_done and status == item.baseline_status:
            continue  # it stood so before anything was sent
        end = evidence_rows.last_change(connection, item.instruction_id)
        rows = evidence(
            connection,
            run,
            order_no=item.order_no,
            after=end,
            environment=environment,
        )
        seen = shown_answers.seen_of(rows, transaction_id=item.transaction_id, rules=rules)
        noted = evidence_rows.readings(connection, item.instruction_id, after=end)
        if opposite := shown_against(
            ended,
            seen=[one for one in seen if one.state is not GatewayState.NONE],
            readings=[*noted, *map(shown_answers.uptime_in, rows)],
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

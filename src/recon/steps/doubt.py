"""Before anything new is sent: what an earlier, interrupted run left open.

A batch that was claimed and whose sender is gone is never sent again. A kept reply is judged now;
without one the rows go to doubt. Doubts end only by later answers of the gateway.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from recon.business_date import Grace
from recon.errors import Defect
from recon.gateway_adapter.money import GatewayOfMoney
from recon.model import GatewayState, InstructionKind, InstructionState
from recon.settlement.eligibility import Cleared, Payment
from recon.settlement.instruction import Instruction
from recon.settlement.resolution import Resolution, Seen, quarantine, resolve
from recon.settlement.sender import Reply
from recon.steps.environment import Environment
from recon.store import answers, instruction_rows
from recon.store.history import append
from recon.store.journal import StoredJournal, move
from recon.store.runs import Run

SENDER_GONE = "the run that sent this ended before a reply was kept"
FINAL_STATES = frozenset({InstructionState.RESOLVED_APPLIED, InstructionState.RESOLVED_NOT_APPLIED})


def sweep(
    run: Run, *, journal: StoredJournal, gateway: GatewayOfMoney, environment: Environment
) -> int:
    """Close every batch that a dead sender left open; returns how many."""
    with environment.store.reading() as connection:
        open_batches = instruction_rows.open_batches(connection, run)
    for found in open_batches:
        if found["reply"] is None or not _judge_again(
            found, journal=journal, gateway=gateway, environment=environment
        ):
            journal.doubt(found["batch_id"], reason=SENDER_GONE, at=environment.clock())
    return len(open_batches)


def _judge_again(
    found: Mapping[str, Any],
    *,
    journal: StoredJournal,
    gateway: GatewayOfMoney,
    environment: Environment,
) -> bool:
    """T2b from the kept reply; False when the request cannot be rebuilt to the same bytes."""
    with environment.store.reading() as connection:
        rows = instruction_rows.rows_of_batch(connection, found["batch_id"])
    try:
        prepared = gateway.prepare(
            InstructionKind(found["kind"]), [Cleared(row, _payment_of(row)) for row in rows]
        )
    except Defect:
        # Under today's configuration it could not be sent any more: doubt, not a dead end.
        return False
    if prepared.body_sha256 != found["body_sha256"]:
        return False
    reply = Reply(found["http_status"], {}, found["reply"], found["replied_at"])
    result = gateway.judge(prepared, reply)
    journal.record(found["batch_id"], result, at=environment.clock())
    return True


def _payment_of(row: Instruction) -> Payment:
    return Payment(
        row.transaction_id, GatewayState.NONE, row.baseline_status, row.currency, row.payment_amount
    )


def resolve_doubts(run: Run, *, environment: Environment) -> dict[InstructionState, int]:
    """End every doubt that the answers decide; returns how many came to which state."""
    ended: dict[InstructionState, int] = {}
    with environment.store.writing() as connection:
        doubtful = instruction_rows.of_account(connection, run, states=(InstructionState.IN_DOUBT,))
        for item in doubtful:
            resolution = _resolution_of(connection, item, run=run, environment=environment)
            if resolution is None:
                continue
            values: dict[str, Any] = {"message": resolution.evidence[:400]}
            if resolution.state in FINAL_STATES:
                values["outcome_at"] = environment.clock()
            event = move(connection, item, to=resolution.state, values=values)
            append(connection, [event], at=environment.clock())
            ended[resolution.state] = ended.get(resolution.state, 0) + 1
    return ended


def _resolution_of(
    connection: Any, item: Instruction, *, run: Run, environment: Environment
) -> Resolution | None:
    if item.in_doubt_since is None:
        return None
    rules = environment.settings.rules
    found = answers.seen_since(connection, run, order_no=item.order_no, since=item.in_doubt_since)
    seen = [
        Seen(rules.state_of(row["payment_status"]), row["queried_at"])
        for row in found
        if row["transaction_id"] == item.transaction_id
    ]
    return resolve(
        item,
        seen=seen,
        quarantined_for=quarantine(
            timedelta(seconds=environment.settings.gateway.deadline_seconds)
        ),
        refund_visible_until=rules.business_calendar.due_at(
            item.in_doubt_since, grace=Grace.parse(rules.grace.refund_visible)
        ),
    )

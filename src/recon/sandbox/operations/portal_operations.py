"""What happens behind a client's back: actions in the gateway's portal, successes that flip."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from recon.model.words import GatewayState
from recon.sandbox.faults.fault_rule import Fault, FaultRule, RowKey
from recon.sandbox.ground.book import Effect, Payment, effect_of, on_wire
from recon.sandbox.ground.operation_call import Call, OperationReply, Sandbox
from recon.sandbox.notify.notify_events import tell_refund, tell_refund_failed
from recon.sandbox.operations.batch import CANCEL, CAPTURE, REFUND, BatchKind

STATUS_DONE = "1"
REASON = "by hand in the portal"
FLIPS_NOTE = "late_flips"
KINDS_BY_HAND: Mapping[str, BatchKind] = {
    kind.operation: kind for kind in (CAPTURE, CANCEL, REFUND)
}
_REFUNDED = frozenset({GatewayState.REFUNDED, GatewayState.PARTIALLY_REFUNDED})
Flip = dict[str, Any]


def act_by_hand(sandbox: Sandbox, *, action: str, key: str, amount: str | None = None) -> str:
    """Capture, cancel or refund a payment (transaction_id or order_no) as a person would.

    Returns "", or the short name of why the gateway refuses it. The caller holds the transaction.
    """
    payment = _payment(sandbox, key)
    if payment is None:
        return "unknown"
    kind = KINDS_BY_HAND[action]
    call = Call(action, {}, "", "", sandbox.clock.now())
    judged = kind.judge(sandbox, call, payment, _row(payment, action=action, amount=amount))
    if not isinstance(judged, Effect):
        return judged
    sandbox.book.append_effects([replace(judged, origin="portal")])
    if action == REFUND.operation:
        tell_refund(sandbox, judged)
    return ""


def act_on_rows(sandbox: Sandbox, *, rule: FaultRule, rows: Iterable[RowKey]) -> None:
    """Play a portal fault on the payments that a call is about."""
    for transaction_id, order_no in rows:
        act_by_hand(sandbox, action=rule.action, key=transaction_id or order_no, amount=rule.amount)


def _payment(sandbox: Sandbox, key: str) -> Payment | None:
    payment = sandbox.book.payment(key)
    payments = [payment] if payment else sandbox.book.payments("order_no", keys=(key,))
    return payments[-1] if payments else None


def _row(payment: Payment, *, action: str, amount: str | None) -> dict[str, str]:
    left = on_wire(payment.captured - payment.refunded, currency=payment.currency)
    row = {"amount": payment.amount, "refund_reason": REASON, "refund_amount": amount or left}
    return row | ({"amount": amount} if amount and action == "capture" else {})


def plan_flips(sandbox: Sandbox, call: Call, *, reply: OperationReply, fault: Fault) -> None:
    """Remember that successes of this reply turn into failures later."""
    due_at = call.now + fault.rule.lasting
    hit = fault.hits((row.transaction_id, row.order_no) for row in reply.row_replies)
    planned = [
        {
            "operation": call.operation,
            "transaction_id": row.transaction_id,
            "request_log_id": call.request_log_id,
            "due_at": due_at,
        }
        for index, row in enumerate(reply.row_replies)
        if row.status == STATUS_DONE and index in hit
    ]
    _remember(sandbox, [*_flips(sandbox), *planned])


def run_flips(sandbox: Sandbox) -> int:
    """Turn what is due into failures; returns how many."""
    if not sandbox.book.note(FLIPS_NOTE):
        return 0
    now = sandbox.clock.now()
    flips = _flips(sandbox)
    due = [flip for flip in flips if flip["due_at"] <= now]
    if due:
        with sandbox.book.transaction():
            for flip in due:
                _turn(sandbox, flip, now=now)
            _remember(sandbox, [flip for flip in flips if flip["due_at"] > now])
    return len(due)


def _turn(sandbox: Sandbox, flip: Flip, *, now: int) -> None:
    """Take one effect back, unless more was built on it; the ledger keeps both."""
    statement = (
        "SELECT amount, committed_at, refund_reference_id, refund_reason, refund_reference"
        " FROM effect WHERE request_log_id = ? AND transaction_id = ?"
    )
    keys = (flip["request_log_id"], flip["transaction_id"])
    rows = sandbox.book.select(statement, keys)
    payment = sandbox.book.payment(flip["transaction_id"])
    if payment is None or not rows:
        return
    operation = str(flip["operation"])
    amount, committed_at, *refund = rows[0]
    taken_back = _taken_back(payment, operation=operation, amount=amount)
    if taken_back is None:
        return
    sandbox.book.write_payments([replace(taken_back, previous_state=payment.state.value)])
    reversed_ = effect_of(
        payment,
        operation=f"{operation}_reversed",
        origin="gateway",
        amount=amount,
        committed_at=now,
    )
    reversed_ = replace(reversed_, refund_reference_id=refund[0])
    sandbox.book.append_effects([reversed_])
    if operation == REFUND.operation:
        failed = replace(
            reversed_,
            committed_at=committed_at,
            refund_reason=refund[1],
            refund_reference=refund[2],
        )
        tell_refund_failed(sandbox, failed, at=now)


def _taken_back(payment: Payment, *, operation: str, amount: int) -> Payment | None:
    """The payment without that effect, None when its state has moved on."""
    if operation == "capture" and payment.state is GatewayState.PAID:
        return replace(payment, state=GatewayState.FAILED, captured=0)
    if operation == "cancel" and payment.state is GatewayState.CANCELLED:
        return replace(payment, state=GatewayState.AUTHORISED)
    if operation != "refund" or payment.state not in _REFUNDED:
        return None
    refunded = payment.refunded - amount
    state = GatewayState.PARTIALLY_REFUNDED if refunded else GatewayState.PAID
    return replace(payment, state=state, refunded=refunded)


def _flips(sandbox: Sandbox) -> list[Flip]:
    text = sandbox.book.note(FLIPS_NOTE)
    return json.loads(text) if text else []


def _remember(sandbox: Sandbox, flips: list[Flip]) -> None:
    sandbox.book.write_note(FLIPS_NOTE, value=json.dumps(flips))

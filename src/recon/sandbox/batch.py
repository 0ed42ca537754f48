"""Capture, cancel, review and refund: batches of one shape, evaluated row by row in order.

A row either takes effect or is refused by the short name of a reason; rows see the effects of
earlier rows of the batch. A batch is one database transaction. Actions in the gateway's portal
follow the same rules. A fault can later turn a success into a failure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recon.model.terms import GatewayState
from recon.sandbox.call import (
    STATUS_DONE,
    STATUS_FAILED,
    Call,
    OperationReply,
    Sandbox,
    SandboxOperation,
    list_reply,
    wrong,
)
from recon.sandbox.database import Effect, Payment, RowReply, effect_of, on_wire
from recon.sandbox.faults import Fault
from recon.sandbox.notifications import notify_refund
from recon.sandbox.options import DAY_SECONDS
from recon.sandbox.payments import after_review
from recon.sandbox.terms import OF_PARAMETER
from recon.sandbox.wire import Fields, text_of, too_long, wire_minor_units

REFUND_ACCEPTED = "V0000:OK"
REFUND_SEQUENCE_MAX = 99
AMOUNT = f"amount{OF_PARAMETER}amount"
AMOUNT_OF_REFUND = f"amount{OF_PARAMETER}refund_amount"
FLAG_LENGTH_MAX = 50
"""Maximum number of characters of review_flag."""

Outcome = Effect | str
"""Result of a row: its effect, or the short name of why it is refused."""

_REFUNDABLE = frozenset({GatewayState.PAID, GatewayState.PARTIALLY_REFUNDED})


@dataclass(frozen=True, slots=True)
class BatchKind:
    """Properties in which the batch operations differ, such as field names of a reply row."""

    operation: str
    rows_max: int
    evaluate: Callable[[Sandbox, Call, Payment, Fields], Outcome]
    message_key: str = "error_message"
    echoed: tuple[str, ...] = ()
    """Fields that a reply row repeats in addition to ids, currency and amount."""

    def unfit(self, _sandbox: Sandbox, call: Call) -> str:
        """Reason to refuse the whole batch although its signature is right, else ""."""
        rows_key = f"{self.operation}_orders"
        rows = call.rows(rows_key) or []
        return "group_size" if len(rows) > self.rows_max else wrong("" if rows else rows_key)

    def answer(self, sandbox: Sandbox, call: Call, reason: str = "") -> OperationReply:
        """Reply after each row took effect or was refused; a `reason` refuses the whole batch."""
        rows_key, status_key = f"{self.operation}_orders", f"{self.operation}_status"
        given = () if reason else enumerate(call.rows(rows_key) or ())
        rows = [self._row(sandbox, call, row) for index, row in given if index not in call.skipped]
        status = STATUS_FAILED if reason else STATUS_DONE
        reply = list_reply(sandbox, call, rows_key, status=status, reason=reason, rows=rows)
        names = ("transaction_id", "order_no", status_key, self.message_key)
        row_replies = tuple(RowReply(*(row[name] for name in names)) for row in rows)
        return replace(reply, row_replies=row_replies)

    def _row(self, sandbox: Sandbox, call: Call, row: Fields) -> dict[str, Any]:
        """Evaluate one row and return its row of the reply."""
        payment, outcome = _payment_of(sandbox, call, row)
        if payment:
            outcome = self.evaluate(sandbox, call, payment, row)
        refund = self.operation == "refund"
        message = REFUND_ACCEPTED if refund else ""
        if isinstance(outcome, str):
            message = sandbox.terms.refusal(outcome, "refund" if refund else "row")
        else:
            sandbox.database.append_effects([outcome])
            if refund:
                notify_refund(sandbox, outcome)
        refused = isinstance(outcome, str)
        names = ("transaction_id", "order_no", "currency", "amount")
        answer = {name: text_of(row.get(name)) for name in names}
        answer[f"{self.operation}_status"] = STATUS_FAILED if refused else STATUS_DONE
        answer[self.message_key] = message
        answer |= {name: text_of(row.get(name)) for name in self.echoed}
        if refund:
            reference = "" if isinstance(outcome, str) else outcome.refund_reference_id
            answer["refund_reference_id"] = reference
        return answer


def _payment_of(sandbox: Sandbox, call: Call, row: Fields) -> tuple[Payment | None, Outcome]:
    """The payment that a row names and "", or None and the reason."""
    names = ("transaction_id", "order_no")
    missing = next((name for name in names if not text_of(row.get(name))), "")
    malformed = missing or too_long(row, profile=sandbox.options.profile)
    if malformed:
        return None, f"malformed{OF_PARAMETER}{malformed}"
    payment = sandbox.database.payment(text_of(row["transaction_id"]))
    if payment is None or payment.account_id != call.text("account_id"):
        return None, "unknown"
    if payment.order_no != text_of(row["order_no"]):
        return None, "mismatch"
    if payment.currency != row.get("currency"):
        return None, "currency"
    return payment, ""


def _amount_in(row: Mapping[str, Any], name: str, payment: Payment) -> int | None:
    """An amount of a row in minor units, None when it is not text in the currency's format."""
    return wire_minor_units(row.get(name), currency=payment.currency)


def is_expired(sandbox: Sandbox, payment: Payment, *, now: int) -> bool:
    """Whether an authorisation that was never captured has lapsed."""
    lifetime = sandbox.terms.windows.authorisation_days * DAY_SECONDS
    return payment.state is GatewayState.AUTHORISED and now >= payment.created_at + lifetime


def _change(sandbox: Sandbox, payment: Payment, **changes: Any) -> None:
    before = payment.state.value
    sandbox.database.write_payments([replace(payment, previous_state=before, **changes)])


def _evaluate_capture(sandbox: Sandbox, call: Call, payment: Payment, row: Fields) -> Outcome:
    if payment.state is not GatewayState.AUTHORISED:
        return "not_possible" if payment.captured else "not_authorised"
    if is_expired(sandbox, payment, now=call.now):
        return "expired"
    amount = _amount_in(row, "amount", payment)
    if amount is None or not 0 < amount <= payment.authorised:
        return AMOUNT
    _change(sandbox, payment, state=GatewayState.PAID, captured=amount, captured_at=call.now)
    return _effect(call, payment, amount)


def _evaluate_cancel(sandbox: Sandbox, call: Call, payment: Payment, row: Fields) -> Outcome:
    if payment.state is not GatewayState.AUTHORISED:
        return "not_possible"
    if is_expired(sandbox, payment, now=call.now):
        return "expired"
    reason = _own_amount_refusal(payment, row)
    if reason:
        return reason
    _change(sandbox, payment, state=GatewayState.CANCELLED)
    return _effect(call, payment, payment.authorised)


def _evaluate_review(sandbox: Sandbox, call: Call, payment: Payment, row: Fields) -> Outcome:
    flag = text_of(row.get("review_flag"))
    if not flag or len(flag) > FLAG_LENGTH_MAX:
        return f"malformed{OF_PARAMETER}review_flag"
    reason = _own_amount_refusal(payment, row)
    if reason:
        return reason
    payment = replace(payment, review_flag=flag)
    sandbox.database.write_payments([payment])
    if payment.state is GatewayState.IN_REVIEW:
        after_review(sandbox, call, payment)
    return _effect(call, payment, None)


def _evaluate_refund(sandbox: Sandbox, call: Call, payment: Payment, row: Fields) -> Outcome:
    amount = _amount_in(row, "refund_amount", payment)
    reason = _refund_refusal(sandbox, call, payment, row, amount=amount)
    if reason or amount is None:
        return reason
    refunded = payment.refunded + amount
    in_full = refunded == payment.captured
    state = GatewayState.REFUNDED if in_full else GatewayState.PARTIALLY_REFUNDED
    number = payment.refunds + 1
    _change(sandbox, payment, state=state, refunded=refunded, refunds=number)
    return _effect(
        call,
        payment,
        amount,
        refund_reference_id=f"{payment.transaction_id}-{number:02d}",
        refund_reason=text_of(row.get("refund_reason")),
        refund_reference=text_of(row.get("refund_reference")),
    )


def _refund_refusal(
    sandbox: Sandbox, call: Call, payment: Payment, row: Fields, *, amount: int | None
) -> str:
    if payment.state not in _REFUNDABLE:
        return "not_possible"
    reason = _own_amount_refusal(payment, row)
    if reason:
        return reason
    if amount is None or amount <= 0:
        return AMOUNT_OF_REFUND
    if call.now > payment.captured_at + sandbox.terms.windows.refund_days * DAY_SECONDS:
        return "window_over"
    if payment.refunded + amount > payment.captured:
        return "over_refundable"
    return "sequence_full" if payment.refunds >= REFUND_SEQUENCE_MAX else ""


def _own_amount_refusal(payment: Payment, row: Fields) -> str:
    amount = _amount_in(row, "amount", payment)
    if amount is None:
        return AMOUNT
    return "" if amount == payment.authorised else "amount_differs"


def _effect(call: Call, payment: Payment, amount: int | None, **more: str) -> Effect:
    log_id = call.request_log_id
    return effect_of(
        payment,
        call.operation,
        origin="api" if log_id else "portal",
        amount=amount,
        at=call.now,
        request_log_id=log_id,
        **more,
    )


_KINDS = {
    "capture": BatchKind("capture", 50, _evaluate_capture),
    "cancel": BatchKind("cancel", 50, _evaluate_cancel),
    "review": BatchKind("review", 100, _evaluate_review, echoed=("review_flag",)),
    "refund": BatchKind(
        *("refund", 50, _evaluate_refund, "refund_message"),
        ("refund_amount", "refund_reason", "refund_reference"),
    ),
}
BATCHES: Mapping[str, SandboxOperation] = {
    name: SandboxOperation(kind.answer, kind.answer, kind.unfit, rows_key=f"{name}_orders")
    for name, kind in _KINDS.items()
}
REASON = "by hand in the portal"


def act_by_hand(sandbox: Sandbox, *, action: str, key: str, amount: str | None = None) -> str:
    """Capture, cancel or refund a payment (transaction_id or order_no) as a person in the portal.

    Return "", or the short name of why the gateway refuses it. The caller holds the transaction.
    """
    database = sandbox.database
    found = database.payment(key)
    named = [found] if found else database.payments("order_no", keys=(key,))
    if not named:
        return "unknown"
    payment = named[-1]
    left = on_wire(payment.captured - payment.refunded, currency=payment.currency)
    row = {"amount": payment.amount, "refund_reason": REASON, "refund_amount": amount or left}
    if amount and action == "capture":
        row["amount"] = amount
    call = Call(action, {}, "", "", sandbox.clock.now())
    evaluated = _KINDS[action].evaluate(sandbox, call, payment, row)
    if isinstance(evaluated, str):
        return evaluated
    database.append_effects([evaluated])
    if action == "refund":
        notify_refund(sandbox, evaluated)
    return ""


_REFUNDED = frozenset({GatewayState.REFUNDED, GatewayState.PARTIALLY_REFUNDED})


def plan_flips(sandbox: Sandbox, call: Call, *, reply: OperationReply, fault: Fault) -> None:
    """Schedule the successes of this reply that a fault will turn into failures."""
    hit = fault.hits((row.transaction_id, row.order_no) for row in reply.row_replies)
    for index, row in enumerate(reply.row_replies):
        if row.status == STATUS_DONE and index in hit:
            sandbox.database.plan(
                "flip",
                at=call.now + fault.rule.lasting,
                operation=call.operation,
                transaction_id=row.transaction_id,
                request_log_id=call.request_log_id,
            )


def take_back(
    sandbox: Sandbox, *, operation: str, transaction_id: str, request_log_id: str
) -> None:
    """Turn a success into a failure unless a later change depends on it; the ledger keeps both."""
    database, now = sandbox.database, sandbox.clock.now()
    rows = database.select(
        "SELECT amount, committed_at, refund_reference_id, refund_reason, refund_reference"
        " FROM effect WHERE request_log_id = ? AND transaction_id = ?",
        (request_log_id, transaction_id),
    )
    payment = database.payment(transaction_id)
    if payment is None or not rows:
        return
    amount, committed_at, reference_id, reason, reference = rows[0]
    if operation == "capture" and payment.state is GatewayState.PAID:
        taken_back = replace(payment, state=GatewayState.FAILED, captured=0)
    elif operation == "cancel" and payment.state is GatewayState.CANCELLED:
        taken_back = replace(payment, state=GatewayState.AUTHORISED)
    elif operation == "refund" and payment.state in _REFUNDED:
        refunded = payment.refunded - amount
        state = GatewayState.PARTIALLY_REFUNDED if refunded else GatewayState.PAID
        taken_back = replace(payment, state=state, refunded=refunded)
    else:
        return
    database.write_payments([replace(taken_back, previous_state=payment.state.value)])
    reversed_ = effect_of(
        payment,
        f"{operation}_reversed",
        origin="gateway",
        amount=amount,
        at=now,
        refund_reference_id=reference_id,
    )
    database.append_effects([reversed_])
    if operation == "refund":
        named = {"refund_reason": reason, "refund_reference": reference}
        failed = replace(reversed_, committed_at=committed_at, **named)
        notify_refund(sandbox, failed, failed_at=now)

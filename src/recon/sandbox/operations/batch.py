"""Capture, cancel, review and refund: one shape, judged row by row in order.

A row is refused by the short name of its reason or takes effect; an earlier row of the same batch
counts for the later ones. The whole batch is one transaction of the book.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recon.model.words import GatewayState
from recon.sandbox.ground.book import Effect, Payment, RowReply, effect_of
from recon.sandbox.ground.clock import DAY_SECONDS
from recon.sandbox.ground.operation_call import (
    Call,
    OperationReply,
    Sandbox,
    echoed_signature,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.ground.sandbox_terms import OF_PARAMETER
from recon.sandbox.ground.wire import Fields, text_of, too_long, wire_minor_units
from recon.sandbox.notify.notify_events import tell_refund
from recon.sandbox.operations.payment_course import after_review

STATUS_DONE = "1"
STATUS_FAILED = "0"
REFUND_ACCEPTED = "V0000:OK"
REFUND_SEQUENCE_MAX = 99
AMOUNT = f"amount{OF_PARAMETER}amount"
AMOUNT_OF_REFUND = f"amount{OF_PARAMETER}refund_amount"
FLAG_LENGTH_MAX = 50
"""Of review_flag."""

Judgement = Effect | str
"""What a row comes to: its effect, or the short name of why it is refused."""

_REFUNDABLE = frozenset({GatewayState.PAID, GatewayState.PARTIALLY_REFUNDED})


@dataclass(frozen=True, slots=True)
class BatchKind:
    """What distinguishes one batch operation from another."""

    operation: str
    rows_max: int
    judge: Callable[[Sandbox, Call, Payment, Fields], Judgement]
    message_key: str = "error_message"

    @property
    def rows_key(self) -> str:
        """The list of rows in request and reply."""
        return f"{self.operation}_orders"

    @property
    def status_key(self) -> str:
        """The status of one row in the reply."""
        return f"{self.operation}_status"


def answer_batch(sandbox: Sandbox, call: Call, *, kind: BatchKind) -> OperationReply:
    """The reply to a batch, after its rows took effect or were refused one by one."""
    rows = call.rows(kind.rows_key)
    reason = _refusal(sandbox, call, rows=rows, kind=kind)
    if reason:
        return _reply(sandbox, call, kind=kind, reason=reason)
    answered = [
        _answer_row(sandbox, call, row, kind=kind)
        for index, row in enumerate(rows or ())
        if index not in call.skipped
    ]
    return _reply(sandbox, call, kind=kind, answered=answered)


def _refusal(sandbox: Sandbox, call: Call, *, rows: list[Fields] | None, kind: BatchKind) -> str:
    """Why the whole request is refused, in the order of the checks, else ""."""
    rows_key, rows_max = kind.rows_key, kind.rows_max
    if rows is None:
        return wrong(rows_key)
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call, rows=rows)
    if reason:
        return reason
    if len(rows) > rows_max:
        return "group_size"
    return "" if rows else wrong(rows_key)


def _reply(
    sandbox: Sandbox,
    call: Call,
    *,
    kind: BatchKind,
    reason: str = "",
    answered: list[dict[str, Any]] | None = None,
) -> OperationReply:
    rows = answered or []
    status = STATUS_FAILED if reason else STATUS_DONE
    content = {
        "merchant_id": call.text("merchant_id"),
        "account_id": call.text("account_id"),
        "return_status": status,
        "return_message": sandbox.terms.request_refusal(reason) if reason else "OK",
        "encryption_data": echoed_signature(call, reason=reason),
        kind.rows_key: rows,
    }
    row_replies = tuple(
        RowReply(
            row["transaction_id"], row["order_no"], row[kind.status_key], row[kind.message_key]
        )
        for row in rows
    )
    return OperationReply(content, rows_key=kind.rows_key, row_replies=row_replies, outcome=status)


def _answer_row(sandbox: Sandbox, call: Call, row: Fields, *, kind: BatchKind) -> dict[str, Any]:
    judgement = _judge(sandbox, call, row, kind=kind)
    refused = isinstance(judgement, str)
    refund = kind.operation == "refund"
    names = ("transaction_id", "order_no", "currency", "amount")
    answer: dict[str, Any] = {name: text_of(row.get(name)) for name in names}
    answer[kind.status_key] = STATUS_FAILED if refused else STATUS_DONE
    done = REFUND_ACCEPTED if refund else ""
    answer[kind.message_key] = (
        sandbox.terms.row_refusal(judgement, refund=refund) if isinstance(judgement, str) else done
    )
    if kind.operation == "review":
        answer["review_flag"] = text_of(row.get("review_flag"))
    if refund:
        for name in ("refund_amount", "refund_reason", "refund_reference"):
            answer[name] = text_of(row.get(name))
        answer["refund_reference_id"] = (
            judgement.refund_reference_id if isinstance(judgement, Effect) else ""
        )
    return answer


def _judge(sandbox: Sandbox, call: Call, row: Fields, *, kind: BatchKind) -> Judgement:
    payment, reason = _payment_of(sandbox, call, row)
    judgement = kind.judge(sandbox, call, payment, row) if payment else reason
    if isinstance(judgement, Effect):
        effect = replace(judgement, request_log_id=call.request_log_id)
        sandbox.book.append_effects([effect])
        if kind.operation == REFUND.operation:
            tell_refund(sandbox, effect)
        return effect
    return judgement


def _payment_of(sandbox: Sandbox, call: Call, row: Fields) -> tuple[Payment | None, str]:
    """The payment a row speaks of and "", or None and the reason."""
    transaction_id, order_no = text_of(row.get("transaction_id")), text_of(row.get("order_no"))
    missing = "" if order_no else "order_no"
    missing = missing if transaction_id else "transaction_id"
    malformed = missing or too_long(row, profile=sandbox.options.profile)
    if malformed:
        return None, f"malformed{OF_PARAMETER}{malformed}"
    payment = sandbox.book.payment(transaction_id)
    if payment is None or payment.account_id != call.text("account_id"):
        return None, "unknown"
    if payment.order_no != order_no:
        return None, "mismatch"
    if payment.currency != row.get("currency"):
        return None, "currency"
    return payment, ""


def amount_in(row: Mapping[str, Any], name: str, *, currency: str) -> int | None:
    """An amount of a row in minor units, None when it is not text in the currency's form."""
    return wire_minor_units(row.get(name), currency=currency)


def is_expired(sandbox: Sandbox, payment: Payment, *, now: int) -> bool:
    """Whether an authorisation that was never captured has lapsed."""
    lifetime = sandbox.terms.windows.authorisation_days * DAY_SECONDS
    return payment.state is GatewayState.AUTHORISED and now >= payment.created_at + lifetime


def _change(sandbox: Sandbox, payment: Payment, **changes: Any) -> None:
    before = payment.state.value
    sandbox.book.write_payments([replace(payment, previous_state=before, **changes)])


def _judge_capture(sandbox: Sandbox, call: Call, payment: Payment, row: Fields) -> Judgement:
    if payment.state is not GatewayState.AUTHORISED:
        return "not_possible" if payment.captured else "not_authorised"
    if is_expired(sandbox, payment, now=call.now):
        return "expired"
    amount = amount_in(row, "amount", currency=payment.currency)
    if amount is None or not 0 < amount <= payment.authorised:
        return AMOUNT
    _change(sandbox, payment, state=GatewayState.PAID, captured=amount, captured_at=call.now)
    return _effect(payment, operation="capture", amount=amount, call=call)


def _judge_cancel(sandbox: Sandbox, call: Call, payment: Payment, row: Fields) -> Judgement:
    if payment.state is not GatewayState.AUTHORISED:
        return "not_possible"
    if is_expired(sandbox, payment, now=call.now):
        return "expired"
    reason = _own_amount_refusal(payment, row)
    if reason:
        return reason
    _change(sandbox, payment, state=GatewayState.CANCELLED)
    return _effect(payment, operation="cancel", amount=payment.authorised, call=call)


def _judge_review(sandbox: Sandbox, call: Call, payment: Payment, row: Fields) -> Judgement:
    flag = text_of(row.get("review_flag"))
    if not flag or len(flag) > FLAG_LENGTH_MAX:
        return f"malformed{OF_PARAMETER}review_flag"
    reason = _own_amount_refusal(payment, row)
    if reason:
        return reason
    payment = replace(payment, review_flag=flag)
    sandbox.book.write_payments([payment])
    if payment.state is GatewayState.IN_REVIEW:
        after_review(sandbox, call, payment)
    return _effect(payment, operation="review", amount=None, call=call)


def _judge_refund(sandbox: Sandbox, call: Call, payment: Payment, row: Fields) -> Judgement:
    amount = amount_in(row, "refund_amount", currency=payment.currency)
    reason = _refund_refusal(sandbox, call, payment, row, amount=amount)
    if reason or amount is None:
        return reason
    refunded = payment.refunded + amount
    in_full = refunded == payment.captured
    state = GatewayState.REFUNDED if in_full else GatewayState.PARTIALLY_REFUNDED
    number = payment.refunds + 1
    _change(sandbox, payment, state=state, refunded=refunded, refunds=number)
    return replace(
        _effect(payment, operation="refund", amount=amount, call=call),
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
    amount = amount_in(row, "amount", currency=payment.currency)
    if amount is None:
        return AMOUNT
    return "" if amount == payment.authorised else "amount_differs"


def _effect(payment: Payment, *, operation: str, amount: int | None, call: Call) -> Effect:
    return effect_of(
        payment, operation=operation, origin="api", amount=amount, committed_at=call.now
    )


CAPTURE = BatchKind("capture", 50, _judge_capture)
CANCEL = BatchKind("cancel", 50, _judge_cancel)
REVIEW = BatchKind("review", 100, _judge_review)
REFUND = BatchKind("refund", 50, _judge_refund, "refund_message")

"""The end of a subscription (`cancelsubscription`).

A subscription that was ended makes no new contract, but the one that is already there is still
charged at the end of its period.
"""

from recon.sandbox.ground.book import Book
from recon.sandbox.ground.book_records import Effect, RowReply
from recon.sandbox.ground.operation_call import (
    Call,
    OperationReply,
    Sandbox,
    echoed_signature,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.operations.subscription import ACTIVE, INACTIVE, Subscription, find

STATUS_DONE = "1"
STATUS_FAILED = "0"
NAMES = ("recurring_id", "contract_name")


def answer_cancel_subscription(sandbox: Sandbox, call: Call) -> OperationReply:
    """The subscription becomes Inactived; a second time, or under another name, is refused."""
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call)
    if reason:
        return _reply(call, message=sandbox.terms.request_refusal(reason), reason=reason)
    missing = next((name for name in NAMES if not call.text(name)), "")
    subscription = find(sandbox.book, call.text("recurring_id"))
    refused = wrong(missing) or _refusal(call, subscription)
    message = sandbox.terms.subscription_refusal(refused) if refused else ""
    if subscription is not None and not refused:
        _end(sandbox.book, subscription, call=call)
    return _reply(call, message=message, subscription=subscription)


def _refusal(call: Call, subscription: Subscription | None) -> str:
    if subscription is None or subscription.account_id != call.text("account_id"):
        return "unknown"
    if subscription.contract_name != call.text("contract_name").strip():
        return "unknown"
    return "" if subscription.state == ACTIVE else "inactive"


def _end(book: Book, subscription: Subscription, *, call: Call) -> None:
    book.execute(
        "UPDATE subscription SET state = ? WHERE recurring_id = ?",
        (INACTIVE, subscription.recurring_id),
    )
    effect = Effect(
        operation="cancelsubscription",
        origin="api",
        merchant_id=subscription.merchant_id,
        account_id=subscription.account_id,
        order_no=subscription.order_no,
        transaction_id=subscription.transaction_id,
        currency=subscription.currency,
        amount=None,
        committed_at=call.now,
        request_log_id=call.request_log_id,
    )
    book.append_effects([effect])


def _reply(
    call: Call, *, message: str, reason: str = "", subscription: Subscription | None = None
) -> OperationReply:
    status = STATUS_FAILED if message else STATUS_DONE
    names = ("merchant_id", "account_id", "recurring_id", "contract_name")
    content = {name: call.text(name) for name in names}
    content |= {"cancel_status": status, "error_message": message}
    content["encryption_data"] = echoed_signature(call, reason=reason)
    row_reply = RowReply(
        subscription.transaction_id if subscription else "",
        subscription.order_no if subscription else "",
        status,
        message,
    )
    return OperationReply(content, row_replies=(row_reply,), outcome=status)

"""What the clock charges of subscriptions: every contract whose end has come."""

from recon.model.words import GatewayState
from recon.sandbox.ground.book_records import Payment, effect_of
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.payment_detail import Detail, details_of
from recon.sandbox.ground.payment_result import SUCCESS
from recon.sandbox.ground.population import transaction_id_of
from recon.sandbox.notify.notify_events import tell_payment
from recon.sandbox.operations.subscription import ACTIVE, COLUMNS, Subscription, next_contract

_FIRST_DUE = f"""
SELECT number, due_at, {COLUMNS} FROM contract JOIN subscription USING (recurring_id)
WHERE charged_as = '' AND due_at <= ? ORDER BY due_at, recurring_id LIMIT 1
"""  # noqa: S608 - our own names


def charge_what_is_due(sandbox: Sandbox) -> int:
    """Charge every contract whose end has come, in the order of time; returns how many."""
    now, charged = sandbox.clock.now(), 0
    while due := sandbox.book.select(_FIRST_DUE, (now,)):
        number, due_at, *values = due[0]
        with sandbox.book.transaction():
            _charge(sandbox, Subscription(*values), number=number, due_at=due_at)
        charged += 1
    return charged


def _charge(sandbox: Sandbox, subscription: Subscription, *, number: int, due_at: int) -> None:
    """One payment, authorised and captured by the gateway itself; the next contract follows."""
    book = sandbox.book
    count = book.next_number("payments")
    payment = Payment(
        transaction_id=transaction_id_of(due_at, number=count),
        order_no=f"{subscription.recurring_id}-{number:05d}",
        merchant_id=subscription.merchant_id,
        account_id=subscription.account_id,
        currency=subscription.currency,
        authorised=subscription.amount,
        state=GatewayState.PAID,
        created_at=due_at,
        captured=subscription.amount,
        captured_at=due_at,
        reference_no=f"R{count:09d}",
    )
    book.write_payments([payment])
    book.append_effects(
        effect_of(
            payment,
            operation=operation,
            origin="gateway",
            amount=payment.authorised,
            committed_at=due_at,
        )
        for operation in ("authorise", "capture")
    )
    _tell(sandbox, subscription, payment=payment)
    book.execute(
        "UPDATE contract SET charged_as = ? WHERE recurring_id = ? AND number = ?",
        (payment.transaction_id, subscription.recurring_id, number),
    )
    if subscription.state == ACTIVE:
        next_contract(book, subscription, number=number + 1)


def _tell(sandbox: Sandbox, subscription: Subscription, *, payment: Payment) -> None:
    """Tell of a charge where its first payment told of itself."""
    first = details_of(sandbox.book, [subscription.transaction_id])
    detail = first.get(subscription.transaction_id, Detail("", "card"))
    notified = Detail(
        payment.transaction_id,
        "card",
        info=SUCCESS,
        notify_url=detail.notify_url,
        contract_name=subscription.contract_name,
        recurring_id=subscription.recurring_id,
    )
    tell_payment(sandbox, payment, detail=notified, at=payment.created_at)

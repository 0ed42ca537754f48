"""What the clock charges of subscriptions: every contract whose end has come."""

from recon.model import GatewayState
from recon.sandbox.book import Book
from recon.sandbox.population import transaction_id_of
from recon.sandbox.records import Payment, effect_of
from recon.sandbox.request import Sandbox
from recon.sandbox.subscription import ACTIVE, COLUMNS, Subscription, next_contract

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
            _charge(sandbox.book, Subscription(*values), number=number, due_at=due_at)
        charged += 1
    return charged


def _charge(book: Book, subscription: Subscription, *, number: int, due_at: int) -> None:
    """One payment, authorised and captured by the gateway itself; the next contract follows."""
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
    book.execute(
        "UPDATE contract SET charged_as = ? WHERE recurring_id = ? AND number = ?",
        (payment.transaction_id, subscription.recurring_id, number),
    )
    if subscription.state == ACTIVE:
        next_contract(book, subscription, number=number + 1)

"""What the gateway said of orders before money moves, with what we know of each payment beside.

A transaction that the answers show in two ways is closed, also where the two ways stand in the
answers about two orders: which of them is true is for the gateway to say.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from recon.config.rules import Rules
from recon.settlement.eligibility import ShownPayment, shown_twice
from recon.steps.money.charged_back import charged_back
from recon.store import Connection
from recon.store.money import case_rows
from recon.store.nights.runs import Run

_PAYMENT = ("order_no", "transaction_id", "currency", "amount")

PaymentOf = Callable[[Mapping[Any, Any]], ShownPayment]
"""One row of an answer -> the payment, closed and charged back as far as we know."""


def payment_reader(connection: Connection, run: Run, *, rules: Rules) -> PaymentOf:
    """Reads rows of answers with the account's cases and chargebacks, each looked up once."""
    closed = case_rows.closed_payments(connection, run)
    taken_back = charged_back(connection, run)

    def payment_of(row: Mapping[Any, Any]) -> ShownPayment:
        return ShownPayment(
            transaction_id=row["transaction_id"],
            state=rules.state_of(row["payment_status"]),
            payment_status=row["payment_status"],
            currency=row["currency"],
            amount=row["amount"],
            dated=row["transaction_date"],
            closed_because=closed.get(row["transaction_id"], ""),
            charged_back=taken_back(*(row[name] for name in _PAYMENT)),
        )

    return payment_of


def payments_by_order(
    rows: Iterable[Mapping[Any, Any]], *, payment_of: PaymentOf
) -> dict[str, tuple[ShownPayment, ...]]:
    """The payments of the answers by the order they were shown for."""
    payments = [(row["order_no"], payment_of(row)) for row in rows]
    twice = shown_twice(payment for _, payment in payments)
    payments_of: dict[str, tuple[ShownPayment, ...]] = {}
    for order_no, payment in payments:
        because = payment.closed_because or twice.get(payment.transaction_id, "")
        known = payments_of.get(order_no, ())
        payments_of[order_no] = (*known, replace(payment, closed_because=because))
    return payments_of

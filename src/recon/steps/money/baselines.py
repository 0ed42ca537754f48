"""What the gateway said of orders before money moves, with what we know of each payment beside.

A transaction that the answers show in two ways is closed, also where the two ways stand in the
answers about two orders: which of them is true is for the gateway to say.

What the shoppers' banks took back would be paid a second time by a refund. The gateway's query may
show a payment as paid while its settlement files or the books know of a chargeback. Both tell of
the same movements, so the larger of the two counts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from recon.instructions.eligibility import ShownPayment, shown_twice
from recon.steps.ground import kept_books
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store import Connection
from recon.store.money import case_rows
from recon.store.nights import settlement_rows
from recon.store.nights.runs import Run

_PAYMENT = ("order_no", "transaction_id", "currency", "amount")

PaymentOf = Callable[[Mapping[Any, Any]], ShownPayment]
"""One row of an answer -> the payment, closed and charged back as far as we know."""
ChargedBack = Callable[[str, str, str, int], int]
"""Order, transaction, currency and amount of a payment -> minor units charged back of it."""


def payment_reader(connection: Connection, run: Run, *, environment: Environment) -> PaymentOf:
    """Reads rows of answers with the account's cases and chargebacks, each looked up once.

    Raises:
        ArchiveError: the books, or lines of settlement files, cannot be reached, or are not those
            that the history binds.
    """
    rules = environment.settings.rules
    closed = case_rows.closed_payments(connection, run)
    taken_back = charged_back(connection, run, environment=environment)

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


def charged_back(connection: Connection, run: Run, *, environment: Environment) -> ChargedBack:
    """What the account's settlement files and its books know, each read once."""
    settled = settlement_rows.charged_back(connection, run, storages=storages_of(environment))
    booked = kept_books.charged_back(connection, run, environment=environment)
    return larger_of(settled, booked=booked)


def larger_of(
    settled: Mapping[tuple[str, str], int], *, booked: Mapping[tuple[str, str, str], int]
) -> ChargedBack:
    """By the larger of two sources; what is in another currency counts as the whole payment.

    Args:
        settled: by transaction and currency.
        booked: by order, transaction ("" where the books have none) and currency.
    """
    in_files: dict[str, dict[str, int]] = defaultdict(dict)
    for (transaction_id, currency), amount in settled.items():
        in_files[transaction_id][currency] = amount
    in_books: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for (order_no, transaction_id, currency), amount in booked.items():
        sums = in_books["" if transaction_id else order_no, transaction_id]
        sums[currency] = sums.get(currency, 0) + amount

    def of_payment(order_no: str, transaction_id: str, currency: str, amount: int) -> int:
        account_currency = (currency, amount)
        named = _of(in_books.get(("", transaction_id), {}), account_currency)
        unnamed = _of(in_books.get((order_no, ""), {}), account_currency)
        return max(_of(in_files.get(transaction_id, {}), account_currency), named + unnamed)

    return of_payment


def _of(sums: Mapping[str, int], currency_amount: tuple[str, int]) -> int:
    currency, whole = currency_amount
    if any(amount > 0 for other, amount in sums.items() if other != currency):
        return whole
    return max(sums.get(currency, 0), 0)

"""What the shoppers' banks took back of payments: their refund would pay a second time.

The gateway's query may show a payment as paid while its settlement files or the books know of a
chargeback. Both tell of the same movements, so the larger of the two counts.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping

from recon.store import Connection
from recon.store.nights import ledger_rows, settlement_rows
from recon.store.nights.runs import Run

ChargedBack = Callable[[str, str, str, int], int]
"""Order, transaction, currency and amount of a payment -> minor units charged back of it."""


def charged_back(connection: Connection, run: Run) -> ChargedBack:
    """What the account's settlement files and its books know, each read once."""
    settled = settlement_rows.charged_back(connection, run)
    return larger_of(settled, booked=ledger_rows.charged_back(connection, run))


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

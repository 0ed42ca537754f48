"""Planted truths: rows whose every amount is another one, and the sentence a controller reads.

The sentences were written from the rows, not from what the engine answered.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

EARLIER = datetime(2026, 10, 20, tzinfo=UTC)
LATER = datetime(2026, 11, 2, tzinfo=UTC)


class Planted(NamedTuple):
    """Rows, the code they must come to, and what must be said of it."""

    name: str
    code: str
    build: Callable[[Any], Any]
    said: str


def _ours(case: Any, kind: str, *states: tuple[str, int], **cells: Any) -> Any:
    for state, amount in states:
        case.move(kind, state, amount=amount, **cells)
    return case


def _abroad(case: Any, *, booked: int) -> Any:
    case.entry(amount=booked, transaction_currency="USD", transaction_amount=10000)
    return case.ruled(rate={"USD.EUR": {"rate": "0.92", "basis_points": 10}})


AGREED = {"fee": {"EUR": {"basis_points": 140, "fixed_minor_units": 25}}}

PLANTED = (
    Planted(
        "the payment in another account",
        "WRONG_ACCOUNT",
        lambda c: c.order(amount=10101).payment(account_id="2", amount=10101),
        "Of the same payment account 1 has the order, account 2 has the payment, over 101.01 EUR.",
    ),
    Planted(
        "an authorised payment in another account",
        "WRONG_ACCOUNT",
        lambda c: c.order("authorised", amount=10101).payment(
            "authorised", account_id="2", amount=10101
        ),
        "Of the same payment account 1 has the order, account 2 has the payment, over 101.01 EUR.",
    ),
    Planted(
        "the booking in another account",
        "WRONG_ACCOUNT",
        lambda c: c.order(amount=10101).payment(amount=10101).entry(account_id="2", amount=10101),
        "Of the same payment account 1 has the order and the payment, account 2 has the booking, "
        "over 101.01 EUR.",
    ),
    Planted(
        "two rows of one order",
        "DUPLICATE_ORDER_ROW",
        lambda c: c.order(amount=10101).order("pending", amount=9070).payment(amount=10101),
        "The order files have this order more than once with other content: paid with 101.01 EUR "
        "and pending with 90.70 EUR.",
    ),
    Planted(
        "two payments",
        "DUPLICATE_PAYMENT",
        lambda c: (
            c.order(amount=10101)
            .payment(amount=10101)
            .payment("partially_refunded", transaction_id="T2", amount=3300, refunded_amount=1100)
        ),
        "The gateway holds 123.01 EUR in several payments (T1 101.01 EUR and T2 22.00 EUR after "
        "11.00 EUR refunded), the order says 101.01 EUR.",
    ),
    Planted(
        "a refund booked twice",
        "DUPLICATE_LEDGER_POSTING",
        lambda c: (
            c.order("partially_refunded", amount=10101, refund_amount=3030)
            .payment("partially_refunded", amount=10101, refunded_amount=3030)
            .entry(amount=10101)
            .entry("refund", amount=3030)
            .entry("refund", amount=3030)
        ),
        "The same refund is booked more than once: the ledger has captures of 101.01 EUR and "
        "refunds of 60.60 EUR, the gateway says partially refunded with 101.01 EUR captured and "
        "30.30 EUR refunded.",
    ),
    Planted(
        "a payment told in two ways",
        "AMBIGUOUS_MATCH",
        lambda c: c.order(amount=10101).payment(amount=5000).payment("failed", amount=5101),
        "The gateway tells payment T1 in ways that exclude each other (failed with 51.01 EUR and "
        "paid with 50.00 EUR); none was chosen.",
    ),
    Planted(
        "a payment under two orders",
        "AMBIGUOUS_MATCH",
        lambda c: c.order().payment().order(order_no="B1").payment(order_no="B1"),
        "This fits B1 by its transaction T1 as well; nothing was chosen.",
    ),
    Planted(
        "an order that two other accounts could explain",
        "AMBIGUOUS_MATCH",
        lambda c: c.order().payment(account_id="2").payment(account_id="3"),
        "More than one record fits (A1 of account 2 and A1 of account 3); nothing was chosen. The "
        "order is paid with 100.00 EUR, the gateway does not know the payment.",
    ),
    Planted(
        "two currencies",
        "CURRENCY_MISMATCH",
        lambda c: c.order(amount=10101).payment(currency="USD", amount=10102).entry(amount=10103),
        "The sides name different currencies: the order 101.01 EUR, the gateway paid with 101.02 "
        "USD and the ledger captures of 101.03 EUR.",
    ),
    Planted(
        "an authorisation in another currency",
        "CURRENCY_MISMATCH",
        lambda c: c.order("authorised", amount=10101).payment(
            "authorised", currency="USD", amount=10102
        ),
        "The sides name different currencies: the order 101.01 EUR and the gateway "
        "authorised with 101.02 USD.",
    ),
    Planted(
        "an unknown status",
        "STATUS_UNMAPPED",
        lambda c: c.order(amount=10101).payment("unmapped", amount=10102),
        "The gateway answered status 9999, which the status map does not know, for a payment of "
        "101.02 EUR; the order is paid with 101.01 EUR.",
    ),
    Planted(
        "more refunded than captured",
        "OVER_REFUND",
        lambda c: c.order("refunded", amount=10101).payment(
            "refunded", amount=10101, refunded_amount=12000
        ),
        "The gateway shows 120.00 EUR refunded, more than the captured 101.01 EUR.",
    ),
    Planted(
        "one of two payments is refunded too much",
        "OVER_REFUND",
        lambda c: (
            c.order("partially_refunded", amount=15000, refund_amount=6000)
            .payment(amount=10000)
            .payment("refunded", transaction_id="T2", amount=5000, refunded_amount=6000)
        ),
        "At the gateway payment T2 has 60.00 EUR refunded of 50.00 EUR captured.",
    ),
    Planted(
        "refunds in doubt that exceed the capture",
        "OVER_REFUND",
        lambda c: _ours(
            c.order(amount=10101).payment(amount=10101),
            "refund",
            ("confirmed", 8080),
            ("in_doubt", 4040),
        ),
        "Our refunds come to 121.20 EUR, of them 40.40 EUR in doubt, against 101.01 EUR captured.",
    ),
    Planted(
        "a chargeback of what the order says refunded",
        "CHARGEBACK_AFTER_REFUND",
        lambda c: c.order("partially_refunded", amount=10101, refund_amount=3030).payment(
            "chargeback", amount=10101
        ),
        "The gateway reports a chargeback of the payment of 101.01 EUR, which was refunded: the "
        "order says 30.30 EUR refunded.",
    ),
    Planted(
        "a chargeback that the ledger lacks",
        "CHARGEBACK_NOT_BOOKED",
        lambda c: c.order(amount=10101).payment("chargeback", amount=10101).entry(amount=10101),
        "The gateway reports a chargeback of the payment of 101.01 EUR; the ledger has no "
        "chargeback of it.",
    ),
    Planted(
        "a chargeback without a ledger",
        "CHARGEBACK_NOT_BOOKED",
        lambda c: c.order(amount=10101).payment("chargeback", amount=10101),
        "The gateway reports a chargeback of the payment of 101.01 EUR; no ledger was given to "
        "look for it in.",
    ),
    Planted(
        "a booked chargeback that the gateway never showed",
        "CHARGEBACK_UNPROVEN",
        lambda c: (
            c.order(amount=10101)
            .payment(amount=10101)
            .entry(amount=10101)
            .entry("chargeback", amount=9070)
        ),
        "The ledger has chargebacks of 90.70 EUR; the gateway says paid with 101.01 EUR captured.",
    ),
    Planted(
        "a chargeback that was won back",
        "CHARGEBACK_REVERSED_NOT_BOOKED",
        lambda c: (
            c.order(amount=10101)
            .payment("chargeback", amount=10101, queried_at=EARLIER)
            .payment(amount=10101, queried_at=LATER)
            .entry(amount=10101)
            .entry("chargeback", amount=10101)
        ),
        "The gateway reported a chargeback before and took it back: the gateway says paid with "
        "101.01 EUR captured; the ledger still has chargebacks of 101.01 EUR.",
    ),
    Planted(
        "cancelled here, paid there",
        "STATUS_CONFLICT",
        lambda c: c.order("cancelled", amount=10101).payment(amount=10102),
        "The order is cancelled with 101.01 EUR ordered, the gateway says paid with 101.02 EUR "
        "captured.",
    ),
    Planted(
        "a cancelled attempt beside the authorisation",
        "STATUS_CONFLICT",
        lambda c: (
            c.order("partially_refunded", amount=10101, refund_amount=3030)
            .payment("cancelled", amount=7777, transaction_id="T0")
            .payment("expired", amount=10102)
        ),
        "The order is partially refunded with 30.30 EUR of 101.01 EUR, the gateway says cancelled "
        "with 77.77 EUR.",
    ),
    Planted(
        "a cancellation in doubt",
        "CANCEL_UNCONFIRMED",
        lambda c: (
            c.order("cancelled", amount=10101)
            .payment("authorised", amount=10102)
            .move("cancel", "in_doubt")
        ),
        "Our cancellation is in doubt: the gateway says authorised with 101.02 EUR.",
    ),
    Planted(
        "a confirmed cancellation without effect",
        "CANCEL_UNCONFIRMED",
        lambda c: (
            c.order("cancelled", amount=10101)
            .payment("authorised", amount=10102)
            .move("cancel", "confirmed")
        ),
        "Our cancellation was confirmed, but the gateway says authorised with 101.02 EUR.",
    ),
    Planted(
        "a refused cancellation",
        "CANCEL_REJECTED",
        lambda c: (
            c.order("cancelled", amount=10101)
            .payment("authorised", amount=10102)
            .move("cancel", "rejected")
        ),
        "Our cancellation was refused by the gateway: the gateway says authorised with 101.02 EUR.",
    ),
    Planted(
        "a cancellation that a person found not applied",
        "CANCEL_REJECTED",
        lambda c: (
            c.order("cancelled", amount=10101)
            .payment("authorised", amount=10102)
            .move("cancel", "resolved_not_applied")
        ),
        "Our cancellation did not take effect: the gateway says authorised with 101.02 EUR.",
    ),
    Planted(
        "a cancellation still to do",
        "CANCEL_DUE",
        lambda c: c.order("cancelled", amount=10101).payment("authorised", amount=10102),
        "The order is cancelled with 101.01 EUR ordered, the gateway says authorised with 101.02 "
        "EUR: it is to be cancelled.",
    ),
    Planted(
        "a cancellation that waits while the gateway shows paid",
        "CANCEL_DUE",
        lambda c: c.order(amount=10101).payment(amount=10101).move("cancel", "approved"),
        "Our cancellation still waits to be sent; the gateway says paid with 101.01 EUR captured.",
    ),
    Planted(
        "a capture in doubt",
        "CAPTURE_UNCONFIRMED",
        lambda c: _ours(
            c.order(amount=10101).payment("authorised", amount=10102),
            "capture",
            ("in_doubt", 10100),
        ),
        "Our capture of 101.00 EUR is in doubt: the gateway says authorised with 101.02 EUR.",
    ),
    Planted(
        "a confirmed capture without effect",
        "CAPTURE_UNCONFIRMED",
        lambda c: _ours(
            c.order(amount=10101).payment("authorised", amount=10102),
            "capture",
            ("confirmed", 10100),
        ),
        "Our capture of 101.00 EUR was confirmed, but the gateway says authorised with 101.02 EUR.",
    ),
    Planted(
        "a refused capture",
        "CAPTURE_REJECTED",
        lambda c: _ours(
            c.order(amount=10101).payment("authorised", amount=10102),
            "capture",
            ("rejected", 10100),
        ),
        "Our capture of 101.00 EUR was refused by the gateway: the gateway says authorised with "
        "101.02 EUR.",
    ),
    Planted(
        "an authorisation that expired",
        "AUTHORISATION_EXPIRED",
        lambda c: c.order(amount=10101).payment("expired", amount=10102),
        "The authorisation of 101.02 EUR expired; the order is paid with 101.01 EUR.",
    ),
    Planted(
        "a capture to do",
        "CAPTURE_DUE",
        lambda c: c.order(amount=10101).payment("authorised", amount=10102),
        "The order is paid with 101.01 EUR, the gateway says authorised with 101.02 EUR: it is to "
        "be captured.",
    ),
    Planted(
        "a capture beside a cancelled attempt",
        "CAPTURE_DUE",
        lambda c: (
            c.order(amount=10101)
            .payment("cancelled", transaction_id="T0", amount=4444)
            .payment("authorised", amount=10102)
        ),
        "The order is paid with 101.01 EUR, the gateway says authorised with 101.02 EUR: it is to "
        "be captured.",
    ),
    Planted(
        "a capture that waits while the payment is cancelled",
        "CAPTURE_DUE",
        lambda c: _ours(
            c.order("cancelled", amount=10101).payment("cancelled", amount=10102),
            "capture",
            ("approved", 10100),
        ),
        "Our capture of 101.00 EUR still waits to be sent; the gateway says cancelled with 101.02 "
        "EUR.",
    ),
    Planted(
        "one of two refunds in doubt",
        "REFUND_UNCONFIRMED",
        lambda c: _ours(
            c.order("partially_refunded", amount=20000, refund_amount=10000).payment(
                "partially_refunded", amount=20000, refunded_amount=10000
            ),
            "refund",
            ("confirmed", 10000),
            ("in_doubt", 3000),
        ),
        "Our refund of 30.00 EUR is in doubt: the gateway shows 100.00 EUR refunded.",
    ),
    Planted(
        "a confirmed refund that does not show",
        "REFUND_UNCONFIRMED",
        lambda c: _ours(
            c.order("partially_refunded", amount=10101, refund_amount=3030).payment(amount=10101),
            "refund",
            ("confirmed", 3030),
        ),
        "Our refund of 30.30 EUR was confirmed, but the gateway shows nothing refunded.",
    ),
    Planted(
        "a refused refund",
        "REFUND_REJECTED",
        lambda c: _ours(
            c.order("partially_refunded", amount=10101, refund_amount=3030).payment(amount=10101),
            "refund",
            ("rejected", 3030),
        ),
        "Our refund of 30.30 EUR was refused by the gateway: the gateway shows nothing refunded.",
    ),
    Planted(
        "two refunds, one refused, one found not applied",
        "REFUND_REJECTED",
        lambda c: _ours(
            c.order("partially_refunded", amount=10101, refund_amount=3030).payment(amount=10101),
            "refund",
            ("rejected", 3030),
            ("resolved_not_applied", 1010),
        ),
        "Our refund of 40.40 EUR was refused or did not take effect: the gateway shows nothing "
        "refunded.",
    ),
    Planted(
        "a refund that failed later",
        "REFUND_FAILED_AFTER_ACCEPT",
        lambda c: _ours(
            c.order("partially_refunded", amount=10101, refund_amount=3030).payment(amount=10101),
            "refund",
            ("resolved_not_applied", 3030),
            refund_reference_id="R-1",
        ),
        "The gateway accepted our refund of 30.30 EUR, later it was found not paid: the gateway "
        "shows nothing refunded.",
    ),
    Planted(
        "a refund to do",
        "REFUND_DUE",
        lambda c: c.order("partially_refunded", amount=10101, refund_amount=3030).payment(
            amount=10101
        ),
        "The order expects 30.30 EUR refunded, the gateway shows nothing refunded.",
    ),
    Planted(
        "a refund that waits, in dinars",
        "REFUND_DUE",
        lambda c: _ours(
            c.order(currency="KWD", amount=10101).payment(currency="KWD", amount=10101),
            "refund",
            ("approved", 3030),
            currency="KWD",
        ),
        "Our refund of 3.030 KWD still waits to be sent; the gateway shows nothing refunded.",
    ),
    Planted(
        "a refund of nothing that is due",
        "REFUND_DUE",
        lambda c: c.order("refunded", amount=10101, refund_amount=0).payment(amount=10101),
        "The order is refunded with 0.00 EUR of 101.01 EUR, the gateway says paid with 101.01 EUR "
        "captured.",
    ),
    Planted(
        "refunded more than ordered",
        "REFUND_UNEXPECTED",
        lambda c: c.order("partially_refunded", amount=10101, refund_amount=3030).payment(
            "refunded", amount=10101
        ),
        "The gateway refunded 101.01 EUR, the order expects 30.30 EUR.",
    ),
    Planted(
        "refunded without an order for it",
        "REFUND_UNEXPECTED",
        lambda c: c.order(amount=10101).payment(
            "partially_refunded", amount=10101, refunded_amount=3030
        ),
        "The gateway refunded 30.30 EUR, the order expects no refund.",
    ),
    Planted(
        "refunded in full on both sides under two names",
        "REFUND_UNEXPECTED",
        lambda c: c.order("partially_refunded", amount=10101, refund_amount=10101).payment(
            "refunded", amount=10101
        ),
        "The order is partially refunded with 101.01 EUR of 101.01 EUR, the gateway says refunded "
        "with 101.01 EUR captured and 101.01 EUR refunded.",
    ),
    Planted(
        "captured more than ordered",
        "OVER_CAPTURE",
        lambda c: c.order(amount=10101).payment(amount=12000, authorised_amount=20000),
        "Gateway captured 120.00 EUR, the order expects 101.01 EUR.",
    ),
    Planted(
        "captured for an order of nothing",
        "OVER_CAPTURE",
        lambda c: c.order(amount=0).payment(amount=12000, authorised_amount=20000),
        "The order is paid with 0.00 EUR, the gateway says paid with 120.00 EUR captured.",
    ),
    Planted(
        "captured as ordered, but more than authorised",
        "OVER_CAPTURE",
        lambda c: c.order(amount=10101).payment(
            amount=10101, captured_amount=10101, authorised_amount=9000
        ),
        "At the gateway payment T1 has 101.01 EUR captured of 90.00 EUR authorised.",
    ),
    Planted(
        "captured less than ordered",
        "PARTIAL_CAPTURE_UNEXPECTED",
        lambda c: c.order(amount=10101).payment(amount=9000, authorised_amount=20000),
        "Gateway captured only 90.00 EUR, the order expects 101.01 EUR.",
    ),
    Planted(
        "the gateway holds more",
        "AMOUNT_OVER",
        lambda c: c.order(amount=10101).payment(amount=12000),
        "Gateway holds 120.00 EUR, the order says 101.01 EUR.",
    ),
    Planted(
        "more captured, the same left",
        "AMOUNT_OVER",
        lambda c: c.order("partially_refunded", amount=10101, refund_amount=3030).payment(
            "partially_refunded", amount=12000, refunded_amount=4929
        ),
        "The order is partially refunded with 30.30 EUR of 101.01 EUR, the gateway says partially "
        "refunded with 120.00 EUR captured and 49.29 EUR refunded.",
    ),
    Planted(
        "the gateway holds less",
        "AMOUNT_UNDER",
        lambda c: c.order(amount=10101).payment(amount=9000),
        "Gateway holds only 90.00 EUR, the order says 101.01 EUR.",
    ),
    Planted(
        "less captured, the same left",
        "AMOUNT_UNDER",
        lambda c: c.order("partially_refunded", amount=10101, refund_amount=3030).payment(
            "partially_refunded", amount=9000, refunded_amount=1929
        ),
        "The order is partially refunded with 30.30 EUR of 101.01 EUR, the gateway says partially "
        "refunded with 90.00 EUR captured and 19.29 EUR refunded.",
    ),
    Planted(
        "two payments that do not reach the order",
        "SPLIT_INCOMPLETE",
        lambda c: (
            c.order(amount=10101).payment(amount=4000).payment(transaction_id="T2", amount=5000)
        ),
        "Several payments sum to 90.00 EUR, the order says 101.01 EUR.",
    ),
    Planted(
        "booked and unknown to the gateway",
        "BOOKED_NOT_AT_GATEWAY",
        lambda c: c.order("cancelled", amount=10101).entry(amount=10102),
        "The ledger has captures of 101.02 EUR, the order is cancelled with 101.01 EUR ordered; "
        "the gateway does not know the payment.",
    ),
    Planted(
        "unknown to the gateway",
        "MISSING_AT_GATEWAY",
        lambda c: c.order(amount=10101),
        "The order is paid with 101.01 EUR, the gateway does not know the payment.",
    ),
    Planted(
        "an authorised payment without an order",
        "MISSING_IN_ORDERS",
        lambda c: c.payment("authorised", amount=10102),
        "The gateway says authorised with 101.02 EUR; no order explains it.",
    ),
    Planted(
        "a refunded payment without an order",
        "MISSING_IN_ORDERS",
        lambda c: c.payment("refunded", amount=10102),
        "The gateway says refunded with 101.02 EUR captured and 101.02 EUR refunded; no order "
        "explains it.",
    ),
    Planted(
        "a refund that the ledger lacks",
        "REFUND_NOT_BOOKED",
        lambda c: (
            c.order("partially_refunded", amount=10101, refund_amount=3030)
            .payment("partially_refunded", amount=10101, refunded_amount=3030)
            .entry(amount=10101)
        ),
        "The gateway refunded 30.30 EUR, the ledger has no refund.",
    ),
    Planted(
        "a refund of which more was reversed than booked",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: (
            c.order("partially_refunded", amount=10101, refund_amount=3030)
            .payment("partially_refunded", amount=10101, refunded_amount=3030)
            .entry(amount=10101)
            .entry("refund_reversal", amount=1010)
        ),
        "The ledger has captures of 101.01 EUR and refunds of -10.10 EUR, the gateway says "
        "partially refunded with 101.01 EUR captured and 30.30 EUR refunded.",
    ),
    Planted(
        "a refund known from its reply, not booked",
        "REFUND_NOT_BOOKED",
        lambda c: (
            c.order(amount=10101)
            .payment("partially_refunded", amount=10101)
            .entry(amount=10101)
            .move("refund", "confirmed", amount=3030)
        ),
        "Our refund of 30.30 EUR was confirmed, the gateway shows an untold amount refunded; the "
        "ledger has no refund.",
    ),
    Planted(
        "a refund known from its reply, booked otherwise",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: (
            c.order(amount=10101)
            .payment("partially_refunded", amount=10101)
            .entry(amount=10101)
            .entry("refund", amount=303)
            .move("refund", "confirmed", amount=3030)
        ),
        "The ledger has captures of 101.01 EUR and refunds of 3.03 EUR, the gateway says partially "
        "refunded with 101.01 EUR captured and an untold amount refunded; our refund of 30.30 EUR "
        "was confirmed.",
    ),
    Planted(
        "a capture of part of what is shown as authorised, booked whole",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: (
            c.order(amount=10101)
            .payment(amount=10101)
            .entry(amount=10101)
            .move("capture", "confirmed", amount=8080)
            .ruled(gateway={"amount_means": "authorised"})
        ),
        "The ledger has captures of 101.01 EUR, the gateway says paid with 101.01 EUR captured; "
        "our capture of 80.80 EUR was confirmed.",
    ),
    Planted(
        "a refund known from its reply, of more than the order tells",
        "REFUND_UNEXPECTED",
        lambda c: (
            c.order("partially_refunded", amount=10101, refund_amount=303)
            .payment("partially_refunded", amount=10101)
            .move("refund", "confirmed", amount=3030)
        ),
        "Our refund of 30.30 EUR was confirmed, the order expects 3.03 EUR refunded; the gateway "
        "shows an untold amount refunded.",
    ),
    Planted(
        "a refund known from its reply, of less than the order tells",
        "REFUND_DUE",
        lambda c: (
            c.order("partially_refunded", amount=10101, refund_amount=3030)
            .payment("partially_refunded", amount=10101)
            .move("refund", "confirmed", amount=2020)
        ),
        "Our refund of 20.20 EUR was confirmed, the order expects 30.30 EUR refunded; the gateway "
        "shows an untold amount refunded.",
    ),
    Planted(
        "a refund in the ledger alone",
        "LEDGER_REFUND_ONLY",
        lambda c: (
            c.order(amount=10101)
            .payment(amount=10101)
            .entry(amount=10101)
            .entry("refund", amount=3030)
        ),
        "The ledger has refunds of 30.30 EUR, the gateway shows nothing refunded: as far as it "
        "tells, the shopper was not paid.",
    ),
    Planted(
        "another amount in the ledger",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: c.order(amount=10101).payment(amount=10101).entry(amount=9000),
        "The ledger has captures of 90.00 EUR, the gateway says paid with 101.01 EUR captured.",
    ),
    Planted(
        "booked for an authorisation",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: (
            c.order("authorised", amount=10101)
            .payment("authorised", amount=10102)
            .entry(amount=10103)
        ),
        "The ledger has captures of 101.03 EUR, the gateway says authorised with 101.02 EUR.",
    ),
    Planted(
        "booked too high by the agreed rate",
        "FX_DIFFERENCE",
        lambda c: _abroad(c.order(currency="USD").payment(currency="USD"), booked=9300),
        "Booked in another currency: by the agreed rate 1.09 USD too much is booked.",
    ),
    Planted(
        "booked too low by the agreed rate",
        "FX_DIFFERENCE",
        lambda c: _abroad(c.order(currency="USD").payment(currency="USD"), booked=9100),
        "Booked in another currency: by the agreed rate 1.09 USD too little is booked.",
    ),
    Planted(
        "a capture that the ledger lacks",
        "MISSING_IN_LEDGER",
        lambda c: c.order(amount=10101).payment(amount=10101).ledger(),
        "Gateway captured 101.01 EUR, the ledger has no capture of it.",
    ),
    Planted(
        "in the ledger alone",
        "LEDGER_ONLY",
        lambda c: c.entry(amount=10103).entry("refund", amount=3030),
        "The ledger has captures of 101.03 EUR and refunds of 30.30 EUR; neither orders nor "
        "gateway know it.",
    ),
    Planted(
        "a payout in doubt",
        "PAYOUT_UNCONFIRMED",
        lambda c: c.payout("in_doubt", amount=7070),
        "Our payout of 70.70 EUR is in doubt: nobody knows yet whether it left.",
    ),
    Planted(
        "a refused payout",
        "PAYOUT_FAILED",
        lambda c: c.payout("rejected", amount=7070),
        "The gateway did not carry out our payout of 70.70 EUR; nothing left.",
    ),
    Planted(
        "a payout of ours that the ledger lacks",
        "PAYOUT_NOT_BOOKED",
        lambda c: c.payout(amount=7070).ledger(),
        "We paid out 70.70 EUR, the ledger has no payout of it.",
    ),
    Planted(
        "a payout to us that the ledger lacks",
        "PAYOUT_NOT_BOOKED",
        lambda c: c.line("payout", order_no="", transaction_id="", gross=7070).ledger(),
        "The settlement pays 70.70 EUR out to us, the ledger has no payout of it.",
    ),
    Planted(
        "a collection from us that the ledger lacks",
        "PAYOUT_NOT_BOOKED",
        lambda c: c.line("payout", order_no="", transaction_id="", gross=-7070).ledger(),
        "The settlement collects 70.70 EUR from us, the ledger has no payout of it.",
    ),
    Planted(
        "another payout in the ledger",
        "PAYOUT_AMOUNT_MISMATCH",
        lambda c: c.payout(amount=7070).entry("payout", order_no="P1", amount=6060),
        "We paid out 70.70 EUR, the ledger has a payout of 60.60 EUR.",
    ),
    Planted(
        "a collection from us, booked with another amount",
        "PAYOUT_AMOUNT_MISMATCH",
        lambda c: c.line("payout", order_no="", transaction_id="", gross=-7070).entry(
            "payout_reversal", order_no="", reference_no="B1", amount=6060
        ),
        "The settlement collects 70.70 EUR from us, the ledger has 60.60 EUR of payouts taken "
        "back.",
    ),
    Planted(
        "a payout in the ledger alone",
        "LEDGER_PAYOUT_ONLY",
        lambda c: c.line("payout", order_no="", transaction_id="", gross=0).entry(
            "payout", order_no="", reference_no="B9", amount=6060
        ),
        "The ledger has a payout of 60.60 EUR; nobody else tells of it.",
    ),
    Planted(
        "not settled",
        "SETTLEMENT_MISSING",
        lambda c: (
            c.order(amount=10101)
            .payment(amount=10101)
            .entry(amount=10101)
            .line(order_no="Z9", transaction_id="T9")
        ),
        "Gateway captured 101.01 EUR; no settlement file has the capture.",
    ),
    Planted(
        "settled with another amount",
        "SETTLEMENT_AMOUNT_MISMATCH",
        lambda c: c.order(amount=10101).payment(amount=10101).line(gross=9000),
        "Gateway captured 101.01 EUR and refunded nothing, settled were captures of 90.00 EUR.",
    ),
    Planted(
        "settled in another currency",
        "SETTLEMENT_AMOUNT_MISMATCH",
        lambda c: c.order(amount=10101).payment(amount=10101).line(gross=10102, currency="USD"),
        "Gateway captured 101.01 EUR and refunded nothing, settled were captures of 101.02 USD.",
    ),
    Planted(
        "a fee above the agreed one",
        "FEE_VARIANCE",
        lambda c: c.order().payment().line(fee=205).ruled(**AGREED),
        "The fee is 0.40 EUR higher than agreed.",
    ),
    Planted(
        "a fee below the agreed one",
        "FEE_VARIANCE",
        lambda c: c.order().payment().line(fee=125).ruled(**AGREED),
        "The fee is 0.40 EUR lower than agreed.",
    ),
    Planted(
        "settled for a cancelled payment",
        "UNEXPECTED_RECEIPT",
        lambda c: (
            c.order("cancelled", amount=10101)
            .payment("cancelled", amount=10102)
            .line(gross=10103)
            .line("refund", gross=-3030)
        ),
        "Settled were captures of 101.03 EUR and refunds of 30.30 EUR for a payment that took no "
        "money: the gateway says cancelled with 101.02 EUR.",
    ),
    Planted(
        "a review whose decision is in doubt",
        "REVIEW_STUCK",
        lambda c: (
            c.order("pending", amount=10101)
            .payment("in_review", amount=10102)
            .move("review", "in_doubt")
        ),
        "Our decision of the review is in doubt: the gateway says in review with 101.02 EUR.",
    ),
    Planted(
        "a review whose decision was refused",
        "REVIEW_STUCK",
        lambda c: (
            c.order("pending", amount=10101)
            .payment("in_review", amount=10102)
            .move("review", "rejected")
        ),
        "Our decision of the review was refused or did not take effect: the gateway says in review "
        "with 101.02 EUR.",
    ),
    Planted(
        "a decided review that still stands",
        "REVIEW_STUCK",
        lambda c: (
            c.order("pending", amount=10101)
            .payment("in_review", amount=10102)
            .move("review", "confirmed")
        ),
        "We decided the review, but the gateway says in review with 101.02 EUR.",
    ),
    Planted(
        "pending for too long",
        "STALE_PENDING",
        lambda c: c.order(amount=10101).payment("pending", amount=10102),
        "The order is paid with 101.01 EUR, the gateway says pending with 101.02 EUR: longer than "
        "the longest grace.",
    ),
)

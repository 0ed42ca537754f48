"""One recipe for each break code: the rows that every file has of it.

A recipe is written from the truth: an order of 100.00 EUR that was paid, captured, booked and
settled, of which one thing was changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recon.model.terms import BreakCode

Row = Mapping[str, Any]
AMOUNT = 10_000
FEE = 165
LONG_AGO = "2026-10-01T12:00:00Z"
"""Every grace has ended by the instant that is judged."""
SETTLED_FROM = "2026-10-01"
RULES: Mapping[str, Any] = {
    "payment_status": {
        "1000": "pending",
        "1500": "in_review",
        "2000": "authorised",
        "3000": "paid",
        "4000": "partially_refunded",
        "4100": "refunded",
        "5000": "cancelled",
        "6000": "failed",
        "6100": "expired",
        "7000": "chargeback",
    },
    "fees": {"EUR": {"basis_points": 140, "fixed_minor_units": 25}},
    "rate": {"USD.EUR": {"on": {"2026-01-05": "0.92"}, "valid_days": 366, "basis_points": 10}},
    "authorisation": {"valid_days": 365},
}
_CODES = {word: code for code, word in RULES["payment_status"].items()}


@dataclass(slots=True)
class Scene:
    """What the files say of one order."""

    order_no: str
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def order(self, status: str = "paid", **cells: Any) -> "Scene":
        """The shop's order."""
        row: Row = {"amount": AMOUNT, "status": status, "ordered_at": LONG_AGO}
        return self._add("orders", {**row, **cells})

    def payment(self, state: str = "paid", **cells: Any) -> "Scene":
        """The gateway's answer."""
        row: dict[str, Any] = {
            "transaction_id": self.transaction,
            "amount": AMOUNT,
            "query_result": "1",
        }
        row |= {"answer": "found", "payment_status": _CODES.get(state, state)}
        return self._add("gateway", {**row, "transaction_date": LONG_AGO, **cells})

    def entry(self, entry_type: str = "capture", **cells: Any) -> "Scene":
        """A ledger entry."""
        number = len(self.rows.get("ledger", ()))
        row: dict[str, Any] = {"entry_id": f"E{number}-{self.order_no}", "entry_type": entry_type}
        row |= {"amount": AMOUNT, "booked_at": LONG_AGO}
        return self._add("ledger", {**row, **cells})

    def line(self, entry_type: str = "capture", **cells: Any) -> "Scene":
        """A line of the settlement file."""
        row: dict[str, Any] = {"settled_on": SETTLED_FROM, "entry_type": entry_type, "fee": 0}
        row |= {"gross": AMOUNT, "transaction_id": self.transaction, **cells}
        if entry_type == "capture" and "fee" not in cells:
            row["fee"] = row["gross"] * 140 // 10_000 + 25
        return self._add("settlement", {"net": row["gross"] - row["fee"], **row})

    def move(self, kind: str, state: str, **cells: Any) -> "Scene":
        """An instruction of ours."""
        number = len(self.rows.get("instructions", ()))
        row: dict[str, Any] = {
            "instruction_id": f"I{number}-{self.order_no}",
            "kind": kind,
            "state": state,
        }
        row |= {"transaction_id": self.transaction, "amount": AMOUNT, "outcome_at": LONG_AGO}
        return self._add("instructions", {**row, **cells})

    def payout(self, state: str = "confirmed", **cells: Any) -> "Scene":
        """A payout of ours."""
        row = {"order_no": "", "transaction_id": "", "request_id": f"P-{self.order_no}"}
        return self.move("payout", state, **{**row, **cells})

    def booked_payout(self, **cells: Any) -> "Scene":
        """A payout in the ledger."""
        row = {"order_no": "", "reference_no": f"P-{self.order_no}"}
        return self.entry("payout", **{**row, **cells})

    @property
    def transaction(self) -> str:
        """The transaction id of the order's payment."""
        return f"T{self.order_no}"

    def _add(self, source: str, cells: Row) -> "Scene":
        row: Row = {"account_id": "1", "order_no": self.order_no, "currency": "EUR", **cells}
        self.rows.setdefault(source, []).append(row)
        return self


def _whole(scene: Scene) -> Scene:
    """Nothing is wrong."""
    return scene.order().payment().entry().line()


def _lapsed(scene: Scene, order: str, gateway: str) -> Scene:
    return scene.order(order).payment(gateway)


def _moved(scene: Scene, kind: str, state: str, **cells: Any) -> Scene:
    return scene.order().payment("authorised").move(kind, state, **cells)


def _back(scene: Scene, state: str, **cells: Any) -> Scene:
    return _whole(scene).move("refund", state, **cells)


def _refunded(scene: Scene, order: str = "refunded", **cells: Any) -> Scene:
    """Refunded in full at the gateway."""
    return scene.order(order).payment("refunded", **cells).entry().line()


_C = BreakCode
_A = AMOUNT


def _booked_though_sent_again(scene: Scene) -> Scene:
    """A payout was refused and sent again, and the ledger has both."""
    name = f"P-{scene.order_no}"
    scene.payout("rejected", order_no=f"O{name}", outcome_at="2026-09-30T12:00:00Z")
    scene.payout(order_no=f"O{name}", request_id=f"{name}-2")
    return scene.booked_payout().booked_payout(reference_no=f"{name}-2")


RECIPES: Mapping[BreakCode, Callable[[Scene], Scene]] = {
    _C.WRONG_ACCOUNT: lambda s: (
        s.order().payment(account_id="2").entry(account_id="2").line(account_id="2")
    ),
    _C.DUPLICATE_ORDER_ROW: lambda s: _whole(s).order(amount=9_000),
    _C.DUPLICATE_PAYMENT: lambda s: (
        _whole(s)
        .payment(transaction_id=f"{s.transaction}B")
        .entry(transaction_id=f"{s.transaction}B")
        .line(transaction_id=f"{s.transaction}B")
    ),
    _C.DUPLICATE_LEDGER_POSTING: lambda s: _whole(s).entry(),
    _C.AMBIGUOUS_MATCH: lambda s: (
        s.order()
        .payment(amount=4_000)
        .payment(amount=6_000)
        .entry(amount=4_000)
        .entry(amount=6_000)
        .line()
    ),
    _C.CURRENCY_MISMATCH: lambda s: (
        s.order().payment(currency="USD").entry(currency="USD").line(currency="USD")
    ),
    _C.STATUS_UNMAPPED: lambda s: s.order().payment("9999").entry(),
    _C.OVER_REFUND: lambda s: _refunded(s, refunded_amount=12_000).entry("refund", amount=12_000),
    _C.CHARGEBACK_AFTER_REFUND: lambda s: (
        s.order("refunded").payment("chargeback").entry().entry("refund").entry("chargeback")
    ).line(),
    _C.CHARGEBACK_NOT_BOOKED: lambda s: s.order().payment("chargeback").entry().line(),
    _C.CHARGEBACK_UNPROVEN: lambda s: _whole(s).entry("chargeback"),
    _C.CHARGEBACK_REVERSED_NOT_BOOKED: lambda s: (
        s.order()
        .payment("chargeback", queried_at="2026-10-05T00:00:00Z")
        .payment(queried_at="2026-10-06T00:00:00Z")
        .entry()
        .entry("chargeback")
        .line()
    ),
    _C.STATUS_CONFLICT: lambda s: s.order("cancelled").payment().entry().line(),
    _C.CANCEL_UNCONFIRMED: lambda s: _lapsed(s, "cancelled", "authorised").move(
        "cancel", "in_doubt"
    ),
    _C.CANCEL_REJECTED: lambda s: _lapsed(s, "cancelled", "authorised").move("cancel", "rejected"),
    _C.CANCEL_DUE: lambda s: _lapsed(s, "cancelled", "authorised"),
    _C.CAPTURE_UNCONFIRMED: lambda s: _moved(s, "capture", "in_doubt"),
    _C.CAPTURE_REJECTED: lambda s: _moved(s, "capture", "rejected"),
    _C.AUTHORISATION_EXPIRED: lambda s: _lapsed(s, "paid", "expired"),
    _C.CAPTURE_DUE: lambda s: _lapsed(s, "paid", "authorised"),
    _C.REFUND_UNCONFIRMED: lambda s: _back(s, "in_doubt"),
    _C.REFUND_REJECTED: lambda s: _back(s, "rejected"),
    _C.REFUND_FAILED_AFTER_ACCEPT: lambda s: _back(
        s, "resolved_not_applied", refund_reference_id="R1"
    ),
    _C.REFUND_DUE: lambda s: s.order("refunded").payment().entry().line(),
    _C.REFUND_UNEXPECTED: lambda s: _refunded(s, "paid").entry("refund"),
    _C.OVER_CAPTURE: lambda s: (
        s.order()
        .payment(authorised_amount=15_000, captured_amount=12_000)
        .entry(amount=12_000)
        .line(gross=12_000)
    ),
    _C.PARTIAL_CAPTURE_UNEXPECTED: lambda s: (
        s.order()
        .payment(authorised_amount=_A, captured_amount=8_000)
        .entry(amount=8_000)
        .line(gross=8_000)
    ),
    _C.AMOUNT_OVER: lambda s: (
        s.order().payment(amount=12_000).entry(amount=12_000).line(gross=12_000)
    ),
    _C.AMOUNT_UNDER: lambda s: (
        s.order().payment(amount=8_000).entry(amount=8_000).line(gross=8_000)
    ),
    _C.BOOKED_NOT_AT_GATEWAY: lambda s: s.order().entry(),
    _C.MISSING_AT_GATEWAY: lambda s: s.order(),
    _C.MISSING_IN_ORDERS: lambda s: s.payment().entry().line(),
    _C.REFUND_NOT_BOOKED: _refunded,
    _C.LEDGER_REFUND_ONLY: lambda s: _whole(s).entry("refund", amount=3_000),
    _C.LEDGER_AMOUNT_MISMATCH: lambda s: s.order().payment().entry(amount=9_000).line(),
    _C.FX_DIFFERENCE: lambda s: (
        s.order(currency="USD")
        .payment(currency="USD")
        .entry(amount=9_000, transaction_currency="USD", transaction_amount=_A)
        .line(currency="USD")
    ),
    _C.MISSING_IN_LEDGER: lambda s: s.order().payment().line(),
    _C.LEDGER_ONLY: lambda s: s.entry(),
    _C.PAYOUT_UNCONFIRMED: lambda s: s.payout("in_doubt"),
    _C.PAYOUT_FAILED: lambda s: s.payout("rejected"),
    _C.PAYOUT_NOT_BOOKED: lambda s: s.payout(),
    _C.PAYOUT_AMOUNT_MISMATCH: lambda s: s.payout().booked_payout(amount=9_000),
    _C.LEDGER_PAYOUT_ONLY: _booked_though_sent_again,
    _C.SETTLEMENT_MISSING: lambda s: s.order().payment().entry(),
    _C.SETTLEMENT_AMOUNT_MISMATCH: lambda s: s.order().payment().entry().line(gross=9_900),
    _C.FEE_VARIANCE: lambda s: s.order().payment().entry().line(fee=FEE + 100),
    _C.UNEXPECTED_RECEIPT: lambda s: s.order("cancelled").payment("cancelled").line(),
    _C.SPLIT_INCOMPLETE: lambda s: (
        s.order()
        .payment(amount=4_000)
        .payment(amount=5_000, transaction_id=f"{s.transaction}B")
        .entry(amount=9_000)
        .line(gross=9_000)
    ),
    _C.REVIEW_STUCK: lambda s: (
        s.order(ordered_at="2026-11-20T06:00:00Z").payment("in_review").move("review", "confirmed")
    ),
    _C.SUBSCRIPTION_NOT_ENDED: lambda s: s.move(
        "cancel_subscription", "rejected", amount=0, order_no=""
    ),
    _C.STALE_PENDING: lambda s: _lapsed(s, "paid", "pending"),
}
"""Every break code that an order or a payout of ours can have, in no order."""

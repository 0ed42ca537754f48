"""One case per code and flag: the rows, and what the set comes to."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recon.model.words import BreakCode, Flag
from tests.planted.word_groups import BANK_CODES, BANK_FLAGS, CASH_CODES, CASH_FLAGS

pytestmark = pytest.mark.xdist_group("codes of a set")
"""They share what takes longer to make than to look at."""

LONG_AGO = datetime(2026, 10, 1, 12, tzinfo=UTC)
AHEAD = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
JUST_NOW = datetime(2026, 11, 20, 20, tzinfo=UTC)
EARLIER = datetime(2026, 9, 1, tzinfo=UTC)

Build = Callable[[Any], Any]

AGREED = {"basis_points": 140, "fixed_minor_units": 25}
TOLERANT = {"EUR": {"absolute_minor_units": 5}}


def _abroad(case: Any, *, booked: int) -> Any:
    """A payment of 100.00 USD that is booked in EUR, at a rate of 0.92 within 10 basis points."""
    case.entry(amount=booked, transaction_currency="USD", transaction_amount=10000)
    return case.ruled(
        rate={"USD.EUR": {"on": {"2026-01-05": "0.92"}, "valid_days": 366, "basis_points": 10}}
    )


def _ended(case: Any, state: str, **cells: str) -> Any:
    row = {"order_no": "", "transaction_id": "S1", "amount": 0, **cells}
    return case.move("cancel_subscription", state, **row)


def _second_part(case: Any, *, captured: int) -> Any:
    """Of 50.00 to be refunded 30.00 are, and the rest waits to be sent."""
    case.order("partially_refunded", refund_amount=5000)
    case.payment("partially_refunded", amount=captured, refunded_amount=3000)
    case.entry().entry("refund", amount=3000)
    return case.move("refund", "approved", amount=2000, approved_at=JUST_NOW)


def _paid_out(case: Any, state: str = "confirmed", **cells: object) -> Any:
    """A payout of ours and a ledger entry for one."""
    return case.payout(state).entry("payout", **{"order_no": "", **cells})


def _settled(case: Any) -> Any:
    """A payment that was settled, and the pay-out of its batch, booked."""
    case.order().payment().entry().line().line("payout", order_no="", transaction_id="")
    return case.entry("payout", order_no="", reference_no="B1")


CASES: list[tuple[str, str, Build]] = [
    ("wrong account", "WRONG_ACCOUNT", lambda c: c.order().payment(account_id="2")),
    (
        "two candidates",
        "AMBIGUOUS_MATCH MISSING_AT_GATEWAY + MISSING_IN_ORDERS + MISSING_IN_ORDERS",
        lambda c: c.order().payment(account_id="2").payment(account_id="3"),
    ),
    (
        "other amount elsewhere is not the wrong account",
        "MISSING_AT_GATEWAY + MISSING_IN_ORDERS",
        lambda c: c.order().payment(account_id="2", amount=9000),
    ),
    (
        "order twice",
        "DUPLICATE_ORDER_ROW",
        lambda c: c.order().order(amount=9000).payment(),
    ),
    ("order repeated", "MATCHED", lambda c: c.order(line=2).order(line=3).payment()),
    (
        "order replaced",
        "MATCHED",
        lambda c: c.order(amount=1, updated_at=EARLIER).order(updated_at=LONG_AGO).payment(),
    ),
    (
        "two payments",
        "DUPLICATE_PAYMENT",
        lambda c: c.order().payment().payment(transaction_id="T2"),
    ),
    (
        "split tender",
        "MATCHED",
        lambda c: c.order().payment(amount=4000).payment(transaction_id="T2", amount=6000),
    ),
    (
        "second payment refunded",
        "MATCHED",
        lambda c: c.order().payment().payment("refunded", transaction_id="T2"),
    ),
    (
        "split too small",
        "SPLIT_INCOMPLETE",
        lambda c: c.order().payment(amount=4000).payment(transaction_id="T2", amount=5000),
    ),
    (
        "dead attempts drop out",
        "MATCHED",
        lambda c: c.order().payment("failed", transaction_id="T0").payment(),
    ),
    (
        "booked twice",
        "DUPLICATE_LEDGER_POSTING",
        lambda c: c.order().payment().entry().entry(),
    ),
    (
        "booked twice, one reversed",
        "MATCHED",
        lambda c: (
            c.order().payment().entry().entry().entry("capture_reversal", reverses_entry_id="E1")
        ),
    ),
    (
        "one transaction, two contents",
        "DUPLICATE_PAYMENT AMBIGUOUS_MATCH",
        lambda c: c.order().payment().payment(amount=9000),
    ),
    (
        "one transaction under two orders",
        "AMBIGUOUS_MATCH + AMBIGUOUS_MATCH",
        lambda c: c.order().payment().order(order_no="B1").payment(order_no="B1"),
    ),
    (
        "keyless entry that two payments name",
        "MISSING_IN_LEDGER + MISSING_IN_LEDGER + AMBIGUOUS_MATCH LEDGER_ONLY",
        lambda c: (
            c.order()
            .payment(reference_no="R1")
            .order(order_no="B1")
            .payment(order_no="B1", transaction_id="T2", reference_no="R1")
            .entry(order_no="", reference_no="R1")
        ),
    ),
    (
        "one transaction, newer answer",
        "MATCHED",
        lambda c: c.order().payment(amount=1, queried_at=EARLIER).payment(queried_at=LONG_AGO),
    ),
    ("currency", "CURRENCY_MISMATCH", lambda c: c.order().payment(currency="USD")),
    ("unmapped", "STATUS_UNMAPPED", lambda c: c.order().payment("unmapped")),
    (
        "over refund",
        "OVER_REFUND AMOUNT_UNDER",
        lambda c: c.order("refunded").payment("refunded", refunded_amount=12000),
    ),
    (
        "over refund with doubt",
        "OVER_REFUND REFUND_UNCONFIRMED;instructed",
        lambda c: (
            c.order("refunded")
            .payment("refunded")
            .move("refund", "confirmed")
            .move("refund", "in_doubt")
        ),
    ),
    (
        "chargeback after refund",
        "CHARGEBACK_AFTER_REFUND CHARGEBACK_NOT_BOOKED",
        lambda c: c.order("refunded").payment("chargeback").entry().entry("refund"),
    ),
    ("chargeback", "CHARGEBACK_NOT_BOOKED", lambda c: c.order().payment("chargeback").entry()),
    (
        "chargeback just now",
        "PENDING",
        lambda c: c.order().payment("chargeback", transaction_date=JUST_NOW).entry(),
    ),
    (
        "chargeback booked",
        "MATCHED chargeback_booked",
        lambda c: c.order().payment("chargeback").entry().entry("chargeback"),
    ),
    (
        "chargeback without order",
        "CHARGEBACK_NOT_BOOKED MISSING_IN_ORDERS",
        lambda c: c.payment("chargeback").entry(),
    ),
    (
        "chargeback unproven",
        "CHARGEBACK_UNPROVEN",
        lambda c: c.order().payment().entry().entry("chargeback"),
    ),
    (
        "chargeback won back",
        "CHARGEBACK_REVERSED_NOT_BOOKED",
        lambda c: (
            c.order()
            .payment("chargeback", queried_at=EARLIER)
            .payment(queried_at=LONG_AGO)
            .entry()
            .entry("chargeback")
        ),
    ),
    ("conflict", "STATUS_CONFLICT", lambda c: c.order("cancelled").payment()),
    (
        "cancelled but net left",
        "STATUS_CONFLICT",
        lambda c: c.order("cancelled").payment("refunded", refunded_amount=3000),
    ),
    (
        "refunded in part, voided",
        "STATUS_CONFLICT",
        lambda c: c.order("refunded", refund_amount=3000).payment("cancelled"),
    ),
    (
        "capture doubtful",
        "CAPTURE_UNCONFIRMED",
        lambda c: c.order().payment("authorised").move("capture", "in_doubt", sent_at=JUST_NOW),
    ),
    (
        "capture not visible",
        "CAPTURE_UNCONFIRMED",
        lambda c: c.order().payment("authorised").move("capture", "confirmed", outcome_at=LONG_AGO),
    ),
    (
        "capture not yet visible",
        "PENDING",
        lambda c: c.order().payment("authorised").move("capture", "confirmed", outcome_at=JUST_NOW),
    ),
    (
        "capture refused",
        "CAPTURE_REJECTED",
        lambda c: c.order().payment("authorised").move("capture", "rejected", outcome_at=JUST_NOW),
    ),
    (
        "capture waits",
        "PENDING",
        lambda c: c.order().payment("authorised").move("capture", "approved", approved_at=JUST_NOW),
    ),
    (
        "capture waited too long",
        "CAPTURE_DUE",
        lambda c: c.order().payment("authorised").move("capture", "approved"),
    ),
    (
        "refund waits without a date",
        "PENDING",
        lambda c: c.order("refunded").payment().entry().move("refund", "planned", approved_at=None),
    ),
    (
        "refund told again waits",
        "PENDING",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded", refunded_amount=3000)
            .entry()
            .entry("refund", amount=3000)
            .move("refund", "planned", amount=3000, approved_at=JUST_NOW)
        ),
    ),
    (
        "second part of a refund waits",
        "PENDING",
        lambda c: _second_part(c, captured=10000),
    ),
    (
        "second part of a refund waits, too much captured",
        "AMOUNT_OVER LEDGER_AMOUNT_MISMATCH",
        lambda c: _second_part(c, captured=11000),
    ),
    (
        "refund of a cancelled order waits",
        "PENDING",
        lambda c: (
            c.order("cancelled").payment().entry().move("refund", "approved", approved_at=JUST_NOW)
        ),
    ),
    (
        "capture in doubt, shown as paid just now",
        "PENDING",
        lambda c: (
            c.order()
            .payment()
            .ledger()
            .move("capture", "in_doubt", approved_at=None, outcome_at=JUST_NOW)
        ),
    ),
    (
        "capture in doubt, shown as paid long ago",
        "MISSING_IN_LEDGER",
        lambda c: c.order().payment().ledger().move("capture", "in_doubt"),
    ),
    ("capture due", "CAPTURE_DUE", lambda c: c.order().payment("authorised")),
    (
        "authorised agree, capture refused",
        "CAPTURE_REJECTED",
        lambda c: c.order("authorised").payment("authorised").move("capture", "rejected"),
    ),
    (
        "captured by us",
        "MATCHED instructed",
        lambda c: c.order("authorised").payment().move("capture", "confirmed"),
    ),
    (
        "captured in part by us",
        "MATCHED instructed",
        lambda c: c.order().payment(captured_amount=8000).move("capture", "confirmed", amount=8000),
    ),
    (
        "refunded by us",
        "MATCHED instructed",
        lambda c: (
            c.order()
            .payment("partially_refunded", refunded_amount=3000)
            .move("refund", "confirmed", amount=3000)
        ),
    ),
    (
        "refunded by us, captured too much",
        "REFUND_UNEXPECTED AMOUNT_OVER",
        lambda c: (
            c.order()
            .payment("partially_refunded", amount=12000, refunded_amount=1000)
            .move("refund", "confirmed", amount=1000)
        ),
    ),
    (
        "cancelled by us",
        "MATCHED instructed",
        lambda c: c.order("authorised").payment("cancelled").move("cancel", "confirmed"),
    ),
    (
        "cancel doubtful",
        "CANCEL_UNCONFIRMED",
        lambda c: c.order("cancelled").payment("authorised").move("cancel", "needs_human"),
    ),
    (
        "cancel refused",
        "CANCEL_REJECTED",
        lambda c: c.order("cancelled").payment("authorised").move("cancel", "rejected"),
    ),
    ("cancel due", "CANCEL_DUE", lambda c: c.order("cancelled").payment("authorised")),
    ("expired", "AUTHORISATION_EXPIRED", lambda c: c.order().payment("expired")),
    (
        "refund doubtful",
        "REFUND_UNCONFIRMED",
        lambda c: c.order().payment().move("refund", "in_flight"),
    ),
    ("refund refused", "REFUND_REJECTED", lambda c: c.order().payment().move("refund", "rejected")),
    (
        "refund failed later",
        "REFUND_FAILED_AFTER_ACCEPT",
        lambda c: (
            c.order().payment().move("refund", "resolved_not_applied", refund_reference_id="T1-01")
        ),
    ),
    (
        "refund not visible",
        "REFUND_UNCONFIRMED",
        lambda c: c.order().payment().move("refund", "confirmed", outcome_at=LONG_AGO),
    ),
    (
        "refund not yet visible",
        "PENDING",
        lambda c: c.order().payment().move("refund", "confirmed", outcome_at=JUST_NOW),
    ),
    ("withdrawn is nothing", "MATCHED", lambda c: c.order().payment().move("refund", "withdrawn")),
    ("refund due", "REFUND_DUE", lambda c: c.order("refunded").payment()),
    ("refund unexpected", "REFUND_UNEXPECTED", lambda c: c.order().payment("refunded")),
    (
        "over capture",
        "OVER_CAPTURE",
        lambda c: c.order().payment(authorised_amount=15000, captured_amount=12000),
    ),
    (
        "beyond the authorisation",
        "OVER_CAPTURE",
        lambda c: c.order().payment(authorised_amount=9000, captured_amount=10000),
    ),
    (
        "captured in part",
        "PARTIAL_CAPTURE_UNEXPECTED",
        lambda c: c.order().payment(authorised_amount=10000, captured_amount=8000),
    ),
    (
        "expected in part",
        "MATCHED",
        lambda c: c.order(expected_captured_amount=8000).payment(
            authorised_amount=10000, captured_amount=8000
        ),
    ),
    ("over", "AMOUNT_OVER", lambda c: c.order().payment(amount=12000)),
    ("under", "AMOUNT_UNDER", lambda c: c.order().payment(amount=8000)),
    (
        "refunded too little",
        "AMOUNT_OVER",
        lambda c: c.order("partially_refunded", refund_amount=3000).payment(
            "partially_refunded", refunded_amount=2000
        ),
    ),
    ("booked, unknown", "BOOKED_NOT_AT_GATEWAY", lambda c: c.order().entry()),
    ("booked, unknown, cancelled", "BOOKED_NOT_AT_GATEWAY", lambda c: c.order("cancelled").entry()),
    ("missing", "MISSING_AT_GATEWAY", lambda c: c.order().ledger()),
    ("answered not found", "MISSING_AT_GATEWAY", lambda c: c.order().answer("not_found")),
    ("no order", "MISSING_IN_ORDERS", lambda c: c.payment().entry()),
    (
        "refund not booked",
        "REFUND_NOT_BOOKED",
        lambda c: c.order("refunded").payment("refunded").entry(),
    ),
    (
        "refund booked only",
        "LEDGER_REFUND_ONLY",
        lambda c: c.order().payment().entry().entry("refund", amount=3000),
    ),
    ("booked amount", "LEDGER_AMOUNT_MISMATCH", lambda c: c.order().payment().entry(amount=9000)),
    (
        "booked, only authorised",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: c.order("authorised").payment("authorised").entry(),
    ),
    (
        "adjusted",
        "MATCHED",
        lambda c: c.order().payment().entry(amount=9000).entry("adjustment", amount=1000),
    ),
    ("not booked", "MISSING_IN_LEDGER", lambda c: c.order().payment().ledger()),
    ("not booked yet", "PENDING", lambda c: c.order().payment(transaction_date=JUST_NOW).ledger()),
    ("ledger only", "LEDGER_ONLY", lambda c: c.entry()),
    ("ledger only, just booked", "PENDING", lambda c: c.entry(booked_at=JUST_NOW)),
    ("stale", "STALE_PENDING", lambda c: c.order().payment("pending")),
    (
        "reply only",
        "MATCHED reply_only",
        lambda c: (
            c.order()
            .payment()
            .move("refund", "confirmed", amount=3000)
            .ruled(payment_status={"3000": "paid"})
        ),
    ),
    (
        "reply only, order knows",
        "MATCHED reply_only",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment()
            .move("refund", "confirmed", amount=3000)
            .ruled(payment_status={"3000": "paid"})
        ),
    ),
    (
        "reply only, booked",
        "MATCHED reply_only",
        lambda c: (
            c.order()
            .payment()
            .entry()
            .entry("refund", amount=3000)
            .move("refund", "confirmed", amount=3000)
            .ruled(payment_status={"3000": "paid"})
        ),
    ),
    (
        "refund amount unknown",
        "UNVERIFIED REFUND_AMOUNT_UNKNOWN",
        lambda c: c.order().payment("partially_refunded"),
    ),
    (
        "refund in doubt, and one whose amount is unknown",
        "REFUND_UNCONFIRMED",
        lambda c: c.order().payment("partially_refunded").move("refund", "in_doubt", amount=3000),
    ),
    (
        "refund in doubt that the order expects, and one whose amount is unknown",
        "REFUND_UNCONFIRMED",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded")
            .move("refund", "needs_human", amount=3000)
        ),
    ),
    (
        "refund amount known from us",
        "MATCHED reply_only",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded")
            .move("refund", "confirmed", amount=3000)
        ),
    ),
    (
        "rounding",
        "MATCHED rounding",
        lambda c: c.order().payment(amount=10005).ruled(tolerance=TOLERANT),
    ),
    (
        "rounding booked",
        "MATCHED rounding",
        lambda c: c.order().payment().entry(amount=9996).ruled(tolerance=TOLERANT),
    ),
    (
        "beyond tolerance",
        "AMOUNT_OVER",
        lambda c: c.order().payment(amount=10006).ruled(tolerance=TOLERANT),
    ),
    (
        "beyond the budget",
        "AMOUNT_OVER",
        lambda c: (
            c.order()
            .payment(amount=10005)
            .ruled(tolerance={"EUR": {"absolute_minor_units": 5, "night_budget_minor_units": 4}})
        ),
    ),
    (
        "written off",
        "MATCHED written_off",
        lambda c: c.order().payment(amount=9800).entry(amount=9800).entry("write_off", amount=200),
    ),
    ("zero", "MATCHED zero_amount", lambda c: c.order(amount=0).payment(amount=0)),
    (
        "expiring",
        "MATCHED expiring",
        lambda c: (
            c.order("authorised").payment("authorised").ruled(authorisation={"valid_days": 7})
        ),
    ),
    ("order dated ahead", "MISSING_AT_GATEWAY date_ahead", lambda c: c.order(ordered_at=AHEAD)),
    (
        "payment dated ahead",
        "MISSING_IN_ORDERS date_ahead",
        lambda c: c.payment(transaction_date=AHEAD),
    ),
    (
        "entry dated ahead",
        "LEDGER_ONLY date_ahead",
        lambda c: c.entry(booked_at=AHEAD),
    ),
    (
        "instruction dated ahead",
        "CAPTURE_DUE date_ahead",
        lambda c: (
            c.order("authorised")
            .payment("authorised")
            .move("capture", "approved", approved_at=AHEAD)
        ),
    ),
    (
        "all agree and are dated ahead",
        "MATCHED date_ahead",
        lambda c: c.order(ordered_at=AHEAD).payment(transaction_date=AHEAD).entry(booked_at=AHEAD),
    ),
    (
        "an entry that is no longer there",
        "MATCHED entry_vanished",
        lambda c: c.order().payment().entry().gone("A1"),
    ),
    (
        "an entry that is no longer there beside what differs",
        "MISSING_IN_LEDGER entry_vanished",
        lambda c: c.order().payment().ledger().gone("A1"),
    ),
    (
        "a day ahead is no wrong date",
        "PENDING",
        lambda c: c.order(ordered_at=datetime(2026, 11, 22, tzinfo=UTC)),
    ),
    ("other dates", "MATCHED cut_off_difference", lambda c: c.order(ordered_at=EARLIER).payment()),
    (
        "other reference",
        "MATCHED reference_conflict",
        lambda c: c.order(transaction_id="T9").payment(),
    ),
    (
        "by hand",
        "MATCHED portal_action",
        lambda c: (
            c.order()
            .payment()
            .move("cancel", "withdrawn")
            .ruled(account={"capture_mode": "manual"}, window={"opening_date": "2026-09-01"})
        ),
    ),
    ("fee", "MATCHED", lambda c: c.order().payment().entry().entry("fee", amount=30)),
    ("query failed", "UNVERIFIED QUERY_FAILED", lambda c: c.order().answer("failed")),
    ("failed once, found once", "MATCHED", lambda c: c.order().answer("failed").payment()),
    ("result unmapped", "UNVERIFIED QUERY_RESULT_UNMAPPED", lambda c: c.order().answer("unmapped")),
    ("never asked", "UNVERIFIED QUERY_FAILED", lambda c: c.order().asked()),
    ("row rejected", "UNVERIFIED ROW_QUARANTINED", lambda c: c.order().payment().reject()),
    (
        "order file lacks",
        "UNVERIFIED ORDERS_MISSING",
        lambda c: c.payment().lacking(LONG_AGO - timedelta(seconds=1)),
    ),
    ("order file lacks, paid before", "MISSING_IN_ORDERS", lambda c: c.payment().lacking(LONG_AGO)),
    (
        "order file lacks, in grace",
        "PENDING",
        lambda c: c.payment(transaction_date=JUST_NOW).lacking(LONG_AGO),
    ),
    ("order file lacks, order there", "MATCHED", lambda c: c.order().payment().lacking(LONG_AGO)),
    (
        "order file lacks, doubt stays",
        "REFUND_UNCONFIRMED MISSING_IN_ORDERS",
        lambda c: c.payment().move("refund", "in_doubt").lacking(LONG_AGO - timedelta(seconds=1)),
    ),
    (
        "entry conflict",
        "UNVERIFIED ENTRY_ID_CONFLICT",
        lambda c: c.order().payment().entry(entry_id="E").entry(entry_id="E", amount=1),
    ),
    ("asked, nothing known", "", lambda c: c.answer("not_found")),
    (
        "keyless entry by transaction",
        "MATCHED",
        lambda c: c.order().payment().entry(order_no="", transaction_id="T1"),
    ),
    (
        "keyless entry by reference",
        "MATCHED",
        lambda c: c.order().payment(reference_no="R1").entry(order_no="", reference_no="R1"),
    ),
    (
        "review decided, still shown",
        "REVIEW_STUCK STALE_PENDING",
        lambda c: c.order().payment("in_review").move("review", "confirmed", outcome_at=LONG_AGO),
    ),
    (
        "review just decided",
        "PENDING",
        lambda c: (
            c.order(ordered_at=JUST_NOW)
            .payment("in_review")
            .move("review", "confirmed", outcome_at=JUST_NOW)
        ),
    ),
    (
        "review refused",
        "REVIEW_STUCK",
        lambda c: c.order(ordered_at=JUST_NOW).payment("in_review").move("review", "rejected"),
    ),
    (
        "exchange",
        "FX_DIFFERENCE",
        lambda c: _abroad(c.order(currency="USD").payment(currency="USD"), booked=9000),
    ),
    (
        "exchange within its tolerance",
        "MATCHED",
        lambda c: _abroad(c.order(currency="USD").payment(currency="USD"), booked=9205),
    ),
    ("end of a subscription refused", "SUBSCRIPTION_NOT_ENDED", lambda c: _ended(c, "rejected")),
    ("end of a subscription in doubt", "SUBSCRIPTION_NOT_ENDED", lambda c: _ended(c, "in_doubt")),
    (
        "end of a subscription refused, asked again and confirmed",
        "MATCHED",
        lambda c: _ended(_ended(c, "rejected"), "confirmed"),
    ),
    (
        "two subscriptions, one of them not ended",
        "SUBSCRIPTION_NOT_ENDED",
        lambda c: _ended(_ended(c, "rejected"), "confirmed", transaction_id="S2"),
    ),
    (
        "two ends without any name",
        "SUBSCRIPTION_NOT_ENDED + SUBSCRIPTION_NOT_ENDED",
        lambda c: _ended(
            _ended(c, "rejected", transaction_id=""), "needs_human", transaction_id=""
        ),
    ),
    ("payout booked", "MATCHED", lambda c: _paid_out(c, reference_no="P1")),
    (
        "payout booked under its instruction",
        "MATCHED",
        lambda c: _paid_out(c, transaction_id="I0"),
    ),
    ("payout in doubt", "PAYOUT_UNCONFIRMED", lambda c: c.payout("in_doubt").ledger()),
    ("payout refused", "PAYOUT_FAILED", lambda c: c.payout("rejected").ledger()),
    (
        "payout refused, booked all the same",
        "PAYOUT_FAILED LEDGER_PAYOUT_ONLY",
        lambda c: _paid_out(c, "rejected", reference_no="P1"),
    ),
    ("payout not booked", "PAYOUT_NOT_BOOKED", lambda c: c.payout().ledger()),
    ("payout just now", "PENDING", lambda c: c.payout(outcome_at=JUST_NOW).ledger()),
    (
        "payout of another amount",
        "PAYOUT_AMOUNT_MISMATCH",
        lambda c: _paid_out(c, reference_no="P1", amount=9000),
    ),
    (
        "payout booked twice",
        "PAYOUT_AMOUNT_MISMATCH",
        lambda c: _paid_out(c, reference_no="P1").entry("payout", order_no="", reference_no="P1"),
    ),
    (
        "payout booked twice, one reversed",
        "MATCHED",
        lambda c: (
            _paid_out(c, reference_no="P1")
            .entry("payout", order_no="", reference_no="P1")
            .entry("payout_reversal", order_no="", reverses_entry_id="E1")
        ),
    ),
    (
        "payout refused and sent again, booked twice",
        "LEDGER_PAYOUT_ONLY + MATCHED",
        lambda c: (
            c.payout("rejected", outcome_at=EARLIER, order_no="PO-1")
            .payout(request_id="P2", order_no="PO-1")
            .entry("payout", order_no="", reference_no="P1")
            .entry("payout", order_no="", reference_no="P2")
        ),
    ),
    (
        "payout to the merchant where only our own instructions tell of payouts",
        "MATCHED",
        lambda c: _paid_out(c, reference_no="P1").entry("payout", order_no="", reference_no="P9"),
    ),
    (
        "payout refused and sent again",
        "MATCHED + MATCHED",
        lambda c: (
            c.payout("rejected", outcome_at=EARLIER, order_no="PO-1")
            .payout(request_id="P2", order_no="PO-1")
            .entry("payout", order_no="", reference_no="P2")
        ),
    ),
    (
        "payout refused, and another of the same amount",
        "PAYOUT_FAILED + MATCHED",
        lambda c: (
            c.payout("rejected", outcome_at=EARLIER)
            .payout(request_id="P2")
            .entry("payout", order_no="", reference_no="P2")
        ),
    ),
    (
        "payout refused after one that was sent",
        "PAYOUT_FAILED + MATCHED",
        lambda c: (
            c.payout("rejected", outcome_at=JUST_NOW, order_no="PO-1")
            .payout(request_id="P2", order_no="PO-1")
            .entry("payout", order_no="", reference_no="P2")
        ),
    ),
    (
        "payout where nobody tells of payouts",
        "",
        lambda c: c.entry("payout", order_no="", reference_no="P9"),
    ),
    ("payout that waits", "", lambda c: c.payout("approved").ledger()),
    ("settled", "MATCHED", _settled),
    (
        "refund whose amount only the settlement tells",
        "MATCHED refund_from_settlement",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded")
            .entry()
            .entry("refund", amount=3000)
            .line()
            .line("refund", gross=-3000)
        ),
    ),
    (
        "refund whose amount a line tells that names the order alone",
        "MATCHED refund_from_settlement",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded")
            .entry()
            .entry("refund", amount=3000)
            .line()
            .line("refund", gross=-4000, transaction_id="")
            .line("refund_reversal", gross=1000)
        ),
    ),
    (
        "refund whose amount no line tells",
        "UNVERIFIED REFUND_AMOUNT_UNKNOWN",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded")
            .entry()
            .line()
        ),
    ),
    (
        "not settled",
        "SETTLEMENT_MISSING + MATCHED",
        lambda c: (
            _settled(c)
            .order(order_no="B")
            .payment(order_no="B", transaction_id="TB")
            .entry(order_no="B")
        ),
    ),
    (
        "not settled yet",
        "PENDING + MATCHED",
        lambda c: (
            _settled(c)
            .order(order_no="B")
            .payment(order_no="B", transaction_id="TB", transaction_date=JUST_NOW)
            .entry(order_no="B")
        ),
    ),
    (
        "of a day before the settlement file",
        "MATCHED + MATCHED cut_off_difference",
        lambda c: (
            _settled(c)
            .order(order_no="B")
            .payment(order_no="B", transaction_id="TB", transaction_date=EARLIER)
            .entry(order_no="B")
        ),
    ),
    (
        "settled too little",
        "SETTLEMENT_AMOUNT_MISMATCH",
        lambda c: c.order().payment().entry().line(gross=9900),
    ),
    (
        "settled in another currency",
        "SETTLEMENT_AMOUNT_MISMATCH",
        lambda c: c.order().payment().entry().line(currency="USD"),
    ),
    (
        "refund settled with another amount",
        "SETTLEMENT_AMOUNT_MISMATCH",
        lambda c: (
            c.order("refunded")
            .payment("refunded")
            .entry()
            .entry("refund")
            .line()
            .line("refund", gross=-9000)
        ),
    ),
    (
        "refund settled",
        "MATCHED",
        lambda c: (
            c.order("refunded")
            .payment("refunded")
            .entry()
            .entry("refund")
            .line()
            .line("refund", gross=-10000)
        ),
    ),
    (
        "charged back by a line alone, and not booked",
        "CHARGEBACK_NOT_BOOKED",
        lambda c: c.order().payment().entry().line().line("chargeback", gross=-10000),
    ),
    (
        "charged back in part by a line alone, and not booked",
        "CHARGEBACK_NOT_BOOKED",
        lambda c: c.order().payment().entry().line().line("chargeback", gross=-4000),
    ),
    (
        "charged back by a line alone, and booked",
        "MATCHED chargeback_booked",
        lambda c: (
            c.order()
            .payment()
            .entry()
            .entry("chargeback", amount=4000)
            .line()
            .line("chargeback", gross=-4000)
        ),
    ),
    (
        "charged back by a line alone, and booked with another amount",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: (
            c.order()
            .payment()
            .entry()
            .entry("chargeback", amount=3000)
            .line()
            .line("chargeback", gross=-4000)
        ),
    ),
    (
        "charged back by a line and won back",
        "MATCHED",
        lambda c: (
            c.order()
            .payment()
            .entry()
            .line()
            .line("chargeback", gross=-10000)
            .line("chargeback", gross=10000, settled_on="2026-10-02")
        ),
    ),
    (
        "a refund that the settlement calls a chargeback",
        "MATCHED",
        lambda c: (
            c.order("refunded")
            .payment("refunded")
            .entry()
            .entry("refund")
            .line()
            .line("chargeback", gross=-10000)
        ),
    ),
    (
        "fee differs",
        "FEE_VARIANCE",
        lambda c: c.order().payment().entry().line(fee=166).ruled(fees={"EUR": AGREED}),
    ),
    (
        "fee as agreed",
        "MATCHED",
        lambda c: c.order().payment().entry().line(fee=165).ruled(fees={"EUR": AGREED}),
    ),
    (
        "settled, cancelled",
        "UNEXPECTED_RECEIPT",
        lambda c: c.order("cancelled").payment("cancelled").ledger().line(),
    ),
    ("settled, unknown", "UNEXPECTED_RECEIPT", lambda c: c.ledger().line()),
    (
        "keyless entry alone",
        "MISSING_IN_LEDGER + LEDGER_ONLY",
        lambda c: c.order().payment().entry(order_no=""),
    ),
]


@pytest.fixture(scope="module")
def outcomes(
    make_case: Callable[[], Any], outcomes_together: Callable[[Any], dict[str, str]]
) -> dict[str, str]:
    """What every case comes to, by its name."""
    return outcomes_together({name: build(make_case()) for name, _, build in CASES})


@pytest.mark.parametrize(
    ("name", "expected"),
    [pytest.param(name, expected, id=name.replace(" ", "-")) for name, expected, _ in CASES],
)
def test_what_a_set_comes_to(outcomes: dict[str, str], name: str, expected: str) -> None:
    """Each set has one outcome; with all of them every control total holds."""
    found = outcomes[name]

    assert sorted(found.split(" + ")) == sorted(expected.split(" + "))


def test_every_code_has_a_case() -> None:
    """A code without a case could vanish unseen."""
    shown = {word for _, text, _ in CASES for word in text.replace(";", " ").split()}

    # What a bank says and what the gateway keeps have cases of their own.
    assert {code for code in BreakCode if code not in shown} == BANK_CODES | CASH_CODES


def test_every_flag_has_a_case() -> None:
    """A flag without a case could vanish unseen."""
    shown = {word for _, text, _ in CASES for word in text.replace(";", " ").split()}
    elsewhere = {Flag.NEVER_PAID, Flag.REFUNDED_BY_VOID, Flag.NOT_COMPARED}

    assert {flag for flag in Flag if flag not in shown} == elsewhere | BANK_FLAGS | CASH_FLAGS

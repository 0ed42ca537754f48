"""Each leg of each set adds up to the minor unit: what no flag explains exactly is open."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("residuals of a set")
"""They share what takes longer to make than to look at."""

JUST_NOW = datetime(2026, 11, 20, 20, tzinfo=UTC)
HIDDEN = {"3000": "paid"}
"""A status map under which no refund can be shown."""
TOLERANT = {"EUR": {"absolute_minor_units": 5}}

Build = Callable[[Any], Any]


def _replied(case: Any, *, order: int | None = None, ours: int, books: int | None = None) -> Any:
    """A refund that the reply confirmed and the query can't show; order and books as given."""
    if order is None:
        case.order()
    else:
        case.order("partially_refunded", refund_amount=order)
    case.payment().move("refund", "confirmed", amount=ours).ruled(payment_status=HIDDEN)
    if books is not None:
        case.entry()
        if books:
            case.entry("refund", amount=books)
    return case


def _running(case: Any, *, order: int | None = None, ours: int, books: int) -> Any:
    """A refund that was confirmed just now and that the query does not show yet."""
    if order is None:
        case.order()
    else:
        case.order("partially_refunded", refund_amount=order)
    case.payment().entry()
    if books:
        case.entry("refund", amount=books)
    return case.move("refund", "confirmed", amount=ours, outcome_at=JUST_NOW)


CASES: list[tuple[str, str, Build]] = [
    (
        "replied just now, not booked yet",
        "PENDING reply_only",
        lambda c: (
            c.order()
            .payment()
            .entry()
            .move("refund", "confirmed", amount=3000, outcome_at=JUST_NOW)
            .ruled(payment_status=HIDDEN)
        ),
    ),
    (
        "replied, a cent off in the books, within tolerance",
        "MATCHED reply_only;rounding",
        lambda c: _replied(c, ours=3000, books=3001).ruled(tolerance=TOLERANT),
    ),
    (
        "captured by us, only authorised shown, booked as captured",
        "MATCHED instructed",
        lambda c: (
            c.order()
            .payment()
            .entry(amount=8000)
            .move("capture", "confirmed", amount=8000)
            .ruled(gateway={"amount_means": "authorised"})
        ),
    ),
    (
        "captured by us, only authorised shown, booked as authorised",
        "LEDGER_AMOUNT_MISMATCH instructed",
        lambda c: (
            c.order()
            .payment()
            .entry()
            .move("capture", "confirmed", amount=8000)
            .ruled(gateway={"amount_means": "authorised"})
        ),
    ),
    ("running, not booked yet", "PENDING", lambda c: _running(c, ours=3000, books=0)),
    ("running, booked", "PENDING", lambda c: _running(c, ours=3000, books=3000)),
    (
        "running, booked too little",
        "LEDGER_REFUND_ONLY",
        lambda c: _running(c, ours=3000, books=2000),
    ),
    (
        "running, booked ten times",
        "LEDGER_REFUND_ONLY",
        lambda c: _running(c, ours=3000, books=30000),
    ),
    (
        "running, order expects less",
        "REFUND_UNEXPECTED",
        lambda c: _running(c, order=1000, ours=3000, books=3000),
    ),
    (
        "capture reversal without its capture",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: c.order().payment().entry("capture_reversal", amount=10000),
    ),
    (
        "each movement within tolerance, not their sum",
        "LEDGER_AMOUNT_MISMATCH",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded", refunded_amount=3000)
            .entry(amount=9996)
            .entry("refund", amount=3004)
            .ruled(tolerance=TOLERANT)
        ),
    ),
    (
        "ledger written off, order just placed",
        "PENDING written_off",
        lambda c: c.order(amount=9000, ordered_at=JUST_NOW).entry().entry("write_off"),
    ),
    (
        "chargeback alone, just booked",
        "PENDING",
        lambda c: c.entry("chargeback", booked_at=JUST_NOW),
    ),
    (
        "ledger only, booked long ago, more just now",
        "LEDGER_ONLY",
        lambda c: c.entry().entry(amount=500, booked_at=JUST_NOW),
    ),
    (
        "ledger only, booked long ago and taken back, once more just now",
        "PENDING",
        lambda c: (
            c.entry()
            .entry("capture_reversal", reverses_entry_id="E0")
            .entry(amount=500, booked_at=JUST_NOW)
        ),
    ),
    (
        "ledger only, taken back without a name, once more just now",
        "PENDING",
        lambda c: c.entry().entry("capture_reversal").entry(amount=500, booked_at=JUST_NOW),
    ),
    (
        "ledger only, taken back in part",
        "LEDGER_ONLY",
        lambda c: (
            c.entry()
            .entry("capture_reversal", reverses_entry_id="E0", amount=400)
            .entry(amount=500, booked_at=JUST_NOW)
        ),
    ),
    (
        "never booked, refunded just now",
        "MISSING_IN_LEDGER instructed",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded", refunded_amount=3000)
            .ledger()
            .move("refund", "confirmed", amount=3000, outcome_at=JUST_NOW)
        ),
    ),
    (
        "in another account, captured beyond its authorisation",
        "WRONG_ACCOUNT OVER_CAPTURE",
        lambda c: c.order().payment(account_id="2", authorised_amount=9000, captured_amount=10000),
    ),
    (
        "in another account, refunded by us without effect",
        "WRONG_ACCOUNT REFUND_UNCONFIRMED",
        lambda c: c.order().payment(account_id="2").move("refund", "in_doubt", account_id="2"),
    ),
    (
        "in another account, refunded beyond what was captured",
        "WRONG_ACCOUNT OVER_REFUND;REFUND_UNEXPECTED",
        lambda c: c.order().payment("refunded", account_id="2", refunded_amount=12000),
    ),
    (
        "over-capture written off",
        "MATCHED written_off",
        lambda c: (
            c.order()
            .payment(authorised_amount=10000, captured_amount=12000)
            .entry(amount=12000)
            .entry("write_off", amount=2000)
        ),
    ),
    (
        "capture of a key that no record has",
        "CAPTURE_UNCONFIRMED",
        lambda c: c.ledger().move("capture", "confirmed", order_no="Z9", transaction_id="Z"),
    ),
    (
        "refund of a key that no record has",
        "REFUND_UNCONFIRMED",
        lambda c: c.move("refund", "in_doubt", order_no="Z9", transaction_id="Z"),
    ),
    (
        "refund in another currency than the payment",
        "CURRENCY_MISMATCH",
        lambda c: (
            c.order("partially_refunded", refund_amount=3000)
            .payment("partially_refunded", refunded_amount=3000)
            .move("refund", "confirmed", amount=3000, currency="USD")
        ),
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
    """What no flag explains to the minor unit is a break of its leg; every control total holds."""
    assert outcomes[name] == expected


def test_exposure_and_severity_are_the_worst_of_all_findings(case: Any) -> None:
    """Two rows of one cancelled order hide nothing of the authorisation that is still open."""
    result = (
        case.order("cancelled", amount=10_000_000)
        .order("cancelled", amount=1)
        .payment("authorised", amount=10_000_000)
        .run()
    )

    row = result.breaks.iloc[0]
    assert (row["code"], row["flags"]) == ("DUPLICATE_ORDER_ROW", "CANCEL_DUE")
    assert (row["exposure"], row["severity"]) == (10_000_001, "CRITICAL")


def test_a_refund_known_from_its_reply_counts_as_money_at_risk(case: Any) -> None:
    """The books lack 30.00 that we know went out, though the query shows nothing of it."""
    row = _replied(case, ours=3000, books=0).run().breaks.iloc[0]

    assert (row["code"], row["effect_ledger"], row["exposure"]) == ("REFUND_NOT_BOOKED", 0, 3000)


def test_who_is_owed_follows_what_we_know_went_out(case: Any) -> None:
    """30.00 went back where the order tells of 10.00: the merchant is owed, not the shopper."""
    row = _replied(case, order=1000, ours=3000, books=3000).run().breaks.iloc[0]

    assert (row["effect_orders"], row["owed_to"], row["exposure"]) == (1000, "merchant", 3000)


def test_a_break_of_an_instruction_alone_has_its_currency(case: Any) -> None:
    """No other record has the key, so the instruction says in which currency it stands."""
    moved = case.ledger().move("capture", "confirmed", order_no="Z9", transaction_id="Z")

    assert moved.run().breaks[["currency", "exposure"]].values.tolist() == [["EUR", 10000]]


def test_an_instruction_told_twice_is_one_move(case: Any) -> None:
    """The same row in two files refunds once; T2 counts the repeat."""
    case.order().payment("partially_refunded", refunded_amount=6000)
    for line in (2, 3):
        case.move("refund", "confirmed", instruction_id="I", amount=6000, line=line)

    assert case.outcome() == "MATCHED instructed"
    told = [
        total for total in case.proven().control_totals if total.name.startswith("instructions")
    ]
    assert [(total.id, total.left, total.right) for total in told] == [("T2", 2, 2)]


def test_a_later_word_of_an_instruction_counts(case: Any) -> None:
    """It was approved in one file and confirmed in the next."""
    case.order().payment("partially_refunded", refunded_amount=6000)
    case.move("refund", "approved", instruction_id="I", amount=6000)
    case.move("refund", "confirmed", instruction_id="I", amount=6000, outcome_at=JUST_NOW)

    assert case.outcome() == "MATCHED instructed"


def test_an_instruction_told_in_two_ways_is_not_chosen(case: Any) -> None:
    """Two amounts of one instruction at one time exclude each other."""
    case.order().payment("partially_refunded", refunded_amount=6000)
    for amount in (6000, 600):
        case.move("refund", "confirmed", instruction_id="I", amount=amount)

    assert "AMBIGUOUS_MATCH" in case.outcome()

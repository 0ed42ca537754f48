"""What breaks have in common, and what might be their other side."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.proving import failed

OTHER_DAY = datetime(2026, 10, 2, 12, tzinfo=UTC)


def causes(case):
    """The distinct causes of a case's breaks."""
    return set(case.run().breaks["cause"])


def many(case, *, count=3, start=0, **order):
    """Orders of one file with the payments that fit them, then what the caller changes."""
    changed = {"source": "orders.csv", **order.pop("order", {})}
    paid = order.pop("payment", {})
    for number in range(start, start + count):
        ids = {"order_no": f"A{number}", "transaction_id": f"T{number}"}
        if changed.get("status") != "absent":
            case.order(**{"order_no": f"A{number}", **changed})
        if paid is not None:
            case.payment(paid.get("state", "paid"), **{**ids, **_without_state(paid)})
    return case


def _without_state(cells):
    return {name: value for name, value in cells.items() if name != "state"}


def of_three_accounts(case):
    """A third account with the same order numbers and other amounts is not the one named."""
    many(case, payment={"account_id": "3"})
    for number in range(3):
        ids = {"order_no": f"A{number}", "account_id": "2"}
        case.order(**ids, amount=700).payment(**ids, amount=800, transaction_id=f"O{number}")
    return case


def of_two_merchants(case):
    """Two merchants whose accounts have the same names share no cause: each has too few breaks."""
    moved = {"merchant_id": "other"}
    many(case, count=2, payment={"account_id": "2"})
    return many(case, count=2, start=5, order=moved, payment={**moved, "account_id": "2"})


def delivered_twice(case):
    """Orders that stand in two files with other content."""
    many(case)
    for number in range(3):
        case.order(order_no=f"A{number}", amount=9000, source="again.csv")
    return case


def booked(case, *, count, of):
    """So many payments of a day are booked."""
    many(case.ledger(), count=of)
    for number in range(count):
        case.entry(order_no=f"A{number}", transaction_id=f"T{number}")
    return case


OTHER: dict[str, Any] = {"merchant_id": "other"}
LACKS: dict[str, Any] = {"order": {"status": "absent"}}
IN_CENTS: dict[str, Any] = {"order": {"amount": 1_000_000}}
MISSING_FILE = "payments of 1 Oct 2026 for account 1: is a file missing?"
MISSING_RUN = "payments of 1 Oct 2026 in account 1: is a posting run missing?"
UNMAPPED = (
    "The gateway's payment_status 9999 is not mapped: "
    'set 9999 = "<state>" under [payment_status] in rules.toml.'
)
TWICE = "again.csv and orders.csv hold the same orders with different content: is one a correction?"
UNKNOWN = "The gateway knows nearly no order of orders.csv: is it of another account?"
CAUSES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a file in minor units": (
        lambda c: many(c, **IN_CENTS),
        "The amounts of orders.csv in EUR are 100 times too large.",
    ),
    "three mistakes among many right amounts": (
        lambda c: many(many(c, **IN_CENTS), count=9, start=10),
        "",
    ),
    "two are looked at one by one": (lambda c: many(c, count=2, **IN_CENTS), ""),
    "an unmapped code, with the line to paste": (
        lambda c: many(c, payment={"state": "unmapped"}),
        UNMAPPED,
    ),
    "a file that the gateway does not know": (lambda c: many(c, payment=None), UNKNOWN),
    "a part of a file": (lambda c: many(many(c, payment=None), count=9, start=10), ""),
    "a day without orders": (
        lambda c: many(many(c, **LACKS), start=10, payment={"transaction_date": OTHER_DAY}),
        f"The order files have 0 of 3 {MISSING_FILE}",
    ),
    "a day with some orders": (lambda c: many(many(c, **LACKS), start=10), ""),
    "a stray order in a missing day": (
        lambda c: many(c, count=10, **LACKS).order(order_no="A0"),
        f"The order files have 1 of 10 {MISSING_FILE}",
    ),
    "a day that another merchant's namesake has": (
        lambda c: many(many(c, **LACKS), start=10, order=OTHER, payment=OTHER),
        f"The order files have 0 of 3 {MISSING_FILE}",
    ),
    "a day without postings": (
        lambda c: many(
            many(c.ledger()), count=1, start=10, payment={"transaction_date": OTHER_DAY}
        ).entry(order_no="A10"),
        f"The ledger has a capture of 0 of 3 {MISSING_RUN}",
    ),
    "a stray entry in a missing day": (
        lambda c: booked(c, count=1, of=10),
        f"The ledger has a capture of 1 of 10 {MISSING_RUN}",
    ),
    "a day of which half is booked": (lambda c: booked(c, count=3, of=6), ""),
    "two files with the same orders": (
        delivered_twice,
        TWICE,
    ),
    "payments in one other account": (
        lambda c: many(c, payment={"account_id": "2"}),
        "The other side of these records of account 1 sits in account 2.",
    ),
    "payments in one of two other accounts": (
        of_three_accounts,
        "The other side of these records of account 1 sits in account 3.",
    ),
    "accounts of two merchants": (of_two_merchants, ""),
}


@pytest.mark.parametrize("name", CAUSES)
def test_what_breaks_have_in_common(make_case, name):
    """One sentence where nearly all that could show it do, none where it is chance."""
    planted, cause = CAUSES[name]

    assert causes(planted(make_case())) - {""} == {cause} - {""}


@pytest.mark.parametrize(
    ("orders", "gateway", "told"),
    [
        ("#{}", "{}", '"#…" (order) and "…" (payment)'),
        ("{}", "SHOP-{}", '"…" (order) and "SHOP-…" (payment)'),
        ("{}.0", "{}", '"….0" (order) and "…" (payment)'),
        ("00{}", "{}", '"00…" (order) and "…" (payment)'),
    ],
)
def test_order_numbers_written_otherwise_are_one_cause(make_case, orders, gateway, told):
    """What one side has in front or behind is told on both sides' breaks, and what to declare."""
    case = make_case()
    for number in range(998, 1003):
        payment = f"T{number}"
        case.order(order_no=orders.format(number), transaction_id=payment)
        case.payment(order_no=gateway.format(number), transaction_id=payment)
    breaks = case.run().breaks

    (cause,) = {*breaks["cause"]}
    assert cause.startswith(f"Order numbers are written {told}: ")
    assert "`order_numbers`" in cause
    assert not breaks["reason"].str.contains("does not know the payment").any()
    assert breaks["reason"].str.contains("has the payment under order ").sum() == 5


def test_order_numbers_that_only_look_alike_have_no_such_cause(make_case):
    """Of five numbers of each side two differ by what stands in front: that is chance."""
    case = make_case()
    for order, payment in (("11", "1"), ("12", "2"), ("33", "44"), ("#5", "5"), ("#7", "7")):
        case.order(order_no=order).payment(order_no=payment, transaction_id=f"T{payment}")

    assert not any(cause.startswith("Order numbers") for cause in causes(case))


GUESS = "A guess to look at: "


def guesses(case):
    """By order number, the guess behind the reason of its break."""
    breaks = case.run().breaks
    told = zip(breaks["order_no"], breaks["reason"], strict=True)
    return {name: reason.split(GUESS)[1] for name, reason in told if GUESS in reason}


def apart(case, name, *, beside, amount=10000):
    """An order without a payment, and a payment of another number without an order."""
    case.order(order_no=name, amount=amount)
    return case.payment(order_no=beside, transaction_id=f"T{beside}", amount=amount)


@pytest.mark.parametrize(
    ("name", "beside", "near"),
    [
        ("A-10012", "A-10021", True),
        ("A-10012", "A-10013", True),
        ("A-10012", "A-100123", True),
        ("a/10012", "A-10012", True),
        ("0010012", "10012", True),
        ("A-10012", "A-10099", False),
        ("A-1", "A-2", False),
        ("A-10012", "A-1001234", False),
    ],
)
def test_a_number_that_is_nearly_the_same_is_a_guess(case, name, beside, *, near):
    """One letter, a swap, a sign or zeros in front: told on both sides, at one amount."""
    found = guesses(apart(case.ledger(), name, beside=beside))

    told = "of the same amount, whose number is nearly the same."
    both = {name: f"the payment of {beside}, {told}", beside: f"the order of {name}, {told}"}
    assert found == (both if near else {})


def test_a_guess_moves_nothing(case):
    """Both stay breaks under their own codes with their own effects."""
    result = apart(case, "A-10012", beside="A-10013").proven()

    assert sorted(result.breaks["code"]) == ["MISSING_AT_GATEWAY", "MISSING_IN_ORDERS"]
    assert sorted(result.effects["amount"]) == [-10_000, 10_000]
    assert failed(result) == []


def test_two_numbers_as_near_as_each_other_are_no_guess(case):
    """Nothing chooses between them."""
    apart(case.ledger(), "A-10012", beside="A-10013")
    case.payment(order_no="A-10011", transaction_id="T9")

    assert guesses(case) == {}


def test_records_that_sum_to_one_are_a_guess(case):
    """One payment of two orders of its day."""
    for name, amount in (("LEFT", 2_500), ("RIGHT", 7_500)):
        case.order(order_no=name, amount=amount)
    case.ledger().payment(order_no="WHOLE", transaction_id="TW")

    told = "2 together, the order of each of LEFT, RIGHT."
    assert guesses(case) == {"WHOLE": told}


def test_a_sum_that_fits_two_is_no_guess(case):
    """Two payments of the amount that the orders come to: nothing chooses between them."""
    for name in ("LEFT", "RIGHT"):
        case.order(order_no=name, amount=5_000)
    for name in ("WHOLE", "OTHER"):
        case.payment(order_no=name, transaction_id=f"T{name}")

    assert guesses(case) == {}


def test_entries_are_guessed_beside_payments(case):
    """The ledger's leg has its guesses too."""
    case.order().payment().entry(order_no="A2", amount=4_000).entry(order_no="A3", amount=6_000)

    assert guesses(case) == {"A1": "2 together, the entry of each of A2, A3."}


def test_more_than_a_dozen_are_no_guess(case):
    """Among many records of a day some always sum to another."""
    for number in range(13):
        case.order(order_no=f"N{number}", amount=1 << number)
    case.ledger().payment(order_no="WHOLE", transaction_id="TW", amount=3)

    assert guesses(case) == {}

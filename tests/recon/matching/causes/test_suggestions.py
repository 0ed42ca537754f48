"""A guess stands beside a break and moves nothing; where two are as good, none is told."""

from typing import Any

import pytest

GUESS = "A guess to look at: "


def guesses(case: Any) -> dict[str, str]:
    """By order number, the guess behind the reason of its break."""
    breaks = case.run().breaks
    told = zip(breaks["order_no"], breaks["reason"], strict=True)
    return {name: reason.split(GUESS)[1] for name, reason in told if GUESS in reason}


def apart(case: Any, name: str, *, beside: str, amount: int = 10_000) -> Any:
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
def test_a_number_that_is_nearly_the_same_is_a_guess(
    case: Any, name: str, beside: str, *, near: bool
) -> None:
    """One letter, a swap, a sign or zeros in front: told on both sides, at one amount."""
    found = guesses(apart(case.ledger(), name, beside=beside))

    told = "of the same amount, whose number is nearly the same."
    both = {name: f"the payment of {beside}, {told}", beside: f"the order of {name}, {told}"}
    assert found == (both if near else {})


def test_a_guess_moves_nothing(case: Any) -> None:
    """Both stay breaks under their own codes with their own effects."""
    result = apart(case, "A-10012", beside="A-10013").run()

    assert sorted(result.breaks["code"]) == ["MISSING_AT_GATEWAY", "MISSING_IN_ORDERS"]
    assert sorted(result.effects["amount"]) == [-10_000, 10_000]
    assert [total for total in result.control_totals if not total.passed] == []


def test_two_numbers_as_near_as_each_other_are_no_guess(case: Any) -> None:
    """Nothing chooses between them."""
    apart(case.ledger(), "A-10012", beside="A-10013")
    case.payment(order_no="A-10011", transaction_id="T9")

    assert guesses(case) == {}


def test_records_that_sum_to_one_are_a_guess(case: Any) -> None:
    """One payment of two orders of its day."""
    for name, amount in (("LEFT", 2_500), ("RIGHT", 7_500)):
        case.order(order_no=name, amount=amount)
    case.ledger().payment(order_no="WHOLE", transaction_id="TW")

    told = "2 together, the order of each of LEFT, RIGHT."
    assert guesses(case) == {"WHOLE": told}


def test_a_sum_that_fits_two_is_no_guess(case: Any) -> None:
    """Two payments of the amount that the orders come to: nothing chooses between them."""
    for name in ("LEFT", "RIGHT"):
        case.order(order_no=name, amount=5_000)
    for name in ("WHOLE", "OTHER"):
        case.payment(order_no=name, transaction_id=f"T{name}")

    assert guesses(case) == {}


def test_entries_are_guessed_beside_payments(case: Any) -> None:
    """The ledger's leg has its guesses too."""
    case.order().payment().entry(order_no="A2", amount=4_000).entry(order_no="A3", amount=6_000)

    assert guesses(case) == {"A1": "2 together, the entry of each of A2, A3."}


def test_more_than_a_dozen_are_no_guess(case: Any) -> None:
    """Among many records of a day some always sum to another."""
    for number in range(13):
        case.order(order_no=f"N{number}", amount=1 << number)
    case.ledger().payment(order_no="WHOLE", transaction_id="TW", amount=3)

    assert guesses(case) == {}

"""What breaks have in common, and what might be their other side."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.proving import failed

MakeCase = Callable[[], Any]
OTHER_DAY = datetime(2026, 10, 2, 12, tzinfo=UTC)


def causes(case: Any) -> set[str]:
    """The distinct causes of a case's breaks."""
    return set(case.run().breaks["cause"])


def many(case: Any, *, count: int = 3, start: int = 0, **order: Any) -> Any:
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


def _without_state(cells: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cells.items() if name != "state"}


def test_a_file_in_minor_units_is_one_cause(make_case: MakeCase) -> None:
    """Amounts of a file that are all a hundred times too large are told once, with the file."""
    case = many(make_case(), order={"amount": 1000000})

    assert causes(case) == {"The amounts of orders.csv in EUR are 100 times too large."}


def test_a_file_with_other_amounts_has_no_cause(make_case: MakeCase) -> None:
    """Three amounts a hundred times off among many right ones are three mistakes, not a unit."""
    case = many(make_case(), order={"amount": 1000000})
    many(case, count=9, start=10)

    assert causes(case) == {""}


def test_two_breaks_are_too_few_for_a_cause(make_case: MakeCase) -> None:
    """Two alike are looked at one by one."""
    assert causes(many(make_case(), count=2, order={"amount": 1000000})) == {""}


def test_an_unmapped_code_comes_with_the_line_to_paste(make_case: MakeCase) -> None:
    """Breaks of one unknown code name the code and the TOML that ends them."""
    (told,) = causes(many(make_case(), payment={"state": "unmapped"}))

    assert "payment_status 9999 is not mapped" in told
    assert 'set 9999 = "<state>" under [payment_status] in rules.toml' in told


def test_an_unknown_file_is_one_cause(make_case: MakeCase) -> None:
    """A file of which the gateway knows nothing was sent to the wrong account."""
    (told,) = causes(many(make_case(), payment=None))

    assert told == "The gateway knows nearly no order of orders.csv: is it of another account?"


def test_an_unknown_part_of_a_file_has_no_cause(make_case: MakeCase) -> None:
    """Three missing payments of twelve orders are three breaks."""
    case = many(many(make_case(), payment=None), count=9, start=10)

    assert causes(case) == {""}


def test_a_day_without_orders_is_a_missing_file(make_case: MakeCase) -> None:
    """Payments of a day on which no order stands in any file point to the missing file."""
    case = many(make_case(), order={"status": "absent"})
    many(case, start=10, payment={"transaction_date": OTHER_DAY})

    assert causes(case) == {
        "The order files have 0 of 3 payments of 1 Oct 2026 for account 1: is a file missing?"
    }


def test_a_day_with_some_orders_is_no_missing_file(make_case: MakeCase) -> None:
    """Where a file of the day exists, payments without orders stay single breaks."""
    case = many(many(make_case(), order={"status": "absent"}), start=10)

    assert causes(case) == {""}


def test_a_day_without_postings_is_one_cause(make_case: MakeCase) -> None:
    """Payments of a day of which nothing is booked point to the posting run."""
    case = many(make_case().ledger())
    many(case, count=1, start=10, payment={"transaction_date": OTHER_DAY})
    case.entry(order_no="A10")

    (told,) = causes(case)
    assert told.startswith("The ledger has a capture of 0 of 3 payments of 1 Oct 2026 in")


def test_two_files_with_the_same_orders_are_one_cause(make_case: MakeCase) -> None:
    """Orders that stand in two files with other content name both files."""
    case = many(make_case())
    for number in range(3):
        case.order(order_no=f"A{number}", amount=9000, source="again.csv")

    (told,) = causes(case)
    assert told.startswith("again.csv and orders.csv hold the same orders")


def test_payments_in_one_other_account_are_one_cause(make_case: MakeCase) -> None:
    """Orders whose payments all sit in one other account name both accounts."""
    case = many(make_case(), payment={"account_id": "2"})

    (told,) = causes(case)
    assert told == "The other side of these records of account 1 sits in account 2."


def test_the_account_of_the_payment_is_named_among_three(make_case: MakeCase) -> None:
    """A third account with the same order numbers and other amounts is not the one told."""
    case = many(make_case(), payment={"account_id": "3"})
    for number in range(3):
        ids = {"order_no": f"A{number}", "account_id": "2"}
        case.order(**ids, amount=700).payment(**ids, amount=800, transaction_id=f"O{number}")

    assert causes(case) - {""} == {
        "The other side of these records of account 1 sits in account 3."
    }


def test_accounts_of_two_merchants_are_not_one_cause(make_case: MakeCase) -> None:
    """Two merchants whose accounts have the same names share no cause: each has too few breaks."""
    case = many(make_case(), count=2, payment={"account_id": "2"})
    moved = {"merchant_id": "other"}
    many(case, count=2, start=5, order=moved, payment={**moved, "account_id": "2"})

    assert causes(case) == {""}


def test_the_orders_of_another_merchant_do_not_hide_a_missing_file(make_case: MakeCase) -> None:
    """A day is missing for one merchant, whatever a namesake of its account sold that day."""
    case = many(make_case(), order={"status": "absent"})
    other = {"merchant_id": "other"}
    many(case, start=10, order=other, payment=other)

    assert {*case.run().breaks["cause"]} == {
        "The order files have 0 of 3 payments of 1 Oct 2026 for account 1: is a file missing?"
    }


def test_a_missing_posting_day_is_told_although_an_entry_strays_in_it(make_case: MakeCase) -> None:
    """One payment of the day is booked, by hand or late: the other nine are still one cause."""
    case = many(make_case().ledger(), count=10)
    case.entry(order_no="A0", transaction_id="T0")

    (told,) = causes(case)
    assert told.startswith("The ledger has a capture of 1 of 10 payments of 1 Oct 2026 in")


def test_a_missing_order_file_is_told_although_an_order_strays_in_it(make_case: MakeCase) -> None:
    """A stray that agrees in every leg is counted as well as one that does not."""
    case = many(make_case(), count=10, order={"status": "absent"})
    case.order(order_no="A0")

    (told,) = causes(case)
    assert told.startswith("The order files have 1 of 10 payments of 1 Oct 2026 for account 1")


def test_a_day_of_which_half_is_booked_has_no_cause(make_case: MakeCase) -> None:
    """Three of six are no missing run."""
    case = many(make_case().ledger(), count=6)
    for number in range(3):
        case.entry(order_no=f"A{number}", transaction_id=f"T{number}")

    assert causes(case) == {""}


@pytest.mark.parametrize(
    ("orders", "gateway", "told"),
    [
        ("#{}", "{}", '"#…" (order) and "…" (payment)'),
        ("{}", "SHOP-{}", '"…" (order) and "SHOP-…" (payment)'),
        ("{}.0", "{}", '"….0" (order) and "…" (payment)'),
        ("00{}", "{}", '"00…" (order) and "…" (payment)'),
    ],
)
def test_order_numbers_written_otherwise_are_one_cause(
    make_case: MakeCase, orders: str, gateway: str, told: str
) -> None:
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


def test_order_numbers_that_only_look_alike_have_no_such_cause(make_case: MakeCase) -> None:
    """Of five numbers of each side two differ by what stands in front: that is chance."""
    case = make_case()
    for order, payment in (("11", "1"), ("12", "2"), ("33", "44"), ("#5", "5"), ("#7", "7")):
        case.order(order_no=order).payment(order_no=payment, transaction_id=f"T{payment}")

    assert not any(cause.startswith("Order numbers") for cause in causes(case))


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
    result = apart(case, "A-10012", beside="A-10013").proven()

    assert sorted(result.breaks["code"]) == ["MISSING_AT_GATEWAY", "MISSING_IN_ORDERS"]
    assert sorted(result.effects["amount"]) == [-10_000, 10_000]
    assert failed(result) == []


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

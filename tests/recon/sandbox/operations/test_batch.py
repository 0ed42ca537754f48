from typing import Any

import pytest

MONEY_WORDS = (
    "1O.00",
    "10",
    "10.3",
    "10.000",
    "-1.00",
    "",
    "1e3",
    "0.00",
    " 10.00",
    "\u0661\u0660.\u0660\u0660",
)


def euros(rows: list[dict[str, str]]) -> dict[str, str]:
    """The first row in a currency of two decimals."""
    return next(row for row in rows if row["currency"] == "EUR")


def refund_row(row: dict[str, str], amount: str, **more: str) -> dict[str, str]:
    """A refund of some of a payment."""
    return row | {"refund_amount": amount, "refund_reason": "returned"} | more


def test_capture_takes_the_whole_or_a_part_and_the_rest_lapses(gateway: Any) -> None:
    """0 < amount <= authorised is captured once; the truth has the captured amount."""
    row = euros(gateway.authorised())
    answer = gateway.row("capture", row | {"amount": "1.00"})
    assert (answer["capture_status"], answer["error_message"]) == ("1", "")
    (effect,) = gateway.effects()
    assert (effect["operation"], effect["amount"]) == ("capture", "1.00")
    assert effect["transaction_id"] == row["transaction_id"]
    assert gateway.status(row["order_no"]) == "3000"
    assert gateway.row("capture", row | {"amount": "1.00"})["error_message"].startswith("A0008:")
    assert len(gateway.effects()) == 1


@pytest.mark.parametrize("amount", [*MONEY_WORDS, "99999.00"])
def test_capture_refuses_what_is_no_amount_of_the_payment(gateway: Any, amount: str) -> None:
    """Malformed, zero, negative or more than authorised: the row fails, nothing happens."""
    answer = gateway.row("capture", euros(gateway.authorised()) | {"amount": amount})
    assert answer["capture_status"] == "0"
    assert answer["error_message"].startswith("A0002:")
    assert answer["error_message"].endswith("(amount)")
    assert gateway.effects() == []


@pytest.mark.parametrize("amount", [10, 10.0, None, ["10.00"], {"value": "10.00"}])
def test_amounts_are_text_never_numbers(gateway: Any, amount: Any) -> None:
    """A number in the place of an amount fails its row."""
    answer = gateway.row("capture", euros(gateway.authorised()) | {"amount": amount})
    assert answer["capture_status"] == "0"
    assert gateway.effects() == []


def test_cancel_ends_an_authorisation_once(gateway: Any) -> None:
    """A cancel releases the authorised amount; neither cancel nor capture works after it."""
    row = euros(gateway.authorised())
    assert gateway.row("cancel", row)["cancel_status"] == "1"
    assert gateway.status(row["order_no"]) == "5000"
    assert gateway.row("cancel", row)["error_message"].startswith("A0008:")
    assert gateway.row("capture", row)["error_message"].startswith("A0007:")
    (effect,) = gateway.effects()
    assert (effect["operation"], effect["amount"]) == ("cancel", row["amount"])


def test_a_captured_payment_cannot_be_cancelled(gateway: Any) -> None:
    """After the capture only a refund gives money back."""
    answer = gateway.row("cancel", gateway.captured()[0])
    assert answer["error_message"].startswith("A0008:")
    assert gateway.effects() == []


def test_review_sets_a_flag_and_blocks_nothing(gateway: Any) -> None:
    """A reviewed payment can be captured as before; the flag comes back."""
    row = euros(gateway.authorised())
    answer = gateway.row("review", row | {"review_flag": "1"})
    assert (answer["review_status"], answer["review_flag"]) == ("1", "1")
    assert gateway.row("review", row)["error_message"].startswith("A0001:")
    assert gateway.row("capture", row)["capture_status"] == "1"
    assert [effect["operation"] for effect in gateway.effects()] == ["review", "capture"]


def test_partial_refunds_add_up_to_the_captured_amount(gateway: Any) -> None:
    """Parts are refunded under numbered references until nothing is left; states follow."""
    row = euros(gateway.captured())
    first = gateway.row("refund", refund_row(row, "1.00", refund_reference="mine"))
    assert first["refund_status"] == "1"
    assert first["refund_message"] == "V0000:OK"
    assert first["refund_reference_id"] == f"{row['transaction_id']}-01"
    assert first["refund_reference"] == "mine"
    assert gateway.status(row["order_no"]) == "4000"
    too_much = gateway.row("refund", refund_row(row, row["amount"]))
    assert too_much["refund_status"] == "0"
    assert too_much["refund_message"].startswith("V0025:")
    assert too_much["refund_reference_id"] == ""
    rest = f"{float(row['amount']) - 1:.2f}"
    second = gateway.row("refund", refund_row(row, rest))
    assert second["refund_reference_id"] == f"{row['transaction_id']}-02"
    assert gateway.status(row["order_no"]) == "4100"
    assert gateway.row("refund", refund_row(row, "0.01"))["refund_status"] == "0"
    assert gateway.invariants()["over_refunded"] == 0


def test_an_equal_refund_sent_twice_is_legal_and_only_the_invariant_shows_it(gateway: Any) -> None:
    """The gateway cannot tell a repeat from a second refund; the truth can."""
    row = euros(gateway.captured())
    for _ in range(2):
        assert gateway.row("refund", refund_row(row, "1.00"))["refund_status"] == "1"
    assert gateway.invariants()["double_effects"] == 1
    gateway.row("refund", refund_row(row, "1.00", refund_reason="another"))
    assert gateway.invariants()["double_effects"] == 1


def test_one_intention_under_other_references_is_counted_by_its_money(gateway: Any) -> None:
    """Equal money of one payment is one intention, whatever reason or reference it bears."""
    row = euros(gateway.captured())
    gateway.row("refund", refund_row(row, "1.00", refund_reference="mine"))
    gateway.row("refund", refund_row(row, "1.50", refund_reference="mine"))
    assert gateway.invariants()["double_intentions"] == 0
    gateway.row("refund", refund_row(row, "1.00", refund_reference="other", refund_reason="new"))
    counted = gateway.invariants()
    assert (counted["double_effects"], counted["double_intentions"]) == (0, 1)


def test_an_intention_that_the_gateway_took_back_may_take_effect_again(gateway: Any) -> None:
    """A refund that flipped to a failure stands no more; the same one after it is the only one."""
    row = euros(gateway.captured())
    gateway.faults({"operation": "refund", "kind": "late_flip", "seconds": 3600, "times": 1})
    gateway.row("refund", refund_row(row, "1.00"))
    gateway.pass_days(1)
    gateway.row("refund", refund_row(row, "1.00", refund_reference="again"))
    assert gateway.invariants()["double_intentions"] == 0


@pytest.mark.parametrize("amount", MONEY_WORDS)
def test_refund_refuses_what_is_no_amount(gateway: Any, amount: str) -> None:
    """A malformed or empty refund amount fails its row."""
    answer = gateway.row("refund", refund_row(euros(gateway.captured()), amount))
    assert answer["refund_message"].startswith("V0015:")
    assert answer["refund_message"].endswith("(refund_amount)")
    assert gateway.effects() == []


def test_refund_needs_captured_money(gateway: Any) -> None:
    """An authorisation cannot be refunded."""
    row = euros(gateway.authorised())
    assert gateway.row("refund", refund_row(row, "1.00"))["refund_message"].startswith("V0013:")


@pytest.mark.parametrize("operation", ["cancel", "review", "refund"])
def test_rows_carry_the_payments_own_amount(gateway: Any, operation: str) -> None:
    """Cancel, review and refund name the payment by its authorised amount as well."""
    rows = gateway.captured() if operation == "refund" else gateway.authorised()
    row = refund_row(euros(rows), "1.00", review_flag="1") | {"amount": "1.23"}
    answer = gateway.row(operation, row)
    assert answer[f"{operation}_status"] == "0"
    assert gateway.effects() == []


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"transaction_id": "20261120220000"}, "A0006"),
        (
            {"transaction_id": ""},
            "A0001:A field of the row is missing or malformed (transaction_id)",
        ),
        ({"order_no": ""}, "A0001:A field of the row is missing or malformed (order_no)"),
        ({"amount": "12"}, "A0002:The amount is malformed or out of bounds (amount)"),
        ({"order_no": "SO0"}, "A0005"),
        ({"currency": "USD"}, "A0003"),
        ({"currency": "eur"}, "A0003"),
    ],
)
def test_a_row_that_does_not_agree_with_itself_fails_alone(
    gateway: Any, changed: dict[str, str], code: str
) -> None:
    """Its neighbour in the batch takes effect, and the request as a whole succeeds."""
    wrong, right = [row for row in gateway.authorised() if row["currency"] == "EUR"][:2]
    reply = gateway.batch("capture", [wrong | changed, right]).json()
    assert reply["return_status"] == "1"
    assert [row["capture_status"] for row in reply["capture_orders"]] == ["0", "1"]
    assert reply["capture_orders"][0]["error_message"].startswith(code)
    assert [effect["transaction_id"] for effect in gateway.effects()] == [right["transaction_id"]]


def test_a_payment_of_another_account_is_not_known(gateway: Any) -> None:
    """An account sees its own payments only."""
    seed = gateway.effects(origin="seed")
    other = next(effect for effect in seed if effect["account_id"] == "100042002")
    names = ("transaction_id", "order_no", "currency", "amount")
    answer = gateway.row("capture", {name: other[name] for name in names})
    assert answer["error_message"].startswith("A0006:")


def test_one_transaction_twice_in_a_batch_is_judged_in_order(gateway: Any) -> None:
    """The first row takes effect, the second meets what the first has made."""
    row = euros(gateway.authorised())
    reply = gateway.batch("capture", [row, row]).json()
    assert [answer["capture_status"] for answer in reply["capture_orders"]] == ["1", "0"]
    assert len(gateway.effects()) == 1


def test_ids_may_come_as_numbers(gateway: Any) -> None:
    """merchant_id, account_id and transaction_id as JSON numbers are the same ids."""
    row = euros(gateway.authorised())
    rows = [row | {"transaction_id": int(row["transaction_id"])}]
    reply = gateway.batch("capture", rows, merchant_id=100042, account_id=100042001).json()
    assert reply["capture_orders"][0]["capture_status"] == "1"


def test_an_authorisation_expires_after_seven_days(gateway: Any) -> None:
    """Later it is shown as expired and can be neither captured nor cancelled."""
    row = euros(gateway.authorised())
    gateway.pass_days(4)
    assert gateway.status(row["order_no"]) == "2000"
    gateway.pass_days(3)
    assert gateway.status(row["order_no"]) == "6100"
    assert gateway.row("capture", row)["error_message"].startswith("A0009:")
    assert gateway.row("cancel", row)["error_message"].startswith("A0009:")
    assert gateway.effects() == []


def test_a_payment_lives_from_authorise_to_refund(gateway: Any) -> None:
    """What a person authorised can be captured and then refunded."""
    gateway.authorise(order_no="mine", amount="12.00")
    (paid,) = gateway.query(orders="mine").json()["orders_list"]
    row = {name: paid[name] for name in ("transaction_id", "order_no", "currency", "amount")}
    assert gateway.row("capture", row)["capture_status"] == "1"
    assert gateway.row("refund", refund_row(row, "12.00"))["refund_status"] == "1"
    assert [e["operation"] for e in gateway.effects()] == ["authorise", "capture", "refund"]
    assert gateway.status("mine") == "4100"


def test_a_refund_is_refused_after_180_days(gateway: Any) -> None:
    """The window counts from the capture."""
    row = euros(gateway.captured())
    gateway.pass_days(150)
    assert gateway.row("refund", refund_row(row, "1.00"))["refund_status"] == "1"
    gateway.pass_days(31)
    late = gateway.row("refund", refund_row(row, "1.00"))
    assert late["refund_message"].startswith("V0027:")


def test_only_99_refunds_fit_one_payment(gateway: Any) -> None:
    """The reference has two digits; the hundredth refund is refused."""
    row = euros(gateway.captured())
    for start in (0, 50):
        size = min(50, 99 - start)
        reply = gateway.batch("refund", [refund_row(row, "0.01")] * size).json()
        assert {answer["refund_status"] for answer in reply["refund_orders"]} == {"1"}
    assert reply["refund_orders"][-1]["refund_reference_id"].endswith("-99")
    assert gateway.row("refund", refund_row(row, "0.01"))["refund_message"].startswith("V0026:")


@pytest.mark.parametrize(("currency", "half"), [("JPY", "100.00"), ("KWD", "0.100")])
def test_currencies_keep_their_own_decimals(gateway: Any, currency: str, half: str) -> None:
    """Yen are written with two zeroes, dinars with three decimals, and nothing is rounded."""
    row = next(row for row in gateway.captured() if row["currency"] == currency)
    assert gateway.row("refund", refund_row(row, half))["refund_status"] == "1"
    assert gateway.effects()[0]["amount"] == half
    for wrong in ("1.50", "1", "1000") if currency == "JPY" else ("0.1", "0.10", "1"):
        answer = gateway.row("refund", refund_row(row, wrong))
        assert answer["refund_message"].startswith("V0015:"), wrong


def test_every_effect_names_its_request(gateway: Any) -> None:
    """request_log_id tells which request made an effect; rows of one batch share it."""
    reply = gateway.batch("capture", gateway.authorised()[:3])
    assert reply.status_code == 200
    gateway.batch("cancel", gateway.authorised()[5:6])
    logged = [effect["request_log_id"] for effect in gateway.effects()]
    assert len(set(logged[:3])) == 1
    assert logged[3] not in logged[:3]
    assert all(logged)

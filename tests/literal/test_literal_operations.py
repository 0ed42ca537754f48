"""All ten operations by the real client against a gateway that is the API document, literally."""

import ast
import asyncio
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qsl

import pytest
from pydantic import SecretStr

from recon.gateway_client import (
    Beneficiary,
    CancelRow,
    CancelSubscriptionRow,
    CaptureRow,
    Payer,
    PayoutRow,
    RefundRow,
    ReplyOutcome,
    ReviewRow,
    SignatureState,
    prepare,
)
from recon.gateway_client.payments import AccountOwner, CartItem, PayingPerson, RecurringContract
from recon.sandbox.payments import INPUTS
from tests.conformance.conftest import Target, place_of
from tests.conformance.test_apm_contract import apm_payment
from tests.conformance.test_card_contract import card_payment
from tests.conformance.test_checkout_contract import hosted_payment
from tests.conformance.test_payout_contract import REQUEST_ID, payout_row
from tests.literal.gateway import ACCOUNT, KEY, MERCHANT, Gateway, Payment, literal_gateway
from tests.literal.tables import (
    ACCOUNT_OWNER,
    APM_RESULT,
    BENEFICIARY,
    CART_ITEM,
    HOSTED_ALIASES,
    HOSTED_FIXED,
    PAYER,
    PAYOUT_FIELDS,
    PAYOUT_RECORD,
    PERSON,
    SUBSCRIPTION,
)

TEN = Decimal("10.00")


@pytest.fixture(scope="module")
def running():
    """One gateway for all tests of this module."""
    with literal_gateway() as found:
        yield found


@pytest.fixture
def gateway(running):
    _, found = running
    found.__dict__.update({k: v for k, v in Gateway().__dict__.items() if k != "lock"})
    return found


@pytest.fixture
def client(running, gateway):
    """The real client, as it is shipped."""
    del gateway
    ids = {"merchant_id": MERCHANT, "account_id": ACCOUNT}
    return Target(place_of(running[0], sign_key=SecretStr(KEY), **ids))


def paid_by_card(currency="EUR", amount="10.00", *, state="authorised"):
    """A payment of the gateway's."""
    made = Payment("web", "T1", currency, amount, "20261119101010", state)
    return made if state != "paid" else Payment(**(made.__dict__ | {"captured": Decimal(amount)}))


ROWS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "capture": ("authorised", CaptureRow, {}),
    "cancel": ("authorised", CancelRow, {}),
    "review": ("in_review", ReviewRow, {"review_flag": "1"}),
    "refund": ("paid", RefundRow, {"refund_amount": Decimal("4.00"), "refund_reason": "late"}),
}


@pytest.mark.parametrize("operation", ROWS)
def test_a_batch_is_done_and_verified(client, gateway, operation):
    state, row, more = ROWS[operation]
    payment = gateway.seed(paid_by_card(state=state))
    sent = row(transaction_id="T1", order_no=payment.order_no, currency="EUR", amount=TEN, **more)
    reply = client.move(operation, [sent])
    accepted = ReplyOutcome.ACCEPTED if operation == "refund" else ReplyOutcome.DONE
    assert [one.outcome for one in reply.rows] == [accepted]
    assert (reply.signature, reply.findings) == (SignatureState.VALID, ())
    moved = "4.00" if operation == "refund" else "10.00"
    assert gateway.effects == [(operation, "T1", moved)]


@pytest.mark.parametrize("operation", ROWS)
def test_a_row_that_is_refused_has_failed(client, gateway, operation):
    _, row, more = ROWS[operation]
    gateway.seed(paid_by_card(state="cancelled"))
    sent = row(transaction_id="T1", order_no="web", currency="EUR", amount=TEN, **more)
    reply = client.move(operation, [sent])
    assert [(one.outcome, one.code) for one in reply.rows] == [(ReplyOutcome.FAILED, "L0001")]
    assert gateway.effects == []


def test_a_released_payment_is_captured(client, gateway):
    gateway.seed(paid_by_card(state="in_review"))
    same: dict[str, Any] = {"transaction_id": "T1", "order_no": "web", "currency": "EUR"}
    client.move("review", [ReviewRow(**same, amount=TEN, review_flag="1")])
    reply = client.move("capture", [CaptureRow(**same, amount=TEN)])
    assert [one.outcome for one in reply.rows] == [ReplyOutcome.DONE]
    assert [one[0] for one in gateway.effects] == ["review", "capture"]


def test_each_refund_of_a_payment_has_its_own_number(client, gateway):
    """`transaction_id followed by a hyphen and a two-digit sequence`."""
    gateway.seed(paid_by_card(state="paid"))
    row = RefundRow(
        transaction_id="T1",
        order_no="web",
        currency="EUR",
        amount=TEN,
        refund_amount=Decimal("3.00"),
        refund_reason="",
    )
    numbers = [client.move("refund", [row]).rows[0].refund_reference_id for _ in "12"]
    assert numbers == ["T1-01", "T1-02"]


def test_a_query_answers_every_key(client, gateway):
    gateway.seed(paid_by_card("JPY", "1000.00"))
    answers = client.ask(order_nos=["web", "nobody"])
    assert [(one.key, one.amount, one.payment_status) for one in answers.found] == [
        ("web", Decimal("1000.00"), "2100")
    ]
    assert (answers.not_found, answers.failed, answers.findings) == (("nobody",), (), ())


def test_a_card_payment_is_authorised(client, gateway):
    reply = client.pay(
        card_payment(first_name="Ann\N{NO-BREAK SPACE}Mary", checkout_time=1790000000)
    )
    assert (reply.outcome, reply.signature) == (ReplyOutcome.DONE, SignatureState.VALID)
    assert reply.findings == ()
    assert gateway.took("authorise") == [("authorise", reply.record.transaction_id, "10.00")]


def test_a_payment_by_another_method_keeps_its_address(client, gateway):
    """The six elements of 2.7 have no signature; the payment waits at `issuer_url`."""
    assert "encryption_data" not in APM_RESULT
    reply = client.pay(apm_payment())
    assert reply.outcome is ReplyOutcome.PENDING
    assert reply.record.issuer_url == "https://bank.example/pay?order=conformance-apm"
    assert (reply.findings, gateway.effects) == ((), [])


def test_invalid_input_of_another_method_is_a_refusal(client):
    """HTTP 400 of 4.2 is documented: nothing waits, nothing is unknown."""
    reply = client.signing_with("another key").pay(apm_payment())
    assert reply.outcome is ReplyOutcome.REJECTED


def test_an_account_that_is_not_there_is_a_refusal_of_another_method(client):
    reply = client.but(account_id="100042009").pay(apm_payment())
    assert (reply.outcome, reply.http_status) == (ReplyOutcome.REJECTED, 404)


def test_the_hosted_page_is_read(client, gateway):
    item = {"basic_item_data": {"name": "Tea", "price": {"amount_usd": Decimal("2.50")}}}
    reply = client.pay(hosted_payment(cart_items=[item], checkout_time=1790000000))
    asked = {name for name, _ in parse_qsl(gateway.asked[-1][1].decode(), keep_blank_values=True)}
    assert reply.outcome is ReplyOutcome.PENDING
    assert reply.form.inputs["orderAmount"] == "10.00"
    assert set(reply.form.inputs) == {*HOSTED_FIXED, *HOSTED_ALIASES, *asked, "allParams"}


def test_the_hosted_page_has_the_inputs_that_the_sandbox_reads_in_the_document():
    assert set(HOSTED_ALIASES) == {*INPUTS["aliases"], "source_request_ip"}
    assert set(HOSTED_FIXED) == {"gbc_id", *INPUTS["fixed"]}


@pytest.mark.parametrize(
    "name", ["G" * 200, "Gold plan", "Gold\N{NO-BREAK SPACE}plan", "金\N{IDEOGRAPHIC SPACE}会員"]
)
def test_a_subscription_of_any_name_ends(client, gateway, name):
    """Only U+0020 leaves a signed value: names in every script can be ended."""
    made = client.pay(card_payment(subscription={"contract_name": name, "interval": "day"}))
    recurring = str(made.record.recurring_id)
    row = CancelSubscriptionRow(recurring_id=recurring, contract_name=name)
    reply = client.move("cancelsubscription", [row])
    assert [one.outcome for one in reply.rows] == [ReplyOutcome.DONE]
    assert gateway.took("cancelsubscription") == [("cancelsubscription", recurring, "")]


def test_a_payout_is_done(client, gateway):
    reply = client.move("payout", [payout_row(payment_date="2026-11-20")])
    (row,) = reply.rows
    assert (row.outcome, reply.signature) == (ReplyOutcome.DONE, SignatureState.VALID)
    assert row.payout.amount_payer_pays == Decimal("255.10")
    assert gateway.effects == [("payout", REQUEST_ID, "250.10")]


@pytest.mark.parametrize(
    ("changes", "pays"),
    [
        ({}, "317.62"),
        ({"source_amount": "300.00"}, "305.00"),
        ({"source_amount": "300.00", "fee_paid_by": "BENEFICIARY"}, "300.00"),
    ],
)
def test_a_payout_from_another_currency_is_done(client, gateway, changes, pays):
    reply = client.move("payout", [payout_row(source_currency="USD", **changes)])
    (row,) = reply.rows
    assert (row.outcome, reply.findings) == (ReplyOutcome.DONE, ())
    assert row.payout.amount_payer_pays == Decimal(pays)
    assert gateway.effects == [("payout", REQUEST_ID, "250.10")]


def test_the_record_of_a_payout_has_every_field_of_its_table(client):
    """All of the request but `notify_url`, nested ones too, and the record's own; no more."""
    sent = [payout_row(beneficiary={"entity_type": "PERSONAL", "address": {"city": "Bonn"}})]
    prepared = prepare("payout", sent, account=client.account)
    record = json.loads(asyncio.run(client.gateway.transport.send(prepared)).body)
    assert set(record) == set(PAYOUT_FIELDS) - {"notify_url"} | set(PAYOUT_RECORD)
    assert set(record["payer"]) == set(PAYER)
    assert set(record["beneficiary"]) == set(BENEFICIARY)
    banks = {*BENEFICIARY["bank_details"], "local_clearing_system"} - {"bank_code"}
    assert set(record["beneficiary"]["bank_details"]) == banks


@pytest.mark.parametrize(
    ("sends", "table"),
    [
        (CartItem, CART_ITEM),
        (AccountOwner, ACCOUNT_OWNER),
        (RecurringContract, SUBSCRIPTION),
        (PayingPerson, PERSON),
        (Beneficiary, BENEFICIARY),
        (Payer, PAYER),
    ],
)
def test_the_client_has_every_field_of_a_nested_table_and_no_other(sends, table):
    assert fields_of(sends) == fields_in(table)


def test_the_client_has_every_field_of_a_payout(client):
    of_themselves = {"merchant_id", "account_id", "encryption_data"}
    assert set(PayoutRow.model_fields) | of_themselves == set(PAYOUT_FIELDS)
    assert set(client.account.interface.profile.batch["payout"].row_fields) | of_themselves == set(
        PAYOUT_FIELDS
    )


def test_this_gateway_shares_no_code_with_any_other():
    """Of itself and its tables it imports Python's own library only."""
    here = Path(__file__).parent
    for name in ("gateway.py", "tables.py"):
        for node in ast.walk(ast.parse((here / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {one.name.partition(".")[0] for one in node.names} <= sys.stdlib_module_names
            elif isinstance(node, ast.ImportFrom) and node.module != "tests.literal.tables":
                assert node.level == 0
                assert str(node.module).partition(".")[0] in sys.stdlib_module_names


def fields_in(table):
    """Names within names of a table."""
    if isinstance(table, list):
        return fields_in(table[0])
    return {name: fields_in(one) for name, one in table.items()} if isinstance(table, dict) else {}


def fields_of(sends):
    """Names within names of what the client sends."""
    inner = [sends, *get_args(sends)]
    inner += [one for arg in get_args(sends) for one in get_args(arg)]
    models = [one for one in inner if hasattr(one, "model_fields")]
    if not models:
        return {}
    return {name: fields_of(one.annotation) for name, one in models[0].model_fields.items()}


def two_decimals(client):
    """The client as it is told of a gateway of two decimals throughout."""
    known = client.account.interface.profile
    amounts = known.amounts.model_copy(update={"own_decimals_if_more": False})
    profile = known.model_copy(update={"amounts": amounts})
    interface = client.account.interface.model_copy(update={"profile": profile})
    return client.but(interface=interface)


@pytest.mark.parametrize(("currency", "amount"), [("JPY", "1000.00"), ("KWD", "1.20")])
def test_every_currency_has_two_decimals_where_that_is_configured(
    client, gateway, currency, amount
):
    """`A point and two decimals`, also of yen and dinar."""
    gateway.seed(paid_by_card(currency, amount))
    row = CaptureRow(transaction_id="T1", order_no="web", currency=currency, amount=Decimal(amount))
    reply = two_decimals(client).move("capture", [row])
    assert [one.outcome for one in reply.rows] == [ReplyOutcome.DONE]
    assert gateway.effects == [("capture", "T1", amount)]


def test_three_decimals_have_no_effect_and_are_never_taken_for_done(client, gateway):
    """As shipped a dinar goes out with its three decimals (A-18), which this gateway refuses."""
    gateway.seed(paid_by_card("KWD", "1.20"))
    row = CaptureRow(transaction_id="T1", order_no="web", currency="KWD", amount=Decimal("1.200"))
    reply = client.move("capture", [row])
    assert [one.outcome for one in reply.rows] == [ReplyOutcome.UNKNOWN]
    assert gateway.effects == []

import json
import logging
from collections.abc import Callable
from dataclasses import astuple, replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from recon.gateway_client import (
    CardPayment,
    FindingKind,
    GatewayInterface,
    InvalidRequestError,
    LineItem,
    PaymentReply,
    PreparedPayment,
    ReplyOutcome,
    RiskReason,
    SignatureState,
    prepare,
    prepare_payment,
    read_payment_reply,
)
from recon.gateway_client.payments import encoded_items
from tests.recon.gateway_client.conftest import interface_with
from tests.recon.gateway_client.fuzzed import bent_bytes
from tests.recon.gateway_client.played import raw_of, under
from tests.recon.gateway_client.sample_payments import (
    CARD,
    COMMON,
    PRIVATE,
    TODAY,
    apm_payment,
    card_payment,
    hosted_payment,
    page_of,
    result_of,
)
from tests.recon.gateway_client.sample_payouts import payout_with


def test_fields_that_differ_by_brand_have_the_profiles_names(tables, account):
    mine = {"payment": {"website_field": "shop_site", "antifraud_provider": "watcher"}}
    account = replace(account, interface=interface_with(tables, **mine))
    payment = card_payment(antifraud_token_cookie="c00kie")
    sent = json.loads(prepare_payment(payment, account=account, today=TODAY).body)

    assert (sent["shop_site"], sent["watcher_token_cookie"]) == ("shop.example.test", "c00kie")
    assert {"website", "antifraud_token_cookie"}.isdisjoint(sent)


def test_items_are_composed_from_rows():
    row = {"name": "Tea", "number": "T1", "price": "20.00", "quantity": "2"}
    text = "Tea#,#T1#,#20.00#,#2"

    assert card_payment(items=[LineItem(**row), row]).items == f"{text}#;#{text}"
    assert card_payment(items=text).items == text
    for wrong in ({"name": "Tea"}, row | {"quantity": 2}, row | {"url": "x"}, "Tea"):
        with pytest.raises(ValidationError, match="an item has the texts"):
            card_payment(items=[wrong])
    with pytest.raises(ValidationError, match="separator"):
        card_payment(items=[row | {"name": "Tea#;#Cup"}])


@pytest.mark.parametrize(
    ("payment", "fields"),
    [
        (card_payment(card="4111111111111112"), {"card"}),
        (card_payment(card=""), {"card"}),
        (card_payment(card="", security_code="", token_id="tok-1"), set()),
        (card_payment(security_code="12"), {"security_code"}),
        (card_payment(expiration_month="10"), {"expiration_year"}),
        (card_payment(expiration_year="26"), set()),
        (card_payment(expiration_month="13"), {"expiration_month"}),
        (card_payment(expiration_month="x"), {"expiration_month"}),
        (card_payment(first_name=""), {"first_name"}),
        (card_payment(amount="0.00"), {"amount"}),
        (card_payment(amount="1.5"), {"amount"}),
        (card_payment(discount="0.00"), set()),
        (card_payment(order_no="a,b"), {"order_no"}),
        (card_payment(currency="euro"), {"currency"}),
        (card_payment(note="two\nlines"), {"note"}),
        (card_payment(return_url="http://shop.example.test"), {"return_url"}),
        (card_payment(return_url="http://127.0.0.1:1/back"), set()),
        (card_payment(antifraud_token_cookie="c"), {"antifraud_token_cookie"}),
        (
            card_payment(account_owner=[{"created": "1234567890.123456789012"}]),
            {"account_owner[0].created"},
        ),
        (apm_payment(payment_method=""), {"payment_method"}),
        (apm_payment(return_url=""), {"return_url"}),
        (hosted_payment(return_url=""), set()),
        # Every amount of it, with the decimals of the wire.
        (card_payment(amount=Decimal(12)), {"amount"}),
        (card_payment(amount=Decimal("12.345")), {"amount"}),
        (card_payment(currency="XQZ"), {"currency"}),
        (card_payment(tax_total=Decimal("1.5")), {"tax_total"}),
        (card_payment(shipping=Decimal(0)), {"shipping"}),
        (
            card_payment(subscription={"contract_name": "G", "contract_amount": "9.9"}),
            {"subscription.contract_amount"},
        ),
    ],
)
def test_a_payment_that_must_not_be_sent_is_refused_by_field(account, payment, fields):
    given, said = set(), ""
    try:
        prepare_payment(payment, account=account, today=TODAY)
    except InvalidRequestError as error:
        given, said = {problem.field for problem in error.problems}, str(error)

    assert given == fields
    assert [value for value in PRIVATE if value in said] == []


@pytest.mark.parametrize("payment", [card_payment(), apm_payment(), hosted_payment()])
def test_nothing_of_a_shopper_shows_outside_the_body(account, caplog, payment):
    caplog.set_level(logging.DEBUG)
    prepared = prepare_payment(payment, account=account, today=TODAY)
    logging.getLogger("recon").info("%s %r", payment, prepared)
    masked = prepared.masked(prepared.body).decode()

    assert [value for value in PRIVATE if f"'{value}'" in f"{payment!r}{caplog.text}"] == []
    assert [value for value in PRIVATE if value in f"{payment} {prepared!r} {caplog.text}"] == []
    assert prepared.operation == "checkout" or [v for v in PRIVATE if f'"{v}"' in masked] == []


def test_a_malformed_payment_shows_no_value_in_its_error():
    with pytest.raises(ValidationError) as caught:
        CardPayment.model_validate(COMMON | {"card": [CARD], "cvv": "917"})

    assert [value for value in PRIVATE if value in f"{caught.value} {caught.value!r}"] == []


CANCEL_URL = {"cancel_url": "https://shop.example.test/cancelled"}


def test_a_text_is_as_long_as_the_profile_allows(tables, account):
    """The bound of a text without one of its own is a setting, not a number of the code."""
    long = card_payment(note="n" * 4_001)
    for payment, interface in (
        (long, interface_with(tables)),
        (card_payment(note="n" * 11), interface_with(tables, text_characters_max=10)),
    ):
        with pytest.raises(InvalidRequestError, match="note is longer than"):
            prepare_payment(payment, account=replace(account, interface=interface), today=TODAY)

    wider = interface_with(tables, text_characters_max=5_000)
    assert prepare_payment(long, account=replace(account, interface=wider), today=TODAY).body
    own = interface_with(tables, lengths={"items": 5_000})
    items = card_payment(items="i" * 5_000)
    assert prepare_payment(items, account=replace(account, interface=own), today=TODAY).body
    short = interface_with(tables, text_characters_max=500)
    payout = payout_with(client_data="c" * 501)
    with pytest.raises(InvalidRequestError, match="client_data is longer than 500"):
        prepare("payout", [payout], account=replace(account, interface=short))


def test_fields_of_a_brand_go_out_under_their_own_names(tables, account):
    """Those that the profile names for the operation, as private as any other field."""
    more = {"authorise_card": ["loyalty_no"], "checkout": ["cancel_url", "merchant_logo"]}
    account = replace(account, interface=interface_with(tables, payment={"more_fields": more}))
    payment = card_payment(more={"loyalty_no": "L-4711"})
    prepared = prepare_payment(payment, account=account, today=TODAY)

    assert json.loads(prepared.body)["loyalty_no"] == "L-4711"
    assert "more" not in json.loads(prepared.body)
    assert "L-4711" not in repr(payment)
    assert b"L-4711" not in prepared.masked(prepared.body)


def test_the_hosted_page_takes_the_address_for_a_shopper_who_gives_up(account):
    """As shipped (A-20): the document says that the page uses one and not how it is given."""
    prepared = prepare_payment(hosted_payment(more=CANCEL_URL), account=account, today=TODAY)
    assert b"cancel_url=https%3A%2F%2Fshop.example.test%2Fcancelled" in prepared.body


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"loyalty_no": "1"}, "more.loyalty_no is not under payment.more_fields"),
        ({"amount": "1.00"}, "more.amount"),
        ({"cancel_url": "http://shop.example.test"}, "more.cancel_url is not https"),
        ({"cancel_url": "https://a.example.test/\u0001x"}, "more.cancel_url has characters"),
    ],
)
def test_a_field_that_the_profile_does_not_name_is_not_sent(account, more, says):
    with pytest.raises(InvalidRequestError, match=says):
        prepare_payment(hosted_payment(more=more), account=account, today=TODAY)
    with pytest.raises(InvalidRequestError, match="more"):
        prepare_payment(apm_payment(more=more), account=account, today=TODAY)


PART = st.text(alphabet="#,;0a", max_size=4)


@given(st.lists(st.builds(LineItem, PART, PART, PART, PART), max_size=3))
def test_what_was_encoded_decodes_to_the_same(items):
    """Any parts come back, or are refused; 0 stands for nothing."""
    try:
        text = encoded_items(items)
    except ValueError:
        return
    as_sent = [[part or "0" for part in astuple(item)] for item in items]

    assert [item.split("#,#") for item in text.split("#;#")] == (as_sent or [[""]])


Read = Callable[..., PaymentReply]


@pytest.fixture
def read(account):
    """Reads the reply to a payment with the shipped interface."""

    def reader(
        payment,
        reply,
        *,
        status=200,
        policy="enforce",
        base_url="https://gateway.example.test/api",
        by=account.interface,
    ):
        ours = replace(account, interface=by)
        prepared: PreparedPayment = prepare_payment(payment, account=ours, today=TODAY)
        raw = raw_of(reply, status=status)
        return read_payment_reply(under(prepared, policy), raw, base_url=base_url)

    return reader


def test_a_successful_card_payment_is_done_with_its_record(read):
    body = result_of(result_info="0000:Success: all well", token_id="tok-1", acquirer="x")
    reply = read(card_payment(), body)

    assert (reply.outcome, reply.signature) == (ReplyOutcome.DONE, SignatureState.VALID)
    assert (reply.code, reply.message) == ("0000", "Success: all well")
    assert (reply.record.transaction_id, reply.record.card) == ("T20261120000001", "411111***1111")
    assert (reply.record.risk_action, reply.record.risk_score) == ("ACCEPT", "12.5")
    assert reply.record.risk_reasons == (RiskReason("ip", "low"), RiskReason("ip", "low"))
    assert reply.record.token_id == "tok-1"
    assert "tok-1" not in repr(reply)
    assert dict(reply.record.extra) == {"acquirer": "x"}
    assert reply.findings == ()


def test_risk_reasons_may_also_repeat_inside_one_group(read):
    risk = "<name>ip</name><status>low</status><name>mail</name><status>new</status>"
    reply = read(card_payment(), result_of(risk=f"<risk_reasons>{risk}</risk_reasons>"))

    assert reply.record.risk_reasons == (RiskReason("ip", "low"), RiskReason("mail", "new"))


@pytest.mark.parametrize(
    ("changes", "outcome", "finding"),
    [
        ({"order_status": "0", "result_info": "C0051:no funds"}, ReplyOutcome.FAILED, None),
        ({"order_status": "-1"}, ReplyOutcome.PENDING, None),
        ({"order_status": "-2"}, ReplyOutcome.PENDING, None),
        ({"order_status": "9"}, ReplyOutcome.UNKNOWN, FindingKind.UNMAPPED_CODE),
        ({"order_status": ""}, ReplyOutcome.UNKNOWN, FindingKind.UNMAPPED_CODE),
        ({"transaction_id": ""}, ReplyOutcome.UNKNOWN, FindingKind.UNMAPPED_CODE),
        ({"encryption_data": ""}, ReplyOutcome.UNKNOWN, FindingKind.SIGNATURE),
        ({"encryption_data": "0" * 64}, ReplyOutcome.UNKNOWN, FindingKind.SIGNATURE),
        ({"order_no": "SO-2"}, ReplyOutcome.UNKNOWN, FindingKind.ECHO_DIFFERS),
        ({"amount": "42.51"}, ReplyOutcome.UNKNOWN, FindingKind.ECHO_DIFFERS),
        ({"amount": "42.5"}, ReplyOutcome.DONE, None),
        ({"currency": "USD"}, ReplyOutcome.UNKNOWN, FindingKind.ECHO_DIFFERS),
        ({"account_id": "2"}, ReplyOutcome.UNKNOWN, FindingKind.SIGNATURE),
        ({"issuer_url": "javascript:alert(1)"}, ReplyOutcome.UNKNOWN, FindingKind.UNMAPPED_CODE),
        ({"card": CARD}, ReplyOutcome.DONE, FindingKind.MALFORMED),
    ],
)
def test_a_card_payments_result_decides_only_when_it_is_ours_and_known(
    read, changes, outcome, finding
):
    """Every doubt is unknown, and no reply makes us show a card."""
    reply = read(card_payment(), result_of(**changes))

    assert reply.outcome is outcome
    assert {found.kind for found in reply.findings} == ({finding} if finding else set())
    assert [value for value in (CARD, "917") if value in repr(reply)] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"<html></html>",
        b"<!DOCTYPE respon><respon><order_status>1</order_status></respon>",
        result_of()[:-9],
        result_of().replace(b"<respon>", b"<respon><order_status>0</order_status>"),
    ],
)
def test_a_result_that_cannot_be_read_leaves_the_payment_unknown(read, body):
    reply = read(card_payment(), body)

    assert (reply.outcome, reply.record) == (ReplyOutcome.UNKNOWN, None)
    assert [found.kind for found in reply.findings] == [FindingKind.UNREADABLE]


@settings(max_examples=400)
@given(body=bent_bytes(result_of()))
def test_a_result_that_was_tampered_with_is_never_done_as_another(account, body):
    prepared = prepare_payment(card_payment(), account=account, today=TODAY)
    reply = read_payment_reply(prepared, raw_of(body))

    if reply.outcome in {ReplyOutcome.DONE, ReplyOutcome.PENDING, ReplyOutcome.FAILED}:
        assert (reply.outcome, reply.code) == (ReplyOutcome.DONE, "0000")
        assert reply.record.transaction_id == "T20261120000001"


def test_a_refused_signature_rejects_and_stops(read):
    """It is believed without a signature of its own; success never is."""
    refused = {"result_info": "I0013:signature", "encryption_data": "", "transaction_id": ""}
    reply = read(card_payment(), result_of(order_status="0", **refused))
    forged = read(card_payment(), result_of(order_status="1", **refused))

    assert (reply.outcome, bool(reply.stop_reason)) == (ReplyOutcome.REJECTED, True)
    assert forged.outcome is ReplyOutcome.UNKNOWN


def test_what_a_result_says_is_masked_before_it_is_kept(read):
    info = f"C0005:card {CARD} of {PRIVATE[4]} refused"
    reply = read(card_payment(), result_of(order_status="0", result_info=info))

    assert reply.message == "card *** of *** refused"


@pytest.mark.parametrize(
    ("issuer_url", "outcome"),
    [
        ("https://issuer.example.test/pay?o=SO-1", ReplyOutcome.PENDING),
        ("http://127.0.0.1:8080/pay", ReplyOutcome.PENDING),
        ("http://issuer.example.test/pay", ReplyOutcome.UNKNOWN),
        ("//issuer.example.test/pay", ReplyOutcome.UNKNOWN),
        ("", ReplyOutcome.UNKNOWN),
    ],
)
def test_a_payment_by_another_method_waits_for_the_shopper_at_a_safe_address(
    read, issuer_url, outcome
):
    """issuer_url is https, or http to this machine, and is never followed by us."""
    body = result_of(
        order_status="", result_info="", transaction_id="", risk="", issuer_url=issuer_url
    )
    reply = read(apm_payment(), body)

    assert reply.outcome is outcome
    assert reply.record.issuer_url == issuer_url


@pytest.mark.parametrize(
    ("status", "outcome", "stops"),
    [
        (400, ReplyOutcome.REJECTED, False),
        (404, ReplyOutcome.REJECTED, False),
        (403, ReplyOutcome.UNKNOWN, True),
        (409, ReplyOutcome.UNKNOWN, False),
        (401, ReplyOutcome.UNKNOWN, True),
        (500, ReplyOutcome.UNKNOWN, False),
    ],
)
def test_the_documented_statuses_of_another_method_are_refusals(read, status, outcome, *, stops):
    """400 and 404 say that there is no payment; of every other status the order is queried."""
    body = {"code": "I0002", "source": "authorise", "message": f"bad {PRIVATE[4]}"}
    reply = read(apm_payment(), body, status=status)

    assert (reply.outcome, bool(reply.stop_reason)) == (outcome, stops)
    assert (reply.code, reply.http_status) == ("I0002", status)
    assert PRIVATE[4] not in repr(reply)
    card = read(card_payment(), body, status=status)
    assert card.outcome is ReplyOutcome.UNKNOWN


@pytest.mark.parametrize(
    "changes",
    [
        {"merNo": "100043"},
        {"orderNo": "SO-2"},
        {"orderAmount": "42.51"},
        {"orderCurrency": ""},
        {"gatewayNo": "100042002"},
        {"account_id": "100042002"},
        {"merchant_id": "100043"},
        {"amount": "4250.00"},
        {"currency": "USD"},
        {"order_no": ""},
        {"first_name": "Eve"},
        {"notify_url": "https://elsewhere.example.test/notify"},
        {"encryption_data": "0" * 64},
        {"allParams": "order_no=SO-1&account_id=100042002"},
        {"allParams": "order_no=SO-1&amount=4250.00"},
    ],
)
def test_a_hosted_page_for_another_payment_is_not_taken(read, changes):
    reply = read(hosted_payment(), page_of(**changes))

    assert (reply.outcome, reply.form) == (ReplyOutcome.UNKNOWN, None)
    assert [found.kind for found in reply.findings] == [FindingKind.ECHO_DIFFERS]


@pytest.mark.parametrize(
    ("action", "is_taken"),
    [
        ("/v1/checkout", True),
        ("/api/v1/checkout", True),
        ("https://gateway.example.test/v1/checkout", True),
        ("https://gateway.example.test/api/v1/checkout?lang=en", True),
        ("", True),
        ("http://gateway.example.test/v1/checkout", False),
        ("https://gateway.example.test/", False),
        ("https://gateway.example.test:8443/v1/checkout", False),
        ("https://elsewhere.example.test/v1/checkout", False),
        ("https://gateway.example.test@elsewhere.example.test/v1/checkout", False),
        ("//elsewhere.example.test/v1/checkout", False),
        ("/\\elsewhere.example.test/v1/checkout", False),
        ("/\t/elsewhere.example.test/v1/checkout", False),
        ("/v1/capture", False),
        ("https://[gateway/v1/checkout", False),
        ("javascript:pay()", False),
    ],
)
def test_a_hosted_page_leads_to_the_gateways_hosted_page_alone(read, action, *, is_taken):
    """Of our gateway, over https; how a browser reads an address counts."""
    body = page_of().replace(b'action="/v1/checkout"', f'action="{action}"'.encode())

    assert read(hosted_payment(), body).outcome == ("pending" if is_taken else "unknown")


def test_a_hosted_page_of_a_brand_may_lie_on_a_host_of_its_own(read, tables):
    """Only where profiles.toml names it; without a base address a path alone is taken."""
    mine = {"user": {"payment": {"page_hosts": ["pay.example.test"]}}}
    tables = tables | {"profiles": tables["profiles"] | mine}
    there = b"https://pay.example.test/v1/checkout"
    body = page_of().replace(b'"/v1/checkout"', b'"' + there + b'"')
    known = read(hosted_payment(), body, by=GatewayInterface.of(**tables))

    assert known.outcome is ReplyOutcome.PENDING
    assert read(hosted_payment(), body).outcome is ReplyOutcome.UNKNOWN
    assert read(hosted_payment(), page_of(), base_url="").outcome is ReplyOutcome.PENDING
    assert read(hosted_payment(), body, base_url="").outcome is ReplyOutcome.UNKNOWN


def test_a_hosted_page_that_is_not_posted_is_not_taken(read):
    body = page_of().replace(b'method="post"', b'method="get"')

    assert read(hosted_payment(), body).outcome is ReplyOutcome.UNKNOWN

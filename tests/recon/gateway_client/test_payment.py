import hashlib
import json
import logging
from dataclasses import astuple, replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from recon.gateway_client import (
    CardPayment,
    InvalidRequestError,
    LineItem,
    OurAccount,
    Payment,
    prepare,
    prepare_payment,
)
from recon.gateway_client.payments import encoded_items
from tests.recon.gateway_client.conftest import interface_with
from tests.recon.gateway_client.sample_payments import (
    CARD,
    COMMON,
    PRIVATE,
    TODAY,
    apm_payment,
    card_payment,
    hosted_payment,
)
from tests.recon.gateway_client.sample_payouts import payout_with


def test_fields_that_differ_by_brand_have_the_profiles_names(
    tables: dict[str, Any], account: OurAccount
) -> None:
    mine = {"payment": {"website_field": "shop_site", "antifraud_provider": "watcher"}}
    account = replace(account, interface=interface_with(tables, **mine))
    payment = card_payment(antifraud_token_cookie="c00kie")
    sent = json.loads(prepare_payment(payment, account=account, today=TODAY).body)

    assert (sent["shop_site"], sent["watcher_token_cookie"]) == ("shop.example.test", "c00kie")
    assert {"website", "antifraud_token_cookie"}.isdisjoint(sent)


def test_a_hosted_page_without_a_way_back_is_signed_as_empty(account: OurAccount) -> None:
    """Table 2.1 has no return_url for it: it goes out only where it was given."""
    prepared = prepare_payment(hosted_payment(return_url=""), account=account, today=TODAY)

    assert "return_url" not in parse_qs(prepared.body.decode(), keep_blank_values=True)
    plain = "100042100042001SO-1EUR42.50sandbox"
    assert prepared.signature == hashlib.sha256(plain.encode()).hexdigest()


def test_items_are_composed_from_rows() -> None:
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
def test_a_payment_that_must_not_be_sent_is_refused_by_field(
    account: OurAccount, payment: Payment, fields: set[str]
) -> None:
    given, said = set(), ""
    try:
        prepare_payment(payment, account=account, today=TODAY)
    except InvalidRequestError as error:
        given, said = {problem.field for problem in error.problems}, str(error)

    assert given == fields
    assert [value for value in PRIVATE if value in said] == []


@pytest.mark.parametrize("payment", [card_payment(), apm_payment(), hosted_payment()])
def test_nothing_of_a_shopper_shows_outside_the_body(
    account: OurAccount,
    caplog: pytest.LogCaptureFixture,
    payment: Payment,
) -> None:
    caplog.set_level(logging.DEBUG)
    prepared = prepare_payment(payment, account=account, today=TODAY)
    logging.getLogger("recon").info("%s %r", payment, prepared)
    masked = prepared.masked(prepared.body).decode()

    assert [value for value in PRIVATE if f"'{value}'" in f"{payment!r}{caplog.text}"] == []
    assert [value for value in PRIVATE if value in f"{payment} {prepared!r} {caplog.text}"] == []
    assert prepared.operation == "checkout" or [v for v in PRIVATE if f'"{v}"' in masked] == []


def test_a_malformed_payment_shows_no_value_in_its_error() -> None:
    with pytest.raises(ValidationError) as caught:
        CardPayment.model_validate(COMMON | {"card": [CARD], "cvv": "917"})

    assert [value for value in PRIVATE if value in f"{caught.value} {caught.value!r}"] == []


CANCEL_URL = {"cancel_url": "https://shop.example.test/cancelled"}


def test_a_text_is_as_long_as_the_profile_allows(
    tables: dict[str, dict[str, Any]], account: OurAccount
) -> None:
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


def test_fields_of_a_brand_go_out_under_their_own_names(
    tables: dict[str, dict[str, Any]], account: OurAccount
) -> None:
    """Those that the profile names for the operation, as private as any other field."""
    more = {"authorise_card": ["loyalty_no"], "checkout": ["cancel_url", "merchant_logo"]}
    account = replace(account, interface=interface_with(tables, payment={"more_fields": more}))
    payment = card_payment(more={"loyalty_no": "L-4711"})
    prepared = prepare_payment(payment, account=account, today=TODAY)

    assert json.loads(prepared.body)["loyalty_no"] == "L-4711"
    assert "more" not in json.loads(prepared.body)
    assert "L-4711" not in repr(payment)
    assert b"L-4711" not in prepared.masked(prepared.body)


def test_the_hosted_page_takes_the_address_for_a_shopper_who_gives_up(account: OurAccount) -> None:
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
def test_a_field_that_the_profile_does_not_name_is_not_sent(
    account: OurAccount, more: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidRequestError, match=says):
        prepare_payment(hosted_payment(more=more), account=account, today=TODAY)
    with pytest.raises(InvalidRequestError, match="more"):
        prepare_payment(apm_payment(more=more), account=account, today=TODAY)


PART = st.text(alphabet="#,;0a", max_size=4)


def test_items_are_one_text() -> None:
    """`#;#` between items, `#,#` between parts, 0 for an empty part."""
    items = (LineItem("Tea", "T1", "20.00", "2"), LineItem("Cup, blue", "", "3.50", "1"))

    assert encoded_items(items) == "Tea#,#T1#,#20.00#,#2#;#Cup, blue#,#0#,#3.50#,#1"


@given(st.lists(st.builds(LineItem, PART, PART, PART, PART), max_size=3))
def test_what_was_encoded_decodes_to_the_same(items: list[LineItem]) -> None:
    """Any parts come back, or are refused; 0 stands for nothing."""
    try:
        text = encoded_items(items)
    except ValueError:
        return
    as_sent = [[part or "0" for part in astuple(item)] for item in items]

    assert [item.split("#,#") for item in text.split("#;#")] == (as_sent or [[""]])

import json
from dataclasses import replace
from typing import Any

import pytest

from recon.gateway_client import (
    CancelSubscriptionRow,
    GatewayInterface,
    InvalidBatchError,
    InvalidPaymentError,
    OurAccount,
    prepare,
    prepare_payment,
)
from tests.recon.gateway_client.sample_payments import (
    TODAY,
    apm_payment,
    card_payment,
    hosted_payment,
)
from tests.recon.gateway_client.sample_payouts import payout_with

CANCEL_URL = {"cancel_url": "https://shop.example.test/cancelled"}


def interface_with(tables: dict[str, dict[str, Any]], **profile: object) -> GatewayInterface:
    """The shipped interface with a gateway's own bounds."""
    return GatewayInterface.of(**tables | {"profiles": tables["profiles"] | {"user": profile}})


def test_a_text_is_as_long_as_the_profile_allows(
    tables: dict[str, dict[str, Any]], account: OurAccount
) -> None:
    """The bound of a text without one of its own is a setting, not a number of the code."""
    long = card_payment(note="n" * 4_001)
    for payment, interface in (
        (long, interface_with(tables)),
        (card_payment(note="n" * 11), interface_with(tables, text_characters_max=10)),
    ):
        with pytest.raises(InvalidPaymentError, match="note is longer than"):
            prepare_payment(payment, account=replace(account, interface=interface), today=TODAY)

    wider = interface_with(tables, text_characters_max=5_000)
    assert prepare_payment(long, account=replace(account, interface=wider), today=TODAY).body
    own = interface_with(tables, lengths={"items": 5_000})
    items = card_payment(items="i" * 5_000)
    assert prepare_payment(items, account=replace(account, interface=own), today=TODAY).body
    short = interface_with(tables, text_characters_max=500)
    payout = payout_with(client_data="c" * 501)
    with pytest.raises(InvalidBatchError, match="client_data is longer than 500"):
        prepare("payout", [payout], account=replace(account, interface=short))


@pytest.mark.parametrize("name", ["G" * 200, "\u4f1a\u54e1 \u30d7\u30e9\u30f3", "Caf\u00e9"])
def test_a_subscription_is_ended_under_any_name_the_gateway_may_give(
    account: OurAccount, name: str
) -> None:
    """200 characters of any script."""
    row = CancelSubscriptionRow(recurring_id="R1", contract_name=name)
    body = prepare("cancelsubscription", [row], account=account).body

    assert json.loads(body)["contract_name"] == name


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
    """Neither an unknown one nor one that would stand in for a field of the document."""
    with pytest.raises(InvalidPaymentError, match=says):
        prepare_payment(hosted_payment(more=more), account=account, today=TODAY)
    with pytest.raises(InvalidPaymentError, match="more"):
        prepare_payment(apm_payment(more=more), account=account, today=TODAY)

"""What is told, and of what: payments, reviews, refunds, payouts, charges of a subscription."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.recon.sandbox.conftest import Caller, elements, signature
from tests.recon.sandbox.merchant_site import MerchantSite, merchant_site
from tests.recon.sandbox.notify.test_courier import DAY, later, told
from tests.recon.sandbox.operations.test_payout_operation import payout_body

SIGNED = (
    *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
    *("order_status", "result_info"),
)


@pytest.fixture
def site() -> Iterator[MerchantSite]:
    """A merchant who listens."""
    with merchant_site() as listening:
        yield listening


def pay(gateway: Any, site: Any, **changed: Any) -> dict[str, str]:
    """Pay by card; the row of the payment for a batch."""
    paid = elements(gateway.authorise(notify_url=site.url, **changed))
    return {name: paid[name] for name in ("transaction_id", "order_no", "currency", "amount")}


@pytest.mark.parametrize(
    ("card", "status", "info"),
    [
        ("4111111111111111", "1", "0000:Success"),
        ("4000000000000002", "0", "R0001:Declined by the issuer"),
        ("4000000000009235", "-2", "P0002:In review"),
    ],
)
def test_a_payment_is_told_as_its_reply_told_it(
    gateway: Any, site: Any, card: str, status: str, info: str
) -> None:
    """Success, failure and review; the signature is that of a payment's reply, no card is whole."""
    row = pay(gateway, site, card=card)
    (said,) = told(gateway)
    fields = said["fields"]
    assert (fields["order_status"], fields["result_info"]) == (status, info)
    assert {name: fields[name] for name in row} == row
    assert fields["encryption_data"] == signature(*(fields.get(name, "") for name in SIGNED))
    assert fields["card"] == f"{card[:6]}***{card[-4:]}"


def test_a_payment_by_another_method_is_told_when_the_shopper_has_paid(
    gateway: Any, site: Any
) -> None:
    """Nothing is told while it waits."""
    reply = elements(gateway.authorise_apm(notify_url=site.url))
    assert told(gateway) == []
    page = urlsplit(reply["issuer_url"]).path
    gateway.http.post(page, data={"action": "pay"})
    assert [one["fields"]["order_status"] for one in told(gateway)] == ["1"]


@pytest.mark.parametrize(("flag", "status"), [("1", "1"), ("0", "0")])
def test_a_review_is_told_with_what_it_decided(
    gateway: Any, site: Any, flag: str, status: str
) -> None:
    """First what the payment has become, then the result of the review."""
    row = pay(gateway, site, card="4000000000009235")
    gateway.row("review", row | {"review_flag": flag})
    said = [one["fields"] for one in told(gateway)]
    assert [fields["webhooks_type"] for fields in said] == ["PAYMENT", "PAYMENT", "REVIEW RESULT"]
    assert [fields["order_status"] for fields in said] == ["-2", status, status]
    assert (said[2]["review_flag"], said[2]["review_status"]) == (flag, "1")


def test_a_refused_row_and_a_capture_tell_nothing(gateway: Any, site: Any) -> None:
    """No type of notification is about captures or refusals."""
    row = pay(gateway, site)
    gateway.row("capture", row)
    gateway.row("refund", row | {"refund_amount": "99.00"})
    assert len(told(gateway)) == 1


def test_a_refund_by_hand_is_told_as_well(gateway: Any, site: Any) -> None:
    """A merchant can hear of what it did not ask for."""
    row = pay(gateway, site)
    gateway.row("capture", row)
    by_hand = {"action": "refund", "key": row["order_no"], "amount": "4.00"}
    gateway.http.post("/_sandbox/portal", json=by_hand).raise_for_status()
    said = [one["fields"] for one in told(gateway)][1:]
    assert [fields["refund_amount"] for fields in said] == ["4.00"] * 3
    assert {fields["payment_status"] for fields in said} == {"4000"}
    assert {fields["refund_reference_id"] for fields in said} == {f"{row['transaction_id']}-01"}


def test_a_refund_that_flips_is_told_as_failed_and_never_as_processed(
    gateway: Any, site: Any
) -> None:
    """The planned result is taken back where the failure comes first."""
    row = pay(gateway, site)
    gateway.row("capture", row)
    gateway.faults({"kind": "late_flip", "operation": "refund", "seconds": 3600})
    gateway.row("refund", row | {"refund_amount": "10.00", "refund_reference": "ours-1"})
    later(gateway, 3 * DAY)
    results = [f for f in site.received if f["webhooks_type"] == "REFUND RESULT"]
    assert [(f["refund_status"], f["refund_reference"]) for f in results] == [("0", "ours-1")]


@pytest.mark.parametrize(("amount", "status"), [("10.00", "COMPLETED"), ("9999999.00", "FAILED")])
def test_a_payout_is_told_whatever_it_came_to(
    gateway: Any, site: Any, amount: str, status: str
) -> None:
    """By its request_id, without a type, since no document names one."""
    body = payout_body(payment_amount=amount, notify_url=site.url)
    record = gateway.http.post("/v1/payout", json=body).json()
    (said,) = told(gateway)
    assert (said["state"], said["about"]) == ("acknowledged", record["request_id"])
    assert "webhooks_type" not in said["fields"]
    assert record["status"] == status
    assert record["status"] == status
    for name in ("status", "payment_amount", "short_reference_id", "failure_type"):
        assert said["fields"][name] == str(record[name])


def test_the_charges_of_a_subscription_are_told(gateway: Any, site: Any) -> None:
    """To the address of the payment that began it."""
    terms = {"contract_name": "Gold", "interval": "day", "interval_count": "10"}
    pay(gateway, site, subscription=terms | {"billing_cycle": 2})
    later(gateway, 40 * DAY)
    assert len(site.received) == 3
    assert {fields["contract_name"] for fields in site.received} == {"Gold"}
    assert len(set(site.told("recurring_id"))) == 1


def test_the_same_calls_are_told_in_the_same_bytes(gateway: Any) -> None:
    """After a reset everything said is said again, attempts included."""
    said = []
    for _ in range(2):
        gateway.http.post("/_sandbox/reset").raise_for_status()
        caller = Caller(gateway.base_url)
        with caller.http, merchant_site() as site:
            pay(caller, site)
            (one,) = told(caller)  # delivers what is due before it answers
            (received,) = site.received
            said.append((received | {"url": ""}, one["state"], one["attempts"][0]["at"]))
    assert said[0] == said[1]

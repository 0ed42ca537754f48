import json
import logging
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from recon.gateway_client import (
    InvalidBatchError,
    Operation,
    OurAccount,
    PayoutRow,
    PreparedRequest,
    prepare,
)
from recon.gateway_client.payouts import has_iban_check
from tests.recon.gateway_client.sample_payouts import PAYOUT, PRIVATE, REQUEST_ID, payout_with


@pytest.fixture
def prepared(account: OurAccount) -> PreparedRequest:
    """The payout with every field, ready to send."""
    return prepare(Operation.PAYOUT, [payout_with()], account=account)


def test_a_payout_goes_out_as_the_document_lists_it(prepared: PreparedRequest) -> None:
    """JSON text under a form's type; amounts as text, nested objects, empty fields left out."""
    sent = json.loads(prepared.body)
    expected = json.loads(json.dumps(PAYOUT))
    del expected["beneficiary_id"], expected["beneficiary"]["company_name"]

    assert {name: sent[name] for name in expected} == expected
    assert set(sent) - set(expected) == {"merchant_id", "account_id", "encryption_data"}
    assert (prepared.path, prepared.content_type) == (
        "/v1/payout",
        "application/x-www-form-urlencoded",
    )


def test_the_request_id_is_the_callers_own() -> None:
    """A payout without a UUID of its own cannot even be built."""
    without = {name: value for name, value in PAYOUT.items() if name != "request_id"}

    with pytest.raises(ValidationError, match="request_id"):
        PayoutRow.model_validate(without)
    with pytest.raises(ValidationError, match="request_id"):
        payout_with(request_id="first")


def test_the_same_payout_gives_the_same_bytes(
    prepared: PreparedRequest, account: OurAccount
) -> None:
    """A journal can rebuild what was sent."""
    again = prepare("payout", [payout_with()], account=account)

    assert again == prepared


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"payment_amount": "0.00"}, "payment_amount"),
        ({"payment_amount": "10.5"}, "payment_amount"),
        ({"payment_currency": "eur"}, "payment_currency"),
        ({"fee_paid_by": "NOBODY"}, "fee_paid_by"),
        ({"beneficiary": None}, "beneficiary"),
        ({"beneficiary": {"bank_details": {"iban": "DE89370400440532013001"}}}, "iban"),
        ({"beneficiary": {"bank_details": {"swift_code": "COBA"}}}, "swift_code"),
        ({"beneficiary": {"address": {"country_code": "PRT"}}}, "country_code"),
        ({"beneficiary": {"last_name": "two\nlines"}}, "last_name"),
        ({"source_amount": "251.00", "source_currency": "EUR"}, "source_amount"),
        ({"source_amount": "250.00"}, "source_currency"),
        ({"source_amount": "250", "source_currency": "USD"}, "source_amount"),
        ({"notify_url": "http://shop.example.test/"}, "notify_url"),
        ({"reference": "x" * 4_001}, "reference"),
    ],
)
def test_a_payout_that_must_not_be_sent_is_refused_by_field(
    account: OurAccount, changes: dict[str, Any], field: str
) -> None:
    """The field is named, its value never."""
    with pytest.raises(InvalidBatchError, match="nothing was sent") as caught:
        prepare("payout", [payout_with(**changes)], account=account)

    assert field in {problem.field.rpartition(".")[2] for problem in caught.value.problems}
    assert "DE8937" not in str(caught.value)


def test_two_payouts_never_share_a_request(account: OurAccount) -> None:
    """A batch of payouts has exactly one row."""
    rows = [payout_with(), payout_with(request_id="6f0b5bb2-10f0-4d31-a7b3-1f4f5f7c9d55")]

    with pytest.raises(InvalidBatchError, match="2 rows; 1 to 1"):
        prepare("payout", rows, account=account)


def test_an_amount_in_binary_is_refused_before_it_loses_digits() -> None:
    """Text, whole numbers and Decimals only."""
    with pytest.raises(ValidationError, match="never a float"):
        payout_with(payment_amount=10.1)
    assert payout_with(payment_amount=Decimal("10.10")).payment_amount == Decimal("10.10")


def test_nothing_of_a_person_shows_outside_the_body(
    prepared: PreparedRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in a repr, a str, a log line or the error of a malformed payout."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("recon").info("%s %r", prepared.rows[0], prepared)
    with pytest.raises(ValidationError) as caught:
        PayoutRow.model_validate(PAYOUT | {"beneficiary": {"iban": PRIVATE[0]}})
    shown = f"{prepared.rows[0]} {prepared!r} {caplog.text} {caught.value} {caught.value!r}"

    assert [value for value in PRIVATE if value in shown] == []
    assert REQUEST_ID in shown


def test_a_journal_can_mask_what_it_stores(prepared: PreparedRequest) -> None:
    """The masked body has every private value masked and is still JSON with the same fields."""
    masked = prepared.masked(prepared.body)

    assert [value for value in PRIVATE if value.encode() in masked] == []
    kept = json.loads(masked)
    assert kept["beneficiary"]["bank_details"] == {
        **PAYOUT["beneficiary"]["bank_details"],
        "account_name": "***",
        "iban": "***",
        "swift_code": "***",
    }
    assert kept["request_id"] == REQUEST_ID


@pytest.mark.parametrize(
    ("iban", "fits"),
    [
        ("DE89370400440532013000", True),
        ("GB82WEST12345698765432", True),
        ("GB82WEST12345698765433", False),
        ("", False),
        ("DE8937040044053201300Ø", False),
    ],
)
def test_the_check_digits_of_an_iban_are_verified(iban: str, *, fits: bool) -> None:
    """A mistyped account is found before the money leaves."""
    assert has_iban_check(iban) is fits

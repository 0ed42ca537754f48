import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pydantic import ValidationError

from recon.gateway_client import (
    BatchReply,
    CancelSubscriptionRow,
    FindingKind,
    GatewayInterface,
    InvalidRequestError,
    PayoutRow,
    ReplyOutcome,
    prepare,
    read_batch_reply,
)
from recon.gateway_client.payouts import has_iban_check
from tests.recon.gateway_client.played import raw_of
from tests.recon.gateway_client.sample_payouts import (
    PAYOUT,
    PRIVATE,
    REQUEST_ID,
    payout_with,
    record_of,
)

SUBSCRIPTION = CancelSubscriptionRow(recurring_id="R1", contract_name="Gold plan")

Read = Callable[..., BatchReply]


@pytest.fixture
def read():
    """Reads a reply with the shipped interface."""

    def reader(prepared, reply, *, status=200):
        return read_batch_reply(prepared, raw_of(reply, status=status))

    return reader


@pytest.fixture
def payout(account):
    """One payout, ready to send."""
    return prepare("payout", [payout_with()], account=account)


@pytest.fixture
def subscription(account):
    """One cancellation of a subscription, ready to send."""
    return prepare("cancelsubscription", [SUBSCRIPTION], account=account)


def test_a_completed_payout_is_done_with_its_record(payout, read):
    """Numbers are Decimals, offsets may lack the colon, unknown fields are kept."""
    body = (
        json.dumps(record_of(payout, note="new"))
        .replace("255.0", "255.10")
        .replace(" 5.0", " 5.10")
        .encode()
    )
    row = read(payout, body).rows[0]

    assert (row.outcome, row.transaction_id) == (ReplyOutcome.DONE, "PO1")
    assert (row.payout.amount_payer_pays, row.payout.fee_currency) == (Decimal("255.10"), "EUR")
    assert str(row.payout.amount_payer_pays) == "255.10"
    assert row.payout.created_at == datetime(2026, 11, 20, 21, 59, 58, tzinfo=UTC)
    assert row.payout.short_reference_id == "20261120-A1B2C3"
    assert dict(row.payout.extra) == {"note": "new"}
    assert row.payout.malformed == ()


def _iban(given):
    return {"beneficiary": {"bank_details": {"iban": given}}}


@pytest.mark.parametrize(
    ("changes", "outcome", "finding"),
    [
        ({"status": "FAILED", "failure_type": "INSUFFICIENT_FUNDS"}, "failed", None),
        ({"status": "FAILED"}, "unknown", FindingKind.CONTRADICTION),
        ({"status": "PROCESSING"}, "unknown", FindingKind.UNMAPPED_CODE),
        ({"status": ["COMPLETED"]}, "unknown", FindingKind.UNMAPPED_CODE),
        ({"status": ""}, "unknown", FindingKind.UNMAPPED_CODE),
        ({"request_id": "other"}, "unknown", FindingKind.ROW_MISSING),
        ({"payment_amount": "251.00"}, "unknown", FindingKind.ECHO_DIFFERS),
        ({"payment_amount": "250.000"}, "done", None),
        ({"payment_currency": "USD"}, "unknown", FindingKind.ECHO_DIFFERS),
        (_iban("GB82WEST12345698765432"), "unknown", FindingKind.ECHO_DIFFERS),
        (_iban("DE89 3704 0044 0532 0130 00"), "done", None),
        (_iban("***"), "done", None),
        (_iban("DE89**************3000"), "done", None),
        (_iban("DE89**************3001"), "unknown", FindingKind.ECHO_DIFFERS),
        (_iban(["x"]), "unknown", FindingKind.ECHO_DIFFERS),
        ({"beneficiary": "none"}, "done", None),
        ({"encryption_data": "0" * 64}, "unknown", FindingKind.SIGNATURE),
        ({"account_id": "2"}, "unknown", FindingKind.OTHER_ACCOUNT),
    ],
)
def test_a_payouts_record_decides_only_when_it_is_ours_and_whole(
    payout, read, changes, outcome, finding
):
    reply = read(payout, record_of(payout, **changes))

    assert [row.outcome for row in reply.rows] == [outcome]
    assert {found.kind for found in reply.findings} >= ({finding} if finding else set())


def _reported(pays, receives=250.0, fee=5.0, of="EUR"):
    """What the payer pays, the payee receives, and the fee."""
    names = ("amount_payer_pays", "amount_beneficiary_receives", "fee_amount", "fee_currency")
    return dict(zip(names, (pays, receives, fee, of), strict=True))


PAYER, PAYEE, EITHER = ({"fee_paid_by": whose} for whose in ("PAYER", "BENEFICIARY", ""))
FROM_DOLLARS = {"source_currency": "USD"}
A_SOURCE = FROM_DOLLARS | {"source_amount": "290.00"}


@pytest.mark.parametrize(
    ("sent", "told", "outcome"),
    [
        (PAYER, _reported(255.00), "done"),
        (PAYER, _reported(9_999_999.00), "unknown"),
        (PAYER, _reported(255.00, 0.01), "unknown"),
        (PAYER, _reported(250.00), "unknown"),
        (PAYER, _reported(255.00, fee=100.00), "unknown"),
        (PAYER, _reported(-255.00), "unknown"),
        (PAYER, _reported("255,00"), "unknown"),
        (PAYER, _reported(255.00, 249.99), "unknown"),
        (PAYER, _reported(254.60, of="USD"), "done"),
        (PAYER, _reported(249.99, of="USD"), "unknown"),
        (PAYEE, _reported(255.00), "unknown"),
        (PAYEE, _reported(250.00, 245.00), "done"),
        (EITHER, _reported(250.00, 245.00), "done"),
        (EITHER, _reported(255.00, 245.00), "unknown"),
        (PAYER, _reported("", ""), "done"),
        (PAYER | {"source_currency": "EUR", "source_amount": "250.00"}, _reported(255.00), "done"),
        # Each side in its own currency; the fee is exact where it is in that of who bears it.
        (FROM_DOLLARS, _reported(291.17), "done"),
        (FROM_DOLLARS, _reported(291.17, of="USD"), "done"),
        (FROM_DOLLARS, _reported(0.00), "unknown"),
        (FROM_DOLLARS, _reported(291.17, 245.00), "unknown"),
        (A_SOURCE, _reported(295.00, of="USD"), "done"),
        (A_SOURCE, _reported(295.83), "done"),
        (A_SOURCE, _reported(290.00, fee=0.00), "done"),
        (A_SOURCE, _reported(295.01, of="USD"), "unknown"),
        (A_SOURCE, _reported(289.99), "unknown"),
        (A_SOURCE | PAYEE, _reported(290.00, 245.00), "done"),
        (A_SOURCE | PAYEE, _reported(290.00, 245.70, of="USD"), "done"),
        (A_SOURCE | PAYEE, _reported(290.00, 250.01, of="USD"), "unknown"),
        (A_SOURCE, _reported(295.00) | {"source_amount": "290.01"}, "unknown"),
        (A_SOURCE, _reported(295.00) | {"source_currency": "GBP"}, "unknown"),
    ],
)
def test_a_payout_is_done_only_where_its_figures_are_what_was_asked_for(
    account, read, sent, told, outcome
):
    """Amount, fee, what leaves and what arrives add up to the cent; else it is named and open."""
    prepared = prepare("payout", [payout_with(**sent)], account=account)
    reply = read(prepared, record_of(prepared, **told))
    differs = FindingKind.ECHO_DIFFERS if told.keys() & A_SOURCE else FindingKind.CONTRADICTION

    assert [row.outcome for row in reply.rows] == [outcome]
    assert [finding.kind for finding in reply.findings] == ([] if outcome == "done" else [differs])


def test_a_stored_reply_that_was_masked_is_judged_the_same(payout, read):
    whole = json.dumps(record_of(payout)).encode()

    assert read(payout, payout.masked(whole)).rows[0].outcome is ReplyOutcome.DONE
    assert [value for value in PRIVATE if value.encode() in payout.masked(whole)] == []


def test_a_failure_that_quotes_the_account_is_masked(payout, read):
    said = {
        "failure_type": "BANK",
        "transaction_id": PRIVATE[0],
        "failure_reason": f"account {PRIVATE[0]} of {PRIVATE[1]} closed",
    }
    reply = read(payout, record_of(payout, status="FAILED", **said))

    assert reply.rows[0].message == "account *** of *** closed"
    assert [value for value in PRIVATE if value in repr(reply)] == []


@pytest.mark.parametrize(
    ("reply", "status", "outcome", "stops"),
    [
        ({"code": "I0013", "source": "gateway", "message": "signature"}, 400, "rejected", True),
        ({"code": "I0002", "source": "gateway", "message": "amount"}, 400, "unknown", False),
        ({"message": "busy"}, 503, "unknown", False),
        (b"<html>", 200, "unknown", False),
        (b"", 200, "unknown", False),
        ({}, 200, "unknown", True),
    ],
)
def test_a_payout_that_was_refused_as_a_whole_stays_in_doubt_without_proof(
    payout, read, reply, status, outcome, *, stops
):
    """Only a refused signature is believed as it stands."""
    classified = read(payout, reply, status=status)

    assert (classified.rows[0].outcome, bool(classified.stop_reason)) == (outcome, stops)


def test_a_signed_refusal_before_processing_rejects_a_payout(payout, read):
    refusal = {"code": "I0002", "message": "amount", "encryption_data": payout.signature}

    assert read(payout, refusal, status=400).rows[0].outcome is ReplyOutcome.REJECTED


def test_a_subscription_can_be_cancelled_in_real_xml(tables, account):
    mine = {"batch": {"cancelsubscription": {"body": "xml"}}}
    tables = tables | {"profiles": tables["profiles"] | {"user": mine}}
    row = CancelSubscriptionRow(recurring_id="R1", contract_name="Gold & <plan>")
    body = prepare(
        "cancelsubscription",
        [row],
        account=replace(account, interface=GatewayInterface.of(**tables)),
    ).body

    assert b"<recurring_id>R1</recurring_id>" in body
    assert b"<contract_name>Gold &amp; &lt;plan&gt;</contract_name>" in body


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, ReplyOutcome.DONE),
        ({"cancel_status": "0", "error_message": "no such subscription"}, ReplyOutcome.FAILED),
        ({"cancel_status": "-1"}, ReplyOutcome.PENDING),
        ({"cancel_status": "7"}, ReplyOutcome.UNKNOWN),
        ({"recurring_id": "R2"}, ReplyOutcome.UNKNOWN),
        ({"contract_name": "Silver plan"}, ReplyOutcome.UNKNOWN),
        ({"contract_name": "\ud800"}, ReplyOutcome.UNKNOWN),
        ({"encryption_data": ""}, ReplyOutcome.UNKNOWN),
        (
            {"cancel_status": "0", "error_message": "I0013:signature", "encryption_data": ""},
            ReplyOutcome.REJECTED,
        ),
        (
            {"cancel_status": "1", "error_message": "I0013:signature", "encryption_data": ""},
            ReplyOutcome.UNKNOWN,
        ),
    ],
)
def test_the_cancellation_of_a_subscription_is_believed_only_when_it_is_ours(
    subscription, read, changes, outcome
):
    reply = json.loads(subscription.body) | {"cancel_status": 1, "error_message": ""} | changes

    assert [row.outcome for row in read(subscription, reply).rows] == [outcome]


def test_the_request_id_is_the_callers_own():
    without = {name: value for name, value in PAYOUT.items() if name != "request_id"}

    with pytest.raises(ValidationError, match="request_id"):
        PayoutRow.model_validate(without)
    with pytest.raises(ValidationError, match="request_id"):
        payout_with(request_id="first")


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
        ({"payment_amount": Decimal(250)}, "payment_amount"),
        ({"payment_amount": Decimal("250.001")}, "payment_amount"),
        ({"payment_currency": ""}, "payment_currency"),
        ({"payment_currency": "XQZ"}, "payment_currency"),
        ({"source_currency": "EUR", "source_amount": Decimal("250.0")}, "source_amount"),
    ],
)
def test_a_payout_that_must_not_be_sent_is_refused_by_field(account, changes, field):
    with pytest.raises(InvalidRequestError, match="nothing was sent") as caught:
        prepare("payout", [payout_with(**changes)], account=account)

    assert field in {problem.field.rpartition(".")[2] for problem in caught.value.problems}
    assert "DE8937" not in str(caught.value)


def test_an_amount_in_binary_is_refused_before_it_loses_digits():
    with pytest.raises(ValidationError, match="never a float"):
        payout_with(payment_amount=10.1)
    assert payout_with(payment_amount=Decimal("10.10")).payment_amount == Decimal("10.10")


def test_nothing_of_a_person_shows_outside_the_body(payout, caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("recon").info("%s %r", payout.rows[0], payout)
    with pytest.raises(ValidationError) as caught:
        PayoutRow.model_validate(PAYOUT | {"beneficiary": {"iban": PRIVATE[0]}})
    shown = f"{payout.rows[0]} {payout!r} {caplog.text} {caught.value} {caught.value!r}"

    assert [value for value in PRIVATE if value in shown] == []
    assert REQUEST_ID in shown


def test_a_journal_can_mask_what_it_stores(payout):
    masked = payout.masked(payout.body)

    assert [value for value in PRIVATE if value.encode() in masked] == []
    kept = json.loads(masked)
    assert kept["beneficiary"]["bank_details"] == {
        **PAYOUT["beneficiary"]["bank_details"],
        "account_name": "***",
        "iban": "***",
        "swift_code": "***",
    }
    assert kept["request_id"] == REQUEST_ID


def test_the_check_digits_of_an_iban_are_verified():
    right = ("DE89370400440532013000", "GB82WEST12345698765432")
    wrong = ("GB82WEST12345698765433", "", "DE8937040044053201300Ø")

    assert [has_iban_check(iban) for iban in (*right, *wrong)] == [True] * 2 + [False] * 3

"""Contract 1, the ways of 3-D Secure: without a question, with one, failed, made elsewhere."""

import pytest

from recon.gateway_client import ReplyOutcome
from tests.conformance.conftest import way_back
from tests.conformance.test_card_contract import card_payment

ASKS = "4000000000003220"
"""A card whose bank asks its holder for a code."""
REFUSES = "4000008400001280"
"""A card whose bank does not know its holder."""
RIGHT = {"otp": "123456", "action": "pay"}
WRONG = {"otp": "000000", "action": "pay"}
RETURN_URL = "https://shop.example/done?basket=7"


def elsewhere(**mpi_info):
    """The fields of a payment whose payer was authenticated by somebody else."""
    return {"additional_information": [{"mpi_info": mpi_info}]}


PROVEN = elsewhere(eci="05", cavv="AAABBEg0VhI0VniQEjRWAAAAAAA=", dsTransID="d-1")


def asked(target, **changed):
    """The reply to a payment whose bank asks for a code."""
    return target.pay(card_payment(card=ASKS, open3d="do3DS", return_url=RETURN_URL, **changed))


@pytest.mark.parametrize(
    ("changed", "result"),
    [
        ({}, ""),
        ({"open3d": "no3DS"}, ""),
        ({"open3d": "do3DS"}, "frictionless"),
        ({"open3d": "do3DS"} | PROVEN, "external"),
        ({"card": REFUSES} | PROVEN, "external"),
    ],
    ids=["not asked for", "declined", "frictionless", "elsewhere", "elsewhere, whatever the card"],
)
def test_a_payer_who_need_not_be_asked_pays_at_once(sandbox, target, changed, result):
    reply = target.pay(card_payment(**changed))
    assert (reply.outcome, reply.record.threeds_result) == (ReplyOutcome.DONE, result)
    assert reply.record.issuer_url == ""
    assert (reply.findings, len(sandbox.effects())) == ((), 1)
    assert target.status("conformance-1") == "2000"


@pytest.mark.parametrize(
    "changed",
    [
        {"card": REFUSES, "open3d": "do3DS"},
        elsewhere(eci="07", cavv="AAAB"),
        elsewhere(eci="05"),
    ],
    ids=["by the bank", "elsewhere", "elsewhere without its proof"],
)
def test_a_payer_who_is_not_authenticated_pays_nothing(sandbox, target, changed):
    reply = target.pay(card_payment(**changed))
    assert (reply.outcome, reply.record.threeds_result) == (ReplyOutcome.FAILED, "failed")
    assert reply.code
    assert reply.message
    assert sandbox.effects() == []
    assert target.status("conformance-1") == "6000"


def test_a_challenge_is_pending_until_its_page_has_the_right_code(sandbox, target):
    reply = asked(target)
    assert (reply.outcome, reply.record.threeds_result) == (ReplyOutcome.PENDING, "challenge")
    assert (target.status("conformance-1"), sandbox.effects()) == ("1000", [])
    page = sandbox.http.post(reply.record.issuer_url, data=RIGHT)
    back = way_back(page.headers["location"], target=target)
    assert (back["order_status"], back["basket"]) == ("1", "7")
    assert back["transaction_id"] == reply.record.transaction_id
    assert [effect["operation"] for effect in sandbox.effects()] == ["authorise"]
    assert target.status("conformance-1") == "2000"


@pytest.mark.parametrize("answers", [[WRONG] * 3, [{"action": "cancel"}]], ids=["wrong", "left"])
def test_a_challenge_that_is_not_met_fails(sandbox, target, answers):
    page = asked(target).record.issuer_url
    replies = [sandbox.http.post(page, data=answer) for answer in answers]
    back = way_back(replies[-1].headers["location"], target=target)
    assert back["order_status"] == "0"
    assert sandbox.effects() == []
    assert target.status("conformance-1") == "6000"


def test_a_page_that_was_used_pays_nothing_again(sandbox, target):
    page = asked(target).record.issuer_url
    for _ in range(2):
        sandbox.http.post(page, data=RIGHT)
    assert len(sandbox.effects()) == 1
    assert sandbox.invariants()["double_effects"] == 0


def test_a_saved_card_pays_again_without_its_number(sandbox, target):
    first = target.pay(card_payment(token_flag="YES"))
    token = first.record.token_id
    nothing = dict.fromkeys(("card", "expiration_month", "expiration_year", "security_code"), "")
    second = target.pay(card_payment(order_no="conformance-2", token_id=token, **nothing))
    assert token not in repr(first)
    assert (second.outcome, second.record.card) == (ReplyOutcome.DONE, first.record.card)
    assert len(sandbox.effects()) == 2


@pytest.mark.parametrize(("flag", "after"), [("1", "2000"), ("0", "6000")])
def test_a_risky_payment_waits_for_its_review(sandbox, target, flag, after):
    reply = target.pay(card_payment(card="4000000000009235"))
    assert (reply.outcome, reply.record.risk_action) == (ReplyOutcome.PENDING, "REVIEW")
    assert (reply.record.risk_score, len(reply.record.risk_reasons)) == ("75", 1)
    assert target.status("conformance-1") == "1500"
    row = {"transaction_id": reply.record.transaction_id, "order_no": "conformance-1"}
    row |= {"currency": "EUR", "amount": "10.00", "review_flag": flag}
    assert sandbox.row("review", row)["review_status"] == "1"
    assert target.status("conformance-1") == after

"""Contract 9, the end of a subscription, by the real client against the sandbox."""

import pytest

from recon.gateway_client import (
    CancelSubscriptionRow,
    GatewayInterface,
    ReplyOutcome,
    SignatureState,
)
from tests.conformance.test_card_contract import card_payment

PLAN = {"contract_name": "Gold plan", "interval": "day", "interval_count": "10"}


def subscribed(target):
    reply = target.pay(card_payment(subscription=PLAN))
    assert reply.record.contract_name == "Gold plan"
    return str(reply.record.recurring_id)


def ended(target, recurring_id, *, contract_name="Gold plan"):
    """The reply to the end of a subscription."""
    row = CancelSubscriptionRow(recurring_id=recurring_id, contract_name=contract_name)
    return target.move("cancelsubscription", [row])


def charges(sandbox):
    """How often the clock charged a subscription."""
    return sum(e["operation"] == "capture" for e in sandbox.effects(origin="gateway"))


def ends(sandbox):
    """How often a subscription truly ended."""
    return sum(e["operation"] == "cancelsubscription" for e in sandbox.effects())


def test_an_ended_subscription_still_charges_the_contract_it_has(sandbox, target):
    recurring_id = subscribed(target)
    sandbox.pass_days(11)
    assert charges(sandbox) == 1
    reply = ended(target, recurring_id)
    assert [row.outcome for row in reply.rows] == [ReplyOutcome.DONE]
    assert (reply.signature, reply.findings) == (SignatureState.VALID, ())
    assert ends(sandbox) == 1
    sandbox.pass_days(100)
    assert charges(sandbox) == 2


def test_a_second_end_is_a_plain_refusal_without_effect(sandbox, target):
    recurring_id = subscribed(target)
    ended(target, recurring_id)
    reply = ended(target, recurring_id)
    (row,) = reply.rows
    assert (row.outcome, bool(reply.stop_reason)) == (ReplyOutcome.FAILED, False)
    assert row.code
    assert row.message
    assert ends(sandbox) == 1


@pytest.mark.parametrize("wrong", ["recurring_id", "contract_name"])
def test_both_names_have_to_agree(sandbox, target, wrong):
    named = {"recurring_id": subscribed(target), "contract_name": "Gold plan"} | {wrong: "other"}
    (row,) = ended(target, named["recurring_id"], contract_name=named["contract_name"]).rows
    assert row.outcome is ReplyOutcome.FAILED
    assert ends(sandbox) == 0


def test_a_subscription_may_be_made_by_a_form_and_ended_in_xml(sandbox, target):
    """As a gateway's own profile may select: objects in a form are JSON text."""
    bodies = {
        "payment": {"authorise_card": {"body": "form"}},
        "batch": {"cancelsubscription": {"body": "xml"}},
    }
    interface = GatewayInterface.bundled(user={"profiles": bodies})
    other = target.but(interface=interface)

    (row,) = ended(other, subscribed(other)).rows
    assert (row.outcome, ends(sandbox)) == (ReplyOutcome.DONE, 1)

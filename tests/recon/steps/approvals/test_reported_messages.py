import re
from datetime import timedelta

import pyotp
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from recon.model.errors import UsageError
from recon.steps.approvals import people
from recon.steps.approvals.verdicts import resolve
from recon.steps.runtime.identity import identify
from recon.store.money import instruction_rows
from recon.store.nights import runs
from recon.webhooks.receiver import Receiver
from tests.recon.steps.test_instruction_files import PAYOUT, SECRETS, drop_instructions, two_approve
from tests.recon.webhooks.told import PAYMENT, form

PAYOUT_MESSAGE = {
    "merchant_id": "100042",
    "account_id": "100042001",
    "webhooks_type": "PAYOUT",
    "status": "FAILED",
    "failure_type": "BANK",
    "payment_amount": "250.00",
    "payment_currency": "EUR",
}


def receive(merchant, fields):
    """A message of the gateway, rightly signed, that the receiver keeps."""
    with merchant.environment() as environment:
        receiver = Receiver(environment.settings, store=environment.store, clock=merchant.clock)
        answer = receiver.receive(form(fields), merchant_id="100042", account_id="100042001")
    assert answer.status == 200


def attention(merchant):
    """What needs a person after the newest night."""
    with merchant.environment() as environment:
        ((_, found),) = people.status(environment)
    return found


def unfinished(merchant, wanted):
    """One field of each instruction of the account that is not settled."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        ((run, _),) = people.status(environment)
        found = instruction_rows.find(
            connection, runs.get(connection, run.run_id), state=instruction_rows.UNFINISHED
        )
    return [getattr(each, wanted) for each in found]


@pytest.fixture
def doubtful_payout(paying_merchant):
    """A merchant whose payout got no reply."""
    drop_instructions(paying_merchant, PAYOUT)
    paying_merchant.move_money()
    two_approve(paying_merchant)
    paying_merchant.fault({"operation": "payout", "kind": "fin", "when": "after", "nth": 1})
    paying_merchant.move_money()
    return paying_merchant


def test_what_the_gateway_told_of_a_payout_stands_beside_its_doubt(doubtful_payout):
    """Its kind, status, money, time and digest; no sentence promises that a night will ask."""
    (request_id,) = unfinished(doubtful_payout, "gateway_request_id")
    (before,) = [one for one in attention(doubtful_payout) if one.what.startswith("payout")]
    receive(doubtful_payout, PAYOUT_MESSAGE | {"request_id": "of-another"})
    receive(doubtful_payout, PAYOUT_MESSAGE | {"request_id": request_id})
    (after,) = [one for one in attention(doubtful_payout) if one.what.startswith("payout")]
    shown = after.next_step

    assert "Notified by the gateway" not in before.next_step
    assert "asks the gateway" not in before.next_step + shown
    assert "No question to the gateway shows it" in shown
    assert "Notified by the gateway: payout FAILED of 250.00 EUR at 2026-11-" in shown
    assert shown.count("(message ") == 1
    assert "name the message as evidence" in shown


def test_messages_about_a_payment_stand_beside_the_doubt_of_its_capture(merchant):
    """Of two payments in doubt each has those of its own transaction and kind, the newest three."""
    pair = [one for one in merchant.payments("authorised") if one.currency == "EUR"][:2]
    lines = [merchant.order(one, status="paid", action="capture") for one in pair]
    merchant.drop("o.csv", *lines)
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    merchant.move_money()
    for number in range(5):
        merchant.now += timedelta(minutes=1)
        told = {"transaction_id": pair[0].transaction_id, "order_no": pair[0].order_no}
        receive(merchant, PAYMENT | told | {"amount": "10.00", "order_status": str(number)})
    receive(merchant, PAYMENT | {"transaction_id": pair[1].transaction_id, "order_status": "7"})
    doubts = [one for one in attention(merchant) if one.what.startswith("capture")]
    first, second = (
        next(one.next_step for one in doubts if one.transaction_id == payment.transaction_id)
        for payment in pair
    )

    assert (first.count("(message "), second.count("(message ")) == (3, 1)
    assert "; and 2 earlier" in first
    assert "payment 4 of 10.00 EUR" in first
    assert "payment 7 of 10.00 EUR" in second


def shown_message(merchant):
    """The digest of the one message that stands beside the payout's doubt."""
    (doubt,) = [one for one in attention(merchant) if one.what.startswith("payout")]
    (digest,) = re.findall(r"\(message ([0-9a-f]{12})\)", doubt.next_step)
    return str(digest)


def test_a_decision_names_the_message_it_goes_by(doubtful_payout):
    """What it says is kept with the verdict of each; one about something else is refused."""
    (request_id,), (wanted,) = (
        unfinished(doubtful_payout, name) for name in ("gateway_request_id", "instruction_id")
    )
    receive(doubtful_payout, PAYOUT_MESSAGE | {"request_id": request_id})
    digest = shown_message(doubtful_payout)
    doubtful_payout.wait(hours=1)
    with doubtful_payout.environment() as environment:

        def say(by, message):
            doubtful_payout.now += timedelta(seconds=31)
            code = pyotp.TOTP(SECRETS[by]).at(int(doubtful_payout.now.timestamp()) + 1)
            return resolve(
                wanted,
                verdict="not_applied",
                evidence="the portal says the same",
                message=message,
                person=identify(by, code=SecretStr(code), environment=environment),
            )

        for other in ("0" * 12, digest[:5]):
            with pytest.raises(UsageError, match=rf"known: {digest}\); nothing was noted"):
                say("anna", other)
        first = say("anna", digest)
        second = say("ben", digest)
        with environment.store.reading() as connection:
            kept = str(connection.execute(text("SELECT message FROM instruction")).scalar_one())

    assert (first.decided, second.decided) == (False, True)
    assert kept.count("payout FAILED of 250.00 EUR at 2026-11-2") == 2
    assert kept.count(f"(message {digest})") == 2

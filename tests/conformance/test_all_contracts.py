"""What holds of every one of the document's ten operations."""

import ast
import re
from pathlib import Path

import pytest

from recon.gateway_client import CancelSubscriptionRow, ReplyOutcome
from tests.conformance.test_apm_contract import apm_payment
from tests.conformance.test_batch_contracts import DONE, payments_for, rows_for
from tests.conformance.test_card_contract import card_payment
from tests.conformance.test_checkout_contract import hosted_payment
from tests.conformance.test_payout_contract import payout_row
from tests.conformance.test_subscription_contract import subscribed

OPERATIONS = range(1, 11)
"""As the API document numbers them, from the payment by card to the payout."""
NAMED = re.compile(r"^Contracts? (\d+)(?: to (\d+))?,?:?")


def numbers(source):
    """The operations that a module's first line names."""
    found = NAMED.match(ast.get_docstring(ast.parse(source)) or "")
    if found is None:
        return set()
    first, last = int(found[1]), int(found[2] or found[1])
    return set(range(first, last + 1))


def test_every_operation_has_its_contract():
    modules = [path.read_text() for path in Path(__file__).parent.glob("test_*_contract*.py")]
    assert set().union(*map(numbers, modules)) == set(OPERATIONS)
    assert all("\ndef test_" in source for source in modules)


PAYMENTS = {"card": card_payment, "apm": apm_payment, "hosted": hosted_payment}


@pytest.mark.parametrize("operation", [*PAYMENTS, *DONE, "payout", "cancelsubscription"])
def test_a_wrong_key_stops_the_run_before_anything_happens(sandbox, target, operation):
    stranger = target.signing_with("not the key")
    if operation in DONE:
        rows = rows_for(operation, payments_for(sandbox, operation)[:2])
    elif operation == "payout":
        rows = [payout_row()]
    elif operation == "cancelsubscription":
        plan = subscribed(target)
        rows = [CancelSubscriptionRow(recurring_id=plan, contract_name="Gold plan")]
    before = sandbox.effects()
    if operation in PAYMENTS:
        reply = stranger.pay(PAYMENTS[operation]())
        refused = [(reply.outcome, reply.code)]
    else:
        reply = stranger.move(operation, rows)
        refused = [(row.outcome, row.code) for row in reply.rows]
    assert set(refused) == {(ReplyOutcome.REJECTED, "I0013")}
    assert reply.stop_reason
    assert sandbox.effects() == before

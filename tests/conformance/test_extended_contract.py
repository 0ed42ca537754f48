"""What only the profile extended has, by the real client: refund search.

The API document names it and no more, so it runs against our own sandbox only.
"""

import asyncio
from decimal import Decimal

import pytest

from recon.gateway_client import RefundRow
from tests.conformance.conftest import interface_of


@pytest.fixture
def extended(target):
    """The client of the profile extended."""
    return target.but(interface=interface_of("extended"))


def searched(target, **asked):
    """The answers of one search."""

    return asyncio.run(target.gateway.refunds(**asked))


def test_a_refund_is_found_by_our_own_reference(sandbox, extended):
    paid = next(row for row in sandbox.captured() if row["currency"] == "EUR")
    given = paid | {"amount": Decimal(paid["amount"]), "refund_amount": Decimal("0.50")}
    row = RefundRow(**given, refund_reason="r", refund_reference="ours-1")
    (done,) = extended.move("refund", [row]).rows
    answers = searched(extended, references=["ours-1", *(f"none-{n}" for n in range(120))])
    (found,) = answers.found
    assert found.refund_reference_id == done.refund_reference_id
    assert (str(found.refund_amount), found.processed_at) == ("0.50", None)
    assert len(answers.not_found) == 120
    assert (answers.failed, answers.findings) == ((), ())


def test_every_refund_of_an_order_is_found_and_the_end_of_each(sandbox, extended):
    paid = next(row for row in sandbox.captured() if row["currency"] == "EUR")
    for _ in range(2):
        sandbox.row("refund", paid | {"refund_amount": "0.50"})
    sandbox.pass_days(2)
    answers = searched(extended, order_nos=[paid["order_no"]])
    assert [one.refund_reference_id[-2:] for one in answers.found] == ["01", "02"]
    assert all(one.processed_at is not None for one in answers.found)

"""Lengths under both profiles: one row of a table for each field that has one."""

from collections.abc import Iterator
from typing import Any

import pytest

from recon.sandbox import SandboxOptions, serving
from recon.sandbox.ground.lengths import lengths, too_long
from tests.recon.sandbox.conftest import Caller, elements

DOCUMENTED = {
    "merchant_id": 7,
    "account_id": 10,
    "order_no": 50,
    "transaction_id": 50,
    "currency": 3,
    "amount": 15,
    "refund_amount": 15,
    "refund_reason": 50,
    "refund_reference": 50,
    "recurring_id": 50,
    "contract_name": 200,
    "website": 2000,
    "items": 5000,
    "note": 1000,
    "custom": 2500,
    "shopper_id": 64,
    "shopper_email": 100,
}
"""As public documentation of the same interface has them."""

PAYMENT_TEXTS = ("website", "items", "note", "custom", "shopper_id", "shopper_email")


@pytest.fixture(scope="module", params=["base", "extended"])
def sandbox(request: Any) -> Iterator[tuple[str, Caller]]:
    """A sandbox of each profile."""
    with serving(SandboxOptions(orders=60, profile=request.param)) as running:
        caller = Caller(running.base_url)
        with caller.http:
            yield request.param, caller


@pytest.mark.parametrize(("name", "most"), sorted(DOCUMENTED.items()))
def test_a_field_may_be_as_long_as_documented_and_no_longer(name: str, most: int) -> None:
    """The last character that fits, and the first that does not; base knows no bound."""
    assert lengths()[name] == most
    assert too_long({name: "x" * most}, profile="extended") == ""
    assert too_long({name: "x" * (most + 1)}, profile="extended") == name
    assert too_long({name: "x" * (most + 1)}, profile="base") == ""


@pytest.mark.parametrize("name", PAYMENT_TEXTS)
def test_a_payment_with_a_text_that_is_too_long_is_refused(sandbox: Any, name: str) -> None:
    """Under extended with I0002 and no effect; base takes it."""
    profile, caller = sandbox
    caller.http.post("/_sandbox/reset").raise_for_status()
    most = DOCUMENTED[name]
    fitting, longer = ({name: "x" * length} for length in (most, most + 1))
    assert elements(caller.authorise(order_no="l-1", **fitting))["order_status"] == "1"
    told = elements(caller.authorise(order_no="l-2", **longer))
    assert told["result_info"].startswith("I0002" if profile == "extended" else "0000")


@pytest.mark.parametrize("name", ["refund_reason", "refund_reference"])
def test_a_row_with_a_text_that_is_too_long_fails_alone(sandbox: Any, name: str) -> None:
    """The row beside it takes effect."""
    profile, caller = sandbox
    caller.http.post("/_sandbox/reset").raise_for_status()
    rows = [row | {"refund_amount": row["amount"]} for row in caller.captured()[:2]]
    rows[0][name] = "x" * 51
    rows[1][name] = "x" * 50
    answered = caller.batch("refund", rows).json()["refund_orders"]
    first = "0" if profile == "extended" else "1"
    assert [row["refund_status"] for row in answered] == [first, "1"]

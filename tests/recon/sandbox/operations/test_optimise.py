"""The question for the best payment methods, over HTTP."""

from collections.abc import Iterator

import pytest

from recon.sandbox import SandboxOptions, serving
from tests.recon.sandbox.conftest import ACCOUNT, MERCHANT, Caller, signature

ASKED = {
    "merchant_id": MERCHANT,
    "account_id": ACCOUNT,
    "request_id": "q-1",
    "currency": "EUR",
    "amount": "10.00",
    "shopper_email": "ann@example.com",
}


@pytest.fixture(scope="module")
def extended() -> Iterator[Caller]:
    """A client of a sandbox that knows the operation."""
    with serving(SandboxOptions(orders=0, profile="extended")) as running:
        caller = Caller(running.base_url)
        with caller.http:
            yield caller


def signed(**changed: str) -> dict[str, str]:
    """A question with its signature."""
    fields = ASKED | changed
    return fields | {"encryption_data": signature(*fields.values())}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"shopper_email": ""}, "I0002"),
        ({"amount": "10"}, "I0002"),
        ({"amount": "0.00"}, "I0002"),
        ({"account_id": "1"}, "I0004"),
    ],
)
def test_what_is_refused_says_why(extended: Caller, changed: dict[str, str], code: str) -> None:
    """HTTP 400 with code, source and message."""
    reply = extended.http.post("/v1/optimise", data=signed(**changed))
    assert (reply.status_code, reply.json()["code"]) == (400, code)

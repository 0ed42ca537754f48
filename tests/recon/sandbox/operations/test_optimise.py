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
    ("currency", "methods"), [("EUR", ["card", "ideal", "sepa"]), ("SEK", ["card"])]
)
def test_methods_follow_the_currency(extended: Caller, currency: str, methods: list[str]) -> None:
    """Best first, signed by the question's own signature, and nothing takes effect."""
    asked = signed(currency=currency)
    reply = extended.http.post("/v1/optimise", data=asked).json()
    assert [one["payment_method"] for one in reply["payment_methods"]] == methods
    assert (reply["encryption_data"], reply["request_id"]) == (asked["encryption_data"], "q-1")
    assert extended.effects() == []


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


def test_a_wrong_signature_is_refused(extended: Caller) -> None:
    """Even of a question."""
    reply = extended.http.post("/v1/optimise", data=ASKED | {"encryption_data": "0" * 64})
    assert (reply.status_code, reply.json()["code"]) == (400, "I0013")

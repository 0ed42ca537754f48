import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest

from recon.gateway_client import (
    GatewayInterface,
    InterfaceError,
    InvalidPaymentError,
    MethodsRequest,
    OurAccount,
    prepare_methods,
    read_methods_reply,
)
from tests.recon.gateway_client.played import raw_of


@pytest.fixture
def extended(tables: dict[str, Any]) -> GatewayInterface:
    """The profile that knows the operation."""
    return GatewayInterface.of(**tables, profile="extended")


def request_of(**changes: Any) -> MethodsRequest:
    """A shopper's question."""
    fields: dict[str, Any] = {
        "request_id": "q-1",
        "currency": "JPY",
        "amount": "1200.00",
        "shopper_id": "S1",
        "shopper_email": "ana@example.test",
        "shopper_country": "JP",
    }
    return MethodsRequest.model_validate(fields | changes)


def test_the_best_methods_are_asked_for_and_read(
    extended: GatewayInterface, account: OurAccount
) -> None:
    """A form; the reply's order is kept, names come as text or in objects."""
    prepared = prepare_methods(request_of(), account=replace(account, interface=extended))
    sent = parse_qs(prepared.body.decode())
    listed = ["card", {"payment_method": "konbini"}, {"other": 1}, None]
    reply = {"payment_methods": listed, "encryption_data": prepared.signature}
    answer = read_methods_reply(prepared, raw_of(reply))

    assert (prepared.path, sent["shopper_country"]) == ("/v1/optimise", ["JP"])
    assert "ana@example.test" not in repr((prepared, request_of()))
    assert (answer.methods, answer.reason) == (("card", "konbini"), "")


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"payment_methods": ["card"]}, 200),
        ({"code": "I0002", "message": "no"}, 400),
        (b"<html>", 200),
    ],
)
def test_an_answer_without_proof_offers_nothing(
    extended: GatewayInterface, account: OurAccount, reply: object, status: int
) -> None:
    """Unsigned, refused or unreadable: no methods, and why."""
    prepared = prepare_methods(request_of(), account=replace(account, interface=extended))
    raw = raw_of(json.loads(json.dumps(reply)) if isinstance(reply, dict) else reply, status=status)
    answer = read_methods_reply(prepared, raw)

    assert answer.methods == ()
    assert answer.reason


def test_the_base_profile_does_not_ask_for_methods(account: OurAccount) -> None:
    """The API document shows nothing of the operation."""
    with pytest.raises(InterfaceError, match="extended"):
        prepare_methods(request_of(), account=account)


@pytest.mark.parametrize("changes", [{"amount": "0"}, {"currency": "yen"}])
def test_a_malformed_question_for_methods_is_not_sent(
    extended: GatewayInterface, account: OurAccount, changes: dict[str, str]
) -> None:
    """Amount and currency are signed: both must be right."""
    with pytest.raises(InvalidPaymentError, match="nothing was sent"):
        prepare_methods(request_of(**changes), account=replace(account, interface=extended))

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.recon.sandbox.conftest import ACCOUNT, MERCHANT, elements, signature

PLAN = {"contract_name": "Gold plan", "interval": "day", "interval_count": "10"}


def subscribed(gateway: Any, **changed: Any) -> str:
    """The recurring_id of a subscription that a payment made."""
    return elements(gateway.authorise(subscription=PLAN | changed))["recurring_id"]


def ended(gateway: Any, named: str, **changed: Any) -> dict[str, str]:
    """The reply to the end of a subscription."""
    fields = {"merchant_id": MERCHANT, "account_id": ACCOUNT, "recurring_id": named}
    fields |= {"contract_name": "Gold plan"} | changed
    names = ("merchant_id", "account_id", "recurring_id", "contract_name")
    body = {"encryption_data": signature(*(fields[name] for name in names))} | fields
    reply = gateway.http.post("/v1/cancelsubscription", json=body)
    assert reply.status_code == 200
    return reply.json()


def charged(gateway: Any) -> list[str]:
    """Orders that the clock captured."""
    effects = gateway.effects(origin="gateway")
    return [effect["order_no"] for effect in effects if effect["operation"] == "capture"]


def test_a_payment_with_a_contract_name_makes_a_subscription(gateway: Any) -> None:
    """The reply names it, how often it is charged and when next; the clock charges it then."""
    result = elements(gateway.authorise(subscription=PLAN | {"contract_amount": "4.00"}))
    assert (result["contract_name"], result["recurring_deduction_period"]) == (
        "Gold plan",
        "10 day",
    )
    assert result["recurring_deduction_time"] == "2026-11-30 22:00:00"
    gateway.pass_days(9)
    assert charged(gateway) == []
    gateway.pass_days(25)
    recurring_id = result["recurring_id"]
    assert charged(gateway) == [f"{recurring_id}-0000{number}" for number in (1, 2, 3)]
    assert gateway.status(f"{recurring_id}-00003") == "3000"
    amounts = {effect["amount"] for effect in gateway.effects(origin="gateway")}
    assert amounts == {"4.00"}
    assert set(gateway.invariants().values()) == {0}


def test_an_ended_subscription_still_charges_the_contract_it_has(gateway: Any) -> None:
    """Inactived: the period that runs is charged at its end, no other ever is."""
    recurring_id = subscribed(gateway)
    gateway.pass_days(11)
    assert len(charged(gateway)) == 1
    reply = ended(gateway, recurring_id)
    assert (reply["cancel_status"], reply["error_message"]) == ("1", "")
    gateway.pass_days(100)
    assert len(charged(gateway)) == 2
    (effect,) = [e for e in gateway.effects() if e["operation"] == "cancelsubscription"]
    assert (effect["order_no"], effect["amount"]) == ("web-1", "")
    assert set(gateway.invariants().values()) == {0}


def test_a_subscription_ends_once(gateway: Any) -> None:
    """The second time is status 0 and has no effect."""
    recurring_id = subscribed(gateway)
    ended(gateway, recurring_id)
    second = ended(gateway, recurring_id)
    assert (second["cancel_status"], second["error_message"][:6]) == ("0", "B0003:")
    operations = [effect["operation"] for effect in gateway.effects()]
    assert operations == ["authorise", "cancelsubscription"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"contract_name": "Silver plan"}, "B0002"),
        ({"contract_name": ""}, "B0001"),
        ({"account_id": "100042002"}, "B0002"),
        ({"recurring_id": "RC000000099"}, "B0002"),
        ({"merchant_id": "1"}, "I0003"),
        ({"encryption_data": "0" * 64}, "I0013"),
    ],
)
def test_both_names_have_to_agree(gateway: Any, changed: dict[str, str], code: str) -> None:
    """Another name, account or id ends nothing; a signature that is refused is not echoed."""
    recurring_id = subscribed(gateway)
    reply = ended(gateway, recurring_id, **changed)
    assert (reply["cancel_status"], reply["error_message"][:5]) == ("0", code)
    assert (reply["encryption_data"] == "") == (code == "I0013")
    assert len(gateway.effects()) == 1


@pytest.mark.parametrize("wire", ["json", "form", "xml"])
def test_the_end_of_a_subscription_comes_in_any_wire_format(gateway: Any, wire: str) -> None:
    """The first byte decides; the document declares XML and its samples show JSON."""
    fields = {"merchant_id": MERCHANT, "account_id": ACCOUNT, "recurring_id": subscribed(gateway)}
    fields["contract_name"] = "Gold plan"
    fields["encryption_data"] = signature(*fields.values())
    parts = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    bodies = {"json": json.dumps(fields), "form": urlencode(fields), "xml": f"<r>{parts}</r>"}
    reply = gateway.http.post("/v1/cancelsubscription", content=bodies[wire]).json()
    assert reply["cancel_status"] == "1"
    assert reply["encryption_data"] == fields["encryption_data"]

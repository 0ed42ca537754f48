import json
from typing import Any

import httpx
import pytest

from recon.sandbox import SandboxOptions, serving

CODES = {
    "authorised": ("2000", "-1"),
    "paid": ("3000", "1"),
    "partially_refunded": ("4000", "1"),
    "refunded": ("4100", "1"),
    "cancelled": ("5000", "1"),
    "failed": ("6000", "0"),
    "chargeback": ("7000", "1"),
    "pending": ("1000", "-2"),
    "in_review": ("1500", "-2"),
}


@pytest.mark.parametrize("state", CODES)
def test_every_state_has_its_two_codes(gateway: Any, state: str) -> None:
    """payment_status and query_result are those of the table, the amount the authorised one."""
    lines = gateway.http.get("/_sandbox/payments").text.splitlines()
    payments = [payment for payment in map(json.loads, lines) if payment["state"] == state]
    payment = next(found for found in payments if found["account_id"] == "100042001")
    (row,) = gateway.query(orders=payment["order_no"]).json()["orders_list"]
    assert (row["payment_status"], row["query_result"]) == CODES[state]
    assert row["amount"] == payment["amount"]
    assert len(row["transaction_date"]) == 14
    assert row["website"]


def test_orders_and_trades_find_the_same_payment(gateway: Any) -> None:
    """An order can be asked for by its number or by its transaction."""
    row = gateway.authorised()[0]
    by_order = gateway.query(orders=row["order_no"]).json()["orders_list"]
    by_transaction = gateway.query(trades=row["transaction_id"]).json()["orders_list"]
    assert by_order == by_transaction
    assert by_order[0]["transaction_id"] == row["transaction_id"]


def test_an_unknown_key_gets_a_row_that_says_so(gateway: Any) -> None:
    """query_result 2 and the key, everything else empty: no key is left without an answer."""
    known = gateway.authorised()[0]["order_no"]
    found, missing = gateway.query(orders=f"{known},nobody").json()["orders_list"]
    assert found["order_no"] == known
    assert (missing["order_no"], missing["query_result"]) == ("nobody", "2")
    assert missing["payment_status"] == missing["transaction_id"] == missing["amount"] == ""
    (row,) = gateway.query(trades="77").json()["orders_list"]
    assert (row["transaction_id"], row["order_no"], row["query_result"]) == ("77", "", "2")


def test_another_accounts_order_is_unknown(gateway: Any) -> None:
    """An account sees its own orders only."""
    seed = gateway.effects(origin="seed")
    other = next(effect for effect in seed if effect["account_id"] == "100042002")
    (row,) = gateway.query(orders=other["order_no"]).json()["orders_list"]
    assert row["query_result"] == "2"


def test_a_hundred_orders_pass_and_one_more_is_refused(gateway: Any) -> None:
    """More than 100 keys: return_status 4 and no row."""
    keys = [f"k{number}" for number in range(101)]
    assert len(gateway.query(orders=",".join(keys[:100])).json()["orders_list"]) == 100
    refused = gateway.query(orders=",".join(keys)).json()
    assert (refused["return_status"], refused["orders_list"]) == ("4", [])


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, "3"),
        ({"orders": "a,,b"}, "3"),
        ({"orders": "a", "trades": "b"}, "3"),
        ({"orders": "a", "merchant_id": "1", "encryption_data": "x"}, "5"),
        ({"orders": "a", "account_id": "1", "encryption_data": "x"}, "5"),
        ({"encryption_data": "x"}, "6"),
    ],
)
def test_whole_queries_are_refused_by_their_status(
    gateway: Any, changed: dict[str, str], status: str
) -> None:
    """Merchant and account, then signature, then parameters; always HTTP 200 and no rows."""
    reply = gateway.query(**changed)
    assert reply.status_code == 200
    assert reply.json()["return_status"] == status
    assert reply.json()["orders_list"] == []
    if status == "3":
        assert reply.json()["return_message"].startswith("I0002:")
        named = "orders" if len(changed) == 1 else "orders or trades"
        assert reply.json()["return_message"].endswith(f"({named})")


def test_an_unregistered_address_is_refused_before_all_else() -> None:
    """Only the registered address may query, whatever else is wrong with the request."""
    with serving(SandboxOptions(orders=0, registered_ip="10.0.0.9")) as sandbox:
        url = f"{sandbox.base_url}/v1/retrievalTrans"
        reply = httpx.post(url, data={"merchant_id": "1"}, trust_env=False).json()
        assert reply["return_status"] == "7"
        batch = httpx.post(f"{sandbox.base_url}/v1/capture", json={}, trust_env=False).json()
        assert batch["return_message"].startswith("I0002:")


def test_a_client_cannot_say_which_address_it_comes_from() -> None:
    """X-Forwarded-For is not believed."""
    with serving(SandboxOptions(orders=0, registered_ip="10.0.0.9")) as sandbox:
        url = f"{sandbox.base_url}/v1/retrievalTrans"
        headers = {"X-Forwarded-For": "10.0.0.9"}
        reply = httpx.post(url, data={"merchant_id": "1"}, headers=headers, trust_env=False)
        assert reply.json()["return_status"] == "7"


def test_all_attempts_of_an_order_are_shown(gateway: Any) -> None:
    """A declined attempt and the one that succeeded stand side by side."""
    gateway.authorise(card="4000000000000002")
    gateway.authorise()
    rows = gateway.query(orders="web-1").json()["orders_list"]
    assert [row["payment_status"] for row in rows] == ["6000", "2000"]
    assert len({row["transaction_id"] for row in rows}) == 2

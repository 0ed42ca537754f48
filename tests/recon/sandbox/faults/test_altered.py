from typing import Any

import pytest


def spoiled(gateway: Any, rule: dict[str, Any], *, rows: int = 3) -> list[dict[str, Any]]:
    """The rows of a capture reply under one content fault."""
    asked = gateway.authorised()[:rows]
    gateway.faults({"operation": "capture"} | rule)
    reply = gateway.batch("capture", asked)
    assert reply.status_code == 200
    return reply.json()["capture_orders"]


def test_a_dropped_row_took_effect_after_the_commit(gateway: Any) -> None:
    """The second row is missing from the reply although it was captured."""
    asked = gateway.authorised()[:3]
    rows = spoiled(gateway, {"kind": "drop_row", "row": 1})
    assert [row["order_no"] for row in rows] == [asked[0]["order_no"], asked[2]["order_no"]]
    assert len(gateway.effects()) == 3


def test_a_dropped_row_took_no_effect_before_the_commit(gateway: Any) -> None:
    """The row is missing from the reply and from the truth."""
    asked = gateway.authorised()[:3]
    rule = {"kind": "drop_row", "key": asked[1]["transaction_id"], "when": "before"}
    assert len(spoiled(gateway, rule)) == 2
    captured = {effect["order_no"] for effect in gateway.effects()}
    assert captured == {asked[0]["order_no"], asked[2]["order_no"]}


def test_a_dropped_row_of_a_query_is_missing(gateway: Any) -> None:
    """A key without an answer is only ever a fault."""
    gateway.faults({"operation": "retrievalTrans", "kind": "drop_row", "order_no": "b*"})
    rows = gateway.query(orders="a,b1,c,b2").json()["orders_list"]
    assert [row["order_no"] for row in rows] == ["a", "c"]


def test_rows_may_be_repeated_foreign_or_false(gateway: Any) -> None:
    """Each kind spoils the row it names, the last one by a negative index."""
    assert len(spoiled(gateway, {"kind": "duplicate_row", "row": -1})) == 4
    foreign = spoiled(gateway, {"kind": "foreign_row"})
    assert foreign[1]["order_no"] == "9" * 20
    first = gateway.authorised()[0]["amount"]
    assert spoiled(gateway, {"kind": "wrong_amount"})[0]["amount"] == f"1{first}"


@pytest.mark.parametrize("operation", ["capture", "cancel", "retrievalTrans"])
def test_a_code_that_nobody_knows(gateway: Any, operation: str) -> None:
    """The status of the row is the given code."""
    gateway.faults({"operation": operation, "kind": "unknown_code", "code": "42"})
    if operation == "retrievalTrans":
        row = gateway.query(orders=gateway.authorised()[0]["order_no"]).json()["orders_list"][0]
        assert row["payment_status"] == "42"
    else:
        row = gateway.row(operation, gateway.authorised()[0])
        assert row[f"{operation}_status"] == "42"


def test_a_card_result_may_carry_an_unknown_code(gateway: Any) -> None:
    """A reply without rows is its own row."""
    gateway.faults({"operation": "authorise", "kind": "unknown_code", "code": "42"})
    assert "<order_status>42</order_status>" in gateway.authorise().text


@pytest.mark.parametrize("operation", ["capture", "retrievalTrans"])
def test_a_wrong_signature_in_the_reply(gateway: Any, operation: str) -> None:
    """The reply carries 64 zeroes instead of the request's signature."""
    gateway.faults({"kind": "wrong_signature"})
    reply = (
        gateway.query(orders="a")
        if operation == "retrievalTrans"
        else gateway.batch("capture", gateway.authorised()[:1])
    )
    assert reply.json()["encryption_data"] == "0" * 64


def test_a_query_lags_behind_for_its_calls(gateway: Any) -> None:
    """For two queries the old state is shown, then the true one."""
    row = gateway.authorised()[0]
    gateway.row("capture", row)
    gateway.faults({"operation": "retrievalTrans", "kind": "lag", "calls": 2})
    seen = [gateway.status(row["order_no"]) for _ in range(3)]
    assert seen == ["2000", "2000", "3000"]


def test_a_lag_concerns_the_orders_it_names(gateway: Any) -> None:
    """Another order in the same query is shown as it is."""
    old, new = gateway.authorised()[:2]
    gateway.batch("capture", [old, new])
    rule = {"operation": "retrievalTrans", "kind": "lag", "order_no": old["order_no"], "calls": 9}
    gateway.faults(rule)
    rows = gateway.query(orders=f"{old['order_no']},{new['order_no']}").json()["orders_list"]
    assert {row["order_no"]: row["payment_status"] for row in rows} == {
        old["order_no"]: "2000",
        new["order_no"]: "3000",
    }

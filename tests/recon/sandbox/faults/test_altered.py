from typing import Any


def test_a_card_result_may_carry_an_unknown_code(gateway: Any) -> None:
    """A reply without rows is its own row."""
    gateway.faults({"operation": "authorise", "kind": "unknown_code", "code": "42"})
    assert "<order_status>42</order_status>" in gateway.authorise().text


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

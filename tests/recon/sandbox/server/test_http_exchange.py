from datetime import UTC, datetime
from typing import Any

import httpx
import pytest


@pytest.mark.parametrize("operation", ["capture", "cancel", "refund"])
def test_a_late_effect_comes_after_its_client_has_gone(gateway: Any, operation: str) -> None:
    """The client sees a closed connection; the effect comes when the virtual clock gets there."""
    row = (gateway.captured() if operation == "refund" else gateway.authorised())[0]
    gateway.faults({"operation": operation, "kind": "late", "seconds": 600})
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch(operation, [row | {"refund_amount": row["amount"]}])
    before = gateway.status(row["order_no"])
    assert gateway.effects() == []
    gateway.http.post("/_sandbox/clock", json={"seconds": 599})
    assert gateway.effects() == []
    moved = gateway.http.post("/_sandbox/clock", json={"seconds": 1}).json()
    assert moved["late_effects"] == 1
    (effect,) = gateway.effects()
    assert effect["committed_at"] == "2026-11-20T22:10:00Z"
    assert gateway.status(row["order_no"]) != before
    assert gateway.invariants()["effects_without_client_record"] == 0


def test_a_late_effect_can_count_real_seconds(gateway: Any) -> None:
    """It is there when its time has come, without moving the virtual clock."""
    row = gateway.authorised()[0]
    rule = {"operation": "capture", "kind": "late", "seconds": 0.3, "on_real_clock": True}
    gateway.faults(rule)
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", [row])
    assert gateway.effects() == []
    began = datetime.now(UTC)
    while gateway.status(row["order_no"]) != "3000":
        assert (datetime.now(UTC) - began).total_seconds() < 5
    (effect,) = gateway.effects()
    assert effect["committed_at"] == "2026-11-20T22:00:00Z"


def test_a_late_effect_is_judged_when_it_comes(gateway: Any) -> None:
    """What was cancelled meanwhile is not captured."""
    row = gateway.authorised()[0]
    gateway.faults({"operation": "capture", "kind": "late", "seconds": 60})
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", [row])
    gateway.row("cancel", row)
    gateway.http.post("/_sandbox/clock", json={"seconds": 60})
    assert [effect["operation"] for effect in gateway.effects()] == ["cancel"]


def test_no_card_number_is_ever_kept(gateway: Any) -> None:
    """A payment cannot be put off, because it would have to be kept with its card."""
    gateway.faults({"operation": "authorise", "kind": "late"})
    assert "0000:Success" in gateway.authorise().text


def test_two_faults_may_meet_in_one_call(gateway: Any) -> None:
    """A row is lost before the commit and the reply after it."""
    rows = gateway.authorised()[:2]
    gateway.faults(
        {"operation": "capture", "kind": "drop_row", "when": "before", "row": 0},
        {"operation": "capture", "kind": "fin", "when": "after"},
    )
    with pytest.raises(httpx.RemoteProtocolError):
        gateway.batch("capture", rows)
    assert [effect["order_no"] for effect in gateway.effects()] == [rows[1]["order_no"]]

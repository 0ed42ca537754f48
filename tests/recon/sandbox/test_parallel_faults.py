"""Chance in a fault plan: the order in which parallel calls arrive changes nothing."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

PLAN = (
    {"operation": "capture", "kind": "fin", "probability": 0.2},
    {"operation": "capture", "kind": "status", "when": "before", "probability": 0.2},
    {"operation": "capture", "kind": "drop_row", "probability": 0.3},
    {"operation": "retrievalTrans", "kind": "unknown_code", "probability": 0.3},
)


def seen(gateway: Any, rows: Sequence[dict[str, str]], *, workers: int) -> tuple[list[str], Any]:
    """What each call saw, in the order of the rows, and what is true afterwards."""
    gateway.http.post("/_sandbox/reset")
    gateway.faults(*PLAN)
    base_url = gateway.base_url

    def call(row: dict[str, str]) -> str:
        client = type(gateway)(base_url)
        with client.http:
            return saw(client, row)

    with ThreadPoolExecutor(workers) as pool:
        words = list(pool.map(call, rows))
    return words, sorted(effect["order_no"] for effect in gateway.effects())


def saw(client: Any, row: dict[str, str]) -> str:
    """One capture and one query, in a word each."""
    try:
        reply = client.batch("capture", [row])
        captured = f"{reply.status_code} {len(reply.json().get('capture_orders', ()))}"
    except httpx.TransportError as error:
        captured = type(error).__name__
    return f"{captured}, {client.status(row['order_no'])}"


def test_one_worker_and_eight_meet_the_same_faults(gateway: Any) -> None:
    """Every call sees the same alone and in a crowd, and the truth is the same afterwards."""
    rows = gateway.authorised()[:36]
    alone = seen(gateway, rows, workers=1)
    assert seen(gateway, rows, workers=8) == alone
    assert seen(gateway, rows[::-1], workers=8) == (alone[0][::-1], alone[1])
    assert len({word.split(",", maxsplit=1)[0] for word in alone[0]}) == 4, alone[0]


def test_two_rules_draw_on_their_own(gateway: Any) -> None:
    """What one rule hits by chance says nothing about what the next one hits."""
    rows = gateway.authorised()[:40]
    gateway.faults(
        {"operation": "capture", "kind": "unknown_field", "probability": 0.5},
        {"operation": "capture", "kind": "unknown_code", "probability": 0.5},
    )
    answers = gateway.batch("capture", rows).json()["capture_orders"]
    met = {("settlement_hint" in row, row["capture_status"] == "9999") for row in answers}
    assert len(met) == 4

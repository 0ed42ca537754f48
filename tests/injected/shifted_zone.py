"""Files of the same business dates of which one was written by a clock of another time zone.

The truth is a payment every quarter of an hour, each ordered, paid and booked at once. The source
that is off states every time so many hours later (or earlier) than it was and, as every source,
holds the records whose stated time lies on the dates of its file. Nothing else is wrong, so all
breaks of these files have one cause.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    Sources,
    frame_of,
)
from recon.model.terms import BreakCode
from tests.injected.injected_files import AS_OF, MERCHANT, Injected
from tests.injected.recipes import AMOUNT, RULES, Scene

FIRST = datetime(2026, 10, 1, tzinfo=UTC)
DAYS = 3
EVERY = timedelta(minutes=15)
DELAY = timedelta(minutes=4)
"""From an order to its payment, and from there to its entry."""
COLUMNS = {"orders": ORDER_COLUMNS, "gateway": GATEWAY_COLUMNS, "ledger": LEDGER_COLUMNS}
FOUND_AS: Mapping[frozenset[str], tuple[BreakCode, int, int]] = {
    frozenset({"orders", "gateway"}): (BreakCode.MISSING_IN_LEDGER, 0, 1),
    frozenset({"ledger"}): (BreakCode.LEDGER_ONLY, 0, -1),
    frozenset({"gateway", "ledger"}): (BreakCode.MISSING_IN_ORDERS, 1, 0),
    frozenset({"orders"}): (BreakCode.MISSING_AT_GATEWAY, -1, 0),
    frozenset({"orders", "ledger"}): (BreakCode.BOOKED_NOT_AT_GATEWAY, -1, -1),
    frozenset({"gateway"}): (BreakCode.MISSING_IN_ORDERS, 1, 1),
}
"""What a payment is whose records stand in these files only, and the signs of its effects."""


@dataclass(frozen=True, slots=True)
class Shifted(Injected):
    """Such files, and what is wrong with them."""

    key: pd.DataFrame
    """One row per planted break: code, name (order number), effect_orders, effect_ledger."""


def zone_shifted(source: str, *, hours: float) -> Shifted:
    """Three business dates of payments of which one source's clock is off.

    Args:
        source: orders, gateway or ledger.
        hours: how far its times are ahead of the truth, negative where they are behind.
    """
    shift, end = timedelta(hours=hours), FIRST + timedelta(days=DAYS)
    rows: dict[str, list[Mapping[str, Any]]] = {name: [] for name in COLUMNS}
    key: list[dict[str, Any]] = []
    at = FIRST - timedelta(days=1)
    while at < end + timedelta(days=1):
        scene = _scene(at, source=source, shift=shift)
        held = [name for name in COLUMNS if FIRST <= _stated(scene, source=name) < end]
        for name in held:
            rows[name] += scene.rows[name]
        if held and len(held) < len(COLUMNS):
            key.append(_answer(scene.order_no, held=held))
        at += EVERY
    frames = {
        name: frame_of([_placed(row, source=name) for row in rows[name]], columns=columns)
        for name, columns in COLUMNS.items()
    }
    rules = Rules.of(RULES, source="files of another zone")
    sources = Sources(frames["orders"], frames["gateway"], frames["ledger"], instructions=None)
    return Shifted(sources, rules, AS_OF, pd.DataFrame(key))


def _answer(order_no: str, *, held: list[str]) -> dict[str, Any]:
    code, orders, ledger = FOUND_AS[frozenset(held)]
    effects = {"effect_orders": orders * AMOUNT, "effect_ledger": ledger * AMOUNT}
    return {"code": code.value, "name": order_no, **effects}


def _scene(at: datetime, *, source: str, shift: timedelta) -> Scene:
    """One payment as the three sources tell of it."""
    times = {"orders": at, "gateway": at + DELAY, "ledger": at + 2 * DELAY}
    times[source] += shift
    scene = Scene(f"Z{at:%d%H%M}")
    scene.order(ordered_at=times["orders"]).payment(transaction_date=times["gateway"])
    return scene.entry(booked_at=times["ledger"])


def _stated(scene: Scene, *, source: str) -> datetime:
    names = {"orders": "ordered_at", "gateway": "transaction_date", "ledger": "booked_at"}
    stated: datetime = scene.rows[source][0][names[source]]
    return stated


def _placed(row: Mapping[str, Any], *, source: str) -> dict[str, Any]:
    return {"merchant_id": MERCHANT, "source": f"{source}.csv", "line": 1, **row}

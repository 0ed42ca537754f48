"""Random sets of few rows, each under a merchant of its own; amounts that tie only by chance."""

import random
from typing import Any

from tests.recon.matching.conftest import CODES, LONG_AGO

SETS = 1000
ORDER_STATES = (
    *("paid", "paid", "partially_refunded", "refunded"),
    *("authorised", "pending", "cancelled", "failed"),
)
PAYMENT_STATES = (
    *("paid", "paid", "partially_refunded", "refunded", "authorised", "pending"),
    *("in_review", "cancelled", "failed", "expired", "chargeback", "unmapped"),
)
MOVES = ("capture", "refund", "refund", "cancel", "review")
STANDINGS = (
    *("approved", "in_doubt", "confirmed", "rejected"),
    *("resolved_applied", "resolved_not_applied", "needs_human"),
)
ENTRIES = ("capture", "capture", "refund", "chargeback", "capture_reversal", "adjustment")


def a_thousand(
    case: Any, *, seed: int, covered: bool, sets: int = SETS
) -> tuple[Any, dict[str, dict[str, list[dict[str, Any]]]]]:
    """A case of many sets, and by merchant the rows that were planted."""
    draw = random.Random(seed)
    if covered:
        case.ledger()
    planted: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for number in range(sets):
        rows = _set(draw, covered=covered)
        planted[f"M{number}"] = rows
        for source, those in rows.items():
            for row in those:
                case._add(source, {**row, "merchant_id": f"M{number}"})
    return case, planted


def _set(draw: random.Random, *, covered: bool) -> dict[str, list[dict[str, Any]]]:
    whole = draw.randrange(5000, 90000)
    part = draw.randrange(1, whole)
    pool = (whole, whole, whole, part, whole + draw.randrange(1, 500), whole - part)
    currency = draw.choice(("EUR", "EUR", "EUR", "KWD", "JPY"))
    rows: dict[str, list[dict[str, Any]]] = {"orders": [], "gateway": [], "instructions": []}
    for _ in range(draw.choice((0, 1, 1, 1, 1, 1, 2))):
        rows["orders"].append(_order(draw, pool, currency))
    for number in range(draw.choice((0, 1, 1, 1, 1, 2))):
        rows["gateway"].append(_payment(draw, pool, currency, number))
    for number in range(draw.choice((0, 0, 1, 2))):
        rows["instructions"].append(_move(draw, pool, currency, number))
    if covered:
        rows["ledger"] = [
            _entry(draw, pool, currency, number) for number in range(draw.choice((0, 1, 1, 2, 3)))
        ]
    return {source: those for source, those in rows.items() if those}


def _order(draw: random.Random, pool: tuple[int, ...], currency: str) -> dict[str, Any]:
    status = draw.choice(ORDER_STATES)
    row = {"order_no": "A1", "currency": currency, "amount": draw.choice(pool), "status": status}
    row["ordered_at"] = LONG_AGO
    if status == "partially_refunded" or (status == "refunded" and draw.random() < 0.3):
        row["refund_amount"] = min(draw.choice(pool), int(str(row["amount"])))
    return row


def _payment(
    draw: random.Random, pool: tuple[int, ...], currency: str, number: int
) -> dict[str, Any]:
    state = draw.choice(PAYMENT_STATES)
    row = {
        "order_no": "A1",
        "transaction_id": f"T{number}",
        "currency": draw.choice((*[currency] * 9, "USD")),
        "amount": draw.choice(pool),
        "payment_status": CODES[state],
        "query_result": "1",
        "answer": "found",
        "transaction_date": LONG_AGO,
    }
    if state == "partially_refunded" or (state == "refunded" and draw.random() < 0.3):
        row["refunded_amount"] = draw.choice(pool)
    if draw.random() < 0.2:
        row["authorised_amount"] = draw.choice(pool)
    return row


def _move(draw: random.Random, pool: tuple[int, ...], currency: str, number: int) -> dict[str, Any]:
    kind = draw.choice(MOVES)
    row = {"instruction_id": f"I{number}", "order_no": "A1", "transaction_id": "T0", "kind": kind}
    row |= {"state": draw.choice(STANDINGS), "currency": currency, "approved_at": LONG_AGO}
    return {**row, "amount": draw.choice(pool)}


def _entry(
    draw: random.Random, pool: tuple[int, ...], currency: str, number: int
) -> dict[str, Any]:
    row = {"entry_id": f"E{number}", "order_no": "A1", "currency": currency}
    row |= {"amount": draw.choice(pool), "entry_type": draw.choice(ENTRIES)}
    return {**row, "booked_at": LONG_AGO}

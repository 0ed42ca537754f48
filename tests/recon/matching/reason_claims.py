"""A stranger who reads a reason beside the rows of its set: every amount in it is looked up."""

import re
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from iso4217 import Currency

from tests.recon.matching.conftest import CODES

Row = Mapping[str, Any]
Rows = Mapping[str, list[dict[str, Any]]]
MONEY = re.compile(r"(-?[\d,]+(?:\.\d+)?) ([A-Z]{3})\b")
TAKEN = {"paid", "partially refunded", "refunded", "chargeback"}
STATES = {code: label.replace("_", " ") for label, code in CODES.items()}


def false_figures(said: str, *, rows: Rows) -> list[str]:
    """Amounts of a sentence that no rows of one side of its set come to."""
    known = _sums(_truth({**rows, "orders": _once(rows.get("orders", []))}).values())
    return [" ".join(text) for text in _amounts(said) if _minor(*text) not in known]


def _once(orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """An identical repeat says nothing new."""
    return [row for n, row in enumerate(orders) if row not in orders[:n]]


def _amounts(said: str) -> list[tuple[str, str]]:
    return [(number.replace(",", ""), currency) for number, currency in MONEY.findall(said)]


def _minor(number: str, currency: str) -> tuple[int, str]:
    decimals = Currency(currency).exponent or 0
    whole, _, fraction = number.partition(".")
    assert len(fraction) == decimals, (number, currency)
    return int(whole + fraction), currency


def _truth(rows: Rows) -> dict[str, list[tuple[int, str]]]:
    """Signed amounts by side, of which any sum may be told."""
    found: dict[str, list[tuple[int, str]]] = {}
    for row in rows.get("orders", []):
        captured = _captured_of_order(row)
        found.setdefault("order", []).append((captured, row["currency"]))
        found["order"] += [(-_back_of_order(row), row["currency"])]
        found.setdefault("ordered", []).append((row["amount"], row["currency"]))
        found.setdefault("order back", []).append((_back_of_order(row), row["currency"]))
    for row in _payments(rows):
        found.setdefault("gateway", []).append((_captured(row), row["currency"]))
        found["gateway"] += [(-_back(row), row["currency"])]
        found.setdefault("stated", []).append((_over(row), row["currency"]))
        found.setdefault("gateway back", []).append((_back(row), row["currency"]))
    for row in rows.get("ledger", []):
        amount = -row["amount"] if row["entry_type"].endswith("_reversal") else row["amount"]
        side = f"ledger {row['entry_type'].removesuffix('_reversal')}"
        found.setdefault(side, []).append((amount, row["currency"]))
    for row in rows.get("instructions", []):
        found.setdefault(f"ours {row['kind']}", []).append((row["amount"], row["currency"]))
    for row in rows.get("settlement", []):
        known = row["entry_type"] in {"capture", "refund", "chargeback"}
        kind = row["entry_type"] if known else "other"
        found.setdefault(f"settled {kind}", []).append((abs(row["gross"]), row["currency"]))
    return found


def _sums(sides: Iterable[list[tuple[int, str]]]) -> set[tuple[int, str]]:
    """Every sum of rows of one side and currency."""
    sums = set()
    for side in sides:
        for size in range(1, len(side) + 1):
            for chosen in combinations(side, size):
                currencies = {currency for _, currency in chosen}
                if len(currencies) == 1:
                    sums.add((sum(amount for amount, _ in chosen), *currencies))
    return sums


def _payments(rows: Rows) -> list[dict[str, Any]]:
    return [row for row in rows.get("gateway", []) if row["answer"] == "found"]


def _state(row: Row) -> str:
    return STATES[row["payment_status"]]


def _over(row: Row) -> int:
    """What a payment that took nothing yet is over."""
    return int(row.get("authorised_amount") or row["amount"])


def _captured(row: Row) -> int:
    captured = row.get("captured_amount")
    return (row["amount"] if captured is None else captured) if _state(row) in TAKEN else 0


def _back(row: Row) -> int:
    if _state(row) not in TAKEN:
        return 0
    back = row.get("refunded_amount")
    if back is None:
        return _captured(row) if _state(row) == "refunded" else 0
    return int(back)


def _captured_of_order(row: Row) -> int:
    if row["status"] not in {"paid", "partially_refunded", "refunded", "authorised"}:
        return 0
    return int(row["amount"])


def _back_of_order(row: Row) -> int:
    if row["status"] == "refunded" and row.get("refund_amount") is None:
        return int(row["amount"])
    return int(row.get("refund_amount") or 0) if "refunded" in row["status"] else 0

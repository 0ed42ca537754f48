"""What the gateway said of a payment's risk, in a sentence for the workbook."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

PLAIN = (
    ("risk_action", "action"),
    ("risk_score", "score"),
    ("is3ds", "3-D Secure"),
    ("antifraud_provider", "provider"),
)
LISTS = (("risk_reasons", "name", "reasons"), ("fraud_checks", "check_items", "checks"))


def risk_told(observations: Iterable[Mapping[Any, Any]]) -> dict[str, str]:
    """Transaction id -> what its answers said of risk; the newest word stands.

    Args:
        observations: Payments that answers showed.
    """
    words: dict[str, str] = {}
    for row in sorted(observations, key=lambda row: row["queried_at"]):
        if sentence := _sentence(json.loads(row["detail"]).get("risk", {})):
            words[row["transaction_id"]] = sentence
    return words


def _sentence(risk: Mapping[str, Any]) -> str:
    parts = [f"{word} {risk[name]}" for name, word in PLAIN if risk.get(name)]
    for name, key, word in LISTS:
        if rows := risk.get(name):
            parts.append(f"{word} {', '.join(_with_status(row[key], row) for row in rows)}")
    return "; ".join(parts)


def _with_status(text: str, row: Mapping[str, str]) -> str:
    return f"{text} ({row['status']})" if row.get("status") else text

"""What a content fault makes of the row it hits: no row, one, or two."""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from recon.sandbox.faults.fault_rule import FaultRule, RowKey

Row = dict[str, Any]

FOREIGN = "99999999999999999999"
"""The transaction of a row that nobody asked for."""

NEW_FIELD = "settlement_hint"
"""A field that no document names."""

STATUS_KEYS = (
    "payment_status",
    "capture_status",
    "cancel_status",
    "review_status",
    "refund_status",
    "order_status",
    "status",
)
OPPOSITE = ("1", "0")
"""Codes of a row's status: done, failed."""
OPPOSITES: Mapping[str, tuple[str, str]] = {"payment_status": ("3000", "5000")}
"""The same of a payment: paid, cancelled."""
AMOUNT_KEYS = ("refund_amount", "amount", "payment_amount")


def key_of(row: Mapping[str, Any]) -> RowKey:
    """The transaction and order of a row."""
    return str(row.get("transaction_id", "")), str(row.get("order_no", ""))


def _dropped(_row: Row, _rule: FaultRule) -> list[Row]:
    return []


def _duplicated(row: Row, _rule: FaultRule) -> list[Row]:
    return [row, dict(row)]


def _contradicted(row: Row, _rule: FaultRule) -> list[Row]:
    """Another row of the same transaction, in a state that it cannot have beside the first."""
    name = next((name for name in STATUS_KEYS if name in row), "")
    if not name:
        return [row]
    first, other = OPPOSITES.get(name, OPPOSITE)
    return [row, {**row, name: other if row[name] == first else first}]


def _wrong_amount(row: Row, _rule: FaultRule) -> list[Row]:
    name = next((name for name in AMOUNT_KEYS if name in row), "")
    return [{**row, name: f"1{row[name]}"} if name else row]


def _short_amount(row: Row, _rule: FaultRule) -> list[Row]:
    """`10.30` as `10.3`: a last digit is missing, whatever it was."""
    return [row | {name: str(row[name])[:-1] for name in AMOUNT_KEYS if row.get(name)}]


def _numbers(row: Row, _rule: FaultRule) -> list[Row]:
    """Amounts, ids and codes as numbers instead of text."""
    return [{name: _as_number(value) for name, value in row.items()}]


def _as_number(value: Any) -> Any:
    try:
        number = Decimal(value) if isinstance(value, str) else None
    except InvalidOperation:
        return value
    return value if number is None or not number.is_finite() else number


def _foreign(row: Row, _rule: FaultRule) -> list[Row]:
    return [row, {**row, "transaction_id": FOREIGN, "order_no": FOREIGN}]


def _unknown_code_row(row: Row, rule: FaultRule) -> list[Row]:
    return [row | {name: rule.code for name in STATUS_KEYS if name in row}]


def _unknown_field(row: Row, _rule: FaultRule) -> list[Row]:
    return [row | {NEW_FIELD: {"batch": "B-17", "days": 2}}]


ROW_CHANGES: Mapping[str, Callable[[Row, FaultRule], list[Row]]] = {
    "drop_row": _dropped,
    "duplicate_row": _duplicated,
    "contradicting_row": _contradicted,
    "wrong_amount": _wrong_amount,
    "short_amount": _short_amount,
    "number_types": _numbers,
    "foreign_row": _foreign,
    "unknown_code": _unknown_code_row,
    "unknown_field": _unknown_field,
}

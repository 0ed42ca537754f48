"""Faults inside a reply: rows that are missing, repeated, foreign or false, codes nobody knows."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from recon.model import GatewayState
from recon.sandbox.fault_plan import Fault, FaultRule, RowKey
from recon.sandbox.request import Reply, Sandbox

Row = dict[str, Any]

FOREIGN = "99999999999999999999"
"""The transaction of a row that nobody asked for."""

STATUS_KEYS = (
    "payment_status",
    "capture_status",
    "cancel_status",
    "review_status",
    "refund_status",
    "order_status",
)


def altered(sandbox: Sandbox, reply: Reply, *, fault: Fault) -> Reply:
    """The reply as a content fault leaves it; kinds that concern the wire change nothing."""
    kind = fault.rule.kind
    if kind == "wrong_signature":
        return replace(reply, content={**reply.content, "encryption_data": "0" * 64})
    if kind == "unknown_code" and not reply.rows_key:
        return replace(reply, content=_unknown_code(dict(reply.content), fault.rule))
    if kind == "lag":
        return _with_rows(reply, [_lagging(sandbox, row, fault=fault) for row in reply.rows])
    change = _CHANGES.get(kind)
    if change is None or not reply.rows:
        return reply
    hit = hit_rows([_key(row) for row in reply.rows], fault=fault)
    rows: list[Row] = []
    for index, row in enumerate(reply.rows):
        rows += change(row, fault.rule) if index in hit else [row]
    return _with_rows(reply, rows)


def hit_rows(rows: list[RowKey], *, fault: Fault) -> frozenset[int]:
    """Indexes of the rows that a content fault hits."""
    rule = fault.rule
    if rule.key is not None:
        return frozenset(index for index, row in enumerate(rows) if rule.key in row)
    if rule.row is not None:
        return frozenset({rule.row % len(rows)} if rows else ())
    if fault.picked:
        wanted = {key for row in fault.picked for key in row if key}
        return frozenset(index for index, row in enumerate(rows) if wanted & set(row))
    return frozenset({0})


def _key(row: Mapping[str, Any]) -> RowKey:
    return str(row.get("transaction_id", "")), str(row.get("order_no", ""))


def _with_rows(reply: Reply, rows: list[Row]) -> Reply:
    return (
        replace(reply, content={**reply.content, reply.rows_key: rows}) if reply.rows_key else reply
    )


def _dropped(_row: Row, _rule: FaultRule) -> list[Row]:
    return []


def _duplicated(row: Row, _rule: FaultRule) -> list[Row]:
    return [row, dict(row)]


def _wrong_amount(row: Row, _rule: FaultRule) -> list[Row]:
    name = "refund_amount" if "refund_amount" in row else "amount"
    return [{**row, name: f"1{row[name]}"}]


def _foreign(row: Row, _rule: FaultRule) -> list[Row]:
    return [row, {**row, "transaction_id": FOREIGN, "order_no": FOREIGN}]


def _unknown_code(row: Row, rule: FaultRule) -> Row:
    return row | {name: rule.code for name in STATUS_KEYS if name in row}


def _unknown_code_row(row: Row, rule: FaultRule) -> list[Row]:
    return [_unknown_code(row, rule)]


def _lagging(sandbox: Sandbox, row: Row, *, fault: Fault) -> Row:
    """The row with the state before its payment's last change."""
    payment = sandbox.book.payment(_key(row)[0])
    wanted = {key for picked in fault.picked for key in picked if key}
    if payment is None or not payment.previous_state or (wanted and not wanted & set(_key(row))):
        return row
    state = GatewayState(payment.previous_state)
    terms = sandbox.terms
    return row | {"payment_status": terms.code_of[state], "query_result": terms.result_of(state)}


_CHANGES: Mapping[str, Callable[[Row, FaultRule], list[Row]]] = {
    "drop_row": _dropped,
    "duplicate_row": _duplicated,
    "wrong_amount": _wrong_amount,
    "foreign_row": _foreign,
    "unknown_code": _unknown_code_row,
}

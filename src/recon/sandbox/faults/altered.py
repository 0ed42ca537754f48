"""Faults inside a reply: rows that are missing, repeated, foreign or false, signatures that lie."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from recon.model.words import GatewayState
from recon.sandbox.faults.altered_rows import ROW_CHANGES, Row, key_of
from recon.sandbox.faults.fault_rule import Fault
from recon.sandbox.ground.operation_call import OperationReply, Sandbox

SIGNATURE = "encryption_data"
Content = Mapping[str, Any]


def altered(
    sandbox: Sandbox, reply: OperationReply, *, fault: Fault, earlier: Content | None
) -> OperationReply:
    """The reply as a content fault leaves it; kinds that concern the wire change nothing.

    `earlier` is the content of the last reply of this operation, None before there was one.
    """
    kind = fault.rule.kind
    whole = _WHOLE.get(kind)
    if whole is not None:
        return replace(reply, content=whole(reply, earlier or reply.content))
    if kind == "lag":
        rows = [_lagging(sandbox, row, fault=fault) for row in reply.rows]
        return _with_rows(reply, [row for row in rows if row is not None])
    if kind == "stray_row":
        return _with_rows(reply, [*reply.rows, *_stray(sandbox, reply)])
    if kind in ROW_CHANGES and not reply.rows_key:
        return replace(reply, content=_sole_row(reply, fault=fault))
    return _changed_rows(reply, fault=fault) if kind in ROW_CHANGES else reply


def _changed_rows(reply: OperationReply, *, fault: Fault) -> OperationReply:
    change = ROW_CHANGES[fault.rule.kind]
    hit = fault.hits(map(key_of, reply.rows))
    rows: list[Row] = []
    for index, row in enumerate(reply.rows):
        rows += change(row, fault.rule) if index in hit else [row]
    return _with_rows(reply, rows)


def _sole_row(reply: OperationReply, *, fault: Fault) -> Content:
    """A reply without rows is its own row, which can be neither lost nor doubled."""
    content = dict(reply.content)
    changed = ROW_CHANGES[fault.rule.kind](content, fault.rule)
    return changed[0] if len(changed) == 1 else content


def _with_rows(reply: OperationReply, rows: Any) -> OperationReply:
    return (
        replace(reply, content={**reply.content, reply.rows_key: rows}) if reply.rows_key else reply
    )


def _reordered(reply: OperationReply, _earlier: Content) -> Content:
    return _with_rows(reply, reply.rows[::-1]).content


def _object_for_list(reply: OperationReply, _earlier: Content) -> Content:
    return _with_rows(reply, reply.rows[0]).content if reply.rows else reply.content


def _null_list(reply: OperationReply, _earlier: Content) -> Content:
    return _with_rows(reply, None).content


def _wrong_signature(reply: OperationReply, _earlier: Content) -> Content:
    return {**reply.content, SIGNATURE: "0" * 64}


def _missing_signature(reply: OperationReply, _earlier: Content) -> Content:
    return {name: value for name, value in reply.content.items() if name != SIGNATURE}


def _upper_signature(reply: OperationReply, _earlier: Content) -> Content:
    return {**reply.content, SIGNATURE: str(reply.content.get(SIGNATURE, "")).upper()}


def _stale_signature(reply: OperationReply, earlier: Content) -> Content:
    return {**reply.content, SIGNATURE: earlier.get(SIGNATURE, "")}


def _replayed(_reply: OperationReply, earlier: Content) -> Content:
    return earlier


_WHOLE: Mapping[str, Callable[[OperationReply, Content], Content]] = {
    "reorder_rows": _reordered,
    "object_for_list": _object_for_list,
    "null_list": _null_list,
    "wrong_signature": _wrong_signature,
    "missing_signature": _missing_signature,
    "upper_signature": _upper_signature,
    "stale_signature": _stale_signature,
    "replayed_reply": _replayed,
}


def _stray(sandbox: Sandbox, reply: OperationReply) -> list[Row]:
    """The row of a payment that exists and that this call did not name."""
    asked = {key_of(row)[0] for row in reply.rows}
    shape = reply.rows[0] if reply.rows else {}
    for payment in sandbox.book.every_payment():
        if payment.transaction_id not in asked and shape:
            shown = {"amount": payment.amount, "currency": payment.currency}
            shown |= {"transaction_id": payment.transaction_id, "order_no": payment.order_no}
            return [shape | shown]
    return []


def _lagging(sandbox: Sandbox, row: Row, *, fault: Fault) -> Row | None:
    """The row with the state before its payment's last change; None: there was no such refund."""
    payment = sandbox.book.payment(key_of(row)[0])
    wanted = {key for picked in fault.picked for key in picked if key}
    if payment is None or not payment.previous_state or (wanted and not wanted & set(key_of(row))):
        return row
    if fault.rule.seconds is not None and not _is_recent(sandbox, row, within=fault.rule.seconds):
        return row
    reference = row.get("refund_reference_id")
    if reference and reference == f"{payment.transaction_id}-{payment.refunds:02d}":
        return None
    state = GatewayState(payment.previous_state)
    terms = sandbox.terms
    shown = {"payment_status": terms.code_of[state], "query_result": terms.result_of(state)}
    return row | {name: value for name, value in shown.items() if name in row}


def _is_recent(sandbox: Sandbox, row: Row, *, within: float) -> bool:
    """Whether the payment's last effect is not older than some seconds of the virtual clock."""
    statement = "SELECT coalesce(max(committed_at), 0) FROM effect WHERE transaction_id = ?"
    last = int(sandbox.book.select(statement, (key_of(row)[0],))[0][0])
    return sandbox.clock.now() - last < within

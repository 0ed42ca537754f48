"""Faults inside a reply: rows that are missing, repeated, foreign or false, signatures that lie.

A content fault makes of the row it hits no row, one, or two. The last reply of each operation is
kept only while a fault needs one to replay; beside it stands what a client was truly told.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from recon.model.words import GatewayState
from recon.sandbox.book import Book, RowReply
from recon.sandbox.call import STATUS_DONE, STATUS_FAILED, OperationReply, RowKey, Sandbox
from recon.sandbox.faults import ANY_OPERATION, ENDINGS, KINDS, Fault, FaultRule, planned_faults
from recon.sandbox.wire import render_json

Row = dict[str, Any]

SIGNATURE = "encryption_data"
Content = Mapping[str, Any]


def altered(
    sandbox: Sandbox, reply: OperationReply, *, fault: Fault, earlier: Content | None
) -> OperationReply:
    """The reply as a content fault leaves it; kinds that concern the wire change nothing.

    `earlier` is the content of the last reply of this operation, None before there was one.
    """
    kind = fault.rule.kind
    if kind in _WHOLE:
        return replace(reply, content=_WHOLE[kind](reply, earlier or reply.content))
    if kind == "lag":
        rows = [_lagging(sandbox, row, fault=fault) for row in reply.rows]
        return _with_rows(reply, [row for row in rows if row is not None])
    if kind == "stray_row":
        return _with_rows(reply, [*reply.rows, *_stray(sandbox, reply)])
    change = ROW_CHANGES.get(kind)
    if change is None:
        return reply
    if not reply.rows_key:
        # A reply without rows is its own row, which can be neither lost nor doubled.
        changed = change(dict(reply.content), fault.rule)
        return replace(reply, content=changed[0]) if len(changed) == 1 else reply
    hit = fault.hits(map(key_of, reply.rows))
    each = (change(row, fault.rule) if at in hit else [row] for at, row in enumerate(reply.rows))
    return _with_rows(reply, [row for rows in each for row in rows])


def _with_rows(reply: OperationReply, rows: Any) -> OperationReply:
    return (
        replace(reply, content={**reply.content, reply.rows_key: rows}) if reply.rows_key else reply
    )


def _signed(reply: OperationReply, signature: Any) -> Content:
    return {**reply.content, SIGNATURE: signature}


_WHOLE: Mapping[str, Callable[[OperationReply, Content], Content]] = {
    "reorder_rows": lambda reply, _: _with_rows(reply, reply.rows[::-1]).content,
    "object_for_list": lambda reply, _: (
        _with_rows(reply, reply.rows[0]).content if reply.rows else reply.content
    ),
    "null_list": lambda reply, _: _with_rows(reply, None).content,
    "wrong_signature": lambda reply, _: _signed(reply, "0" * 64),
    "missing_signature": lambda reply, _: {
        name: value for name, value in reply.content.items() if name != SIGNATURE
    },
    "upper_signature": lambda reply, _: _signed(
        reply, str(reply.content.get(SIGNATURE, "")).upper()
    ),
    "stale_signature": lambda reply, earlier: _signed(reply, earlier.get(SIGNATURE, "")),
    "replayed_reply": lambda _, earlier: earlier,
}
"""What becomes of a whole reply, given the one before it."""


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
OPPOSITES: Mapping[str, tuple[str, str]] = {"payment_status": ("3000", "5000")}
"""Codes of a row's status: of a payment paid and cancelled, of others done and failed."""
AMOUNT_KEYS = ("refund_amount", "amount", "payment_amount")


def key_of(row: Mapping[str, Any]) -> RowKey:
    """The transaction and order of a row."""
    return str(row.get("transaction_id", "")), str(row.get("order_no", ""))


def _contradicted(row: Row, _rule: FaultRule) -> list[Row]:
    """Another row of the same transaction, in a state that it cannot have beside the first."""
    name = next((name for name in STATUS_KEYS if name in row), "")
    if not name:
        return [row]
    first, other = OPPOSITES.get(name, (STATUS_DONE, STATUS_FAILED))
    return [row, {**row, name: other if row[name] == first else first}]


def _wrong_amount(row: Row, _rule: FaultRule) -> list[Row]:
    name = next((name for name in AMOUNT_KEYS if name in row), "")
    return [{**row, name: f"1{row[name]}"} if name else row]


def _as_number(value: Any) -> Any:
    try:
        number = Decimal(value) if isinstance(value, str) else None
    except InvalidOperation:
        return value
    return value if number is None or not number.is_finite() else number


ROW_CHANGES: Mapping[str, Callable[[Row, FaultRule], list[Row]]] = {
    "drop_row": lambda _, _rule: [],
    "duplicate_row": lambda row, _: [row, dict(row)],
    "contradicting_row": _contradicted,
    "wrong_amount": _wrong_amount,
    # `10.30` as `10.3`: a last digit is missing, whatever it was.
    "short_amount": lambda row, _: [
        row | {name: str(row[name])[:-1] for name in AMOUNT_KEYS if row.get(name)}
    ],
    "number_types": lambda row, _: [{name: _as_number(value) for name, value in row.items()}],
    "foreign_row": lambda row, _: [row, {**row, "transaction_id": FOREIGN, "order_no": FOREIGN}],
    "unknown_code": lambda row, rule: [
        row | {name: rule.code for name in STATUS_KEYS if name in row}
    ],
    "unknown_field": lambda row, _: [row | {NEW_FIELD: {"batch": "B-17", "days": 2}}],
}
"""No row, one or two in place of the one that is hit."""


def earlier_reply(book: Book, operation: str) -> dict[str, Any] | None:
    """The content of the last reply that was remembered, None before there was one."""
    text = book.note(f"earlier_reply:{operation}")
    return json.loads(text) if text else None


def remember_reply(book: Book, operation: str, *, content: Any) -> None:
    """Remember a reply if a rule of the plan may want to repeat it."""
    rules = [entry.rule for entry in planned_faults(book)]
    about = {ANY_OPERATION, operation}
    if any(KINDS[rule.kind].repeats and rule.operation in about for rule in rules):
        book.write_note(f"earlier_reply:{operation}", value=render_json(content).decode())


MESSAGE_KEYS = ("error_message", "refund_message", "result_info", "failure_reason")
ROW_MISSING = "the reply had no such row"
UNANSWERED = ENDINGS | {"late"}


def row_replies_after(
    before: OperationReply, after: OperationReply, *, wire: FaultRule | None, rows: Iterable[RowKey]
) -> tuple[RowReply, ...]:
    """What to log beside the truth, for a reply before and after its faults.

    A query is logged only where a fault made it lie: it asks for a hundred rows at a time.
    """
    if wire is not None and wire.kind in UNANSWERED:
        code = f"HTTP {wire.status}" if wire.kind == "status" else wire.kind
        return no_row_replies(before, why=f"no answer ({code})", rows=rows)
    asked = list(rows)
    if after.content == before.content and len(before.row_replies) in {0, len(asked)}:
        return before.row_replies
    lied = [row for row in _rows(after) if row not in _rows(before)]
    if not before.row_replies:
        return tuple(map(_told, lied))
    answered = {key_of(row): _told(row) for row in reversed(_rows(after))}
    keys = [(row.transaction_id, row.order_no) for row in before.row_replies]
    keys += [key for key in asked if before.rows_key and key not in keys]
    known = [answered.pop(key, RowReply(*key, "", ROW_MISSING)) for key in keys]
    return (*known, *answered.values())


def no_row_replies(
    reply: OperationReply, *, why: str, rows: Iterable[RowKey]
) -> tuple[RowReply, ...]:
    """Every row with nothing beside it but the reason."""
    keys = [(row.transaction_id, row.order_no) for row in reply.row_replies] or list(rows)
    return tuple(RowReply(*key, "", why) for key in keys)


def _rows(reply: OperationReply) -> list[dict[str, Any]]:
    if not reply.rows_key:
        return [dict(reply.content)]
    rows = reply.content.get(reply.rows_key)
    return [rows] if isinstance(rows, dict) else list(rows or ())


def _told(row: dict[str, Any]) -> RowReply:
    status = next((str(row[name]) for name in STATUS_KEYS if row.get(name)), "")
    message = next((str(row[name]) for name in MESSAGE_KEYS if row.get(name)), "")
    return RowReply(*key_of(row), status, message)

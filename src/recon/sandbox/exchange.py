"""Process one request from bytes to reply: draw faults, run the operation, log, commit once.

Content faults drop, repeat, add or falsify rows, or replace signatures. A fault turns each row it
hits into no row, one row or two. The last reply of each operation is stored only while a fault
needs it for replay; what the client was actually answered is logged with it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from recon.model.terms import GatewayState
from recon.sandbox.batch import BATCHES, act_by_hand, plan_flips, take_back
from recon.sandbox.call import (
    STATUS_DONE,
    STATUS_FAILED,
    Call,
    OperationReply,
    RowKey,
    Sandbox,
    SandboxOperation,
    json_refusal,
)
from recon.sandbox.database import RowReply
from recon.sandbox.faults import (
    ANY_OPERATION,
    ENDINGS,
    KINDS,
    WIRE_KINDS,
    Fault,
    FaultRule,
    draw,
    planned_faults,
)
from recon.sandbox.payments import (
    AUTHORISE,
    CANCEL_SUBSCRIPTION,
    CHECKOUT,
    charge_what_is_due,
)
from recon.sandbox.payouts import PAYOUT
from recon.sandbox.queries import QUERY, REFUND_SEARCH
from recon.sandbox.terms import OF_PARAMETER
from recon.sandbox.wire import parse_body, render_json

OPERATIONS: Mapping[str, SandboxOperation] = {
    "authorise": AUTHORISE,
    "retrievalTrans": QUERY,
    **BATCHES,
    "cancelsubscription": CANCEL_SUBSCRIPTION,
    "checkout": CHECKOUT,
    "payout": PAYOUT,
    "retrievalRefund": REFUND_SEARCH,
}
"""The gateway's operations by the last segment of their path."""
NEVER_LATE = frozenset({"authorise", "checkout"})
"""Operations whose request is never stored, because it contains card data."""
EXTENDED_ONLY = frozenset({"retrievalRefund"})
"""Operations only in the profile `extended`: the document names them without describing them."""
NO_REPLY = OperationReply({}, outcome="none")


@dataclass(frozen=True, slots=True)
class Exchange:
    """Outcome of one request: the reply, and the fault applied to its connection."""

    reply: OperationReply
    wire_fault: FaultRule | None = None


def exchange(
    sandbox: Sandbox, *, operation: str, body: bytes, client_ip: str, base_url: str = ""
) -> Exchange:
    """Answer one request; all its changes are committed when this returns."""
    run_what_is_due(sandbox)
    fields, why = parse_body(body)
    database, seed = sandbox.database, sandbox.options.seed
    with database.transaction():
        log_id, now = database.next_request(), sandbox.clock.now()
        call = Call(operation, fields or {}, client_ip, log_id, now, base_url=base_url)
        # A payment is never delayed: its card would be stored with it.
        faults = [
            fault
            for fault in draw(
                database, operation=operation, rows=OPERATIONS[operation].row_keys(call), seed=seed
            )
            if fault.rule.kind != "late" or operation not in NEVER_LATE
        ]
        wire = next((fault.rule for fault in faults if fault.rule.kind in WIRE_KINDS), None)
        if fields is None:
            # The only one of these refusals that is not HTTP 200: the body is not a message at all.
            unread = replace(call, operation="request")
            reply = json_refusal(sandbox, unread, f"unreadable{OF_PARAMETER}{why}")
            played = Exchange(reply, wire)
        else:
            played = _played(sandbox, call, faults=faults, wire=wire, body=body)
        logged = call.logged(
            played.reply.outcome, fault=" ".join(fault.rule.name for fault in faults)
        )
        database.write_request(logged, rows=played.reply.row_replies)
    return played


def _played(
    sandbox: Sandbox, call: Call, *, faults: list[Fault], wire: FaultRule | None, body: bytes
) -> Exchange:
    operation = OPERATIONS[call.operation]
    rows = operation.row_keys(call)

    def act(when: str) -> None:
        """Apply portal actions to the payments that the call is about."""
        for fault in faults:
            rule = fault.rule
            if rule.kind == "portal" and rule.when == when:
                for index in sorted(fault.hits(rows)):
                    key = rows[index][0] or rows[index][1]
                    act_by_hand(sandbox, action=rule.action, key=key, amount=rule.amount)

    kinds = {fault.rule.kind for fault in faults}
    # These faults make the gateway see a good signature or address as a bad one.
    if "refuse_signature" in kinds:
        call = replace(call, fields={**call.fields, "encryption_data": "0" * 64})
    if "refuse_caller" in kinds:
        call = replace(call, client_ip="")
    act("before")
    if wire is not None and wire.kind == "late":
        _put_off(sandbox, call, rule=wire, body=body)
    if wire is not None and (wire.kind == "late" or wire.when == "before"):
        row_replies = _row_replies_after(NO_REPLY, NO_REPLY, wire=wire, rows=rows)
        return Exchange(replace(NO_REPLY, row_replies=row_replies), wire)
    # Rows dropped before they take effect; for `part` all but the first ones.
    skipped: set[int] = set()
    if wire is not None and wire.kind == "part":
        skipped |= {*range(len(rows) // 2 if wire.rows is None else wire.rows, len(rows))}
        wire = wire.model_copy(update={"kind": wire.then})
    for fault in faults:
        if fault.rule.kind == "drop_row" and fault.rule.when == "before":
            skipped |= fault.hits(rows)
    call = replace(call, skipped=frozenset(skipped))
    true = operation.played(sandbox, call)
    reply = _reply_after(sandbox, call, true, faults=faults)
    act("after")
    # The log records what the client was answered.
    row_replies = _row_replies_after(true, reply, wire=wire, rows=rows)
    return Exchange(replace(reply, row_replies=row_replies), wire)


def _reply_after(
    sandbox: Sandbox, call: Call, true: OperationReply, *, faults: list[Fault]
) -> OperationReply:
    """The reply after the content faults of its call were applied."""
    database, reply = sandbox.database, true
    remembered = f"earlier_reply:{call.operation}"
    text = database.note(remembered)
    earlier = json.loads(text) if text else None
    for fault in faults:
        if fault.rule.kind == "late_flip":
            plan_flips(sandbox, call, reply=true, fault=fault)
        reply = _altered(sandbox, reply, fault=fault, earlier=earlier)
    rules, about = (
        [entry.rule for entry in planned_faults(database)],
        {ANY_OPERATION, call.operation},
    )
    if any(KINDS[rule.kind].repeats and rule.operation in about for rule in rules):
        database.write_note(remembered, value=render_json(true.content).decode())
    return reply


def _put_off(sandbox: Sandbox, call: Call, *, rule: FaultRule, body: bytes) -> None:
    """Schedule a request to take effect after its client has disconnected."""
    sandbox.database.plan(
        "late",
        at=call.now + rule.lasting,
        request_log_id=call.request_log_id,
        operation=call.operation,
        body=body.decode(),
        client_ip=call.client_ip,
    )


def run_what_is_due(sandbox: Sandbox) -> int:
    """Execute due charges, late effects and flips; return the number of effects and flips."""
    charge_what_is_due(sandbox)
    database = sandbox.database
    due = database.due(now=sandbox.clock.now())
    for number, kind, due_at, what in due:
        with database.transaction():
            database.execute("DELETE FROM agenda WHERE number = ?", (number,))
            if kind == "flip":
                take_back(sandbox, **json.loads(what))
                continue
            late = json.loads(what)
            fields, _ = parse_body(late.pop("body").encode())
            call = Call(fields=fields or {}, now=int(due_at), **late)
            reply = OPERATIONS[call.operation].played(sandbox, call)
            row_replies = _no_row_replies(reply, why="no answer (late)", rows=())
            database.write_request(call.logged(reply.outcome, fault="late"), rows=row_replies)
    return len(due)


Row = dict[str, Any]

SIGNATURE = "encryption_data"
Content = Mapping[str, Any]


def _altered(
    sandbox: Sandbox, reply: OperationReply, *, fault: Fault, earlier: Content | None
) -> OperationReply:
    """Apply a content fault to a reply; kinds that concern the wire change nothing.

    `earlier` is the content of the last reply of this operation, None before the first.
    """
    kind = fault.rule.kind
    if kind in _WHOLE:
        return replace(reply, content=_WHOLE[kind](reply, earlier or reply.content))
    if kind == "lag":
        rows = [_lagging(sandbox, row, fault=fault) for row in reply.rows]
        return _with_rows(reply, [row for row in rows if row is not None])
    if kind == "stray_row":
        return _with_rows(reply, [*reply.rows, *_stray(sandbox, reply)])
    change = _ROW_CHANGES.get(kind)
    if change is None:
        return reply
    if not reply.rows_key:
        # A reply without rows counts as one row, which cannot be dropped or doubled.
        changed = change(dict(reply.content), fault.rule)
        return replace(reply, content=changed[0]) if len(changed) == 1 else reply
    hit = fault.hits(map(_key_of, reply.rows))
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
"""Changes to a whole reply, given the one before it."""


def _stray(sandbox: Sandbox, reply: OperationReply) -> list[Row]:
    """A row of an existing payment that this call did not name."""
    requested = {_key_of(row)[0] for row in reply.rows}
    shape = reply.rows[0] if reply.rows else {}
    for payment in sandbox.database.every_payment():
        if payment.transaction_id not in requested and shape:
            shown = {"amount": payment.amount, "currency": payment.currency}
            shown |= {"transaction_id": payment.transaction_id, "order_no": payment.order_no}
            return [shape | shown]
    return []


def _lagging(sandbox: Sandbox, row: Row, *, fault: Fault) -> Row | None:
    """The row with its payment's state before the last change, None for a refund not yet there."""
    payment = sandbox.database.payment(_key_of(row)[0])
    keys = {key for picked in fault.picked for key in picked if key}
    if payment is None or not payment.previous_state or (keys and not keys & set(_key_of(row))):
        return row
    if fault.rule.seconds is not None:
        # Only while its last effect is younger than this many seconds of the virtual clock.
        statement = "SELECT coalesce(max(committed_at), 0) FROM effect WHERE transaction_id = ?"
        last = sandbox.database.select(statement, (payment.transaction_id,))[0][0]
        if sandbox.clock.now() - last >= fault.rule.seconds:
            return row
    reference = row.get("refund_reference_id")
    if reference and reference == f"{payment.transaction_id}-{payment.refunds:02d}":
        return None
    state = GatewayState(payment.previous_state)
    terms = sandbox.terms
    shown = {"payment_status": terms.code_of[state], "query_result": terms.result_of(state)}
    return row | {name: value for name, value in shown.items() if name in row}


FOREIGN = "99999999999999999999"
"""Transaction id of a row that nobody requested."""

NEW_FIELD = "settlement_hint"
"""A field that no document describes."""

STATUS_KEYS = (
    *("payment_status", "capture_status", "cancel_status", "review_status"),
    *("refund_status", "order_status", "status"),
)
OPPOSITES: Mapping[str, tuple[str, str]] = {"payment_status": ("3000", "5000")}
"""Pairs of contradicting status codes: paid and cancelled, elsewhere done and failed."""
AMOUNT_KEYS = ("refund_amount", "amount", "payment_amount")


def _key_of(row: Mapping[str, Any]) -> RowKey:
    return str(row.get("transaction_id", "")), str(row.get("order_no", ""))


def _contradicted(row: Row, _rule: FaultRule) -> list[Row]:
    """The row, and one of the same transaction with a contradicting status."""
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


_ROW_CHANGES: Mapping[str, Callable[[Row, FaultRule], list[Row]]] = {
    "drop_row": lambda _, _rule: [],
    "duplicate_row": lambda row, _: [row, dict(row)],
    "contradicting_row": _contradicted,
    "wrong_amount": _wrong_amount,
    # `10.30` as `10.3`: the last digit is missing, whatever it was.
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
"""Changes to a row: no row, one or two in its place."""


MESSAGE_KEYS = ("error_message", "refund_message", "result_info", "failure_reason")
ROW_MISSING = "the reply had no such row"
UNANSWERED = ENDINGS | {"late"}


def _row_replies_after(
    before: OperationReply, after: OperationReply, *, wire: FaultRule | None, rows: Iterable[RowKey]
) -> tuple[RowReply, ...]:
    """Row replies to log, for a reply before and after its faults.

    For a query only rows falsified by a fault are logged: it asks for a hundred rows at a time.
    """
    if wire is not None and wire.kind in UNANSWERED:
        code = f"HTTP {wire.status}" if wire.kind == "status" else wire.kind
        return _no_row_replies(before, why=f"no answer ({code})", rows=rows)
    requested = list(rows)
    if after.content == before.content and len(before.row_replies) in {0, len(requested)}:
        return before.row_replies
    lied = [row for row in _rows(after) if row not in _rows(before)]
    if not before.row_replies:
        return tuple(map(_reported, lied))
    answered = {_key_of(row): _reported(row) for row in reversed(_rows(after))}
    keys = [(row.transaction_id, row.order_no) for row in before.row_replies]
    keys += [key for key in requested if before.rows_key and key not in keys]
    known = [answered.pop(key, RowReply(*key, "", ROW_MISSING)) for key in keys]
    return (*known, *answered.values())


def _no_row_replies(
    reply: OperationReply, *, why: str, rows: Iterable[RowKey]
) -> tuple[RowReply, ...]:
    """A reply for every row that states nothing but the reason."""
    keys = [(row.transaction_id, row.order_no) for row in reply.row_replies] or list(rows)
    return tuple(RowReply(*key, "", why) for key in keys)


def _rows(reply: OperationReply) -> list[dict[str, Any]]:
    if not reply.rows_key:
        return [dict(reply.content)]
    rows = reply.content.get(reply.rows_key)
    return [rows] if isinstance(rows, dict) else list(rows or ())


def _reported(row: dict[str, Any]) -> RowReply:
    status = next((str(row[name]) for name in STATUS_KEYS if row.get(name)), "")
    message = next((str(row[name]) for name in MESSAGE_KEYS if row.get(name)), "")
    return RowReply(*_key_of(row), status, message)

"""One request from its bytes to its reply: faults drawn, operation run, log written, one commit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from recon.sandbox.altered import altered, hit_rows
from recon.sandbox.authorise import answer_authorise
from recon.sandbox.batch import CANCEL, CAPTURE, REFUND, REVIEW, BatchKind, answer_batch
from recon.sandbox.clock import real_seconds
from recon.sandbox.fault_plan import WIRE_KINDS, Fault, FaultRule, RowKey, draw
from recon.sandbox.query import answer_query
from recon.sandbox.records import LoggedRequest
from recon.sandbox.request import Call, Reply, Sandbox, unreadable
from recon.sandbox.signing import text_of
from recon.sandbox.wire import parse_body

Answer = Callable[[Sandbox, Call], Reply]
NO_REPLY = Reply({}, outcome="none")


@dataclass(frozen=True, slots=True)
class Exchange:
    """What becomes of one request: a reply, and the fault that the wire plays on it."""

    reply: Reply
    wire_fault: FaultRule | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the gateway."""

    answer: Answer
    rows_key: str = ""
    """The list of rows in its request, "" when the request is its own row."""


def _batch(kind: BatchKind) -> Operation:
    return Operation(partial(answer_batch, kind=kind), kind.rows_key)


OPERATIONS: Mapping[str, Operation] = {
    "authorise": Operation(answer_authorise),
    "retrievalTrans": Operation(answer_query),
    **{kind.operation: _batch(kind) for kind in (CAPTURE, CANCEL, REVIEW, REFUND)},
}


def exchange(sandbox: Sandbox, *, operation: str, body: bytes, client_ip: str) -> Exchange:
    """Answer one request; everything it changes is committed when this returns."""
    run_late_requests(sandbox)
    fields, why = parse_body(body)
    with sandbox.book.transaction():
        log_id = f"RL{sandbox.book.next_number('requests'):08d}"
        call = Call(operation, fields or {}, client_ip, log_id, sandbox.clock.now())
        faults = _drawn(sandbox, call)
        if fields is None:
            played = _wire_faulted(faults, unreadable(sandbox, why))
        else:
            played = _played(sandbox, call, faults=faults, body=body)
        _log(sandbox, call, reply=played.reply, faults=faults)
    return played


def _drawn(sandbox: Sandbox, call: Call) -> list[Fault]:
    """The faults of this call; only a batch can be late: a payment would be kept with its card."""
    drawn = draw(
        sandbox.book, operation=call.operation, rows=row_keys(call), seed=sandbox.options.seed
    )
    can_be_late = bool(OPERATIONS[call.operation].rows_key)
    return [fault for fault in drawn if fault.rule.kind != "late" or can_be_late]


def row_keys(call: Call) -> list[RowKey]:
    """The transactions and orders a request is about."""
    rows_key = OPERATIONS[call.operation].rows_key
    if rows_key:
        return [_row_key(row) for row in call.rows(rows_key) or ()]
    if call.operation == "retrievalTrans":
        orders = [("", key) for key in call.text("orders").split(",") if key]
        return orders + [(key, "") for key in call.text("trades").split(",") if key]
    return [_row_key(call.fields)]


def _row_key(fields: Mapping[str, object]) -> RowKey:
    return text_of(fields.get("transaction_id")), text_of(fields.get("order_no"))


def _played(sandbox: Sandbox, call: Call, *, faults: list[Fault], body: bytes) -> Exchange:
    wire = next((fault.rule for fault in faults if fault.rule.kind in WIRE_KINDS), None)
    if wire is not None and wire.kind == "late":
        _put_off(sandbox, call, rule=wire, body=body)
        return Exchange(NO_REPLY, wire)
    if wire is not None and wire.when == "before" and wire.kind != "delay":
        return Exchange(NO_REPLY, wire)
    call = replace(call, skipped=_skipped(call, faults=faults))
    reply = OPERATIONS[call.operation].answer(sandbox, call)
    for fault in faults:
        reply = altered(sandbox, reply, fault=fault)
    return Exchange(reply, wire)


def _skipped(call: Call, *, faults: list[Fault]) -> frozenset[int]:
    """Rows that are lost before they take effect."""
    lost = [f for f in faults if f.rule.kind == "drop_row" and f.rule.when == "before"]
    return frozenset().union(*(hit_rows(row_keys(call), fault=fault) for fault in lost))


def _wire_faulted(faults: list[Fault], reply: Reply) -> Exchange:
    wire = next((fault.rule for fault in faults if fault.rule.kind in WIRE_KINDS), None)
    return Exchange(reply, wire)


def _log(sandbox: Sandbox, call: Call, *, reply: Reply, faults: list[Fault]) -> None:
    logged = LoggedRequest(
        request_log_id=call.request_log_id,
        received_at=call.now,
        operation=call.operation,
        merchant_id=call.text("merchant_id"),
        account_id=call.text("account_id"),
        outcome=reply.outcome,
        fault=" ".join(f"{fault.rule.kind}-{fault.rule.when}" for fault in faults),
    )
    sandbox.book.write_request(logged, told=reply.told)


def _put_off(sandbox: Sandbox, call: Call, *, rule: FaultRule, body: bytes) -> None:
    """Keep a batch so that it takes effect after its client has gone."""
    since = real_seconds() if rule.on_real_clock else call.now
    sandbox.book.execute(
        "INSERT INTO late_request VALUES (?, ?, ?, ?, ?, ?)",
        (
            call.request_log_id,
            call.operation,
            body.decode(),
            call.client_ip,
            since + rule.seconds,
            int(rule.on_real_clock),
        ),
    )


def run_late_requests(sandbox: Sandbox) -> int:
    """Let the requests whose time has come take effect; returns how many."""
    due = sandbox.book.select(
        "SELECT request_log_id, operation, body, client_ip, due_at, on_real_clock"
        " FROM late_request WHERE due_at <= CASE on_real_clock WHEN 1 THEN ? ELSE ? END"
        " ORDER BY due_at, request_log_id",
        (real_seconds(), sandbox.clock.now()),
    )
    for log_id, operation, body, client_ip, due_at, on_real_clock in due:
        at = sandbox.clock.now() if on_real_clock else int(due_at)
        fields, _ = parse_body(body.encode())
        call = Call(operation, fields or {}, client_ip, log_id, at)
        with sandbox.book.transaction():
            reply = OPERATIONS[operation].answer(sandbox, call)
            logged = LoggedRequest(
                log_id,
                at,
                operation,
                call.text("merchant_id"),
                call.text("account_id"),
                reply.outcome,
                "late",
            )
            sandbox.book.write_request(logged, told=reply.told)
            sandbox.book.execute("DELETE FROM late_request WHERE request_log_id = ?", (log_id,))
    return len(due)

"""One request from its bytes to its reply: faults drawn, operation run, log written, one commit."""

from dataclasses import dataclass, replace

from recon.sandbox.faults.altered import (
    altered,
    earlier_reply,
    no_row_replies,
    remember_reply,
    row_replies_after,
)
from recon.sandbox.faults.fault_plan import draw
from recon.sandbox.faults.fault_rule import WIRE_KINDS, Fault, FaultRule
from recon.sandbox.ground.book import LoggedRequest
from recon.sandbox.ground.clock import real_seconds
from recon.sandbox.ground.operation_call import Call, OperationReply, Sandbox, unreadable
from recon.sandbox.ground.wire import parse_body
from recon.sandbox.operations.operations import NEVER_LATE, OPERATIONS, row_keys
from recon.sandbox.operations.portal_operations import act_on_rows, plan_flips, run_flips
from recon.sandbox.operations.subscription import charge_what_is_due

NO_REPLY = OperationReply({}, outcome="none")


@dataclass(frozen=True, slots=True)
class Exchange:
    """What becomes of one request: a reply, and the fault that the wire plays on it."""

    reply: OperationReply
    wire_fault: FaultRule | None = None


def exchange(
    sandbox: Sandbox, *, operation: str, body: bytes, client_ip: str, base_url: str = ""
) -> Exchange:
    """Answer one request; everything it changes is committed when this returns."""
    run_what_is_due(sandbox)
    fields, why = parse_body(body)
    with sandbox.book.transaction():
        log_id = f"RL{sandbox.book.next_number('requests'):08d}"
        call = Call(operation, fields or {}, client_ip, log_id, sandbox.clock.now())
        call = replace(call, base_url=base_url)
        faults = _drawn(sandbox, call)
        if fields is None:
            played = _wire_faulted(faults, unreadable(sandbox, why))
        else:
            played = _played(sandbox, call, faults=faults, body=body)
        _log(sandbox, call, reply=played.reply, faults=faults)
    return played


def _drawn(sandbox: Sandbox, call: Call) -> list[Fault]:
    """The faults of this call; no payment can be late: it would be kept with its card."""
    drawn = draw(
        sandbox.book, operation=call.operation, rows=row_keys(call), seed=sandbox.options.seed
    )
    can_be_late = call.operation not in NEVER_LATE
    return [fault for fault in drawn if fault.rule.kind != "late" or can_be_late]


def _played(sandbox: Sandbox, call: Call, *, faults: list[Fault], body: bytes) -> Exchange:
    wire = next((fault.rule for fault in faults if fault.rule.kind in WIRE_KINDS), None)
    call = _misread(call, faults=faults)
    _act_by_hand(sandbox, call, faults=faults, when="before")
    if wire is not None and wire.kind == "late":
        _put_off(sandbox, call, rule=wire, body=body)
    if wire is not None and (wire.kind == "late" or wire.when == "before"):
        row_replies = row_replies_after(NO_REPLY, NO_REPLY, wire=wire, rows=row_keys(call))
        return Exchange(replace(NO_REPLY, row_replies=row_replies), wire)
    if wire is not None and wire.kind == "part":
        call, wire = _in_part(call, rule=wire)
    call = replace(call, skipped=call.skipped | _skipped(call, faults=faults))
    return Exchange(_answered(sandbox, call, faults=faults, wire=wire), wire)


def _answered(
    sandbox: Sandbox, call: Call, *, faults: list[Fault], wire: FaultRule | None
) -> OperationReply:
    """The reply as it leaves, with what its client is told by it."""
    true = reply = OPERATIONS[call.operation].answer(sandbox, call)
    earlier = earlier_reply(sandbox.book, call.operation)
    for fault in faults:
        if fault.rule.kind == "late_flip":
            plan_flips(sandbox, call, reply=true, fault=fault)
        reply = altered(sandbox, reply, fault=fault, earlier=earlier)
    remember_reply(sandbox.book, call.operation, content=true.content)
    _act_by_hand(sandbox, call, faults=faults, when="after")
    return replace(
        reply, row_replies=row_replies_after(true, reply, wire=wire, rows=row_keys(call))
    )


def _misread(call: Call, *, faults: list[Fault]) -> Call:
    """The call as a gateway sees it that takes a good signature or address for a bad one."""
    kinds = {fault.rule.kind for fault in faults}
    if "refuse_signature" in kinds:
        call = replace(call, fields={**call.fields, "encryption_data": "0" * 64})
    return replace(call, client_ip="") if "refuse_caller" in kinds else call


def _act_by_hand(sandbox: Sandbox, call: Call, *, faults: list[Fault], when: str) -> None:
    for fault in faults:
        if fault.rule.kind == "portal" and fault.rule.when == when:
            rows = row_keys(call)
            hit = fault.hits(rows)
            act_on_rows(sandbox, rule=fault.rule, rows=[rows[index] for index in sorted(hit)])


def _in_part(call: Call, *, rule: FaultRule) -> tuple[Call, FaultRule]:
    """Only the first rows take effect, and the call ends in another fault."""
    count = len(row_keys(call))
    kept = count // 2 if rule.rows is None else rule.rows
    ending = rule.model_copy(update={"kind": rule.then})
    return replace(call, skipped=frozenset(range(kept, count))), ending


def _skipped(call: Call, *, faults: list[Fault]) -> frozenset[int]:
    """Rows that are lost before they take effect."""
    lost = [f for f in faults if f.rule.kind == "drop_row" and f.rule.when == "before"]
    return frozenset().union(*(fault.hits(row_keys(call)) for fault in lost))


def _wire_faulted(faults: list[Fault], reply: OperationReply) -> Exchange:
    wire = next((fault.rule for fault in faults if fault.rule.kind in WIRE_KINDS), None)
    return Exchange(reply, wire)


def _log(sandbox: Sandbox, call: Call, *, reply: OperationReply, faults: list[Fault]) -> None:
    logged = LoggedRequest(
        request_log_id=call.request_log_id,
        received_at=call.now,
        operation=call.operation,
        merchant_id=call.text("merchant_id"),
        account_id=call.text("account_id"),
        outcome=reply.outcome,
        fault=" ".join(fault.rule.name for fault in faults),
    )
    sandbox.book.write_request(logged, rows=reply.row_replies)


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
            since + rule.lasting,
            int(rule.on_real_clock),
        ),
    )


def run_what_is_due(sandbox: Sandbox) -> int:
    """Let charges, late effects and flips happen that are due; returns how many were late."""
    charge_what_is_due(sandbox)
    return _run_late_requests(sandbox) + run_flips(sandbox)


def _run_late_requests(sandbox: Sandbox) -> int:
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
            row_replies = no_row_replies(reply, why="no answer (late)", rows=())
            sandbox.book.write_request(logged, rows=row_replies)
            sandbox.book.execute("DELETE FROM late_request WHERE request_log_id = ?", (log_id,))
    return len(due)

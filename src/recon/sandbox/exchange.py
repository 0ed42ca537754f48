"""One request from its bytes to its reply: faults drawn, operation run, log written, one commit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from recon.sandbox.altered import (
    altered,
    earlier_reply,
    no_row_replies,
    remember_reply,
    row_replies_after,
)
from recon.sandbox.batch import BATCHES, act_by_hand, plan_flips, run_flips
from recon.sandbox.call import Call, OperationReply, Sandbox, SandboxOperation, json_refusal
from recon.sandbox.faults import WIRE_KINDS, Fault, FaultRule, draw
from recon.sandbox.options import real_seconds
from recon.sandbox.paying import AUTHORISE, CHECKOUT
from recon.sandbox.payouts import PAYOUT
from recon.sandbox.queries import OPTIMISE, QUERY, REFUND_SEARCH
from recon.sandbox.subscriptions import CANCEL_SUBSCRIPTION, charge_what_is_due
from recon.sandbox.terms import OF_PARAMETER
from recon.sandbox.wire import parse_body

OPERATIONS: Mapping[str, SandboxOperation] = {
    "authorise": AUTHORISE,
    "retrievalTrans": QUERY,
    **BATCHES,
    "cancelsubscription": CANCEL_SUBSCRIPTION,
    "checkout": CHECKOUT,
    "payout": PAYOUT,
    "retrievalRefund": REFUND_SEARCH,
    "optimise": OPTIMISE,
}
"""The gateway's operations by the last part of their path."""
NEVER_LATE = frozenset({"authorise", "checkout"})
"""Operations whose request is never kept: it carries a card."""
EXTENDED_ONLY = frozenset({"retrievalRefund", "optimise"})
"""Operations that only the profile `extended` has: the document names them and no more."""
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
    book, seed = sandbox.book, sandbox.options.seed
    with book.transaction():
        log_id, now = book.next_request(), sandbox.clock.now()
        call = Call(operation, fields or {}, client_ip, log_id, now, base_url=base_url)
        # No payment can be late: it would be kept with its card.
        faults = [
            fault
            for fault in draw(
                book, operation=operation, rows=OPERATIONS[operation].row_keys(call), seed=seed
            )
            if fault.rule.kind != "late" or operation not in NEVER_LATE
        ]
        wire = next((fault.rule for fault in faults if fault.rule.kind in WIRE_KINDS), None)
        if fields is None:
            # The one refusal of these that is not HTTP 200: the body is no message at all.
            unread = replace(call, operation="request")
            reply = json_refusal(sandbox, unread, f"unreadable{OF_PARAMETER}{why}")
            played = Exchange(reply, wire)
        else:
            played = _played(sandbox, call, faults=faults, wire=wire, body=body)
        logged = call.logged(
            played.reply.outcome, fault=" ".join(fault.rule.name for fault in faults)
        )
        book.write_request(logged, rows=played.reply.row_replies)
    return played


def _played(
    sandbox: Sandbox, call: Call, *, faults: list[Fault], wire: FaultRule | None, body: bytes
) -> Exchange:
    operation, book = OPERATIONS[call.operation], sandbox.book
    rows = operation.row_keys(call)

    def act(when: str) -> None:
        """What somebody does by hand in the portal, on the payments that the call is about."""
        for fault in faults:
            rule = fault.rule
            if rule.kind == "portal" and rule.when == when:
                for index in sorted(fault.hits(rows)):
                    key = rows[index][0] or rows[index][1]
                    act_by_hand(sandbox, action=rule.action, key=key, amount=rule.amount)

    kinds = {fault.rule.kind for fault in faults}
    # The call as a gateway sees it that takes a good signature or address for a bad one.
    if "refuse_signature" in kinds:
        call = replace(call, fields={**call.fields, "encryption_data": "0" * 64})
    if "refuse_caller" in kinds:
        call = replace(call, client_ip="")
    act("before")
    if wire is not None and wire.kind == "late":
        _put_off(sandbox, call, rule=wire, body=body)
    if wire is not None and (wire.kind == "late" or wire.when == "before"):
        row_replies = row_replies_after(NO_REPLY, NO_REPLY, wire=wire, rows=rows)
        return Exchange(replace(NO_REPLY, row_replies=row_replies), wire)
    # Rows that are lost before they take effect; of `part` only the first ones do.
    skipped: set[int] = set()
    if wire is not None and wire.kind == "part":
        skipped |= {*range(len(rows) // 2 if wire.rows is None else wire.rows, len(rows))}
        wire = wire.model_copy(update={"kind": wire.then})
    for fault in faults:
        if fault.rule.kind == "drop_row" and fault.rule.when == "before":
            skipped |= fault.hits(rows)
    call = replace(call, skipped=frozenset(skipped))
    true = reply = operation.played(sandbox, call)
    earlier = earlier_reply(book, call.operation)
    for fault in faults:
        if fault.rule.kind == "late_flip":
            plan_flips(sandbox, call, reply=true, fault=fault)
        reply = altered(sandbox, reply, fault=fault, earlier=earlier)
    remember_reply(book, call.operation, content=true.content)
    act("after")
    # With what its client is told by it.
    row_replies = row_replies_after(true, reply, wire=wire, rows=rows)
    return Exchange(replace(reply, row_replies=row_replies), wire)


def _put_off(sandbox: Sandbox, call: Call, *, rule: FaultRule, body: bytes) -> None:
    """Keep a batch so that it takes effect after its client has gone."""
    since = real_seconds() if rule.on_real_clock else call.now
    kept = (call.request_log_id, call.operation, body.decode(), call.client_ip)
    sandbox.book.execute(
        "INSERT INTO late_request VALUES (?, ?, ?, ?, ?, ?)",
        (*kept, since + rule.lasting, int(rule.on_real_clock)),
    )


def run_what_is_due(sandbox: Sandbox) -> int:
    """Let charges, late effects and flips happen that are due; returns how many were late."""
    charge_what_is_due(sandbox)
    book = sandbox.book
    due = book.select(
        "SELECT request_log_id, operation, body, client_ip, due_at, on_real_clock"
        " FROM late_request WHERE due_at <= CASE on_real_clock WHEN 1 THEN ? ELSE ? END"
        " ORDER BY due_at, request_log_id",
        (real_seconds(), sandbox.clock.now()),
    )
    for log_id, operation, body, client_ip, due_at, on_real_clock in due:
        at = sandbox.clock.now() if on_real_clock else int(due_at)
        fields, _ = parse_body(body.encode())
        call = Call(operation, fields or {}, client_ip, log_id, at)
        with book.transaction():
            reply = OPERATIONS[operation].played(sandbox, call)
            row_replies = no_row_replies(reply, why="no answer (late)", rows=())
            book.write_request(call.logged(reply.outcome, fault="late"), rows=row_replies)
            book.execute("DELETE FROM late_request WHERE request_log_id = ?", (log_id,))
    return len(due) + run_flips(sandbox)

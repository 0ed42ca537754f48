"""The gateway's operations by the last part of their path."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from recon.sandbox.faults.fault_rule import RowKey
from recon.sandbox.ground.operation_call import Call, OperationReply, Sandbox
from recon.sandbox.ground.wire import text_of
from recon.sandbox.operations.authorise import answer_authorise
from recon.sandbox.operations.batch import CANCEL, CAPTURE, REFUND, REVIEW, BatchKind, answer_batch
from recon.sandbox.operations.checkout import answer_checkout
from recon.sandbox.operations.order_query import answer_query
from recon.sandbox.operations.payout_operation import answer_payout
from recon.sandbox.operations.refund_search import LISTS, answer_optimise, answer_refund_search
from recon.sandbox.operations.subscription import answer_cancel_subscription

Answer = Callable[[Sandbox, Call], OperationReply]
NEVER_LATE = frozenset({"authorise", "checkout"})
"""Operations whose request is never kept: it carries a card."""

EXTENDED_ONLY = frozenset({"retrievalRefund", "optimise"})
"""Operations that only the profile `extended` has: the document names them and no more."""

_NAMES_OF_ONE = ("order_no", "request_id", "recurring_id")
"""What identifies a request that is its own row."""


@dataclass(frozen=True, slots=True)
class SandboxOperation:
    """One operation of the gateway."""

    answer: Answer
    rows_key: str = ""
    """The list of rows in its request, "" when the request is its own row."""


def _batch(kind: BatchKind) -> SandboxOperation:
    return SandboxOperation(partial(answer_batch, kind=kind), kind.rows_key)


OPERATIONS: Mapping[str, SandboxOperation] = {
    "authorise": SandboxOperation(answer_authorise),
    "retrievalTrans": SandboxOperation(answer_query),
    **{kind.operation: _batch(kind) for kind in (CAPTURE, CANCEL, REVIEW, REFUND)},
    "cancelsubscription": SandboxOperation(answer_cancel_subscription),
    "checkout": SandboxOperation(answer_checkout),
    "payout": SandboxOperation(answer_payout),
    "retrievalRefund": SandboxOperation(answer_refund_search),
    "optimise": SandboxOperation(answer_optimise),
}


def row_keys(call: Call) -> list[RowKey]:
    """The transactions and orders a request is about."""
    rows_key = OPERATIONS[call.operation].rows_key
    if rows_key:
        return [_row_key(row) for row in call.rows(rows_key) or ()]
    if call.operation == "retrievalTrans":
        orders = [("", key) for key in call.text("orders").split(",") if key]
        return orders + [(key, "") for key in call.text("trades").split(",") if key]
    if call.operation == "retrievalRefund":
        return [("", key) for name in LISTS for key in call.text(name).split(",") if key]
    return [_row_key(call.fields)]


def _row_key(fields: Mapping[str, object]) -> RowKey:
    name = next((name for name in _NAMES_OF_ONE if fields.get(name)), "order_no")
    return text_of(fields.get("transaction_id")), text_of(fields.get(name))

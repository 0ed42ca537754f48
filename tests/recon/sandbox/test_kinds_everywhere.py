"""Every kind of fault on every operation: the sandbox itself never breaks."""

import json
from typing import Any

import pytest

from recon.sandbox.faults.fault_kinds import KINDS
from recon.sandbox.faults.fault_plan import install, rules_in
from recon.sandbox.ground.book import Book
from recon.sandbox.ground.clock import VirtualClock
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.options import SandboxOptions
from recon.sandbox.ground.sandbox_terms import load_terms
from recon.sandbox.ground.truth import invariants
from recon.sandbox.operations.operations import OPERATIONS
from recon.sandbox.pages.timeline import timeline
from recon.sandbox.server.delivery import delivered
from recon.sandbox.server.http_exchange import exchange
from recon.sandbox.server.sandbox_app import fill
from tests.recon.sandbox.conftest import ACCOUNT, CARD_PAYMENT, CARD_SIGNED, MERCHANT, signature

OPTIONS = SandboxOptions(orders=30)
SIDES = [(kind, side) for kind, terms in KINDS.items() for side in sorted(terms.sides)]


@pytest.fixture(scope="module")
def sandbox() -> Any:
    """A sandbox without a server."""
    book = Book(None)
    terms = load_terms()
    with book.transaction():
        fill(book, options=OPTIONS, terms=terms)
    yield Sandbox(OPTIONS, terms, book, VirtualClock())
    book.close()


def body_of(sandbox: Sandbox, operation: str) -> bytes:
    """A good request where we know one, else an object that the operation has to refuse."""
    ours = {"merchant_id": MERCHANT, "account_id": ACCOUNT}
    payments = list(sandbox.book.every_payment())[:3]
    ids = [payment.transaction_id for payment in payments]
    rows = [
        {"transaction_id": p.transaction_id, "order_no": p.order_no, "currency": p.currency}
        | {"amount": p.amount, "refund_amount": p.amount, "review_flag": "1"}
        for p in payments
    ]
    if operation == "authorise":
        signed = signature(*(CARD_PAYMENT[name] for name in CARD_SIGNED))
        fields: dict[str, Any] = CARD_PAYMENT | {"encryption_data": signed}
    elif operation == "retrievalTrans":
        fields = ours | {"encryption_data": signature(MERCHANT, ACCOUNT), "trades": ",".join(ids)}
    else:
        fields = ours | {"encryption_data": signature(MERCHANT, ACCOUNT, *ids)}
        fields[f"{operation}_orders"] = rows
    return json.dumps(fields).encode()


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.parametrize(("kind", "side"), SIDES)
def test_a_fault_never_breaks_the_sandbox(
    sandbox: Any, operation: str, kind: str, side: str
) -> None:
    """Two calls are played and can be delivered, the story can be told, money stays bounded."""
    table = {"kind": kind} | ({"when": side} if len(KINDS[kind].sides) > 1 else {})
    with sandbox.book.transaction():
        install(sandbox.book, rules_in(table, source="test"), append=False)
    for body in (body_of(sandbox, operation), b"{}", b"no message"):
        for _ in range(2):
            played = exchange(sandbox, operation=operation, body=body, client_ip="127.0.0.1")
            assert delivered(played).status_code >= 200
    first = next(sandbox.book.every_payment())
    assert timeline(sandbox, transaction_id=first.transaction_id) is not None
    counted = invariants(sandbox.book)
    assert (counted["over_captured"], counted["over_refunded"]) == (0, 0)

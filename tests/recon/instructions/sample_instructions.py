"""One plain instruction that tests change in what they are about."""

from collections.abc import Sequence
from typing import Any

from pydantic import SecretStr

from recon.gateway_client import (
    BatchReply,
    NotSentError,
    Operation,
    OurAccount,
    PreparedRequest,
    ReplyOutcome,
    UnknownOutcomeError,
)
from recon.gateway_client.replies import RowOutcome
from recon.instructions.eligibility import Eligible
from recon.instructions.instruction import Instruction
from recon.model.terms import InstructionKind, InstructionState

INSTRUCTION = Instruction(
    instruction_id="i1",
    natural_key="k1",
    merchant_id="100042",
    account_id="100042001",
    kind=InstructionKind.CAPTURE,
    order_no="A-1",
    transaction_id="T1",
    currency="EUR",
    amount=10_000,
    payment_amount=10_000,
    reason="",
    request_id="",
    file_id=1,
    line=2,
    state=InstructionState.APPROVED,
    hold="",
    approved_by="rule",
)

IBAN = "DE89370400440532013000"
"""A private value of every request below."""


def request_of(rows: Sequence[Eligible], *, body: bytes = b"", sha: str = "") -> PreparedRequest:
    """A prepared batch that no client made; its rows are the cleared ones."""
    sent: Any = tuple(rows)
    return PreparedRequest(
        path="",
        content_type="",
        body=body,
        body_sha256=sha,
        signature="",
        account=OurAccount("100042", "100042001", SecretStr("sandbox")),
        private=frozenset({IBAN}),
        operation=Operation.CAPTURE,
        rows=sent,
    )


def reply_of(*outcomes: ReplyOutcome, stop: str = "") -> BatchReply:
    rows = tuple(RowOutcome(at, "", "", one, "c", "m") for at, one in enumerate(outcomes))
    return BatchReply(rows, return_status="1", return_message="OK", stop_reason=stop)


def not_sent(reason: str = "refused") -> NotSentError:
    return NotSentError(reason, kind="ConnectError")


def silence() -> UnknownOutcomeError:
    return UnknownOutcomeError("silence", kind="Silence")

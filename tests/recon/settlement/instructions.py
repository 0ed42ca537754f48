"""One plain instruction that tests change in what they are about."""

from recon.model.words import InstructionKind, InstructionState
from recon.settlement.instruction import Instruction

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
    attempts=0,
    baseline_status="",
    approved_by="rule",
    in_doubt_since=None,
)

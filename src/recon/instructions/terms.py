"""The terms of an instruction: every field that decides what is sent, as the history binds them.

They are bound when an instruction is planned, again when people approve it, and what its claim
fills in (the payment) at the claim. Whatever the journal's table says later is compared with them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from recon.instructions.instruction import Instruction
from recon.model.words import InstructionKind

BOUND = (
    *("merchant_id", "account_id", "kind", "order_no", "transaction_id", "currency", "amount"),
    *("payment_amount", "reason", "request_id", "review_flag", "recurring_id", "contract_name"),
    *("gateway_request_id", "payee", "payee_digest", "again_for", "repeats", "sealed"),
)
"""Fields of an instruction that are sent, or choose what is, or whom it waits for."""
NOT_SENT = frozenset(
    {
        *("instruction_id", "natural_key", "file_id", "line", "state", "hold", "attempts"),
        *("baseline_status", "approved_by", "in_doubt_since", "message", "refund_reference_id"),
        *("planned_at", "approved_at", "sent_at", "outcome_at"),
    }
)
"""Fields that tell of an instruction and change nothing of what is sent."""
KEPT_AS_DIGEST = frozenset({"reason", "sealed"})
"""Texts of people and sealed details: the history cannot be erased, so it has only their digest."""
DIGEST_CHARACTERS = 32
OF_PAYOUTS = "gateway_request_id"
"""Made for every instruction, sent with payouts only."""

Terms = Mapping[str, str | int]
"""Field -> value; a field that is blank or 0 is left out."""


def terms_of(item: Instruction) -> dict[str, str | int]:
    """What an instruction would send now."""
    values = {name: getattr(item, name) for name in BOUND}
    if item.kind is not InstructionKind.PAYOUT:
        del values[OF_PAYOUTS]
    return {name: _shown(name, value) for name, value in values.items() if value}


def _shown(name: str, value: str | int) -> str | int:
    if name in KEPT_AS_DIGEST:
        return text_digest(str(value))
    return value if isinstance(value, int) else str(value)


def text_digest(text: str) -> str:
    """What the history has of a text that it cannot keep."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


def filled_in(item: Instruction, **fields: str | int) -> dict[str, str | int | None]:
    """Terms that a step changes on purpose, and only those; a blank one is None."""
    after = terms_of(replace(item, **fields))  # type: ignore[arg-type]  # named fields of it
    before = terms_of(item)
    return {name: after.get(name) for name in fields if after.get(name) != before.get(name)}

"""The terms of an instruction: every field that decides what is sent, as the history binds them.

They are bound when an instruction is planned, again when people approve it, and what its claim
fills in (the payment) at the claim. Whatever the journal's table says later is compared with them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from recon.model.words import InstructionKind
from recon.settlement.approval import sums_in_words
from recon.settlement.instruction import FOLLOWS, Instruction

BOUND = (
    *("merchant_id", "account_id", "kind", "order_no", "transaction_id", "currency", "amount"),
    *("payment_amount", "reason", "request_id", "review_flag", "recurring_id", "contract_name"),
    *("gateway_request_id", "payee", "payee_digest", "again_for", "repeats", "sealed"),
)
"""Fields of an instruction that are sent, or choose what is, or whom it waits for."""
NOT_SENT = frozenset(
    {
        *("instruction_id", "natural_key", "file_id", "line", "state", "hold", "attempts"),
        *("baseline_status", "approved_by", "in_doubt_since"),
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
    fields: dict[str, str | int] = {}
    for name in BOUND:
        if name == OF_PAYOUTS and item.kind is not InstructionKind.PAYOUT:
            continue
        value = getattr(item, name)
        if value:
            fields[name] = _shown(name, value)
    return fields


def _shown(name: str, value: str | int) -> str | int:
    if name in KEPT_AS_DIGEST:
        return hashlib.sha256(str(value).encode()).hexdigest()[:DIGEST_CHARACTERS]
    return value if isinstance(value, int) else str(value)


def filled_in(item: Instruction, **fields: str | int) -> dict[str, str | int]:
    """Terms that a step changes on purpose, and only those; blank ones are told as such."""
    after = terms_of(replace(item, **fields))  # type: ignore[arg-type]  # named fields of it
    before = terms_of(item)
    blank: dict[str, str | int] = {name: 0 if name.endswith("amount") else "" for name in fields}
    return {
        name: after.get(name, blank[name]) for name in fields if after.get(name) != before.get(name)
    }


def folded(told_in_order: Iterable[Terms]) -> dict[str, str | int]:
    """What is bound after some events, oldest first; a later one says more, or otherwise."""
    bound: dict[str, str | int] = {}
    for terms in told_in_order:
        bound |= terms
    return {name: value for name, value in bound.items() if value}


def changed(item: Instruction, *, bound: Terms) -> str:
    """What the table says otherwise than the history, in words; "" when they agree."""
    if not bound:
        return (
            f"instruction {item.instruction_id} was never bound by the history: it was planned "
            "past the journal"
        )
    now = terms_of(item)
    names = [
        name
        for name in BOUND
        if now.get(name) != bound.get(name)
        # What is sealed is erased with the instruction's end.
        and not (name == "sealed" and not FOLLOWS[item.state])
    ]
    if not names:
        return ""
    words = "; ".join(_difference(name, now=now, bound=bound) for name in names)
    return (
        f"instruction {item.instruction_id} is not what the history bound: {words}: it was changed "
        "past the journal"
    )


def _difference(name: str, *, now: Terms, bound: Terms) -> str:
    word = name.replace("_", " ")
    if name in KEPT_AS_DIGEST:
        return f"its {word} is another one"
    if name.endswith("amount"):
        return f"its {word} is {_money(now, name)}, bound was {_money(bound, name)}"
    return f"its {word} is {now.get(name, 'blank')}, bound was {bound.get(name, 'nothing')}"


def _money(terms: Terms, name: str) -> str:
    try:
        return sums_in_words({str(terms.get("currency", "")): int(terms.get(name, 0))})
    except (KeyError, ValueError):
        return str(terms.get(name, 0))

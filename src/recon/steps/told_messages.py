"""What the gateway's own messages say of an instruction that nobody can account for.

Of a payout such a message is the only thing that ever tells: no question to the gateway shows one.
It proves nothing by itself, since its signature covers ids alone; a person who decides a doubt may
name it as evidence.
"""

from collections.abc import Collection, Mapping
from typing import Any

from recon.model import InstructionKind, InstructionState
from recon.money import format_minor_units
from recon.store import notification_rows
from recon.store.notification_rows import About
from recon.store.runs import Run

DOUBTFUL = frozenset(
    {InstructionState.IN_FLIGHT, InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN}
)
MESSAGES_SHOWN_MAX = 3
"""Newest messages about one instruction that are told."""
DIGEST_CHARACTERS = 12
"""Of a message, by which a decision names it."""
_KINDS = {
    InstructionKind.CAPTURE: ("payment",),
    InstructionKind.CANCEL: ("payment",),
    InstructionKind.REFUND: ("refund received", "refund accepted", "refund result"),
    InstructionKind.PAYOUT: ("payout",),
    InstructionKind.CANCEL_SUBSCRIPTION: ("subscription",),
}
"""Of messages that may be about an instruction."""


def messages_told(
    connection: Any, run: Run, *, rows: Collection[Mapping[str, Any]]
) -> dict[str, str]:
    """A sentence for each doubtful instruction of which the gateway told something.

    Args:
        connection: Of the store, reading.
        run: Of the account.
        rows: Whole journal rows.

    Returns:
        Instruction id -> what was told, when, and how a decision names it.
    """
    doubtful = [row for row in rows if row["state"] in DOUBTFUL]
    if not doubtful:
        return {}
    messages = notification_rows.about(
        connection,
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        transaction_ids={row["transaction_id"] for row in doubtful} - {""},
    )
    found = {row["instruction_id"]: _of(row, messages=messages) for row in doubtful}
    return {wanted: _sentence(told) for wanted, told in found.items() if told}


def _of(row: Mapping[str, Any], *, messages: Collection[About]) -> list[About]:
    """The messages that may be about an instruction, newest last."""
    kind = InstructionKind(row["kind"])
    fitting = [one for one in messages if one.kind in _KINDS.get(kind, ())]
    if kind is InstructionKind.PAYOUT:
        return [one for one in fitting if one.request_id == row["gateway_request_id"]]
    if kind is InstructionKind.CANCEL_SUBSCRIPTION:
        return [one for one in fitting if one.recurring_id == row["recurring_id"]]
    wanted = row["transaction_id"]
    return [one for one in fitting if wanted and one.transaction_id == wanted]


def _sentence(told: list[About]) -> str:
    shown = "; ".join(_words(one) for one in told[-MESSAGES_SHOWN_MAX:])
    more = len(told) - MESSAGES_SHOWN_MAX
    rest = f"; and {more} earlier" if more > 0 else ""
    return (
        f"The gateway told by itself: {shown}{rest}. Its signature covers ids alone: look it up, "
        "and name the message as evidence"
    )


def _words(one: About) -> str:
    money = ""
    if one.amount is not None and one.currency:
        money = f" of {format_minor_units(one.amount, currency=one.currency)} {one.currency}"
    return (
        f"{' '.join(filter(None, (one.kind, one.status)))}{money} at "
        f"{one.received_at:%Y-%m-%d %H:%M} UTC (message {one.sha256[:DIGEST_CHARACTERS]})"
    )

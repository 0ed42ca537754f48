"""What the gateway's own messages say of an instruction that nobody can account for.

Of a payout such a message is the only thing that ever tells: no question to the gateway shows one.
It proves nothing by itself, since its signature covers ids alone; a person who decides a doubt may
name it as evidence.
"""

from collections.abc import Collection

from recon.instructions.instruction import Instruction
from recon.model.errors import UsageError
from recon.model.money import format_minor_units
from recon.model.words import InstructionKind
from recon.store import Connection
from recon.store.nights import notification_rows
from recon.store.nights.notification_rows import About

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
    connection: Connection, *, account: tuple[str, str], items: Collection[Instruction]
) -> dict[str, str]:
    """A sentence for each instruction of which the gateway told something.

    Args:
        connection: Of the store, reading.
        account: Merchant and account.
        items: Instructions of that account that somebody has to decide.

    Returns:
        Instruction id -> what was told, when, and how a decision names it.
    """
    messages = _messages(connection, account=account, items=items)
    return {wanted: _sentence(abouts) for wanted, abouts in messages.items() if abouts}


def named_message(connection: Connection, item: Instruction, *, digest: str) -> str:
    """The message that a decision about an instruction names, in words.

    Args:
        connection: Of the store, reading.
        item: The instruction.
        digest: The message's first characters, as the list shows them.

    Raises:
        UsageError: no message about this instruction, or several, begin so.
    """
    account = (item.merchant_id, item.account_id)
    messages = _messages(connection, account=account, items=[item])[item.instruction_id]
    fitting = [message for message in messages if message.sha256.startswith(digest.lower())]
    if len(digest) < DIGEST_CHARACTERS or len(fitting) != 1:
        known = ", ".join(message.sha256[:DIGEST_CHARACTERS] for message in messages) or "none"
        msg = (
            f"message {digest} is none that the gateway told of instruction {item.instruction_id} "
            f"(known: {known}); nothing was noted"
        )
        raise UsageError(msg)
    return _words(fitting[0])


def _messages(
    connection: Connection, *, account: tuple[str, str], items: Collection[Instruction]
) -> dict[str, list[About]]:
    """The messages that may be about each instruction, newest last."""
    if not items:
        return {}
    messages = notification_rows.about(
        connection,
        merchant_id=account[0],
        account_id=account[1],
        transaction_ids={item.transaction_id for item in items} - {""},
    )
    return {item.instruction_id: _of(item, messages=messages) for item in items}


def _of(item: Instruction, *, messages: Collection[About]) -> list[About]:
    fitting = [message for message in messages if message.kind in _KINDS.get(item.kind, ())]
    if item.kind is InstructionKind.PAYOUT:
        return [message for message in fitting if message.request_id == item.gateway_request_id]
    if item.kind is InstructionKind.CANCEL_SUBSCRIPTION:
        return [message for message in fitting if message.recurring_id == item.recurring_id]
    wanted = item.transaction_id
    return [message for message in fitting if wanted and message.transaction_id == wanted]


def _sentence(messages: list[About]) -> str:
    shown = "; ".join(_words(message) for message in messages[-MESSAGES_SHOWN_MAX:])
    more = len(messages) - MESSAGES_SHOWN_MAX
    rest = f"; and {more} earlier" if more > 0 else ""
    return (
        f"The gateway told by itself: {shown}{rest}. Its signature covers ids alone: look it up, "
        "and name the message as evidence (`--message`)"
    )


def _words(about: About) -> str:
    money = ""
    if about.amount is not None and about.currency:
        money = f" of {format_minor_units(about.amount, currency=about.currency)} {about.currency}"
    return (
        f"{' '.join(filter(None, (about.kind, about.status)))}{money} at "
        f"{about.received_at:%Y-%m-%d %H:%M} UTC (message {about.sha256[:DIGEST_CHARACTERS]})"
    )

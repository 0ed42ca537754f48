"""What an instruction means to do, whatever file told of it and whatever id it bears.

Money moves at most once per intention: merchant, account, kind, payment, amount and currency. The
same comparison is made when a file is planned, when people look at the list, when an instruction is
judged against the gateway's answer, and in the transaction that claims it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from recon.instructions.instruction import MOVES_MONEY, Instruction
from recon.model.words import InstructionKind

REPEAT = "looks like a repeat"
"""Begins the hold of what may be a second one of its intention."""

What = tuple[str, str, InstructionKind, str, str, int]
"""Merchant, account, kind, subject, currency and minor units."""


class Instructed(Protocol):
    """An instruction, or a row that asks for one."""

    @property
    def merchant_id(self) -> str: ...  # noqa: D102 - as an instruction has them
    @property
    def account_id(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> InstructionKind: ...  # noqa: D102
    @property
    def order_no(self) -> str: ...  # noqa: D102
    @property
    def transaction_id(self) -> str: ...  # noqa: D102
    @property
    def recurring_id(self) -> str: ...  # noqa: D102
    @property
    def payee_digest(self) -> str: ...  # noqa: D102
    @property
    def currency(self) -> str: ...  # noqa: D102
    @property
    def amount(self) -> int: ...  # noqa: D102
    @property
    def request_id(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Intention:
    """One intended movement, without who asked for it."""

    merchant_id: str
    account_id: str
    kind: InstructionKind
    subject: str
    """The subscription or payee; "" where it is a payment, which the next two name."""
    order_no: str
    transaction_id: str
    """As instructed or sent; "" where only the order is named."""
    currency: str
    amount: int
    """Minor units; 0 for a kind that moves none."""
    request_id: str
    shown: str = ""
    """The one transaction that the gateway shows for the order; "" where it is not known."""

    @classmethod
    def of(cls, item: Instructed, *, shown: str = "") -> "Intention":
        """What is meant by an instruction, or by a row that asks for one."""
        subject = _subject(item)
        return cls(
            merchant_id=item.merchant_id,
            account_id=item.account_id,
            kind=item.kind,
            subject=subject,
            # A payout's own id comes with its reply: it says nothing of what was meant.
            order_no="" if subject else item.order_no,
            transaction_id="" if subject else item.transaction_id,
            currency=item.currency,
            amount=item.amount if item.kind in MOVES_MONEY else 0,
            request_id=item.request_id,
            shown="" if subject else shown,
        )

    @property
    def what(self) -> What:
        """All but the payment."""
        identity = (self.merchant_id, self.account_id, self.kind)
        return (*identity, self.subject, self.currency, self.amount)

    @property
    def payment(self) -> str:
        """The transaction, as far as it is known; "" where it is not."""
        return self.transaction_id or self.shown

    def may_be(self, other: "Intention", *, ids_unique: bool) -> bool:
        """Whether both may mean the same movement, so that only people let both go.

        Args:
            other: Of the same journal.
            ids_unique: The merchant declares that each id stands for a movement of its own.
        """
        if self.what != other.what or not self.is_of_payment(other):
            return False
        return not (ids_unique and ids_differ(self.request_id, other.request_id))

    def is_of_payment(self, other: "Intention") -> bool:
        """Whether both may be about one payment; one that names no transaction means its order."""
        if self.transaction_id and other.transaction_id:
            return self.transaction_id == other.transaction_id
        if self.order_no == other.order_no:
            return True
        return bool(self.payment) and self.payment == other.payment


def ids_differ(mine: str, other: str) -> bool:
    """Whether two request ids are given and differ in more than case or white space."""
    return bool(mine and other) and plain_id(mine) != plain_id(other)


def plain_id(request_id: str) -> str:
    """A request id without what a person or program may have changed by accident."""
    return "".join(request_id.split()).casefold()


def unagreed(
    wanted: Instruction,
    *,
    others: Iterable[Instruction],
    transaction_id: str,
    ids_unique: bool,
) -> tuple[Instruction, ...]:
    """Others that may have carried out the intention already, and that nobody approved beside it.

    Args:
        wanted: About to be sent.
        others: The journal's rows of the same payment, payee or subscription.
        transaction_id: The payment that it would be sent for.
        ids_unique: As above.
    """
    own = Intention.of(wanted)
    own = own if own.subject else replace(own, transaction_id=transaction_id)
    return tuple(
        other
        for other in others
        if other.instruction_id != wanted.instruction_id
        and other.may_have_taken_effect
        and own.may_be(Intention.of(other), ids_unique=ids_unique)
        and not _approved_beside(wanted, other)
    )


def told_repeats(repeats: Iterable[Instruction]) -> str:
    """Why a repeat waits for people, in words, when it was found before sending."""
    first, *more = repeats
    others = f" and {len(more)} more" if more else ""
    return (
        f"{REPEAT} of instruction {first.instruction_id}{others}, which is "
        f"{first.state} for the same payment and amount; two people approve it if it is meant "
        "twice, else withdraw it"
    )


def named(repeats: Iterable[str]) -> str:
    """Instruction ids as an instruction keeps them."""
    return " ".join(repeats)


def _approved_beside(instruction: Instruction, other: Instruction) -> bool:
    """People let one of them go and saw the other named."""
    return (
        other.instruction_id in instruction.repeats.split()
        or instruction.instruction_id in other.repeats.split()
    )


def _subject(item: Instructed) -> str:
    if item.kind is InstructionKind.PAYOUT:
        return f"payee {item.payee_digest}"
    if item.kind is InstructionKind.CANCEL_SUBSCRIPTION:
        return f"subscription {item.recurring_id}"
    return ""

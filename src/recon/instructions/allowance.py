"""How much may move: what a rule may approve by itself, and what one night and day may send.

Both count as they go: what was let pass stands against the bound for what comes after. The bounds
are `limits.toml`'s, the sums that were there before come from the journal.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal

from recon.config.limits import CurrencyLimits
from recon.instructions.instruction import MOVES_MONEY, Instruction
from recon.model.money import Money
from recon.model.words import InstructionKind

TWO_PEOPLE = "needs approval by two people"
"""How the hold of every instruction begins that a rule may not approve."""

Bounds = Callable[[str], CurrencyLimits]
"""Currency -> what is configured for it."""

FIRST_PAYEE = "this is the first to"
"""Says in a hold that no payout to this payee took effect before."""


class RuleAllowance:
    """What the rule of the order file may still approve in one night."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        approved: Mapping[str, int],
        paid_before: AbstractSet[str] = frozenset(),
        needs_limit: bool = False,
    ) -> None:
        self._bounds = bounds
        self._needs_limit = needs_limit
        """Real money: where no limit is set for a currency, people decide."""
        self._approved = dict(approved)
        """Currency -> minor units that this night's rule approved already."""
        self._paid_before = paid_before
        """Digests of payees with a payout that took effect."""

    def hold_on_payout(self, *, payee: str, payee_digest: str) -> str:
        """Why people must approve it: always, and they see whether the payee is new."""
        if payee_digest in self._paid_before:
            known, *from_another = payee.split(", ")
            what = ", ".join(["every payout does", *from_another])
            return f"{TWO_PEOPLE}: {what} ({known} was paid before)"
        return f"{TWO_PEOPLE}: every payout does, and {FIRST_PAYEE} {payee or 'this payee'}"

    def hold_on(self, kind: InstructionKind, *, currency: str, amount: int) -> str:
        """Why people must approve it; "" when the rule may, which is then counted."""
        bounds = self._bounds(currency)
        if self._needs_limit and bounds == CurrencyLimits():
            return f"{TWO_PEOPLE}: limits.toml sets no limit for {currency}"
        if kind not in MOVES_MONEY:
            return ""
        item = bounds.approved_by_rule
        if item is not None and _major(amount, currency) > item:
            return f"{TWO_PEOPLE}: a rule approves at most {item} {currency} at once"
        after = self._approved.get(currency, 0) + amount
        night = bounds.approved_by_rule_night
        if night is not None and _major(after, currency) > night:
            return (
                f"{TWO_PEOPLE}: with it the rule would have approved {_told(after, currency)} "
                f"this night, more than the {night} {currency} it may"
            )
        self._approved[currency] = after
        return ""


class SendingAllowance:
    """What may still be sent on one night and one calendar day of an account."""

    def __init__(self, bounds: Bounds, *, night: Mapping[str, int], day: Mapping[str, int]) -> None:
        self._bounds = bounds
        self._night = dict(night)
        self._day = dict(day)

    def refusal(self, instruction: Instruction) -> str:
        """Why it is not sent; "" when it may be, which is then counted."""
        if instruction.kind not in MOVES_MONEY:
            return ""
        currency, amount = instruction.currency, instruction.amount
        bounds = self._bounds(currency)
        if bounds.item is not None and _major(amount, currency) > bounds.item:
            return (
                f"it is above the limit of {bounds.item} {currency} for one instruction and is "
                "never sent; withdraw it, or raise `item` in limits.toml"
            )
        sums = (
            ("night", bounds.night, self._night.get(currency, 0) + amount),
            ("day", bounds.day, self._day.get(currency, 0) + amount),
        )
        for name, bound, after in sums:
            if bound is not None and _major(after, currency) > bound:
                return (
                    f"with it this {name} would have sent {_told(after, currency)}, more than its "
                    f"limit of {bound} {currency}; it waits for the next, or raise `{name}` in "
                    "limits.toml"
                )
        self._night[currency] = self._night.get(currency, 0) + amount
        self._day[currency] = self._day.get(currency, 0) + amount
        return ""


def _major(minor_units: int, currency: str) -> Decimal:
    return Money.of_minor_units(minor_units, currency=currency).amount


def _told(minor_units: int, currency: str) -> str:
    return str(Money.of_minor_units(minor_units, currency=currency))

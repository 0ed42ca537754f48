"""What an order row lets its own action move: how much at most, and whether anything at all.

A row that says one thing and asks for another is never acted on by itself: both facts go to people.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from recon.model.money import Money
from recon.model.words import InstructionKind, OrderStatus

CONTRADICTS = "contradicts its own row"
"""Begins the sentence about an action that its row does not bear out."""

_S = OrderStatus
_FITTING: Mapping[InstructionKind, AbstractSet[OrderStatus]] = {
    InstructionKind.CAPTURE: {_S.AUTHORISED, _S.PENDING, _S.PAID},
    InstructionKind.REFUND: {_S.PAID, _S.PARTIALLY_REFUNDED, _S.REFUNDED},
    # It gives up money that such an order counts on.
    InstructionKind.CANCEL: frozenset(_S) - {_S.PAID, _S.PARTIALLY_REFUNDED},
    # An order file can only accept a payment in review; money follows it.
    InstructionKind.REVIEW: {_S.AUTHORISED, _S.PENDING, _S.PAID},
}
"""Kind -> statuses of a row that may ask for it."""
_IN_PARTS = frozenset({InstructionKind.CAPTURE, InstructionKind.REFUND})
"""Kinds that may move a part of the order."""


@dataclass(frozen=True, slots=True)
class OrderRow:
    """What an order row says beside its action; amounts are minor units."""

    status: OrderStatus
    currency: str
    amount: int
    expected_captured_amount: int | None = None
    refund_amount: int | None = None

    def asked(self, kind: InstructionKind, *, before: int = 0) -> int:
        """What a blank action_amount asks for.

        Of refunds it is what is left after `before`, the sum of those instructed earlier; all of
        them again where nothing is left.
        """
        figure, _ = self._figure(kind)
        is_rest = kind is InstructionKind.REFUND and self._is_total(kind) and before < figure
        return figure - before if is_rest else figure

    def against(self, kind: InstructionKind, *, amount: int, before: int = 0) -> str:
        """Both facts, where the row does not bear out what is asked; "" where it does.

        Args:
            kind: Of the action.
            amount: What it would move.
            before: Sum of the same kind that was instructed earlier for the payment.
        """
        asked = f"{CONTRADICTS}: {kind} of {self._money(amount)}, but the row's"
        if self.status not in _FITTING[kind]:
            return f"{asked} status is {self.status}"
        bounds = [self._figure(kind)]
        if kind in _IN_PARTS:
            bounds += [self._captured, (self.amount, "amount")]
        before = before if self._is_total(kind) else 0
        for bound, column in bounds:
            if amount > bound - before or (not amount and kind in _IN_PARTS):
                part = f", of which {self._money(before)} is instructed already" if before else ""
                return f"{asked} {column} is {self._money(bound)}{part}"
        return ""

    @property
    def _captured(self) -> tuple[int, str]:
        if self.expected_captured_amount is None:
            return self.amount, "amount"
        return self.expected_captured_amount, "expected_captured_amount"

    def _figure(self, kind: InstructionKind) -> tuple[int, str]:
        """The row's own figure for a kind, and its column."""
        # Many programs write 0 into every paid order: it speaks of no refund.
        states_refund = self.refund_amount or self.status is not OrderStatus.PAID
        if kind is InstructionKind.REFUND and self.refund_amount is not None and states_refund:
            return self.refund_amount, "refund_amount"
        return self._captured if kind in _IN_PARTS else (self.amount, "amount")

    def _is_total(self, kind: InstructionKind) -> bool:
        """Whether the figure is the sum of all actions of the kind, not of this one alone."""
        if kind is InstructionKind.REFUND and self.status is OrderStatus.REFUNDED:
            return True
        own = {"refund_amount", "expected_captured_amount"}
        column = self._figure(kind)[1]
        return column in own and (kind is InstructionKind.CAPTURE or column == "refund_amount")

    def _money(self, minor_units: int) -> Money:
        return Money.of_minor_units(minor_units, currency=self.currency)

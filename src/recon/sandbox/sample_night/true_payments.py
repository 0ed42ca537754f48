"""What truly happened at the gateway, payment by payment, from its ledger of effects.

The sample night is written from the truth outwards: first what happened, then what the merchant's
files say of it, so that every planted discrepancy is known before any engine has seen it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recon.model.money import parse_minor_units
from recon.model.words import GatewayState

SEEDED = "seed"
AUTHORISATION_LIVES = timedelta(days=7)
"""The sandbox's own choice; older authorisations without a capture are expired."""

Effect = Mapping[str, str]
"""One line of the sandbox's ledger of effects."""


@dataclass(frozen=True, slots=True)
class TruePayment:
    """One payment as it stands before the night. Amounts are minor units."""

    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    currency: str
    state: GatewayState
    authorised: int
    authorised_at: datetime
    last_at: datetime
    """When the newest effect happened."""
    captured: int = 0
    captured_at: datetime | None = None
    refunded: int = 0
    refund_reference_id: str = ""

    @property
    def net(self) -> int:
        """The money that the gateway holds for the merchant, as its query can show it."""
        if self.state is GatewayState.CHARGEBACK:
            return 0
        return self.captured - self.refunded


def payments_of(effects: Iterable[Effect], *, now: datetime) -> tuple[TruePayment, ...]:
    """The seeded payments that have effects, in the order of their authorisation."""
    truth: dict[str, TruePayment] = {}
    for effect in effects:
        if effect["origin"] == SEEDED:
            key = effect["transaction_id"]
            truth[key] = _after(truth.get(key), effect)
    payments = (_expired_if_old(payment, now=now) for payment in truth.values())
    return tuple(sorted(payments, key=lambda payment: (payment.authorised_at, payment.order_no)))


def _after(payment: TruePayment | None, effect: Effect) -> TruePayment:
    """The payment with one more effect."""
    at = datetime.fromisoformat(effect["committed_at"])
    amount = parse_minor_units(effect["amount"], currency=effect["currency"])
    if payment is None:
        return TruePayment(
            merchant_id=effect["merchant_id"],
            account_id=effect["account_id"],
            order_no=effect["order_no"],
            transaction_id=effect["transaction_id"],
            currency=effect["currency"],
            state=GatewayState.AUTHORISED,
            authorised=amount,
            authorised_at=at,
            last_at=at,
        )
    payment = replace(payment, last_at=max(at, payment.last_at))
    match effect["operation"]:
        case "capture":
            return replace(payment, state=GatewayState.PAID, captured=amount, captured_at=at)
        case "refund":
            return _refunded(payment, effect, amount=amount)
        case "cancel":
            return replace(payment, state=GatewayState.CANCELLED)
        case "chargeback":
            return replace(payment, state=GatewayState.CHARGEBACK)
        case _:
            return payment


def _refunded(payment: TruePayment, effect: Effect, *, amount: int) -> TruePayment:
    refunded = payment.refunded + amount
    whole = refunded == payment.captured
    return replace(
        payment,
        state=GatewayState.REFUNDED if whole else GatewayState.PARTIALLY_REFUNDED,
        refunded=refunded,
        refund_reference_id=effect["refund_reference_id"],
    )


def _expired_if_old(payment: TruePayment, *, now: datetime) -> TruePayment:
    lapsed = payment.authorised_at + AUTHORISATION_LIVES <= now
    if payment.state is GatewayState.AUTHORISED and lapsed:
        return replace(payment, state=GatewayState.EXPIRED)
    return payment

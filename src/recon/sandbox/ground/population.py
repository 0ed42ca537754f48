"""The seeded population: same seed, same bytes, on any machine and port.

Only integers are drawn from one generator in one order, so that no float and no clock of the
machine can change a byte.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from recon.model.words import GatewayState
from recon.sandbox.ground.book import Effect, Payment, effect_of
from recon.sandbox.ground.clock import DAY_SECONDS, fourteen_digits
from recon.sandbox.ground.options import SandboxOptions
from recon.sandbox.ground.sandbox_terms import PopulationTerms, SandboxTerms

HOUR_SECONDS = 3_600
PER_MILLE = 1_000
SECOND_ACCOUNT = "second_account"
SECOND_ACCOUNT_STATES = (GatewayState.AUTHORISED, GatewayState.PAID, GatewayState.EXPIRED)
REFUND_REASONS = ("returned goods", "price correction", "late delivery", "cancelled by shopper")
DELAY_SECONDS_MIN = 60
"""Between an authorisation and its capture, cancel or refund."""


@dataclass(frozen=True, slots=True)
class PaymentDraft:
    """A payment on its way into the population, and what has happened to it."""

    payment: Payment
    effects: tuple[Effect, ...] = ()

    def happened(self, operation: str, *, amount: int, at: int) -> "PaymentDraft":
        """The draft with one more effect."""
        effect = effect_of(
            self.payment, operation=operation, origin="seed", amount=amount, committed_at=at
        )
        return replace(self, effects=(*self.effects, effect))


def populate(
    options: SandboxOptions, *, terms: SandboxTerms, now: int
) -> tuple[list[Payment], list[Effect]]:
    """Payments, and their effects in the order in which they happened."""
    rng = random.Random(options.seed)
    kinds = list(_kinds(options.orders, terms=terms.population))
    rng.shuffle(kinds)
    drafts = [
        _draft(number, kind=kind, rng=rng, options=options, terms=terms.population, now=now)
        for number, kind in enumerate(kinds, start=1)
    ]
    effects = [effect for draft in drafts for effect in draft.effects]
    return [draft.payment for draft in drafts], sorted(effects, key=lambda e: e.committed_at)


def transaction_id_of(created_at: int, *, number: int) -> str:
    """A transaction id: 14 digits of time and a number that never repeats."""
    return f"{fourteen_digits(created_at)}{number:05d}"


def _kinds(orders: int, *, terms: PopulationTerms) -> Iterator[str]:
    """One word per order: a state, or the second account; whatever is left is paid."""
    left = orders
    for kind, share in sorted(terms.per_mille.items()):
        rounded_up = kind == GatewayState.AUTHORISED  # "a quarter" is never less than a quarter
        count = (orders * share + (PER_MILLE - 1 if rounded_up else 0)) // PER_MILLE
        left -= count
        yield from (kind for _ in range(count))
    yield from (GatewayState.PAID.value for _ in range(left))


def _draft(
    number: int,
    *,
    kind: str,
    rng: random.Random,
    options: SandboxOptions,
    terms: PopulationTerms,
    now: int,
) -> PaymentDraft:
    second = kind == SECOND_ACCOUNT
    state = SECOND_ACCOUNT_STATES[number % len(SECOND_ACCOUNT_STATES)] if second else kind
    created_at = now - _age(GatewayState(state), rng=rng, terms=terms)
    payment = Payment(
        transaction_id=transaction_id_of(created_at, number=number),
        order_no=f"SO{1_000_000 + number}",
        merchant_id=options.merchant,
        account_id=options.second_account if second else options.account,
        currency=_weighted(terms.currencies, rng=rng),
        authorised=rng.randint(terms.amount_min, terms.amount_max),
        state=GatewayState(state),
        created_at=created_at,
        reference_no=f"R{number:09d}",
    )
    return _HISTORIES[payment.state](PaymentDraft(payment), rng, now)


def _age(state: GatewayState, *, rng: random.Random, terms: PopulationTerms) -> int:
    """Seconds from the authorisation to the start of the clock."""
    if state in {GatewayState.AUTHORISED, GatewayState.PENDING, GatewayState.IN_REVIEW}:
        return rng.randint(HOUR_SECONDS, terms.authorised_hours * HOUR_SECONDS)
    youngest = 9 * DAY_SECONDS if state is GatewayState.EXPIRED else 3 * HOUR_SECONDS
    return rng.randint(youngest, terms.days * DAY_SECONDS)


def _weighted(weights: Mapping[str, int], *, rng: random.Random) -> str:
    ticket = rng.randrange(sum(weights.values()))
    for name, weight in sorted(weights.items()):
        ticket -= weight
        if ticket < 0:
            return name
    return min(weights)


def _no_effect(draft: PaymentDraft, _rng: random.Random, _now: int) -> PaymentDraft:
    return draft


def _authorised(draft: PaymentDraft, _rng: random.Random, _now: int) -> PaymentDraft:
    payment = draft.payment
    return draft.happened("authorise", amount=payment.authorised, at=payment.created_at)


def _lapsed(draft: PaymentDraft, rng: random.Random, now: int) -> PaymentDraft:
    """Authorised long ago; that it is expired follows from the clock."""
    draft = _authorised(draft, rng, now)
    return replace(draft, payment=replace(draft.payment, state=GatewayState.AUTHORISED))


def _cancelled(draft: PaymentDraft, rng: random.Random, now: int) -> PaymentDraft:
    at = _between(draft.payment.created_at, now, rng=rng)
    return _authorised(draft, rng, now).happened("cancel", amount=draft.payment.authorised, at=at)


def _captured(draft: PaymentDraft, rng: random.Random, now: int) -> PaymentDraft:
    first = draft.payment.created_at
    at = _between(first, min(now - HOUR_SECONDS, first + DAY_SECONDS), rng=rng)
    captured = replace(draft.payment, captured=draft.payment.authorised, captured_at=at)
    draft = _authorised(PaymentDraft(captured), rng, now)
    return draft.happened("capture", amount=captured.captured, at=at)


def _refunded(draft: PaymentDraft, rng: random.Random, now: int) -> PaymentDraft:
    draft = _captured(draft, rng, now)
    return _refund(draft, amount=draft.payment.captured, rng=rng, now=now)


def _partially_refunded(draft: PaymentDraft, rng: random.Random, now: int) -> PaymentDraft:
    draft = _captured(draft, rng, now)
    part = rng.randint(1, draft.payment.captured - 1)
    return _refund(draft, amount=part, rng=rng, now=now)


def _refund(draft: PaymentDraft, *, amount: int, rng: random.Random, now: int) -> PaymentDraft:
    at = _between(draft.payment.captured_at, now, rng=rng)
    draft = draft.happened("refund", amount=amount, at=at)
    reference = f"{draft.payment.transaction_id}-01"
    reason = REFUND_REASONS[rng.randrange(len(REFUND_REASONS))]
    effect = replace(draft.effects[-1], refund_reference_id=reference, refund_reason=reason)
    payment = replace(draft.payment, refunded=amount, refunds=1)
    return PaymentDraft(payment, (*draft.effects[:-1], effect))


def _charged_back(draft: PaymentDraft, rng: random.Random, now: int) -> PaymentDraft:
    draft = _captured(draft, rng, now)
    at = _between(draft.payment.captured_at, now, rng=rng)
    return draft.happened("chargeback", amount=draft.payment.captured, at=at)


def _between(first: int, last: int, *, rng: random.Random) -> int:
    return rng.randint(first + DELAY_SECONDS_MIN, max(first + DELAY_SECONDS_MIN, last))


_HISTORIES: Mapping[GatewayState, Callable[[PaymentDraft, random.Random, int], PaymentDraft]] = {
    GatewayState.PENDING: _no_effect,
    GatewayState.IN_REVIEW: _no_effect,
    GatewayState.FAILED: _no_effect,
    GatewayState.AUTHORISED: _authorised,
    GatewayState.EXPIRED: _lapsed,
    GatewayState.CANCELLED: _cancelled,
    GatewayState.PAID: _captured,
    GatewayState.PARTIALLY_REFUNDED: _partially_refunded,
    GatewayState.REFUNDED: _refunded,
    GatewayState.CHARGEBACK: _charged_back,
}

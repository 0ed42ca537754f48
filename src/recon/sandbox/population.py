"""The seeded population: the same seed gives the same bytes on any machine and port.

Only integers are drawn, from one generator and in a fixed order, so that neither floats nor the
machine's clock can change a byte.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from recon.model.terms import GatewayState
from recon.sandbox.database import Effect, Payment, effect_of
from recon.sandbox.options import DAY_SECONDS, HOUR_SECONDS, SandboxOptions, fourteen_digits
from recon.sandbox.terms import PopulationTerms, SandboxTerms

PER_MILLE = 1_000
SECOND_ACCOUNT = "second_account"
SECOND_ACCOUNT_STATES = (GatewayState.AUTHORISED, GatewayState.PAID, GatewayState.EXPIRED)
REFUND_REASONS = ("returned goods", "price correction", "late delivery", "cancelled by shopper")
DELAY_SECONDS_MIN = 60
"""Minimum time between an authorisation and its capture, cancel or refund."""


def paid_at_once(number: int, *, amount: int, at: int, **ids: str) -> Payment:
    """A payment captured when it is authorised; `ids` are its other fields."""
    named: dict[str, Any] = {"transaction_id": transaction_id_of(at, number=number), **ids}
    named["reference_no"] = f"R{number:09d}"
    money: dict[str, Any] = {
        "authorised": amount,
        "captured": amount,
        "created_at": at,
        "captured_at": at,
    }
    return Payment(**named, **money, state=GatewayState.PAID)


def populate(
    options: SandboxOptions, *, terms: SandboxTerms, now: int
) -> tuple[list[Payment], list[Effect]]:
    """Generate the payments, and their effects in chronological order."""
    rng, made_of = random.Random(options.seed), terms.population
    kinds = list(_kinds(options.orders, terms=made_of))
    rng.shuffle(kinds)
    lives: list[tuple[Payment, list[Effect]]] = []
    for number, kind in enumerate(kinds, start=1):
        second = kind == SECOND_ACCOUNT
        of_second = SECOND_ACCOUNT_STATES[number % len(SECOND_ACCOUNT_STATES)]
        state = of_second if second else GatewayState(kind)
        # Range of the time from the authorisation to the start of the clock.
        ages = (3 * HOUR_SECONDS, made_of.days * DAY_SECONDS)
        if state in _YOUNG:
            ages = (HOUR_SECONDS, made_of.authorised_hours * HOUR_SECONDS)
        elif state is GatewayState.EXPIRED:
            ages = (9 * DAY_SECONDS, ages[1])
        created_at = now - rng.randint(*ages)
        payment = Payment(
            transaction_id=transaction_id_of(created_at, number=number),
            order_no=f"SO{1_000_000 + number}",
            merchant_id=options.merchant,
            account_id=options.second_account if second else options.account,
            currency=_weighted(made_of.currencies, rng=rng),
            authorised=rng.randint(made_of.amount_min, made_of.amount_max),
            state=state,
            created_at=created_at,
            reference_no=f"R{number:09d}",
        )
        lives.append(_lived(payment, rng=rng, now=now))
    effects = [effect for _, effects in lives for effect in effects]
    return [payment for payment, _ in lives], sorted(effects, key=lambda e: e.committed_at)


def transaction_id_of(created_at: int, *, number: int) -> str:
    """A transaction id: 14 digits of time and a unique number."""
    return f"{fourteen_digits(created_at)}{number:05d}"


def _kinds(orders: int, *, terms: PopulationTerms) -> Iterator[str]:
    """Yield one kind per order: a state, or the second account; the remainder is paid."""
    left = orders
    for kind, share in sorted(terms.per_mille.items()):
        rounded_up = kind == GatewayState.AUTHORISED  # "a quarter" is never less than a quarter
        count = (orders * share + (PER_MILLE - 1 if rounded_up else 0)) // PER_MILLE
        left -= count
        yield from (kind for _ in range(count))
    yield from (GatewayState.PAID.value for _ in range(left))


def _weighted(weights: Mapping[str, int], *, rng: random.Random) -> str:
    ticket = rng.randrange(sum(weights.values()))
    for name, weight in sorted(weights.items()):
        ticket -= weight
        if ticket < 0:
            return name
    return min(weights)


_YOUNG = frozenset({GatewayState.AUTHORISED, GatewayState.PENDING, GatewayState.IN_REVIEW})
_WITHOUT_EFFECT = frozenset({GatewayState.PENDING, GatewayState.IN_REVIEW, GatewayState.FAILED})
_NEVER_CAPTURED = frozenset({GatewayState.AUTHORISED, GatewayState.EXPIRED, GatewayState.CANCELLED})


def _lived(payment: Payment, *, rng: random.Random, now: int) -> tuple[Payment, list[Effect]]:
    """The payment in its final state, and the effects that led to it."""
    state, first, amount = payment.state, payment.created_at, payment.authorised
    effects: list[Effect] = []

    def happened(operation: str, *, amount: int, at: int, **more: str) -> None:
        effect = effect_of(payment, operation, origin="seed", amount=amount, at=at, **more)
        effects.append(effect)

    def between(first: int, last: int) -> int:
        return rng.randint(first + DELAY_SECONDS_MIN, max(first + DELAY_SECONDS_MIN, last))

    if state in _WITHOUT_EFFECT:
        return payment, effects
    happened("authorise", amount=amount, at=first)
    if state in _NEVER_CAPTURED:
        if state is GatewayState.CANCELLED:
            happened("cancel", amount=amount, at=between(first, now))
        if state is GatewayState.EXPIRED:
            # Authorised long ago: the clock makes it expired.
            payment = replace(payment, state=GatewayState.AUTHORISED)
        return payment, effects
    captured_at = between(first, min(now - HOUR_SECONDS, first + DAY_SECONDS))
    happened("capture", amount=amount, at=captured_at)
    payment = replace(payment, captured=amount, captured_at=captured_at)
    if state is GatewayState.CHARGEBACK:
        happened("chargeback", amount=amount, at=between(captured_at, now))
    elif state is not GatewayState.PAID:
        if state is GatewayState.PARTIALLY_REFUNDED:
            amount = rng.randint(1, amount - 1)
        happened(
            "refund",
            amount=amount,
            at=between(captured_at, now),
            refund_reference_id=f"{payment.transaction_id}-01",
            refund_reason=REFUND_REASONS[rng.randrange(len(REFUND_REASONS))],
        )
        payment = replace(payment, refunded=amount, refunds=1)
    return payment, effects

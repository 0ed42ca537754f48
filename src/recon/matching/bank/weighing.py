"""What some entries come to against some pay-outs: the same, explained, or how they differ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recon.config.exchange_rates import AppliedRate
from recon.config.rules import Rules
from recon.matching.bank.expected import Payout
from recon.matching.bank.receipts import Receipt
from recon.model.words import BreakCode, Flag, SetState

TWICE = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one pay-out, of several together, or of an entry that nobody expects.

    Amounts in minor units of `currency`; the first of `payouts` bears the result.
    """

    state: SetState
    currency: str
    paid: int = 0
    bank_amount: int = 0
    effect: int = 0
    code: BreakCode | None = None
    flags: frozenset[str] = frozenset()
    payouts: tuple[Payout, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    charges: int = 0
    """What the bank took, where that explains the difference."""
    exchanged: tuple[tuple[str, int], ...] = ()
    """Currency and amount that went out in one currency and came in in another, for T17."""
    rate: AppliedRate | None = None
    """By which `paid` was exchanged, or why nothing says what it should be."""
    allowed: int = 0
    """What its rate's tolerance leaves between `paid` and the bank."""
    opening: int = 0
    """Paid out before the first statement: listed."""
    account: tuple[str, str] = ("", "")
    """Merchant and account of an entry that nobody expects."""


def weigh(receipts: Sequence[Receipt], payouts: Sequence[Payout], *, rules: Rules) -> Finding:
    """Matched where they come to the same or charges explain it, else a break with its code.

    All entries name all of the pay-outs, which have one currency.
    """
    currency = payouts[0].currency
    paid = sum(one.paid for one in payouts)
    worths = [one.worth(currency) for one in receipts]
    if any(one is None for one in worths):
        return _by_rate(receipts, payouts, paid=paid, rules=rules)
    amounts = [one or 0 for one in worths]
    total = sum(amounts)
    foreign = [one for one in receipts if one.currency != currency]
    flags = {Flag.EXCHANGED} if foreign else set()
    flags |= {Flag.JOINED} if len(payouts) > 1 else set()
    flags |= {Flag.LATE} if _late(receipts, payouts) else set()
    base = Finding(
        SetState.MATCHED,
        currency,
        paid=paid,
        bank_amount=total,
        payouts=(*payouts,),
        receipts=(*receipts,),
        exchanged=_exchanged(foreign, currency=currency),
    )
    taken = sum(abs(one.charges) for one in receipts)
    if total == paid:
        flags |= {Flag.REPAID} if any(one * paid < 0 for one in amounts) else set()
        return replace(base, flags=_words(flags))
    if taken and not foreign and paid - total == taken:
        return replace(base, flags=_words(flags | {Flag.BANK_CHARGES}), charges=taken)
    flags.discard(Flag.LATE)
    code = _code(receipts, amounts, paid=paid)
    return replace(base, flags=_words(flags), state=SetState.BREAK, code=code, effect=total - paid)


def ambiguous(receipts: Sequence[Receipt], payouts: Sequence[Payout], *, first: bool) -> Finding:
    """A pay-out that an entry may mean, with what all of them differ by on the first of them."""
    currency = payouts[0].currency
    paid = sum(one.paid for one in payouts)
    # One tuple for all pay-outs that the same entries may mean: there may be thousands of both.
    told = tuple(receipts)
    alone = Finding(
        SetState.BREAK,
        currency,
        paid=paid,
        bank_amount=paid,
        code=BreakCode.AMBIGUOUS_MATCH,
        payouts=(*payouts,),
        receipts=told,
    )
    if not first:
        return alone
    total = sum(one.worth(currency) or 0 for one in told)
    foreign = [one for one in told if one.currency != currency]
    return replace(
        alone,
        bank_amount=total,
        effect=total - paid,
        exchanged=_exchanged(foreign, currency=currency),
    )


def _words(flags: set[Flag]) -> frozenset[str]:
    return frozenset(one.value for one in flags)


def _exchanged(foreign: Sequence[Receipt], *, currency: str) -> tuple[tuple[str, int], ...]:
    told = []
    for one in foreign:
        told += [(currency, one.worth(currency) or 0), (one.currency, -one.amount)]
    return tuple(told)


def _late(receipts: Sequence[Receipt], payouts: Sequence[Payout]) -> bool:
    due = max(one.due_on for one in payouts)
    return bool(receipts) and max(one.value_on for one in receipts) > due


def _code(receipts: Sequence[Receipt], amounts: Sequence[int], *, paid: int) -> BreakCode:
    """Why entries that name a pay-out come to another amount."""
    came: dict[int, str] = {}
    for one, amount in zip(receipts, amounts, strict=True):
        if amount * paid > 0:
            came[amount] = min(came.get(amount, one.booked_on), one.booked_on)
    if any(
        -amount in came and one.booked_on >= came[-amount]
        for one, amount in zip(receipts, amounts, strict=True)
    ):
        return BreakCode.PAYOUT_RETURNED
    if sum(amount == paid for amount in amounts) >= TWICE:
        return BreakCode.PAYOUT_TWICE_AT_BANK
    return BreakCode.BANK_AMOUNT_DIFFERS


def _by_rate(
    receipts: Sequence[Receipt], payouts: Sequence[Payout], *, paid: int, rules: Rules
) -> Finding:
    """In another currency, and the bank does not say what was ordered: by the rate of the day.

    Entries of several days have one rate, or none: nothing says which part of a pay-out was
    exchanged on which day.
    """
    currency, arrived = payouts[0].currency, receipts[0].currency
    total = sum(one.amount for one in receipts)
    rates = [rules.rate_of(currency, into=arrived, day=one.value_on) for one in receipts]
    first = min(rates, key=lambda rate: rate.day)
    differ = len({(rate.rate, rate.since) for rate in rates}) > 1
    first = replace(first, rate=None, differs=True) if differ else first
    base = Finding(
        SetState.BREAK,
        arrived,
        bank_amount=total,
        code=BreakCode.BANK_FX_DIFFERENCE,
        payouts=(*payouts,),
        receipts=(*receipts,),
        flags=frozenset({Flag.EXCHANGED.value}),
        rate=first,
    )
    expected = first.exchanged(paid)
    if expected is None:
        # Nothing says what it should be: it is left to a person, with no effect of its own.
        return replace(base, paid=total, exchanged=((currency, paid), (arrived, -total)))
    found = replace(base, paid=expected, exchanged=((currency, paid), (arrived, -expected)))
    gap = total - expected
    if first.allows(gap, of=expected):
        return replace(found, state=SetState.MATCHED, code=None, allowed=gap)
    return replace(found, effect=gap)

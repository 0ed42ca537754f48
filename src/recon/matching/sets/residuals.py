"""How much of each leg of a set nothing explains, to the minor unit.

A leg's effect is gateway less order, or gateway less ledger. What our own confirmed moves, a
chargeback, a write-off and rounding explain of it is taken off one after the other, each with the
exact amount that it stands for; what remains is the residual. Nothing is MATCHED with one.
"""

from typing import NamedTuple

import numpy as np

from recon.config.rules import Rules
from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.grouping import BASIS, Bools, Ints
from recon.matching.sides.gateway_side import NUMBER
from recon.matching.sides.orders_side import ORDER_STATES

MONEY_STATES = [NUMBER[label] for label in ("paid", "partially_refunded", "refunded")]
ORDER_MONEY = [ORDER_STATES.index(label) for label in ("paid", "partially_refunded", "refunded")]
STATES_REFUND = [ORDER_STATES.index(label) for label in ("partially_refunded", "refunded")]
"""Orders that say what they expect refunded; a paid order may not have heard of it yet."""


BOOKED_EXACTLY = 2
"""Charged back by lines, and the books have exactly that."""


class Ours(NamedTuple):
    """What our confirmed moves did beyond what the query shows (grain: set), minor units.

    `hidden` and `running` are never both more than 0.
    """

    hidden: Ints
    """Refunds that the query cannot show: known from their replies."""
    running: Ints
    """Refunds that it does not show yet, within their grace."""
    uncaptured: Ints
    """Shown as taken, though we captured less: the query tells only what was authorised."""
    explained: Bools
    """Sets that a confirmed move of ours explains on the leg of orders."""


class Legs(NamedTuple):
    """Both legs of every set, minor units of the set's currency (grain: set)."""

    facts: dict[str, Ints]
    """Columns of outcomes.PATTERN."""
    rounded: Ints
    """What is called rounding, both legs together, unsigned."""


def legs(sets: Arrays, *, ours: Ours, rules: Rules, strict: Bools, covered: bool) -> Legs:
    """Compare both legs, gross and net, and find what nothing explains.

    Args:
        sets: the joined sides (grain: set), amounts in the set's currency.
        ours: what our moves did beyond what the query shows.
        rules: the tolerances.
        strict: sets for which nothing is rounding, because the night's budget is spent.
        covered: whether a ledger was given.
    """
    free = ~strict
    bounds = [
        tolerance_of(ints(sets[base]), currency=sets["currency"], rules=rules) * free
        for base in ("order_net", "gateway_net")
    ]
    of_books, rounded_ledger = _ledger(sets, ours=ours, bound=bounds[1], covered=covered)
    # A chargeback explains the leg of orders while the books have it, or are still to have it.
    explained = (ints(sets["ledger_chargeback"]) > 0) | (of_books["closed_ledger"] == 0)
    charged = (sets["gateway_state"] == NUMBER["chargeback"]) & explained
    facts, rounded_orders = _orders(
        sets, ours=ours, bound=bounds[0], charged=charged, covered=covered
    )
    return Legs({**facts, **of_books}, rounded_orders + rounded_ledger)


def _orders(
    sets: Arrays, *, ours: Ours, bound: Ints, charged: Bools, covered: bool
) -> tuple[dict[str, Ints], Ints]:
    """Leg A: what the gateway shows, with what our replies say of it, less what is ordered."""
    money = np.isin(sets["gateway_state"], MONEY_STATES)
    pair = money & np.isin(sets["order_state"], ORDER_MONEY)
    shows_refund = np.isin(sets["order_state"], STATES_REFUND)
    captured = ints(sets["gateway_captured"] - sets["order_captured"])
    refunded = ints(sets["gateway_refunded"] - sets["order_refunded"])
    refunded = refunded + (ours.hidden + ours.running) * shows_refund
    net = effect_on_orders(sets, ours=ours)
    signs = {
        "net_sign": sign(net, within=bound),
        "captured_sign": sign(captured, within=bound),
        "refunded_sign": sign(refunded, within=bound),
    }
    left = np.where(ours.explained, 0, net)
    left = left + np.where(charged & (left < 0), ints(sets["gateway_charged"]), 0)
    closed = _written_off(sets, left=left, covered=covered)
    left = np.where(closed, 0, left)
    gross_agree = (signs["captured_sign"] == 0) & (signs["refunded_sign"] == 0)
    several = ints(sets["payments_with_money"]) > 1
    alike = (pair & (gross_agree | several)) | charged
    small = alike & (left != 0) & (np.abs(left) <= bound)
    facts = {
        **signs,
        "closed_orders": bits(closed),
        "rounded": bits(small),
        "residual_orders": np.where(small, 0, np.sign(left)),
    }
    return facts, np.where(small, np.abs(left), 0)


def _ledger(
    sets: Arrays, *, ours: Ours, bound: Ints, covered: bool
) -> tuple[dict[str, Ints], Ints]:
    """Leg B: what the gateway shows, with what our replies say of it, less what is booked."""
    money = np.isin(sets["gateway_state"], MONEY_STATES)
    taken = ints(sets["gateway_captured"]) - ours.uncaptured
    back = refunded_for_books(sets, ours=ours)
    booked = ints(sets["ledger_capture"] + sets["ledger_adjustment"])
    capture_gap, refund_gap = taken - booked, back - ints(sets["ledger_refund"])
    differs = {
        "ledger_capture_differs": np.abs(sign(capture_gap, within=bound)),
        "ledger_refund_differs": np.abs(sign(refund_gap, within=bound)),
    }
    charged = charged_by_lines(sets, hidden=ours.hidden)
    proven = (charged > 0) & (charged == ints(sets["ledger_chargeback"]))
    left = effect_on_ledger(sets, ours=ours) - np.where(proven, charged, 0)
    closed = _written_off(sets, left=left, covered=covered)
    left = np.where(closed, 0, left) * covered
    booked_any = (ints(sets["ledger_capture"]) != 0) | (ints(sets["ledger_adjustment"]) != 0)
    ties = (differs["ledger_capture_differs"] == 0) & (differs["ledger_refund_differs"] == 0)
    ties &= money & booked_any & (ints(sets["ledger_chargeback"]) == 0)
    small = ties & (left != 0) & (np.abs(left) <= bound)
    facts = {
        **differs,
        "refunded": bits(back > 0),
        "charged_by_lines": np.where(proven, BOOKED_EXACTLY, bits(charged > 0)),
        "closed_ledger": bits(closed),
        "ledger_rounded": bits(small),
        "residual_ledger": np.where(small, 0, np.sign(left)),
    }
    return facts, np.where(small, np.abs(left), 0)


def effect_on_orders(sets: Arrays, *, ours: Ours) -> Ints:
    """Gateway less order, with what our replies say of refunds where the order tells of them."""
    shows_refund = np.isin(sets["order_state"], STATES_REFUND)
    shown = ints(sets["gateway_net"] - sets["order_net"])
    return np.asarray(shown - (ours.hidden + ours.running) * shows_refund, dtype=np.int64)


def effect_on_ledger(sets: Arrays, *, ours: Ours) -> Ints:
    """Gateway less ledger, with what our replies say of refunds and captures."""
    more = refunded_for_books(sets, ours=ours) - ints(sets["gateway_refunded"])
    shown = ints(sets["gateway_net"] + sets["payout_net"] - sets["ledger_net"])
    return np.asarray(shown - more - ours.uncaptured, dtype=np.int64)


def refunded_for_books(sets: Arrays, *, ours: Ours) -> Ints:
    """What the books should have as refunded: a running refund may stand there already."""
    shown = ints(sets["gateway_refunded"])
    early = (ours.running > 0) & (shown + ours.running == ints(sets["ledger_refund"]))
    return np.asarray(shown + ours.hidden + np.where(early, ours.running, 0), dtype=np.int64)


def charged_by_lines(sets: Arrays, *, hidden: Ints | int = 0) -> Ints:
    """Charged back by lines of the settlement, of payments that the gateway shows with money.

    Minor units, 0 or more: no more than what the lines took back beyond what it shows.

    Args:
        sets: the joined sides (grain: set).
        hidden: refunds that the query cannot show (see Ours).
    """
    money = np.isin(sets["gateway_state"], MONEY_STATES)
    charged = ints(sets["settled_charged"]) - ints(sets["gateway_charged"])
    refunded = ints(sets["settled_refunded"])
    beyond = charged + refunded - ints(sets["gateway_refunded"]) - hidden
    money &= np.asarray(sets["settled_currency"] == sets["currency"], dtype=np.bool_)
    # Of one that the query took back the reversal's line may be still to come.
    money &= ~np.asarray(sets["chargeback_before"], dtype=np.bool_)
    return np.where(money, np.minimum(charged, beyond).clip(min=0), 0)


def _written_off(sets: Arrays, *, left: Ints, covered: bool) -> Bools:
    """Legs that a write-off of exactly what is left closes."""
    written = ints(sets["ledger_write_off"])
    return np.asarray((written > 0) & (written == np.abs(left)) & covered, dtype=np.bool_)


def ints(column: Column) -> Ints:
    """A column as 64-bit integers."""
    return np.asarray(column, dtype=np.int64)


def bits(mask: Bools) -> Ints:
    """A mask as 0 and 1."""
    return np.asarray(mask).astype(np.int64)


def tolerance_of(base: Ints, *, currency: Column, rules: Rules) -> Ints:
    """The tolerance for each row; an absent bound does not bind, both absent = 0.

    Args:
        base: the amount that basis points refer to, minor units.
        currency: its currency.
        rules: the tolerances per currency.
    """
    bounds = np.zeros(len(base), dtype=np.int64)
    for code, tolerance in rules.tolerance.items():
        rows = np.asarray(currency == code, dtype=np.bool_)
        limits = []
        if tolerance.absolute_minor_units is not None:
            limits.append(np.full(int(rows.sum()), tolerance.absolute_minor_units))
        if tolerance.basis_points is not None:
            limits.append(_share(np.abs(base[rows]), basis_points=tolerance.basis_points))
        if limits:
            bounds[rows] = np.minimum.reduce(limits)
    return bounds


def sign(difference: Ints, *, within: Ints) -> Ints:
    """-1, 0 or 1; 0 also inside the tolerance."""
    return np.where(np.abs(difference) <= within, 0, np.sign(difference))


def _share(base: Ints, *, basis_points: int) -> Ints:
    """Base x basis points, rounded down, without leaving int64."""
    whole, rest = np.divmod(base, BASIS)
    return np.asarray(whole * basis_points + rest * basis_points // BASIS, dtype=np.int64)

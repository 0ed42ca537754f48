"""Computes the unexplained difference between the sides of each set, to the minor unit.

The effect is gateway less order (leg A), or gateway less ledger (leg B). Amounts explained by our
own confirmed instructions, a chargeback, a write-off and rounding are deducted one after the other,
each exactly; what remains is the residual. No set with a residual is MATCHED.
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
"""Orders that state the refund they expect; a paid order may not have been updated yet."""


BOOKED_EXACTLY = 2
"""Charged back by settlement lines, and booked with exactly that amount."""


class Ours(NamedTuple):
    """Effects of our confirmed instructions beyond what the query shows, per set in minor units.

    `hidden` and `running` are never both more than 0.
    """

    hidden: Ints
    """Refunds that the query cannot show: known from their replies."""
    running: Ints
    """Refunds that it does not show yet, within their grace."""
    uncaptured: Ints
    """Shown as captured, though we captured less: the query shows only what was authorised."""
    explained: Bools
    """Sets whose difference to the order a confirmed instruction of ours explains."""


class LegFacts(NamedTuple):
    """Facts and rounding of the comparisons with orders and ledger, in minor units per set."""

    facts: dict[str, Ints]
    """Columns of outcomes.PATTERN."""
    rounded: Ints
    """Amount that counts as rounding in both comparisons together, unsigned."""


def leg_facts(sets: Arrays, *, ours: Ours, rules: Rules, strict: Bools, covered: bool) -> LegFacts:
    """Compare the gateway with orders and ledger, gross and net, and find the residuals.

    Args:
        sets: the joined sides (grain: set), amounts in the set's currency.
        ours: effects of our instructions beyond what the query shows.
        rules: the tolerances.
        strict: sets without rounding, because the run's budget is spent.
        covered: whether a ledger was given.
    """
    free = ~strict
    tolerances = [
        tolerance_of(ints(sets[base]), currency=sets["currency"], rules=rules) * free
        for base in ("order_net", "gateway_net")
    ]
    of_ledger, rounded_ledger = _ledger(sets, ours=ours, tolerance=tolerances[1], covered=covered)
    # A chargeback explains the difference to the order while it is booked, or still to be booked.
    explained = (ints(sets["ledger_chargeback"]) > 0) | (of_ledger["closed_ledger"] == 0)
    charged = (sets["gateway_state"] == NUMBER["chargeback"]) & explained
    facts, rounded_orders = _orders(
        sets, ours=ours, tolerance=tolerances[0], charged=charged, covered=covered
    )
    return LegFacts({**facts, **of_ledger}, rounded_orders + rounded_ledger)


def _orders(
    sets: Arrays, *, ours: Ours, tolerance: Ints, charged: Bools, covered: bool
) -> tuple[dict[str, Ints], Ints]:
    """Compare leg A: the gateway's amounts, corrected by our replies, less the order's."""
    money = np.isin(sets["gateway_state"], MONEY_STATES)
    pair = money & np.isin(sets["order_state"], ORDER_MONEY)
    shows_refund = np.isin(sets["order_state"], STATES_REFUND)
    captured = ints(sets["gateway_captured"] - sets["order_captured"])
    refunded = ints(sets["gateway_refunded"] - sets["order_refunded"])
    refunded = refunded + (ours.hidden + ours.running) * shows_refund
    net = effect_on_orders(sets, ours=ours)
    signs = {
        "net_sign": sign(net, within=tolerance),
        "captured_sign": sign(captured, within=tolerance),
        "refunded_sign": sign(refunded, within=tolerance),
    }
    left = np.where(ours.explained, 0, net)
    left = left + np.where(charged & (left < 0), ints(sets["gateway_charged"]), 0)
    closed = _written_off(sets, left=left, covered=covered)
    left = np.where(closed, 0, left)
    gross_agree = (signs["captured_sign"] == 0) & (signs["refunded_sign"] == 0)
    several = ints(sets["payments_with_money"]) > 1
    alike = (pair & (gross_agree | several)) | charged
    small = alike & (left != 0) & (np.abs(left) <= tolerance)
    facts = {
        **signs,
        "closed_orders": bits(closed),
        "rounded": bits(small),
        "residual_orders": np.where(small, 0, np.sign(left)),
    }
    return facts, np.where(small, np.abs(left), 0)


def _ledger(
    sets: Arrays, *, ours: Ours, tolerance: Ints, covered: bool
) -> tuple[dict[str, Ints], Ints]:
    """Compare leg B: the gateway's amounts, corrected by our replies, less the ledger's."""
    money = np.isin(sets["gateway_state"], MONEY_STATES)
    net_captured = ints(sets["gateway_captured"]) - ours.uncaptured
    back = refunded_in_ledger(sets, ours=ours)
    booked = ints(sets["ledger_capture"] + sets["ledger_adjustment"])
    capture_gap, refund_gap = net_captured - booked, back - ints(sets["ledger_refund"])
    differs = {
        "ledger_capture_differs": np.abs(sign(capture_gap, within=tolerance)),
        "ledger_refund_differs": np.abs(sign(refund_gap, within=tolerance)),
    }
    charged = charged_by_lines(sets, hidden=ours.hidden)
    proven = (charged > 0) & (charged == ints(sets["ledger_chargeback"]))
    left = effect_on_ledger(sets, ours=ours) - np.where(proven, charged, 0)
    closed = _written_off(sets, left=left, covered=covered)
    left = np.where(closed, 0, left) * covered
    booked_any = (ints(sets["ledger_capture"]) != 0) | (ints(sets["ledger_adjustment"]) != 0)
    ties = (differs["ledger_capture_differs"] == 0) & (differs["ledger_refund_differs"] == 0)
    ties &= money & booked_any & (ints(sets["ledger_chargeback"]) == 0)
    small = ties & (left != 0) & (np.abs(left) <= tolerance)
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
    gap = ints(sets["gateway_net"] - sets["order_net"])
    return np.asarray(gap - (ours.hidden + ours.running) * shows_refund, dtype=np.int64)


def effect_on_ledger(sets: Arrays, *, ours: Ours) -> Ints:
    """Return gateway less ledger, corrected by refunds and captures known by our replies."""
    more = refunded_in_ledger(sets, ours=ours) - ints(sets["gateway_refunded"])
    gap = ints(sets["gateway_net"] + sets["payout_net"] - sets["ledger_net"])
    return np.asarray(gap - more - ours.uncaptured, dtype=np.int64)


def refunded_in_ledger(sets: Arrays, *, ours: Ours) -> Ints:
    """Return the refund that the ledger should have: a running refund may be booked already."""
    gap = ints(sets["gateway_refunded"])
    early = (ours.running > 0) & (gap + ours.running == ints(sets["ledger_refund"]))
    return np.asarray(gap + ours.hidden + np.where(early, ours.running, 0), dtype=np.int64)


def charged_by_lines(sets: Arrays, *, hidden: Ints | int = 0) -> Ints:
    """Return chargebacks known only by settlement lines, of payments shown with money.

    Minor units, 0 or more: no more than what the lines took back beyond what the gateway shows.

    Args:
        sets: the joined sides (grain: set).
        hidden: refunds that the query cannot show (see Ours).
    """
    money = np.isin(sets["gateway_state"], MONEY_STATES)
    charged = ints(sets["settled_charged"]) - ints(sets["gateway_charged"])
    refunded = ints(sets["settled_refunded"])
    beyond = charged + refunded - ints(sets["gateway_refunded"]) - hidden
    money &= np.asarray(sets["settled_currency"] == sets["currency"], dtype=np.bool_)
    # After a chargeback that the query took back, the line of its reversal may be still to come.
    money &= ~np.asarray(sets["chargeback_before"], dtype=np.bool_)
    return np.where(money, np.minimum(charged, beyond).clip(min=0), 0)


def _written_off(sets: Arrays, *, left: Ints, covered: bool) -> Bools:
    """Mark sets where a write-off of exactly what is left closes the difference."""
    written = ints(sets["ledger_write_off"])
    return np.asarray((written > 0) & (written == np.abs(left)) & covered, dtype=np.bool_)


def ints(column: Column) -> Ints:
    """Return a column as 64-bit integers."""
    return np.asarray(column, dtype=np.int64)


def bits(mask: Bools) -> Ints:
    """Return a mask as 0 and 1."""
    return np.asarray(mask).astype(np.int64)


def tolerance_of(base: Ints, *, currency: Column, rules: Rules) -> Ints:
    """Return the tolerance for each row; an absent bound does not bind, both absent = 0.

    Args:
        base: the amount that basis points refer to, minor units.
        currency: its currency.
        rules: the tolerances per currency.
    """
    tolerances = np.zeros(len(base), dtype=np.int64)
    for code, tolerance in rules.tolerance.items():
        rows = np.asarray(currency == code, dtype=np.bool_)
        limits = []
        if tolerance.absolute_minor_units is not None:
            limits.append(np.full(int(rows.sum()), tolerance.absolute_minor_units))
        if tolerance.basis_points is not None:
            limits.append(_share(np.abs(base[rows]), basis_points=tolerance.basis_points))
        if limits:
            tolerances[rows] = np.minimum.reduce(limits)
    return tolerances


def sign(difference: Ints, *, within: Ints) -> Ints:
    """Return -1, 0 or 1; 0 also inside the tolerance."""
    return np.where(np.abs(difference) <= within, 0, np.sign(difference))


def _share(base: Ints, *, basis_points: int) -> Ints:
    """Return base x basis points, rounded down, without leaving int64."""
    whole, remainder = np.divmod(base, BASIS)
    return np.asarray(whole * basis_points + remainder * basis_points // BASIS, dtype=np.int64)

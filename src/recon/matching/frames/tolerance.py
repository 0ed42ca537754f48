"""How much difference is still called rounding: the smaller of its bounds, in minor units."""

import numpy as np

from recon.config.rules import Rules
from recon.matching.frames.arrays import Column
from recon.matching.frames.grouping import Ints

BASIS = 10_000
"""Basis points of a whole."""


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

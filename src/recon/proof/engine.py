"""Reconciles sources into matches, pending, breaks and a verdict. Pure: reads no clock.

Many orders are compared in buckets, to hold only some sets in memory: all rows of an order number
are in one bucket. The number of buckets changes no result.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.digest import numbers_of
from recon.matching.frames.sources import Previous, Sources
from recon.matching.sets.independent_sets import LEGS
from recon.model.uptime import YOUNG, give_back
from recon.proof.night_parts import (
    ORDERS_PER_PART,
    PARTS_MIN,
    WORDS_MAX,
    Gathering,
    classified_part,
    has_parts,
    left_of,
    reconcile_rest,
)
from recon.proof.proven import compared


def reconcile(
    sources: Sources,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None = None,
) -> Reconciliation:
    """Compare orders, gateway, ledger and instructions as they stood at `as_of`.

    Args:
        sources: typed frames, one row per accepted source row.
        rules: tolerance, grace, calendar, status map.
        as_of: the instant that closes the business date; no other time is used.
        previous: what an earlier run left open, for ids, first seen and the roll-forward.
    """
    parts = -(-len(sources.orders) // ORDERS_PER_PART)
    buckets = parts if parts >= PARTS_MIN else 1
    return in_buckets(sources, buckets=buckets, rules=rules, as_of=as_of, previous=previous)


def in_buckets(
    sources: Sources, *, buckets: int, rules: Rules, as_of: datetime, previous: Previous | None
) -> Reconciliation:
    """Reconcile in the given number of buckets; one bucket compares all rows at once."""
    terms: dict[str, Any] = {"rules": rules, "as_of": as_of, "previous": previous}
    if buckets > 1 and has_parts(settled=sources.settlement is not None, rules=rules):
        gathering = Gathering(sources)
        gathering.see(sources)
        elsewhere = gathering.elsewhere()
        if len(elsewhere.labels) <= WORDS_MAX:
            parts = []
            for rows in _cut(sources, buckets=buckets):
                parts.append(classified_part(rows, elsewhere=elsewhere, **terms))
                give_back(generation=YOUNG)
            return reconcile_rest(left_of(sources, parts=parts), parts=parts, **terms)
    return compared(sources, **terms)


def _cut(sources: Sources, *, buckets: int) -> Iterator[Sources]:
    """Yield the rows of each bucket."""
    frames: dict[str, pd.DataFrame] = {
        leg: frame for leg in LEGS if (frame := getattr(sources, leg)) is not None
    }
    bucket_of = {leg: numbers_of(frame["order_no"]) % buckets for leg, frame in frames.items()}
    # With few orders some buckets have no row.
    for number in np.unique(np.concatenate([*bucket_of.values()])).tolist():
        own: dict[str, Any] = {
            leg: frame[bucket_of[leg] == number].reset_index(drop=True)
            for leg, frame in frames.items()
        }
        yield replace(sources, **own)

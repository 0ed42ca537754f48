"""Reconciles sources into matches, pending, breaks and a verdict. Pure: reads no clock.

Many orders are compared in buckets, to hold only some sets in memory (see proof.buckets).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.classifying.outcomes import budgets_of, over_budget
from recon.matching.engine import prepared, spent_on_rounding
from recon.matching.frames.sources import Previous, Sources
from recon.matching.frames.total_rows import AccountKey
from recon.model.uptime import YOUNG, give_back
from recon.proof.buckets import (
    BUCKETS_MIN,
    ORDERS_PER_BUCKET,
    ROWS,
    ROWS_PER_ORDER,
    BucketFigures,
    BucketRows,
    ComparedBucket,
    Cut,
    Range,
    compare_bucket,
    compared_last,
    counted,
    cut_of,
    names_of,
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
    terms: dict[str, Any] = {"rules": rules, "as_of": as_of, "previous": previous}
    if has_buckets(len(sources.orders), settled=sources.settlement is not None, rules=rules):
        return in_memory(sources, rows_per_bucket=ORDERS_PER_BUCKET * ROWS_PER_ORDER, **terms)
    return compared(sources, **terms)


def has_buckets(orders: int, *, settled: bool, rules: Rules) -> bool:
    """Return whether so many orders are compared in buckets; `settled`: with a settlement.

    Where the ledger has a fee per payment, there are as many settlement groups as payments, and
    summing lines up would save nothing.
    """
    is_large = -(-orders // ORDERS_PER_BUCKET) >= BUCKETS_MIN
    return is_large and not (settled and rules.ledger.fees_per == "payment")


def in_memory(
    sources: Sources,
    *,
    rows_per_bucket: int,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> Reconciliation:
    """Reconcile sources in memory in buckets of about so many rows."""
    terms: dict[str, Any] = {"rules": rules, "as_of": as_of, "previous": previous}
    names = partial(names_of, sources)
    cut = cut_of(names, small=sources, previous=previous, rows_per_bucket=rows_per_bucket)
    if cut is None:
        return compared(sources, **terms)

    inside = partial(_within, sources)

    def each(ranges: Sequence[Range], strict: Collection[AccountKey]) -> list[ComparedBucket]:
        done = []
        for rows_within in map(inside, ranges):
            figures, rows = compare_bucket(rows_within, cut, small=sources, strict=strict, **terms)
            done.append(ComparedBucket(figures, partial(BucketRows, *rows)))
            give_back(generation=YOUNG)
        return done

    return in_buckets(cut, small=sources, rows=inside, each=each, **terms).result


class InBuckets(NamedTuple):
    """A run that was compared in buckets."""

    result: Reconciliation
    figures: list[BucketFigures]
    last: Sources
    """What was compared last."""


def in_buckets(
    cut: Cut,
    *,
    small: Sources,
    rows: Callable[[Range], Sources],
    each: Callable[[Sequence[Range], Collection[AccountKey]], list[ComparedBucket]],
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> InBuckets:
    """Compare all buckets, again those that a spent budget of rounding changes, then the rest.

    Args:
        cut: how the run is cut.
        small: the sources; of their rows only whether they were given.
        rows: returns all rows of a range.
        each: compares the buckets of ranges under spent budgets.
        rules: the rules of the comparison.
        as_of: the instant of the comparison.
        previous: what an earlier run left open.
    """
    terms: dict[str, Any] = {"rules": rules, "as_of": as_of, "previous": previous}
    done = each(cut.ranges, ())
    spent = [bucket.figures.spent for bucket in done]
    left = (cut.split(rows(within))[1] for within in cut.ranges)
    last = compared_last(small, left=left, figures=[bucket.figures for bucket in done])
    strict: frozenset[AccountKey] = frozenset()
    if budgets_of(rules):
        own = spent_on_rounding(prepared(last, rules=rules), **terms)
        strict = over_budget(counted([own, *spent]), rules=rules)
    if again := [at for at, places in enumerate(spent) if strict & places.keys()]:
        for at, bucket in zip(again, each([cut.ranges[at] for at in again], strict), strict=True):
            done[at] = bucket
    give_back()
    result = compared(last, buckets=done, strict=strict, **terms)
    return InBuckets(result, [bucket.figures for bucket in done], last)


def _within(sources: Sources, within: Range) -> Sources:
    """Return the rows of a range."""
    rows: dict[str, Any] = {}
    for name in ROWS:
        frame: pd.DataFrame | None = getattr(sources, name)
        if frame is not None:
            inside = frame["order_no"] >= within.first
            if within.after:
                inside &= frame["order_no"] < within.after
            rows[name] = frame[np.asarray(inside)].reset_index(drop=True)
    return replace(sources, **rows)

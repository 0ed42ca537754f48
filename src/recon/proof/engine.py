"""Reconciles sources into matches, pending, breaks and a verdict. Pure: reads no clock.

Many orders are compared in buckets, to hold only some sets in memory (see proof.buckets).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.classifying.outcomes import over_budget
from recon.matching.frames.sources import Basis, Previous, Sources
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
    basis = Basis(rules, as_of, previous)
    if has_buckets(len(sources.orders), settled=sources.settlement is not None, rules=rules):
        rows = ORDERS_PER_BUCKET * ROWS_PER_ORDER
        return in_memory(sources, rows_per_bucket=rows, basis=basis)
    return compared(sources, basis=basis)


def has_buckets(orders: int, *, settled: bool, rules: Rules) -> bool:
    """Return whether so many orders are compared in buckets; `settled`: with a settlement.

    Where the ledger has a fee per payment, there are as many settlement groups as payments, and
    summing lines up would save nothing.
    """
    is_large = -(-orders // ORDERS_PER_BUCKET) >= BUCKETS_MIN
    return is_large and not (settled and rules.ledger.fees_per == "payment")


def in_memory(sources: Sources, *, rows_per_bucket: int, basis: Basis) -> Reconciliation:
    """Reconcile sources in memory in buckets of about so many rows."""
    names, before = partial(names_of, sources), basis.previous
    cut = cut_of(names, small=sources, previous=before, rows_per_bucket=rows_per_bucket)

    def each(ranges: Sequence[Range], strict: Collection[AccountKey]) -> list[ComparedBucket]:
        done = []
        for rows_within in (_within(sources, within) for within in ranges):
            figures, rows = compare_bucket(
                rows_within, cut, small=sources, basis=basis, strict=strict
            )
            done.append(ComparedBucket(figures, partial(BucketRows, *rows)))
            give_back(generation=YOUNG)
        return done

    return in_buckets(cut, small=sources, each=each, basis=basis).result


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
    each: Callable[[Sequence[Range], Collection[AccountKey]], list[ComparedBucket]],
    basis: Basis,
) -> InBuckets:
    """Compare all buckets, then what they left, before which a spent budget may change some.

    Args:
        cut: how the run is cut.
        small: the sources; of their rows only whether they were given.
        each: compares the buckets of ranges under spent budgets.
        basis: the rules, the instant, and what an earlier run left open.
    """
    done = each(cut.ranges, ())
    last = compared_last(small, figures=[bucket.figures for bucket in done])
    done = [bucket.without_rows() for bucket in done]
    give_back()

    def spent_by_all(own: Mapping[AccountKey, int]) -> Collection[AccountKey]:
        """Return the budgets that all rows spend; buckets that they change are compared again."""
        spent = [bucket.figures.spent for bucket in done]
        strict = over_budget(counted([own, *spent]), rules=basis.rules)
        again = [at for at, numbers in enumerate(spent) if strict & numbers.keys()]
        if again:
            anew = each([cut.ranges[at] for at in again], strict)
            for at, bucket in zip(again, anew, strict=True):
                done[at] = bucket.without_rows()
        return strict

    result = compared(last, basis=basis, buckets=done, strict=spent_by_all)
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

"""Compares a large run in parts: what each part must know of the others, and their merged result.

A part is all rows of some order numbers. Its independent sets, here called *aside*, have the same
outcome whatever else the run holds, so they are classified as a run of their own, and their result
is added to that of all rows left: totals, sides and statements are summed; matches, breaks, pending
and unverified sets are sorted together. Causes, movements and journals are computed at the end.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.config.rules import Rules
from recon.matching.breaks.result import Deferred, Reconciliation
from recon.matching.breaks.result_rows import OPEN_SORTED_BY
from recon.matching.breaks.write_offs import Sums, refuse_beyond_sums, sums_of_amounts
from recon.matching.cash.fees_charged import unpriced_lines
from recon.matching.engine import Broken, classify
from recon.matching.frames.arrays import text_column
from recon.matching.frames.coding import equals, placed
from recon.matching.frames.digest import Labels, are_among, digest_of, numbers_of
from recon.matching.frames.grouping import Bools
from recon.matching.frames.sorting import columns_in_order
from recon.matching.frames.sources import Previous, Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.sets.independent_sets import (
    LEGS,
    Elsewhere,
    SeenIds,
    independent_sets,
    unkeyed_words,
)
from recon.matching.sides.agreed_fees import with_fees_priced
from recon.matching.sides.gateway_side import refunds_of_others, with_refunds_settled
from recon.matching.sides.ledger_side import CLASSIFIED
from recon.matching.sides.payouts import PAYOUT_TYPES, classified_entries
from recon.matching.sides.settlement_side import (
    first_days_reported,
    of_payments,
    summed_lines,
    with_summed,
)
from recon.model.terms import KeyAnswer, SetState
from recon.proof.books_bridge import Books, of_money, restated, steps_of
from recon.proof.proven import compared, result_of
from recon.proof.verdict import STATEMENTS, Line, OpenCounts, verdict_of

ORDERS_PER_PART = 100_000
"""Each takes some 2.3 kB while it is classified. The number changes no result."""
PARTS_MIN = 3
"""With fewer parts all rows are compared at once: parts cost more than they save."""
WORDS_MAX = 100_000
"""Maximum ids of rows without an order number that every part is given. With more, hardly a set is
independent, and the run is compared whole."""
_FRAMES = LEGS[:-1]
_FURTHER = (
    *("instructions", "rejects", "quarantined", "volumes", "settled"),
    "orders_lack_since",
)
"""Undivided sources given to a part; files and ledger totals are counted once, with the rest."""


def has_parts(*, settled: bool, rules: Rules) -> bool:
    """Return whether parts of a run can be classified alone; `settled`: it has a settlement.

    Where the ledger has a fee per payment, there are as many settlement groups as payments, and
    summing lines up would save nothing.
    """
    return not settled or rules.ledger.fees_per != "payment"


class Gathering:
    """Collects what parts must know of each other, one range of order numbers at a time."""

    def __init__(self, small: Sources) -> None:
        """Start with the undivided sources: all sources, whose rows of LEGS are not used."""
        self._small = small
        self._entries, self._transactions = SeenIds(), SeenIds()
        self._odd: dict[str, list[pd.DataFrame]] = {name: [] for name in _FRAMES}
        self._first_days: dict[tuple[str, ...], str] = {}
        self._refunds: list[pd.DataFrame] = []
        self._unpaid: set[str] = set()

    def see(self, rows: Sources) -> None:
        """Add the next range of rows (orders, gateway, ledger, settlement)."""
        for name in _FRAMES:
            frame: pd.DataFrame | None = getattr(rows, name)
            if frame is None:
                continue
            odd = _represents_others(frame, name=name)
            if odd.any():
                self._odd[name].append(frame[odd])
            if name == "ledger":
                self._entries.see(frame["entry_id"])
        self._transactions.see(rows.gateway["transaction_id"])
        # A row without a payment of its own is classified with the payment that it names.
        found = equals(rows.gateway["answer"], KeyAnswer.FOUND)
        paid = np.sort(_of_account(rows.gateway)[found])
        for frame in (rows.orders, rows.ledger):
            if frame is not None:
                unpaid = ~are_among(_of_account(frame), paid)
                self._unpaid |= {*frame["transaction_id"][unpaid]} - {""}
        if rows.settlement is not None:
            self._see_lines(rows.settlement, gateway=rows.gateway)

    def _see_lines(self, lines: pd.DataFrame, *, gateway: pd.DataFrame) -> None:
        rows, accounts = placed(lines, by=ACCOUNT)
        for number, day in first_days_reported(lines, accounts=rows).items():
            account = accounts[number]
            self._first_days[account] = min(day, self._first_days.get(account, day))
        strange = refunds_of_others(lines, gateway=gateway)
        if strange.any():
            self._refunds.append(lines[strange])

    def elsewhere(self) -> Elsewhere:
        """Return what each part must know of all rows."""
        shared = Elsewhere(
            frozenset(),
            self._entries.shared(),
            self._transactions.shared(),
            self._first_days,
            pd.concat(self._refunds, ignore_index=True) if self._refunds else None,
        )
        frames: dict[str, Any] = {
            name: pd.concat([whole.iloc[:0], *self._odd[name]], ignore_index=True)
            for name in _FRAMES
            if (whole := getattr(self._small, name)) is not None
        }
        odd = replace(self._small, **frames)
        if odd.ledger is not None:
            ours = odd.ledger.assign(**{CLASSIFIED: classified_entries(odd)})
            odd = replace(odd, ledger=ours)
        unpaid = text_column(sorted(self._unpaid))
        elsewhere = {*unpaid[self._transactions.have(unpaid)]}
        return replace(shared, labels=unkeyed_words(odd, elsewhere=shared) | elsewhere)


def _of_account(rows: pd.DataFrame) -> Labels:
    """Hash each row's order number together with its account."""
    return numbers_of(rows["order_no"]) ^ numbers_of(rows["account_id"])


def _represents_others(frame: pd.DataFrame, *, name: str) -> Bools:
    """Mark the rows that belong to no order number of their own."""
    keyless: Bools = frame["order_no"].eq("").to_numpy(dtype=np.bool_)
    if name == "ledger":
        return keyless | equals(frame["entry_type"], *PAYOUT_TYPES)
    return keyless | ~of_payments(frame) if name == "settlement" else keyless


SECTIONS = ("matches", "pending", "unverified")
"""Frames of a result of which each part writes files."""


@dataclass(frozen=True, slots=True)
class PartFigures:
    """The figures that one part adds to the result of its run."""

    sides: pd.DataFrame
    """See Reconciliation.sides."""
    scope: tuple[Line, ...]
    """See Reconciliation.scope_of_assurance."""
    broken: Broken
    sums: Sums
    """Sums of absolute amounts of the rows aside."""
    aside: Mapping[str, int]
    """Source -> number of its rows aside."""
    settled: pd.DataFrame | None
    """The settlement lines aside, summed up (see summed_lines); None: no settlement was given."""
    restated: Mapping[str, int]
    """Change of the entries aside into other currencies (see books_bridge.restated)."""
    unpriced: Counter[str]


@dataclass(frozen=True, slots=True)
class ClassifiedPart:
    """One part with its independent sets classified."""

    figures: PartFigures
    frames: dict[str, pd.DataFrame]
    """SECTIONS of the rows aside, in the order of a result."""
    items: pa.Table
    """Table `items` of the rows aside that no match describes."""
    left: Sources
    """LEGS of the rows left."""


def classified_part(
    rows: Sources,
    *,
    elsewhere: Elsewhere,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> ClassifiedPart:
    """Classify the independent sets of a part.

    Args:
        rows: LEGS of all rows of some order numbers, and all undivided sources.
        elsewhere: what is known of all rows.
        rules: the rules of the comparison.
        as_of: the instant of the comparison.
        previous: what the previous run left open, of all keys.
    """
    terms: dict[str, Any] = {"rules": rules, "as_of": as_of, "previous": None}
    given = _prepared(rows, elsewhere=elsewhere, rules=rules)
    aside = independent_sets(given, elsewhere=elsewhere, rules=rules, previous=previous)
    sources = _rows_of(given, rows=aside)
    classified = classify(sources, **terms)
    # Sets that depend on the rounding budget are left for the final pass.
    rounded = classified.outcomes.candidates
    if rounded.any():
        for leg, own in aside.items():
            own[own] = ~rounded[classified.joined.keys.of[leg]]
        sources = _rows_of(given, rows=aside)
        classified = classify(sources, **terms)
    unpriced = unpriced_lines(sources, contract=rules.fee_contract)
    result = result_of(classified, sources=sources, unpriced=unpriced, **terms)
    frames = {name: getattr(result, name) for name in SECTIONS}
    items = result.items
    figures = PartFigures(
        sides=result.sides,
        scope=result.scope_of_assurance,
        broken=classified.broken,
        sums=sums_of_amounts(sources),
        aside={leg: int(own.sum()) for leg, own in aside.items() if leg != "universe"},
        settled=None if sources.settlement is None else summed_lines(sources.settlement),
        restated={} if sources.ledger is None else restated(sources.ledger),
        unpriced=unpriced,
    )
    # Rows left are passed on unprepared: the final pass prepares all of them together.
    left: dict[str, Any] = {
        leg: getattr(rows, leg)[~own].reset_index(drop=True) for leg, own in aside.items()
    }
    return ClassifiedPart(figures, frames, items, replace(rows, **left))


def _prepared(rows: Sources, *, elsewhere: Elsewhere, rules: Rules) -> Sources:
    """Return the rows with settled refunds and fee differences filled in.

    The other steps of matching.engine.prepared concern only rows that are never aside.
    """
    own: dict[str, Any] = {name: getattr(rows, name) for name in (*LEGS, *_FURTHER)}
    part = Sources(**own, first_days=elsewhere.first_days)
    return with_fees_priced(
        with_refunds_settled(part, rules=rules, others=elsewhere.refunds), rules=rules
    )


def _rows_of(sources: Sources, *, rows: Mapping[str, Bools]) -> Sources:
    """Return some rows of LEGS, without sources that refer to other rows."""
    frames: dict[str, Any] = {
        leg: getattr(sources, leg)[own].reset_index(drop=True) for leg, own in rows.items()
    }
    moves = sources.instructions
    # It matters whether there are instructions at all; a set that one refers to is not independent.
    frames["instructions"] = None if moves is None else moves.iloc[:0]
    return replace(sources, **frames, rejects=(), quarantined=())


_SIDE_KEY = ("source", "merchant_id", "account_id", "currency", "state")
_SIDE_SUMS = ("count", "amount")


def left_of(small: Sources, *, parts: Sequence[ClassifiedPart]) -> Sources:
    """Return the rows left of all parts, sums of settlement lines aside, and undivided sources.

    Args:
        small: all sources; of LEGS only whether they were given.
        parts: the classified parts.
    """
    left: dict[str, Any] = {
        leg: pd.concat([getattr(part.left, leg) for part in parts], ignore_index=True)
        for leg in LEGS
        if getattr(small, leg) is not None
    }
    if "settlement" in left:
        every = (part.figures.settled for part in parts)
        left["settlement"] = with_summed(
            left["settlement"], parts=[sums for sums in every if sums is not None]
        )
    return replace(small, **left)


def books_in_parts(
    small: Sources, *, rest: Sources, parts: Sequence[ClassifiedPart], rules: Rules
) -> Books:
    """Return all steps of the ledger's money (see books_bridge.books_of); empty without a ledger.

    Entries aside are compared as booked, except for what is restated of them.

    Args:
        small: all sources, with the steps from the file to the ledger.
        rest: the rows left of the parts (see `left_of`).
        parts: the classified parts.
        rules: how fees are booked.
    """
    aside = _counted(part.figures.restated for part in parts)
    return of_money(small, steps=steps_of(rest, rules=rules), more=aside)


def reconcile_rest(
    rest: Sources,
    *,
    parts: Sequence[ClassifiedPart],
    rules: Rules,
    as_of: datetime,
    previous: Previous | None = None,
) -> Reconciliation:
    """Compare the rows left of all parts, and add the figures and rows of the parts.

    Args:
        rest: the rows left (see `left_of`).
        parts: the classified parts; their frames are released.
        rules: as for the parts.
        as_of: as for the parts.
        previous: what the previous run left open.
    """
    figures = [part.figures for part in parts]
    refuse_beyond_sums(rest, parts=_counted(part.sums for part in figures))
    result = compared(
        rest,
        rules=rules,
        as_of=as_of,
        previous=previous,
        buckets=[part.broken for part in figures],
        unpriced=_counted(part.unpriced for part in figures),
    )
    of_sources = _counted(part.aside for part in figures)
    sides = _added_sides([result.sides, *(part.sides for part in figures)])
    frames: dict[str, Any] = {
        name: _in_one(getattr(result, name), parts=[part.frames.pop(name) for part in parts])
        for name in SECTIONS
    }
    classified = OpenCounts(
        len(result.breaks),
        len(frames["unverified"]),
        int(sides[sides["state"].eq(SetState.UNVERIFIED.value)]["count"].sum()),
        has_parts=bool(of_sources.get("orders")),
    )
    lacks = result.bank_lacks
    items, matches = result.every_item, frames.pop("matches")
    return replace(
        result,
        **frames,
        verdict=verdict_of(classified, sources=rest, rules=rules, lacks=lacks),
        sides=sides,
        scope_of_assurance=_added_scope(
            [result.scope_of_assurance, *(part.scope for part in figures)]
        ),
        digest_of_all=Deferred(
            lambda: digest_of([result.breaks, result.effects, matches, *frames.values()])
        ),
        every_match=Deferred(lambda: matches),
        every_item=Deferred(
            lambda: pa.concat_tables([items.get(), *(part.items for part in parts)])
        ),
    )


def _in_one(rest: pd.DataFrame, *, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Merge and sort the rows of all parts; each column of a part is released once it is taken."""
    every: dict[str, Any] = {}
    for name in map(str, rest.columns):
        columns: list[pd.Series[Any]] = [rest[name], *(part.pop(name) for part in parts)]
        every[name] = pd.concat(columns, ignore_index=True)
    return columns_in_order(every, by=OPEN_SORTED_BY)


def _added_sides(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Sum count and amount by source, account, currency and state over all parts."""
    every = pd.concat(parts, ignore_index=True)
    summed = every.groupby([*_SIDE_KEY])[[*_SIDE_SUMS]].sum().reset_index()
    return summed[[*parts[0].columns]]


def _added_scope(parts: Sequence[Sequence[Line]]) -> tuple[Line, ...]:
    """Return the statements in their order, each with the counts and amounts of every part."""
    every = [line for part in parts for line in part]
    # What is proven comes first, then what is not; other statements follow as they came.
    order = [*dict.fromkeys((*STATEMENTS, *(str(line["statement"]) for line in every)))]
    sums: dict[tuple[int, str], Counter[str]] = {}
    for line in every:
        place = order.index(str(line["statement"])), str(line["currency"])
        sums.setdefault(place, Counter()).update({name: int(line[name]) for name in _SIDE_SUMS})
    return tuple(
        {"statement": order[at], "currency": currency, **{name: own[name] for name in _SIDE_SUMS}}
        for (at, currency), own in sorted(sums.items())
    )


def _counted(parts: Iterable[Mapping[Any, int]]) -> dict[Any, int]:
    sums: Counter[Any] = Counter()
    for part in parts:
        sums.update(part)
    return dict(sums)

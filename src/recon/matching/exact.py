"""The sets that agree in every leg, found by their keys alone and set aside before any judgement.

One order, one payment, one entry (and one settled line, where settlement is covered) under one key
that name the same positive amount, currency and day: such a set is MATCHED by the rule `exact`,
whatever the rest of the night holds. Nearly all sets of a night are like this, so what is left for
classification is small. Left is every set that is not exact in one of its legs, and every one that
another row may speak of: repeats, our own instructions, rejected rows, the breaks of the night
before, and all ids that a row without an order key names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.business_date import midnight
from recon.matching.coding import NO_KEY, coded, placed_together
from recon.matching.exact_legs import Leg, legs_of
from recon.matching.grace import business_days, microseconds
from recon.matching.grouping import NO_INSTANT, Bools, Ints, Rows, instants_of
from recon.matching.loose_words import loose_words
from recon.matching.settlement_side import of_payments
from recon.matching.sources import KEY_COLUMNS, Previous, Sources
from recon.rules import Rules

ACCOUNT = ["merchant_id", "account_id"]
NAMED = ("transaction_id", "reference_no", "order_no")
"""Columns by which a row without an order key may mean a set."""
SPARE_MAX = 4
"""Numbers of keys for each row, most of them of no row; above it the numbers are drawn together."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Merchant, account and order number of every row as one number."""

    of: Mapping[str, Rows]
    """By source; NO_KEY for a row without an order number, or that stands outside the sets."""
    account: Rows
    """By key, the place in `accounts`."""
    accounts: list[tuple[str, ...]]
    """Merchant and account."""

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self.account)


@dataclass(frozen=True, slots=True)
class Exact:
    """The sets that were set aside, and what is left."""

    rows: Mapping[str, Rows]
    """For each leg, the source row of each set."""
    amount: Ints
    """What each set moves in every leg, minor units."""
    left: Mapping[str, Rows]
    """For each leg, the source rows that are left for classification."""
    keys: Keys
    sources: Sources
    """What is left for classification."""

    @property
    def size(self) -> int:
        """How many sets were set aside."""
        return len(self.amount)

    def item_rows(self) -> dict[str, Rows]:
        """For each leg, the whole source's row of each row that the engine counts items by."""
        rows = dict(self.left)
        if self.sources.settlement is not None:
            rows["settlement"] = rows["settlement"][of_payments(self.sources.settlement)]
        return rows


def set_aside(sources: Sources, *, rules: Rules, previous: Previous | None) -> Exact:
    """Find the exact sets and what is left of the sources without them."""
    legs = legs_of(sources, rules=rules)
    spoken_of = _spoken_of(sources, previous=previous)
    keys = _keys(legs, others=spoken_of | _asked(sources))
    single = np.ones(keys.size, dtype=np.bool_)
    for name in spoken_of:
        named = keys.of[name]
        single[named[named != NO_KEY]] = False
    rows = _alone(legs, keys=keys, single=single)
    rows = _where(rows, mask=_agreeing(legs, rows=rows))
    rows = _where(rows, mask=_plain(sources, rows=rows, rules=rules))
    rows = _where(rows, mask=~_named_elsewhere(sources, legs=legs, rows=rows))
    amount = legs["orders"].amount[rows["orders"]]
    left = {name: _others(rows[name], size=len(leg.frame)) for name, leg in legs.items()}
    return Exact(rows, amount, left, keys, _left_of(sources, rows=rows, left=left, keys=keys))


def nothing_aside(sources: Sources, *, rules: Rules) -> Exact:
    """Everything is left for classification: what the exact sets must come to as well."""
    legs = legs_of(sources, rules=rules)
    keys = _keys(legs, others=_spoken_of(sources, previous=None) | _asked(sources))
    nothing = np.zeros(0, dtype=np.intp)
    left = {name: np.arange(len(leg.frame)) for name, leg in legs.items()}
    rows = dict.fromkeys(legs, nothing)
    return Exact(rows, nothing.astype(np.int64), left, keys, sources)


def _spoken_of(sources: Sources, *, previous: Previous | None) -> dict[str, pd.DataFrame]:
    """The frames whose keys always need a judgement (KEY_COLUMNS)."""
    rejected = [(r.merchant_id, r.account_id, r.order_no) for r in sources.rejects]
    frames = {"rejects": pd.DataFrame(rejected, columns=[*KEY_COLUMNS], dtype="str")}
    if sources.instructions is not None:
        frames["instructions"] = sources.instructions
    if previous is not None:
        frames |= {"breaks": previous.breaks, "chargebacks": previous.chargebacks}
    return frames


def _asked(sources: Sources) -> dict[str, pd.DataFrame]:
    return {} if sources.universe is None else {"universe": sources.universe}


def _keys(legs: Mapping[str, Leg], *, others: Mapping[str, pd.DataFrame]) -> Keys:
    frames = {name: leg.frame for name, leg in legs.items()} | dict(others)
    accounts, places = placed_together([*frames.values()], by=ACCOUNT)
    orders, words = coded([frame["order_no"] for frame in frames.values()])
    size, ends = len(words) * len(places), np.cumsum([len(codes) for codes in orders])[:-1]
    wide = [place * len(words) + order for place, order in zip(accounts, orders, strict=True)]
    numbers: list[Rows] = wide
    if size > SPARE_MAX * sum(len(codes) for codes in orders):
        every, known = pd.factorize(np.concatenate(wide))
        numbers, size = np.split(every, ends), len(known)
    account = np.zeros(size, dtype=np.intp)
    for number, place in zip(numbers, accounts, strict=True):
        account[number] = place
    blank = pc.index(words, "").as_py()
    if blank != NO_KEY:
        numbers = [np.where(o == blank, NO_KEY, n) for o, n in zip(orders, numbers, strict=True)]
    of = dict(zip(frames, numbers, strict=True))
    for name, leg in legs.items():
        if not leg.belongs.all():
            of[name] = np.where(leg.belongs, of[name], NO_KEY)
    return Keys(of, account, places)


def _alone(legs: Mapping[str, Leg], *, keys: Keys, single: Bools) -> dict[str, Rows]:
    """The rows of the keys that have exactly one row in every leg (row n of each: one key)."""
    row_of = {}
    for name in legs:
        numbers = keys.of[name]
        inside = np.flatnonzero(numbers != NO_KEY)
        single = single & (np.bincount(numbers[inside], minlength=keys.size) == 1)
        row_of[name] = np.full(keys.size, NO_KEY, dtype=np.intp)
        row_of[name][numbers[inside]] = inside
    found = np.flatnonzero(single)
    return {name: rows[found] for name, rows in row_of.items()}


def _agreeing(legs: Mapping[str, Leg], *, rows: Mapping[str, Rows]) -> Bools:
    """Sets whose legs all fit and name the same amount in the same currency."""
    columns, _ = coded([leg.frame["currency"] for leg in legs.values()])
    currencies = dict(zip(legs, columns, strict=True))
    first = rows["orders"]
    agree = np.ones(len(first), dtype=np.bool_)
    for name, leg in legs.items():
        agree &= leg.fits[rows[name]]
        agree &= leg.amount[rows[name]] == legs["orders"].amount[first]
        agree &= currencies[name][rows[name]] == currencies["orders"][first]
    return agree


def _plain(sources: Sources, *, rows: Mapping[str, Rows], rules: Rules) -> Bools:
    """Sets without a flag: one business date, one transaction, not moved by hand in the portal."""
    calendar = rules.business_calendar
    sold = instants_of(sources.orders["ordered_at"])[rows["orders"]]
    paid = instants_of(sources.gateway["transaction_date"])[rows["gateway"]]
    undated = (sold == NO_INSTANT) | (paid == NO_INSTANT)
    days = [business_days(instants, calendar=calendar) for instants in (sold, paid)]
    plain: Bools = undated | (days[0] == days[1])
    opening = rules.window.opening_date
    if sources.instructions is not None and rules.account.capture_mode == "manual" and opening:
        plain &= paid < microseconds(midnight(opening, zone=calendar.zone))
    ours = _texts(sources.orders["transaction_id"], rows=rows["orders"])
    if pc.any(pc.not_equal(ours, "")).as_py():
        theirs = _texts(sources.gateway["transaction_id"], rows=rows["gateway"])
        silent = pc.or_(pc.equal(ours, ""), pc.equal(theirs, ""))
        plain &= np.asarray(pc.or_(silent, pc.equal(ours, theirs)), dtype=np.bool_)
    return plain


def _texts(column: "pd.Series[str]", *, rows: Rows) -> pa.ChunkedArray:
    return pa.chunked_array(pa.array(column)).take(pa.array(rows))


def _named_elsewhere(
    sources: Sources, *, legs: Mapping[str, Leg], rows: Mapping[str, Rows]
) -> Bools:
    """Sets that a row without an order key, or a payout, may mean."""
    named = np.zeros(len(rows["orders"]), dtype=np.bool_)
    words = loose_words(sources, belongs={name: leg.belongs for name, leg in legs.items()})
    if not words:
        return named
    wanted = pa.array(sorted(words), pa.large_string())
    for name, leg in legs.items():
        for column in NAMED:
            if column in leg.frame.columns:
                hit: pa.ChunkedArray = pc.is_in(pa.array(leg.frame[column]), value_set=wanted)
                named |= np.asarray(hit)[rows[name]]
    return named


def _where(rows: Mapping[str, Rows], *, mask: Bools) -> dict[str, Rows]:
    return {name: numbers[mask] for name, numbers in rows.items()}


def _others(rows: Rows, *, size: int) -> Rows:
    """The rows of a source that are not among these."""
    outside = np.ones(size, dtype=np.bool_)
    outside[rows] = False
    return np.flatnonzero(outside)


def _left_of(
    sources: Sources, *, rows: Mapping[str, Rows], left: Mapping[str, Rows], keys: Keys
) -> Sources:
    """The sources without the rows of the exact sets, and without their keys in the universe."""
    if not len(rows["orders"]):
        return sources
    frames = {
        name: getattr(sources, name).iloc[numbers].reset_index(drop=True)
        for name, numbers in left.items()
    }
    if sources.universe is not None:
        done = np.zeros(keys.size + 1, dtype=np.bool_)
        done[keys.of["orders"][rows["orders"]]] = True
        asked = ~done[keys.of["universe"]]
        frames["universe"] = sources.universe[asked].reset_index(drop=True)
    return replace(sources, **frames)

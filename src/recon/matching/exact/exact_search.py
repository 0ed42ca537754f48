"""The search for exact sets: by keys and by what rows say, never by rows of other keys.

So it may be asked about all rows of some keys as well as about all rows there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.exact.exact_legs import Leg, legs_of
from recon.matching.frames.coding import NO_KEY, coded, placed_together
from recon.matching.frames.grouping import NO_INSTANT, Bools, Rows, instants_of
from recon.matching.frames.numbering import Keys
from recon.matching.frames.sources import Sources
from recon.matching.judging.grace import business_days, microseconds
from recon.model.business_date import midnight

ACCOUNT = ["merchant_id", "account_id"]
NAMED = ("transaction_id", "reference_no", "order_no")
"""Columns by which a row without an order key may mean a set."""
SPARE_MAX = 4
"""Numbers of keys for each row, most of them of no row; above it the numbers are drawn together."""
ASKED = "universe"
"""The one source beside the legs that speaks of a key without making it need a judgement."""


@dataclass(frozen=True, slots=True)
class Question:
    """All rows of some keys, and what is needed to tell which of their sets are exact."""

    sources: Sources
    """Marked (see exact_legs.marked)."""
    others: Mapping[str, pd.DataFrame]
    """KEY_COLUMNS of rows that are of no leg; but for ASKED their keys need a judgement."""
    words: frozenset[str]
    """See loose_words.loose_words, of all rows there are."""
    rules: Rules


@dataclass(frozen=True, slots=True)
class Found:
    """The exact sets among some rows."""

    rows: Mapping[str, Rows]
    """For each leg, the source row of each set."""
    keys: Keys


def find_exact(question: Question) -> Found:
    """Find the exact sets."""
    sources, rules = question.sources, question.rules
    legs = legs_of(sources, rules=rules)
    keys = keys_of(legs, others=question.others)
    single = np.ones(keys.size, dtype=np.bool_)
    for name in question.others:
        if name != ASKED:
            named = keys.of[name]
            single[named[named != NO_KEY]] = False
    rows = _alone(legs, keys=keys, single=single)
    rows = _where(rows, mask=_agreeing(legs, rows=rows))
    rows = _where(rows, mask=_plain(sources, rows=rows, rules=rules))
    rows = _where(rows, mask=~_named_elsewhere(question, legs=legs, rows=rows))
    return Found(rows, keys)


def keys_of(legs: Mapping[str, Leg], *, others: Mapping[str, pd.DataFrame]) -> Keys:
    """Number the keys that rows of the legs and of the other frames name."""
    frames = {name: leg.frame for name, leg in legs.items()} | dict(others)
    accounts, places = placed_together([*frames.values()], by=ACCOUNT)
    orders, words = coded([frame["order_no"] for frame in frames.values()])
    size, ends = len(words) * len(places), np.cumsum([len(codes) for codes in orders])[:-1]
    wide = [account * len(words) + order for account, order in zip(accounts, orders, strict=True)]
    numbers: list[Rows] = wide
    if size > SPARE_MAX * sum(len(codes) for codes in orders):
        every, known = pd.factorize(np.concatenate(wide))
        numbers, size = np.split(every, ends), len(known)
    account = np.zeros(size, dtype=np.intp)
    for number, account_code in zip(numbers, accounts, strict=True):
        account[number] = account_code
    blank = pc.index(words, "").as_py()
    if blank != NO_KEY:
        numbers = [np.where(o == blank, NO_KEY, n) for o, n in zip(orders, numbers, strict=True)]
    of = dict(zip(frames, numbers, strict=True))
    for name, leg in legs.items():
        if not leg.belongs.all():
            of[name] = np.where(leg.belongs, of[name], NO_KEY)
    return Keys(of, dict(zip(frames, accounts, strict=True)), account, places)


def _alone(legs: Mapping[str, Leg], *, keys: Keys, single: Bools) -> dict[str, Rows]:
    """The rows of the keys that have exactly one row in every leg (row n of each: one key)."""
    row_of = {}
    for name in legs:
        numbers = keys.of[name]
        inside = np.flatnonzero(numbers != NO_KEY)
        single = single & (np.bincount(numbers[inside], minlength=keys.size) == 1)
        row_of[name] = np.full(keys.size, NO_KEY, dtype=np.intp)
        row_of[name][numbers[inside]] = inside
    alone = np.flatnonzero(single)
    return {name: rows[alone] for name, rows in row_of.items()}


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
    question: Question, *, legs: Mapping[str, Leg], rows: Mapping[str, Rows]
) -> Bools:
    """Sets that a row without an order key, or a payout, may mean."""
    named = np.zeros(len(rows["orders"]), dtype=np.bool_)
    if not question.words:
        return named
    wanted = pa.array(sorted(question.words), pa.large_string())
    for name, leg in legs.items():
        for column in NAMED:
            if column in leg.frame.columns:
                hit: pa.ChunkedArray = pc.is_in(pa.array(leg.frame[column]), value_set=wanted)
                named |= np.asarray(hit)[rows[name]]
    return named


def _where(rows: Mapping[str, Rows], *, mask: Bools) -> dict[str, Rows]:
    return {name: numbers[mask] for name, numbers in rows.items()}

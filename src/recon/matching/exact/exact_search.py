"""The search for exact sets: by keys and by what rows say, never by rows of other keys.

So it may be asked about all rows of some keys as well as about all rows there are. A leg says what
a row of its source must be like to agree with others without any further question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.exact.elsewhere import Elsewhere
from recon.matching.frames.coding import (
    NO_KEY,
    Codes,
    by_word,
    coded,
    is_word,
    placed_together,
)
from recon.matching.frames.fingerprints import are_distinct, maybe_repeated
from recon.matching.frames.grouping import (
    NO_INSTANT,
    Bools,
    Ints,
    Rows,
    amounts_of,
    amounts_or,
    instants_of,
)
from recon.matching.frames.numbering import WholeKeys
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.judging.grace import business_days, is_ahead, microseconds
from recon.matching.sides.agreed_fees import FEE_GAP
from recon.matching.sides.gateway_side import authorised_amounts
from recon.matching.sides.ledger_side import JUDGED, compared, marked_as
from recon.matching.sides.settlement_side import of_payments
from recon.model.business_date import midnight
from recon.model.words import EntryType, GatewayState, KeyAnswer, OrderStatus

NAMED = ("transaction_id", "reference_no", "order_no")
"""Columns by which a row without an order key may mean a set."""
SPARE_MAX = 4
"""Numbers of keys for each row, most of them of no row; above it the numbers are drawn together."""
ASKED = "universe"
"""The one source beside the legs that speaks of a key without making it need a judgement."""
ALONE = "entry_id_alone"
"""No other entry of the whole ledger has its id (boolean)."""
SHARED = "transaction_maybe_shared"
"""Another answer may name the same transaction (boolean)."""


@dataclass(frozen=True, slots=True)
class Question:
    """All rows of some keys, and what is needed to tell which of their sets are exact."""

    sources: Sources
    """As `marked` makes them."""
    others: Mapping[str, pd.DataFrame]
    """KEY_COLUMNS of rows that are of no leg; but for ASKED their keys need a judgement."""
    words: frozenset[str]
    """See `aside.loose_words`; of all rows there are."""
    rules: Rules
    as_of: datetime
    elsewhere: Elsewhere | None = None
    """What is known of all rows, where these are some of a night that is judged in parts."""


@dataclass(frozen=True, slots=True)
class Found:
    """The exact sets among some rows."""

    rows: Mapping[str, Rows]
    """For each leg, the source row of each set."""
    keys: WholeKeys


@dataclass(frozen=True, slots=True)
class Leg:
    """The rows of one source (grain: source row)."""

    frame: pd.DataFrame
    belongs: Bools
    """Rows that make up sets; the others stand outside them."""
    fits: Bools
    """Rows that move a positive amount in one plain step, with nothing left to be explained."""
    amount: Ints
    """What such a row moves, minor units of its `currency`."""


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
    rows = _where(rows, mask=_plain(question, rows=rows))
    rows = _where(rows, mask=~_named_elsewhere(question, legs=legs, rows=rows))
    return Found(rows, keys)


def keys_of(legs: Mapping[str, Leg], *, others: Mapping[str, pd.DataFrame]) -> WholeKeys:
    """Number the keys that rows of the legs and of the other frames name."""
    frames = {name: leg.frame for name, leg in legs.items()} | dict(others)
    accounts, places = _accounts([*frames.values()])
    orders, words = coded([frame["order_no"] for frame in frames.values()])
    numbers, size = _numbers(orders, words=len(words), accounts=accounts, places=len(places))
    account = _same(0, size=size)
    if len(places) > 1:
        account = np.zeros(size, dtype=np.int32)
        for number, account_code in zip(numbers, accounts, strict=True):
            account[number] = account_code
    blank = pc.index(words, "").as_py()
    if blank != NO_KEY:
        numbers = [np.where(o == blank, NO_KEY, n) for o, n in zip(orders, numbers, strict=True)]
    of = dict(zip(frames, numbers, strict=True))
    for name, leg in legs.items():
        if not leg.belongs.all():
            of[name] = np.where(leg.belongs, of[name], NO_KEY)
    return WholeKeys(of, dict(zip(frames, accounts, strict=True)), account, places)


def _accounts(frames: list[pd.DataFrame]) -> tuple[list[Codes], list[tuple[str, ...]]]:
    """The place of each row's merchant and account; of one account nothing is held."""
    rows, places = placed_together(frames, by=ACCOUNT)
    if len(places) == 1:
        return [_same(0, size=len(each)) for each in rows], places
    return [each.astype(np.int32) for each in rows], places


def _same(number: int, *, size: int) -> Codes:
    return np.broadcast_to(np.int32(number), (size,))


def _numbers(
    orders: Sequence[Codes], *, words: int, accounts: list[Codes], places: int
) -> tuple[list[Codes], int]:
    """The number of each row's account and order, and how many there are."""
    if places <= 1:
        return [*orders], words
    size = words * places
    wide = [
        account * np.int64(words) + order for account, order in zip(accounts, orders, strict=True)
    ]
    if size > SPARE_MAX * sum(map(len, orders)):
        every, known = pd.factorize(np.concatenate(wide))
        wide, size = np.split(every, np.cumsum([*map(len, orders)])[:-1]), len(known)
    return [each.astype(np.int32) for each in wide], size


def _alone(legs: Mapping[str, Leg], *, keys: WholeKeys, single: Bools) -> dict[str, Rows]:
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


def _plain(question: Question, *, rows: Mapping[str, Rows]) -> Bools:
    """Sets without a flag: one business date, one transaction, not moved by hand in the portal."""
    sources, rules = question.sources, question.rules
    calendar = rules.business_calendar
    sold = instants_of(sources.orders["ordered_at"])[rows["orders"]]
    paid = instants_of(sources.gateway["transaction_date"])[rows["gateway"]]
    undated = (sold == NO_INSTANT) | (paid == NO_INSTANT)
    days = [business_days(instants, calendar=calendar) for instants in (sold, paid)]
    plain: Bools = undated | (days[0] == days[1])
    dates = [sold, paid]
    if sources.ledger is not None:
        dates.append(instants_of(sources.ledger["booked_at"])[rows["ledger"]])
    for instants in dates:
        plain &= ~is_ahead(instants, as_of=microseconds(question.as_of))
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


def marked(sources: Sources, *, elsewhere: Elsewhere | None = None) -> Sources:
    """The sources with what only all rows of a source can tell of one of them.

    `elsewhere`: what is known of all rows where these are a part of them.
    """
    if elsewhere is not None:
        return elsewhere.marked(sources, alone=ALONE, shared=SHARED)
    ledger = sources.ledger
    if ledger is not None:
        ledger = ledger.assign(**{ALONE: _of_own_id(ledger["entry_id"])})
    gateway = sources.gateway.assign(**{SHARED: maybe_repeated(sources.gateway["transaction_id"])})
    return replace(sources, gateway=gateway, ledger=ledger)


def belonging(sources: Sources) -> dict[str, Bools]:
    """For each leg, the rows that make up sets (see Leg.belongs) of marked sources."""
    frames = {"orders": sources.orders, "gateway": sources.gateway}
    belongs = {name: np.ones(len(frame), dtype=np.bool_) for name, frame in frames.items()}
    if sources.ledger is not None:
        belongs["ledger"] = _in_sets(sources.ledger)
    if sources.settlement is not None:
        belongs["settlement"] = of_payments(sources.settlement)
    return belongs


def legs_of(sources: Sources, *, rules: Rules) -> dict[str, Leg]:
    """The legs of marked sources that are there; a set must agree in each of them."""
    legs = {"orders": _orders(sources.orders), "gateway": _gateway(sources.gateway, rules=rules)}
    if sources.ledger is not None:
        legs["ledger"] = _ledger(sources.ledger)
    if sources.settlement is not None:
        legs["settlement"] = _settlement(sources.settlement)
    return legs


def _orders(orders: pd.DataFrame) -> Leg:
    """Paid, and captured for more than nothing."""
    ordered = amounts_of(orders["amount"])
    amount = amounts_or(orders["expected_captured_amount"], otherwise=orders["amount"])
    fits = is_word(orders["status"], OrderStatus.PAID) & (ordered > 0) & (amount > 0)
    return Leg(orders, np.ones(len(orders), dtype=np.bool_), fits, amount)


def _gateway(gateway: pd.DataFrame, *, rules: Rules) -> Leg:
    """Found, paid, nothing refunded, not above what was authorised, in no other answer."""
    amount = amounts_or(gateway["captured_amount"], otherwise=gateway["amount"])
    authorised = authorised_amounts(gateway, rules=rules)
    beyond = authorised.notna().to_numpy() & (amount > amounts_of(authorised))
    paid = by_word(
        gateway["payment_status"], of=lambda code: rules.state_of(code) is GatewayState.PAID
    )
    fits = is_word(gateway["answer"], KeyAnswer.FOUND) & paid.astype(np.bool_)
    fits &= ~gateway[SHARED].to_numpy(dtype=np.bool_)
    fits &= (amount > 0) & ~beyond & (amounts_of(gateway["refunded_amount"]) == 0)
    return Leg(gateway, np.ones(len(gateway), dtype=np.bool_), fits, amount)


def _ledger(ledger: pd.DataFrame) -> Leg:
    """A capture in its own currency, under an id that no other entry has."""
    fits = is_word(ledger["entry_type"], EntryType.CAPTURE)
    fits &= ledger[ALONE].to_numpy(dtype=np.bool_)
    fits &= ledger["transaction_amount"].isna().to_numpy()
    return Leg(ledger, _in_sets(ledger), fits, amounts_of(ledger["amount"]))


def _in_sets(ledger: pd.DataFrame) -> Bools:
    belongs: Bools = compared(ledger) | ~ledger[ALONE].to_numpy(dtype=np.bool_)
    return belongs & ~marked_as(ledger, JUDGED)


def _of_own_id(ids: "pd.Series[str]") -> Bools:
    """The rows whose id no other row has."""
    if are_distinct(ids):
        return np.ones(len(ids), dtype=np.bool_)
    (codes,), words = coded([ids])
    alone: Bools = np.bincount(codes, minlength=len(words))[codes] == 1
    return alone


def _settlement(lines: pd.DataFrame) -> Leg:
    """A capture at the agreed fee."""
    fits = is_word(lines["entry_type"], EntryType.CAPTURE)
    fits &= lines[FEE_GAP].to_numpy(dtype=np.int64) == 0
    return Leg(lines, of_payments(lines), fits, amounts_of(lines["gross"]))

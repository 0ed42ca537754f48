"""The books beside the gateway's facts: what was booked in the month, and why the two differ.

Both are summed by what they are about: an order, the fees of a currency, its pay-outs, adjustments
of no order. At the close of a day such a key differs because it is booked in another month than it
took where, or because it is open: then a break, or what waits, says by how much. Adjustments that
wait for a line or an entry are listed one by one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.period.business_month import DayTable
from recon.period.dated_facts import (
    ADJUSTMENT,
    CAPTURE,
    CHARGEBACK,
    PAY_OUT,
    PAYEE,
    REFUND,
    RESERVE,
    WON_BACK,
    DatedFacts,
)
from recon.period.looked_up import amounts_at, is_among, words_at
from recon.period.month_evidence import MonthEvidence
from recon.period.month_nights import MonthNight, numbered, table_of
from recon.period.waiting_adjustments import ADJUSTMENTS_KEY, BATCH, class_of, with_waiting_keys
from recon.proof.night_tables import frame_of_table

FEES_KEY, PAYOUTS_KEY = "fees", "pay-outs"
GROUP_KEYS = (FEES_KEY, PAYOUTS_KEY, ADJUSTMENTS_KEY)
"""Keys that are no order."""
SIGN = {"capture": 1, "refund": -1, "chargeback": -1, "fee": -1, "payout": -1, "adjustment": 1}
"""How an entry moves the clearing and the reserve account together; `_reversal` the other way.
What is kept as a reserve goes from one to the other."""
_REVERSAL = "_reversal"
WRITE_OFF = "write_off"
LATER, EARLIER, OPEN = "booked_later", "booked_earlier", "open"
"""Took place by then and is booked later; is booked by then and took place later; is open as of the
newest night. What of adjustments is open has a class of WAITS."""
DIFFERENCE_COLUMNS = ("what", "currency", "key", "amount", "shown")
_BY_PAYMENTS = (CAPTURE, REFUND, CHARGEBACK, WON_BACK)
_WITH_EFFECT = ("matches", "pending", "unverified")
_NAMED = ("order_no", "transaction_id")
_OF_RESULT = (*_NAMED, "entry_id", "currency", "flags", "effect_ledger")
_OF_EFFECT = ("break_id", "leg", "currency", "amount")
_OF_SHOWN = (*_NAMED, "named", "currency", "effect", "number")
_NEVER = -1
"""Below the number of every night."""
_CODES = {"FEE_": FEES_KEY, "PAYOUT_": PAYOUTS_KEY, "LEDGER_PAYOUT": PAYOUTS_KEY}
_GROUPS = {"fees": FEES_KEY, "payout": PAYOUTS_KEY, "reserves": ""}


@dataclass(frozen=True, slots=True)
class Books:
    """Entries and facts by key, each with its business date."""

    entries: pd.DataFrame
    """entry_type, currency, key, day, amount as it moves the accounts, gone_on (grain: entry)."""
    facts: pd.DataFrame
    """currency, key, day, amount (grain: fact)."""
    effects: pd.DataFrame
    """currency, key, effect: gateway less books, as the results of the nights show it."""
    unseen: pd.DataFrame
    """currency, key, unseen: facts of payments less what the gateway shows of them."""
    unjudged: frozenset[str]
    """Keys that the newest night could not judge."""
    sums: pd.DataFrame = field(default_factory=pd.DataFrame)
    """By currency and key (`_sums`), for the month's two closes."""
    differing: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """ISO date of each of the month's two closes -> DIFFERENCE_COLUMNS at it, as it is proven: by
    what is open as of the newest night, and what is dated after the close."""

    def moved_by(self, day: str, *, currency: str) -> tuple[int, int]:
        """What entries, and what facts, come to by the close of a day; minor units."""
        booked, moved = (
            int(rows.loc[rows["currency"].eq(currency) & (rows["day"] <= day), "amount"].sum())
            for rows in (self.entries, self.facts)
        )
        return booked, moved

    def waiting(self, key: str, *, currency: str) -> int:
        """What entries come to less facts, of one key; minor units."""
        booked, moved = (
            int(rows.loc[rows["key"].eq(key) & rows["currency"].eq(currency), "amount"].sum())
            for rows in (self.entries, self.facts)
        )
        return booked - moved


def books_of(
    evidence: MonthEvidence,
    *,
    facts: DatedFacts,
    days: DayTable,
    account: tuple[str, str],
    closes: Sequence[str],
) -> Books | None:
    """The books of the newest night; None where no ledger was compared."""
    if not evidence.is_covered("ledger"):
        return None
    moved = facts.movements[facts.movements["kind"].ne(RESERVE)]
    by_fact = pd.DataFrame(
        {
            "currency": moved["currency"],
            "key": _key_of_facts(moved),
            "day": moved["event_on"],
            "amount": moved["amount"],
            BATCH: moved["batch_id"],
        }
    ).reset_index(drop=True)
    entries = _entries(evidence, days=days)
    entries = _with_write_offs(entries, facts=by_fact)
    entries, by_fact = with_waiting_keys(entries, facts=by_fact, lines=evidence.lines)
    effects, unjudged = _effects(evidence, account=account)
    books = Books(entries, by_fact, effects, _unseen(evidence, facts=moved), unjudged)
    books = replace(books, sums=_sums(books, closes=closes))
    return replace(books, differing={day: _differences(books, at=day) for day in closes})


def _differences(books: Books, *, at: str) -> pd.DataFrame:
    """Books less gateway at the close of a business date, DIFFERENCE_COLUMNS (grain: key, what)."""
    sums = sums_by_key(books, at=at)
    still, timing = sums["still"], sums["timing"]
    parts = [
        sums.assign(what=class_of(sums["key"], otherwise=OPEN), amount=still),
        sums.assign(what=LATER, amount=timing.where(timing < 0, 0), shown=0),
        sums.assign(what=EARLIER, amount=timing.where(timing > 0, 0), shown=0),
    ]
    rows = pd.concat(parts, ignore_index=True)
    rows = rows[rows["amount"].ne(0) | rows["shown"].ne(0)]
    rows = rows[[*DIFFERENCE_COLUMNS]].sort_values(["currency", "what", "key"], ignore_index=True)
    return rows.astype({"amount": "int64", "shown": "int64"})


def _sums(books: Books, *, closes: Sequence[str]) -> pd.DataFrame:
    """By key: what took where, is booked, is dated after each close, and what the nights show."""
    parts = [
        _dated(books.facts, "moved", closes=closes),
        _dated(books.entries, "booked", closes=closes),
        books.effects,
        books.unseen,
    ]
    names = [*dict.fromkeys(name for part in parts for name in part.columns[2:])]
    whole = [part.reindex(columns=["currency", "key", *names], fill_value=0) for part in parts]
    return pd.concat(whole).groupby(["currency", "key"], as_index=False)[names].sum()


def _dated(rows: pd.DataFrame, name: str, *, closes: Sequence[str]) -> pd.DataFrame:
    """Amounts of rows under a name, and those of them that are dated after each close."""
    later = {_after(name, day): rows["amount"].where(rows["day"] > day, 0) for day in closes}
    return rows[["currency", "key"]].assign(**{name: rows["amount"]}, **later)


def _after(name: str, day: str) -> str:
    return f"{name} after {day}"


def sums_by_key(books: Books, *, at: str) -> pd.DataFrame:
    """By key what is dated after a close, and what differs: by now, by then, and as nights show it.

    `still` and `timing` together are what books and gateway differ by at the close of the day.
    """
    sums = books.sums
    moved, booked = sums[_after("moved", at)], sums[_after("booked", at)]
    still = sums["booked"] - sums["moved"]
    shown = (-sums["effect"] - sums["unseen"]).where(~is_among(sums["key"], books.unjudged), still)
    own = sums[["currency", "key"]].assign(moved_later=moved, booked_later=booked, still=still)
    return own.assign(timing=moved - booked, shown=shown)


def _key_of_facts(moved: pd.DataFrame) -> "pd.Series[str]":
    of_payment = moved["kind"].isin(_BY_PAYMENTS)
    named = moved["order_no"].where(moved["order_no"].ne(""), moved["payment"])
    key = pd.Series(FEES_KEY, moved.index, dtype="str")
    key = key.where(~moved["kind"].isin((PAY_OUT, PAYEE)), PAYOUTS_KEY)
    key = key.where(moved["kind"].ne(ADJUSTMENT), ADJUSTMENTS_KEY)
    return key.where(~of_payment, named.astype("str"))


def orders_of_payments(evidence: MonthEvidence) -> "pd.Series[str]":
    """Payment -> the order that it alone is of."""
    orders, payments = evidence.orders_of.index, evidence.orders_of
    named = pd.Series(orders, index=pd.Index(payments), dtype="str")
    return named[~named.index.duplicated(keep="last")]


def _entries(evidence: MonthEvidence, *, days: DayTable) -> pd.DataFrame:
    """The entries with what they move and the key that they are of."""
    rows = evidence.entries
    base = rows["entry_type"].str.removesuffix(_REVERSAL)
    stated = rows["transaction_amount"].notna()
    amount = rows["transaction_amount"].fillna(rows["amount"]).astype("int64")
    named = stated & rows["transaction_currency"].ne("")
    currency = rows["currency"].where(~named, rows["transaction_currency"])
    way = 1 - 2 * rows["entry_type"].str.endswith(_REVERSAL).astype("int64")
    sign = amounts_at(base, sums=pd.Series(SIGN)) * way
    orders = words_at(rows["transaction_id"], words=orders_of_payments(evidence))
    otherwise = rows["transaction_id"].where(
        rows["transaction_id"].ne(""), "entry " + rows["entry_id"]
    )
    key = orders.where(orders.ne(""), otherwise)
    key = rows["order_no"].where(rows["order_no"].ne(""), key)
    loose = base.eq("adjustment") & rows["order_no"].eq("")
    key = key.where(base.ne("fee"), FEES_KEY).where(base.ne("payout"), PAYOUTS_KEY)
    key = key.where(~loose, ADJUSTMENTS_KEY)
    return pd.DataFrame(
        {
            "entry_type": rows["entry_type"].astype("str"),
            "currency": currency.astype("str"),
            "key": key.astype("str"),
            "day": days.dates_of(rows["booked_at"]).where(rows["gone_on"].eq(""), rows["gone_on"]),
            "amount": amount * sign,
            "written": (amount * way).where(base.eq(WRITE_OFF), 0),
            "gone_on": rows["gone_on"],
            BATCH: rows["reference_no"].astype("str"),
        }
    )


def _with_write_offs(entries: pd.DataFrame, *, facts: pd.DataFrame) -> pd.DataFrame:
    """A write-off moves the accounts towards what the gateway has: it bears no sign of its own."""
    by = ["currency", "key"]
    written = entries.loc[entries["written"].ne(0), "key"]
    facts, booked = (rows[is_among(rows["key"], written)] for rows in (facts, entries))
    gap = facts.groupby(by)["amount"].sum().sub(booked.groupby(by)["amount"].sum(), fill_value=0)
    places = pd.MultiIndex.from_frame(entries[by])
    sign = gap.reindex(places, fill_value=0).to_numpy()
    towards = pd.Series(sign, entries.index).clip(-1, 1).astype("int64")
    amount = entries["amount"] + entries["written"] * towards
    return entries.assign(amount=amount).drop(columns="written")


def _unseen(evidence: MonthEvidence, *, facts: pd.DataFrame) -> pd.DataFrame:
    """What we and the settlement know of payments beyond what an answer shows."""
    levels = evidence.levels
    lines = evidence.lines[evidence.lines["entry_type"].eq("refund")]
    settled = amounts_at(levels["payment"], sums=-lines.groupby("payment")["gross"].sum())
    unknown = is_among(levels["payment"], evidence.unknown)
    refunded = levels["refunded"].where(~unknown, settled.clip(lower=0)).astype("int64")
    shown = levels.assign(
        amount=-(levels["captured"] - refunded - levels["charged"]),
        key=levels["order_no"].where(levels["order_no"].ne(""), levels["payment"]),
    )
    own = facts[facts["kind"].isin(_BY_PAYMENTS)]
    moved = own.assign(key=_key_of_facts(own))
    names = ["currency", "key", "amount"]
    both = pd.concat([moved[names], shown[names]], ignore_index=True)
    both = both.rename(columns={"amount": "unseen"})
    return both.groupby(["currency", "key"], as_index=False).agg(unseen=("unseen", "sum"))


def _effects(
    evidence: MonthEvidence, *, account: tuple[str, str]
) -> tuple[pd.DataFrame, frozenset[str]]:
    """Key -> gateway less books, by the newest night that has the key; what it could not judge."""
    orders = orders_of_payments(evidence)
    shown, doubted = _every_effect(evidence.nights, account=account, orders=orders)
    differing = shown.loc[shown["effect"].ne(0), "key"]
    asked = {*differing.unique(), *doubted["key"].unique()}
    last_seen = _last_seen(asked, nights=evidence.nights, account=account)
    # Of a key that a later night has and says nothing of, nothing is open any more.
    shown = shown[is_among(shown["key"], differing)]
    newest = shown.groupby("key")["number"].transform("max")
    shown = shown[shown["number"].eq(newest) & (newest >= _at(shown["key"], last_seen))]
    effects = shown.groupby(["currency", "key"], as_index=False).agg(effect=("effect", "sum"))
    unjudged = doubted[doubted["number"] >= _at(doubted["key"], last_seen)]
    return effects[effects["effect"].ne(0)], frozenset(unjudged["key"])


def _at(keys: "pd.Series[str]", last_seen: Mapping[str, int]) -> "pd.Series[int]":
    return amounts_at(keys, sums=pd.Series(last_seen, dtype="int64"), otherwise=_NEVER)


def _last_seen(
    keys: set[str], *, nights: Sequence[MonthNight], account: tuple[str, str]
) -> dict[str, int]:
    """Some keys -> the newest night that has anything of them; every night has the groups."""
    seen = dict.fromkeys(GROUP_KEYS, nights[-1].number)
    left = keys - {*GROUP_KEYS}
    for night in reversed(nights):
        asked, rows = pa.array(sorted(left), pa.string()), set[str]()
        for name in ("orders", "answers", "ledger") if left else ():
            orders = table_of(night, name, account=account, columns=("order_no",))["order_no"]
            rows |= {*orders.filter(pc.is_in(orders, value_set=asked)).to_pylist()}
        seen |= dict.fromkeys(rows, night.number)
        left -= rows
    return seen


def _every_effect(
    nights: Sequence[MonthNight], *, account: tuple[str, str], orders: "pd.Series[str]"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """key, currency, effect, number of what the results of the nights show, and cannot judge."""
    of = partial(_of_nights, nights, account=account)
    breaks = of("breaks", columns=("break_id", "code", *_NAMED))
    effects = of("effects", columns=_OF_EFFECT)
    doubted = of("unverified", columns=_OF_RESULT)
    # What differs is seldom: the others, most of a night, become no frame.
    others = [of(name, columns=_OF_RESULT, differing=True) for name in _WITH_EFFECT]
    effects = effects[effects["leg"].eq("ledger") & effects["amount"].notna()]
    own = effects.merge(breaks, on=["number", "break_id"])
    parts = [own.rename(columns={"code": "named", "amount": "effect"})]
    for rows in others:
        counted = rows[~rows["flags"].str.contains("written_off")]
        parts.append(counted.rename(columns={"entry_id": "named", "effect_ledger": "effect"}))
    shown = pd.concat([part[[*_OF_SHOWN]].astype({"effect": "int64"}) for part in parts])
    doubted = doubted.rename(columns={"entry_id": "named"})
    shown, doubted = (rows.assign(key=keys_of(rows, orders=orders)) for rows in (shown, doubted))
    return shown[shown["key"].ne("")], doubted


def _of_nights(
    nights: Sequence[MonthNight],
    name: str,
    *,
    account: tuple[str, str],
    columns: Sequence[str],
    differing: bool = False,
) -> pd.DataFrame:
    """A result of all nights, each row with its night's number; all of it, or what differs."""
    tables = []
    for night in nights:
        table = table_of(night, name, account=account, columns=columns)
        if differing:
            table = table.filter(pc.not_equal(table["effect_ledger"], 0))
        tables.append(numbered(table, night=night))
    return frame_of_table(pa.concat_tables(tables))


def keys_of(rows: pd.DataFrame, *, orders: "pd.Series[str]") -> "pd.Series[str]":
    """The key of a row of a result: its order, its payment's, else its group by code or entry."""
    of_payment = words_at(rows["transaction_id"], words=orders)
    of_payment = of_payment.where(of_payment.ne(""), rows["transaction_id"])
    key = rows["order_no"].where(rows["order_no"].ne(""), of_payment)
    unnamed = key.eq("")
    groups = {name: _group_of(str(name)) for name in rows.loc[unnamed, "named"].unique()}
    return key.where(~unnamed, words_at(rows["named"], words=groups))


def _group_of(name: str) -> str:
    """A group of fees or pay-outs by the code of its break or by its own key; "" for reserves."""
    for start, key in _CODES.items():
        if name.startswith(start):
            return key
    if name.startswith("RESERVE_"):
        return ""
    return _GROUPS.get(name.partition(":")[0], f"entry {name}")

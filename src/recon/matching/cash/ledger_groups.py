"""Groups of settlement lines and ledger entries outside the sets, with the totals of both sides.

Fees, reserves and payouts of the gateway leave the sets of their payments, whatever order they
name. Reserves are compared as a running balance, fees by what `[ledger] fees_per` says, a payout
with the entries that name its batch, else with one of its amount, else as a running balance. Bank
receipts form groups of the same kind (bank/bookings.py). A group whose sides differ is pending only
while recent lines or entries (still in their grace) may explain the difference.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.arrays import Arrays, Column, filled, stacked, texts
from recon.matching.frames.coding import equals, keyed
from recon.matching.frames.grouping import (
    Bools,
    Ints,
    Rows,
    amounts_of,
    instants_of,
    microseconds,
    total,
)
from recon.matching.frames.sources import LEDGER_COLUMNS, Sources, frame_of
from recon.matching.frames.total_rows import ACCOUNT, ACCOUNT_KEY
from recon.matching.frames.versions import NEW
from recon.matching.sides.ledger_side import (
    CLASSIFIED,
    booked_forward,
    closing_entries,
    entry_versions,
    is_base_type,
)
from recon.matching.sides.settlement_side import is_payout, lines_of_rows
from recon.model.business_date import midnight
from recon.model.terms import EntryType

FEES, RESERVES, PAYOUTS = "fees", "reserves", "payout"
"""Kinds of groups; the first part of their keys."""
UNASSIGNED = "unassigned"
"""Group of entries that name none."""
BASES: Mapping[str, EntryType] = {
    FEES: EntryType.FEE,
    RESERVES: EntryType.RESERVE,
    PAYOUTS: EntryType.PAYOUT,
}
_MONTH_CHARACTERS = 7
_MONTH = r"20[0-9]{2}-(?:0[1-9]|1[0-2])"
"""A reference that is a month; its last day is looked up."""
GROUP = (*ACCOUNT_KEY, "kind", "name")
_SETTLED = (*ACCOUNT_KEY, "kind", "name", "row", "day", "amount", "items")


@dataclass(frozen=True, slots=True)
class LedgerGroups:
    """The groups with the lines and entries that belong to them."""

    groups: Arrays
    """merchant_id, account_id, currency, kind, name, key, settled, booked and their number of items
    (grain: group); signed as in the ledger: what the gateway kept or paid out is below 0."""
    settled: Arrays
    """kind, group, row of the settlement, day, amount, items (grain: row and kind); a row that
    represents several lines has as many items."""
    booked: Arrays
    """kind, group, row of the ledger, at, amount (grain: entry)."""
    closed: Mapping[int, Rows]
    """Group -> the ledger entries that write off its difference."""

    def ledger_rows(self) -> Rows:
        """Return the ledger rows that belong to groups and to no set."""
        return np.concatenate([self.booked["row"], *self.closed.values()]).astype(np.intp)


def grouped(sources: Sources, *, rules: Rules) -> LedgerGroups | None:
    """Return the groups; None without a settlement, and for a single bucket of a run."""
    if sources.settlement is None or sources.is_bucket:
        return None
    lines, per = sources.settlement, rules.ledger.fees_per
    settled = _settled(lines, per=per)
    entries = _entries(sources.ledger, lines=lines, rules=rules)
    settled, entries = paired(settled, entries, kind=PAYOUTS)
    settled = set_apart(settled, entries, begins=sources.ledger_since)
    groups, settled, entries = numbered(settled, entries)
    keys = [":".join(filter(None, cells)) for cells in groups.rows("kind", "currency", "name")]
    groups.columns["key"] = np.array(keys, dtype=object)
    # A payment's name may be its order's too: an entry with it belongs to the order, not to its
    # fees.
    is_payment = (groups["kind"] == FEES) & (per == "payment")
    names = np.where(is_payment, "", groups["name"]).tolist()
    closed = closed_groups(sources.ledger, groups=groups, labels=[*zip(keys, names, strict=True)])
    return LedgerGroups(groups, settled, entries, closed)


def numbered(
    settled: Arrays, entries: Arrays, *, more: Arrays | None = None
) -> tuple[Arrays, Arrays, Arrays]:
    """Number the groups of both sides; return the groups, and both sides with their group numbers.

    `more`: names of groups that may have no row.
    """
    sides = [settled, entries, *([] if more is None else [more])]
    numbers, keys = keyed(stacked(sides, names=GROUP).frame(*GROUP), by=GROUP)
    settled = settled.assign(group=numbers[: len(settled)])
    entries = entries.assign(group=numbers[len(settled) : len(settled) + len(entries)])
    size = len(keys)
    named = np.array(keys, dtype=object).reshape(-1, len(GROUP))
    columns: dict[str, Column] = dict(zip(GROUP, named.T, strict=True))
    for name, side in (("settled", settled), ("booked", entries)):
        columns[name] = total(side["amount"], groups=side["group"], size=size)
        columns[f"{name}_items"] = np.bincount(side["group"], minlength=size)
    return Arrays(columns, size=size), settled, entries


def _settled(lines: pd.DataFrame, *, per: str) -> Arrays:
    """Return every fee, reserve and payout in the settlement lines."""
    paid = is_payout(lines)
    gross, fee, net = (amounts_of(lines[name]) for name in ("gross", "fee", "net"))
    reserve = is_base_type(lines["entry_type"], EntryType.RESERVE) & ~paid & (gross != 0)
    tables = [
        _lines_of(lines, kind=FEES, rows=~paid & (fee != 0), amount=-fee, per=per),
        _lines_of(lines, kind=RESERVES, rows=reserve, amount=gross, per=""),
        _lines_of(lines, kind=PAYOUTS, rows=paid, amount=-net, per="batch"),
    ]
    return stacked(tables, names=_SETTLED)


def _lines_of(lines: pd.DataFrame, *, kind: str, rows: Bools, amount: Ints, per: str) -> Arrays:
    chosen = np.flatnonzero(rows)
    size = len(chosen)
    columns = {name: texts(lines[name].iloc[chosen]) for name in ACCOUNT_KEY}
    days = texts(lines["settled_on"].iloc[chosen])
    names = filled("", size=size)
    if per == "payment":
        names = _payments(lines, rows=chosen)
    elif per == "batch":
        names = texts(lines["batch_id"].iloc[chosen])
    elif per == "day":
        names = days
    elif per == "month":
        names = _months(days)
    columns |= {"kind": filled(kind, size=size), "name": names, "day": days}
    columns |= {"row": chosen, "amount": amount[chosen], "items": lines_of_rows(lines)[chosen]}
    return Arrays(columns, size=size)


def _payments(frame: pd.DataFrame, *, rows: Rows) -> Column:
    """Return the transaction of the given rows, else their order, else UNASSIGNED."""
    named = texts(frame["transaction_id"].iloc[rows])
    named = np.where(named != "", named, texts(frame["order_no"].iloc[rows]))
    return np.where(named != "", named, UNASSIGNED)


def _months(days: Column) -> Column:
    return np.array([day[:_MONTH_CHARACTERS] for day in days.tolist()], dtype=object)


def _entries(ledger: pd.DataFrame | None, *, lines: pd.DataFrame, rules: Rules) -> Arrays:
    """Return the entries for the gateway's fees, reserves and payouts, without our own payouts."""
    if ledger is None:
        ledger = frame_of([], columns=LEDGER_COLUMNS)
    ours = ledger[CLASSIFIED].to_numpy(dtype=np.bool_) if CLASSIFIED in ledger.columns else None
    batches = {*zip(*(texts(lines[name]) for name in (*ACCOUNT_KEY, "batch_id")), strict=True)}
    every = entries_of(ledger, kinds=BASES, but=ours)
    names = filled("", size=len(every))
    for kind in (PAYOUTS, FEES):
        mine = every["kind"] == kind
        own = every.take(mine)
        named = _named_batches if kind == PAYOUTS else partial(_names_of_fees, rules=rules)
        names[mine] = named(ledger, rows=own["row"], columns=own.columns, batches=batches)
    return every.assign(name=names, amount=-every["amount"])


def entries_of(
    ledger: pd.DataFrame, *, kinds: Mapping[str, EntryType], but: Bools | None = None
) -> Arrays:
    """Return the entries of some types, reversals negated; each entry once, without a name.

    `but`: mask of entries that are compared elsewhere.
    """
    mine = is_base_type(ledger["entry_type"], *kinds.values()) & (entry_versions(ledger) == NEW)
    mine &= True if but is None else ~but
    own = [np.flatnonzero(mine & is_base_type(ledger["entry_type"], kinds[kind])) for kind in kinds]
    rows = np.concatenate(own).astype(np.intp)
    currency, forward = booked_forward(ledger)
    columns = {
        **{name: texts(ledger[name].iloc[rows]) for name in (*ACCOUNT, "entry_id")},
        "currency": texts(currency)[rows],
        "kind": np.repeat(np.array([*kinds], dtype=object), [*map(len, own)]),
        "row": rows,
        "at": instants_of(ledger["booked_at"])[rows],
        "amount": forward[rows],
    }
    return Arrays(columns, size=len(rows))


def _names_of_fees(
    ledger: pd.DataFrame,
    *,
    rows: Rows,
    columns: Mapping[str, Column],
    batches: set[Any],
    rules: Rules,
) -> Column:
    per = rules.ledger.fees_per
    if per == "balance":
        return filled("", size=len(rows))
    if per == "payment":
        return _payments(ledger, rows=rows)
    if per == "batch":
        named = _named_batches(ledger, rows=rows, columns=columns, batches=batches)
        return np.where(named != "", named, UNASSIGNED)
    # Booking days are days of the business calendar.
    form = "%Y-%m" if per == "month" else "%Y-%m-%d"
    at = instants_of(ledger["booked_at"])[rows]
    stated = ledger["reference_no"].iloc[rows]
    is_stated = stated.str.fullmatch(_MONTH if per == "month" else r"\d{4}-\d{2}-\d{2}")
    zone = rules.business_calendar.zone
    return np.where(is_stated, texts(stated), local_days(at, zone=zone, form=form))


def _named_batches(
    ledger: pd.DataFrame, *, rows: Rows, columns: Mapping[str, Column], batches: set[Any]
) -> Column:
    """Return the batch of its account and currency that each entry names; "" for none."""
    own = zip(*(columns[name].tolist() for name in ACCOUNT_KEY), strict=True)
    named = (texts(ledger[name].iloc[rows]).tolist() for name in ("order_no", "reference_no"))
    labels = zip(*named, strict=True)
    names = [
        next((label for label in pair if label and (*account_key, label) in batches), "")
        for account_key, pair in zip(own, labels, strict=True)
    ]
    return np.array(names, dtype=object)


def paired(settled: Arrays, entries: Arrays, *, kind: str) -> tuple[Arrays, Arrays]:
    """Match unnamed entries of a kind to groups of equal amount; compare the rest as one balance.

    Of equal amounts the oldest group is matched to the oldest entry. Where entries are left, all
    groups left in their account and currency join them in one group.
    """
    lines, booked = (
        side.frame(*side.columns).loc[side["kind"] == kind] for side in (settled, entries)
    )
    free, place = booked[booked["name"].eq("")], [*ACCOUNT_KEY]
    if free.empty:
        return settled, entries
    groups = lines.groupby([*place, "name"], as_index=False).agg({"day": "max", "amount": "sum"})
    known = groups.merge(booked[[*place, "name"]].drop_duplicates(), how="left", indicator="booked")
    waiting = groups[known["booked"].eq("left_only") & groups["amount"].ne(0)]
    waiting = waiting.sort_values(["day", *place, "name"])
    free = free.sort_values(["at", "entry_id"], kind="stable").rename_axis("at_row").reset_index()
    by = [*place, "amount"]
    sides = [each.assign(nth=each.groupby(by).cumcount()) for each in (free, waiting)]
    pairs = sides[0].merge(
        sides[1], how="outer", on=[*by, "nth"], suffixes=("", "_due"), indicator="side"
    )
    both, over, left = (
        pairs[pairs["side"].eq(side)] for side in ("both", "left_only", "right_only")
    )
    names = entries["name"].copy()
    names[both["at_row"].astype(np.intp)] = both["name_due"]
    joining = left.merge(over[place].drop_duplicates(), on=place)[[*place, "name_due"]]
    joined = {*joining.itertuples(index=False, name=None)}
    joins = np.array([key in joined for key in settled.rows(*place, "name")], dtype=np.bool_)
    joins &= settled["kind"] == kind
    return settled.assign(name=np.where(joins, "", settled["name"])), entries.assign(name=names)


def closed_groups(
    ledger: pd.DataFrame | None,
    *,
    groups: Arrays,
    labels: Sequence[Iterable[str]],
    among: Bools | None = None,
) -> dict[int, Rows]:
    """Return groups whose difference a write-off or an adjustment that names them closes.

    Args:
        ledger: LEDGER_COLUMNS.
        groups: see LedgerGroups; an entry that names several closes the first of them by key.
        labels: the names by which an entry may refer to each group.
        among: mask of the entries that may close one; None: all.
    """
    gaps = groups["settled"] - groups["booked"]
    if ledger is None or not gaps.any():
        return {}
    closers = closing_entries(ledger, among=among)
    closed: dict[int, Rows] = {}
    numbers = np.flatnonzero(gaps).tolist() if closers.named else []
    for number in sorted(numbers, key=lambda at: str(groups["key"][at])):
        merchant, account, currency = (groups[name][number] for name in ACCOUNT_KEY)
        of_account = (merchant, account, currency)
        if own := closers.take(labels[number], of=of_account, gap=int(gaps[number])):
            closed[number] = np.array(own, dtype=np.intp)
    return closed


def uneven_since(ledger_groups: LedgerGroups, *, rows: Bools, zone: ZoneInfo) -> Column:
    """Return the first day of each marked group's current difference, "" for all others."""
    settled, booked = ledger_groups.settled, ledger_groups.booked
    moves = pd.DataFrame(
        {
            "group": np.concatenate([settled["group"], booked["group"]]),
            "day": np.concatenate([settled["day"], local_days(booked["at"], zone=zone)]),
            "amount": np.concatenate([settled["amount"], -booked["amount"]]),
        }
    )
    sums = moves[rows[moves["group"]]].groupby(["group", "day"])["amount"].sum()
    before = sums.groupby("group").cumsum() - sums
    starts = before[before.eq(0)].reset_index().groupby("group")["day"].last()
    since = filled("", size=len(rows))
    since[starts.index] = starts
    return since


def local_days(at: Ints, *, zone: ZoneInfo, form: str = "%Y-%m-%d") -> Column:
    """Return the days of instants in a zone, as text."""
    instants = pd.DatetimeIndex(at.view("datetime64[us]"), tz="UTC")
    return instants.tz_convert(zone).strftime(form).to_numpy(dtype=object)


def midnights(days: Column, *, zone: ZoneInfo) -> Ints:
    """Return when ISO dates begin, in microseconds since 1970."""
    known = {
        day: microseconds(midnight(date.fromisoformat(day), zone=zone)) for day in {*days.tolist()}
    }
    return np.array([known[day] for day in days.tolist()], dtype=np.int64)


BEFORE_LEDGER = "before_ledger"
"""Group of what was settled before the ledger begins."""
Begins = Mapping[tuple[str, str], str]
"""Merchant and account -> the first day of its ledger, ISO date."""
_NAMES = ("order_no", "transaction_id")


def begins_of(
    ledger: pd.DataFrame, *, lines: pd.DataFrame, zone: ZoneInfo
) -> dict[tuple[str, str], str]:
    """Return each account's first ledger day, or an earlier settlement day of a booked capture.

    Args:
        ledger: LEDGER_COLUMNS.
        lines: SETTLEMENT_COLUMNS.
        zone: of the business calendar, which gives an entry its day.
    """
    first = ledger.groupby([*ACCOUNT], as_index=False)["booked_at"].min()
    begins = {
        (merchant, account): at.astimezone(zone).date().isoformat()
        for merchant, account, at in first.itertuples(index=False, name=None)
    }
    captures = ledger[equals(ledger["entry_type"], EntryType.CAPTURE)]
    settled = lines[equals(lines["entry_type"], EntryType.CAPTURE)]
    for name in _NAMES:
        known = {*zip(*(texts(captures[own]) for own in (*ACCOUNT, name)), strict=True)}
        cells = (texts(settled[own]) for own in (*ACCOUNT, name, "settled_on"))
        for merchant, account, label, day in zip(*cells, strict=True):
            if label and (merchant, account, label) in known:
                begins[merchant, account] = min(day, begins[merchant, account])
    return begins


def set_apart(settled: Arrays, entries: Arrays, *, begins: Begins) -> Arrays:
    """Return the settled amounts, with those before the ledger begins in a group of their own.

    Args:
        settled: merchant_id, account_id, currency, kind, name, day, amount of each line and kind.
        entries: the same of each ledger entry, without its day.
        begins: the first day of the ledger, for accounts whose ledger may begin late.
    """
    old = _old(settled, begins=begins)
    if not old.any():
        return settled
    sides = [settled, entries]
    groups, keys = keyed(stacked(sides, names=GROUP).frame(*GROUP), by=GROUP)
    of_lines, of_ledger = groups[: len(settled)], groups[len(settled) :]
    size = len(keys)
    recent: Ints = total(np.where(old, 0, settled["amount"]), groups=of_lines, size=size)
    gaps = recent - total(entries["amount"], groups=of_ledger, size=size)
    for group, first in _even_from(settled, rows=old, groups=of_lines, gaps=gaps).items():
        old &= (of_lines != group) | (settled["day"] < first)
    return settled.assign(name=np.where(old, BEFORE_LEDGER, settled["name"]))


def _old(settled: Arrays, *, begins: Begins) -> Bools:
    if not begins:
        return np.zeros(len(settled), dtype=np.bool_)
    rows = settled.rows("merchant_id", "account_id", "day")
    mask = [day < begins.get((merchant, account), day) for merchant, account, day in rows]
    return np.array(mask, dtype=np.bool_)


def _even_from(settled: Arrays, *, rows: Bools, groups: Ints, gaps: Ints) -> dict[int, str]:
    """Return group -> the latest early day from which on it balances, for groups that need one."""
    moves = pd.DataFrame({"group": groups, "day": settled["day"], "amount": settled["amount"]})
    sums = moves[rows & (gaps[groups] != 0)].groupby(["group", "day"])["amount"].sum()
    since = sums.sort_index(ascending=False).groupby("group").cumsum().reset_index()
    even = since[since["amount"].eq(-gaps[since["group"]])]
    return {int(group): day for group, day in even.groupby("group")["day"].max().items()}

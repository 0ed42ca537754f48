"""Fees, reserves and pay-outs of the gateway beside those of the books, in groups.

They leave the sets of their payments, whatever order they name. Reserves are compared as a running
balance, fees by what `[ledger] fees_per` says, a pay-out with the entries that name its batch, else
with one of its amount, else as a running balance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.cash.before_books import set_apart
from recon.matching.frames.arrays import Arrays, Column, filled, stacked, texts, texts_at
from recon.matching.frames.coding import combined
from recon.matching.frames.grouping import Bools, Ints, Rows, amounts_of, instants_of, total
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT, ACCOUNT_CURRENCY
from recon.matching.frames.versions import NEW
from recon.matching.sides.ledger_side import (
    JUDGED,
    booked_forward,
    closing_entries,
    entry_versions,
    is_base_type,
)
from recon.matching.sides.settlement_side import lines_of_rows, pay_outs
from recon.model.words import EntryType

FEES, RESERVES, PAYOUTS = "fees", "reserves", "payout"
"""Kinds of groups; the first word of their keys."""
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
_GROUP = (*ACCOUNT_CURRENCY, "kind", "name")
_SETTLED = (*ACCOUNT_CURRENCY, "kind", "name", "row", "day", "amount", "items")
_BOOKED = (*ACCOUNT_CURRENCY, "kind", "name", "row", "at", "amount", "entry_id")


@dataclass(frozen=True, slots=True)
class BookGroups:
    """The groups with what makes them up."""

    groups: Arrays
    """merchant_id, account_id, currency, kind, name, key, settled, booked, entries (grain: group);
    amounts as the books sign them: what the gateway kept or paid out is below 0."""
    settled: Arrays
    """kind, group, row of the settlement, day, amount, items (grain: row and kind); of a row that
    stands for several lines as many items."""
    booked: Arrays
    """kind, group, row of the ledger, at, amount (grain: entry)."""
    closed: Mapping[int, Rows]
    """Group -> the entries of the ledger that write off what it differs by."""

    def ledger_rows(self) -> Rows:
        """The entries that stand in groups and in no set."""
        return np.concatenate([self.booked["row"], *self.closed.values()]).astype(np.intp)


def grouped(sources: Sources, *, rules: Rules) -> BookGroups | None:
    """The groups of a settlement source; None without one, and of a part of a night."""
    if sources.settlement is None or sources.is_part:
        return None
    lines, per = sources.settlement, rules.ledger.fees_per
    settled = _settled(lines, per=per)
    entries = _entries(sources.ledger, lines=lines, rules=rules)
    if len(entries):
        settled, entries = _paired_payouts(settled, entries)
    settled = set_apart(settled, entries, begins=sources.books_since)
    sides = [settled, entries]
    numbers, keys = combined([np.concatenate([side[name] for side in sides]) for name in _GROUP])
    settled = settled.assign(group=numbers[: len(settled)])
    entries = entries.assign(group=numbers[len(settled) :])
    size = len(keys)
    named = np.array(keys, dtype=object).reshape(-1, len(_GROUP))
    columns: dict[str, Column] = dict(zip(_GROUP, named.T, strict=True))
    columns["key"] = np.array([_key(*key[2:]) for key in keys], dtype=object)
    for name, side in (("settled", settled), ("booked", entries)):
        columns[name] = total(side["amount"], groups=side["group"], size=size)
        columns[f"{name}_items"] = np.bincount(side["group"], minlength=size)
    groups = Arrays(columns, size=size)
    return BookGroups(groups, settled, entries, _closed(sources.ledger, groups=groups, per=per))


def _key(currency: str, kind: str, name: str) -> str:
    return ":".join(filter(None, (kind, currency, name)))


def _settled(lines: pd.DataFrame, *, per: str) -> Arrays:
    """Every fee, reserve and pay-out that lines tell of."""
    paid = pay_outs(lines)
    gross, fee, net = (amounts_of(lines[name]) for name in ("gross", "fee", "net"))
    reserve = is_base_type(lines["entry_type"], EntryType.RESERVE) & ~paid & (gross != 0)
    parts = [
        _lines_of(lines, kind=FEES, rows=~paid & (fee != 0), amount=-fee, per=per),
        _lines_of(lines, kind=RESERVES, rows=reserve, amount=gross, per=""),
        _lines_of(lines, kind=PAYOUTS, rows=paid, amount=-net, per="batch"),
    ]
    return stacked(parts, names=_SETTLED)


def _lines_of(lines: pd.DataFrame, *, kind: str, rows: Bools, amount: Ints, per: str) -> Arrays:
    chosen = np.flatnonzero(rows)
    size = len(chosen)
    columns = {name: texts_at(chosen, of=lines[name]) for name in ACCOUNT_CURRENCY}
    days = texts_at(chosen, of=lines["settled_on"])
    names = filled("", size=size)
    if per == "payment":
        names = _payments(lines, rows=chosen)
    elif per == "batch":
        names = texts_at(chosen, of=lines["batch_id"])
    elif per == "day":
        names = days
    elif per == "month":
        names = _months(days)
    columns |= {"kind": filled(kind, size=size), "name": names, "day": days}
    columns |= {"row": chosen, "amount": amount[chosen], "items": lines_of_rows(lines)[chosen]}
    return Arrays(columns, size=size)


def _payments(frame: pd.DataFrame, *, rows: Rows) -> Column:
    """The transaction of some rows, else their order; neither is of no group."""
    named = texts_at(rows, of=frame["transaction_id"])
    named = np.where(named != "", named, texts_at(rows, of=frame["order_no"]))
    return np.where(named != "", named, UNASSIGNED)


def _months(days: Column) -> Column:
    return np.array([day[:_MONTH_CHARACTERS] for day in days.tolist()], dtype=object)


def _entries(ledger: pd.DataFrame | None, *, lines: pd.DataFrame, rules: Rules) -> Arrays:
    """Every entry of a fee, a reserve or a pay-out of the gateway; none of our own payouts."""
    parts = [] if ledger is None else _parts_of_books(ledger, lines=lines, rules=rules)
    if not parts:
        nothing = {name: filled("", size=0) for name in _BOOKED}
        numbers = {name: np.zeros(0, dtype=np.int64) for name in ("row", "at", "amount")}
        return Arrays({**nothing, **numbers}, size=0)
    return stacked(parts, names=_BOOKED)


def _parts_of_books(ledger: pd.DataFrame, *, lines: pd.DataFrame, rules: Rules) -> list[Arrays]:
    mine = is_base_type(ledger["entry_type"], *BASES.values())
    if JUDGED in ledger.columns:
        mine &= ~ledger[JUDGED].to_numpy(dtype=np.bool_)
    mine &= entry_versions(ledger) == NEW
    batches = {*zip(*(texts(lines[name]) for name in (*ACCOUNT_CURRENCY, "batch_id")), strict=True)}
    currency, forward = booked_forward(ledger)
    at, parts = instants_of(ledger["booked_at"]), []
    for kind, base in BASES.items():
        rows = np.flatnonzero(mine & is_base_type(ledger["entry_type"], base))
        columns = {name: texts_at(rows, of=ledger[name]) for name in ACCOUNT}
        columns["currency"] = texts(currency)[rows]
        if kind == PAYOUTS:
            names = _named_batches(ledger, rows=rows, places=columns, batches=batches)
        elif kind == FEES:
            names = _names_of_fees(ledger, rows=rows, places=columns, batches=batches, rules=rules)
        else:
            names = filled("", size=len(rows))
        columns |= {
            "kind": filled(kind, size=len(rows)),
            "name": names,
            "row": rows,
            "at": at[rows],
        }
        columns |= {"amount": -forward[rows], "entry_id": texts_at(rows, of=ledger["entry_id"])}
        parts.append(Arrays(columns, size=len(rows)))
    return parts


def _names_of_fees(
    ledger: pd.DataFrame,
    *,
    rows: Rows,
    places: Mapping[str, Column],
    batches: set[Any],
    rules: Rules,
) -> Column:
    per = rules.ledger.fees_per
    if per == "balance":
        return filled("", size=len(rows))
    if per == "payment":
        return _payments(ledger, rows=rows)
    if per == "batch":
        named = _named_batches(ledger, rows=rows, places=places, batches=batches)
        return np.where(named != "", named, UNASSIGNED)
    # What day it is booked on is a day of the calendar of the rules.
    entries = ledger[["booked_at", "reference_no"]].iloc[rows]
    at = pd.DatetimeIndex(entries["booked_at"]).tz_convert(rules.business_calendar.zone)
    form = "%Y-%m" if per == "month" else "%Y-%m-%d"
    days = at.strftime(form).to_numpy(dtype=object)
    pattern = _MONTH if per == "month" else r"\d{4}-\d{2}-\d{2}"
    stated = entries["reference_no"].str.fullmatch(pattern).to_numpy(dtype=np.bool_)
    return np.where(stated, texts(entries["reference_no"]), days)


def _named_batches(
    ledger: pd.DataFrame, *, rows: Rows, places: Mapping[str, Column], batches: set[Any]
) -> Column:
    """The batch of its account and currency that each of some entries names; "" for none."""
    own = zip(*(places[name].tolist() for name in ACCOUNT_CURRENCY), strict=True)
    named = (texts_at(rows, of=ledger[name]).tolist() for name in ("order_no", "reference_no"))
    words = zip(*named, strict=True)
    names = [
        next((word for word in pair if word and (*holder, word) in batches), "")
        for holder, pair in zip(own, words, strict=True)
    ]
    return np.array(names, dtype=object)


def _paired_payouts(settled: Arrays, entries: Arrays) -> tuple[Arrays, Arrays]:
    """Entries that name no batch with pay-outs of their amount; what is left as a balance.

    Of equal amounts the oldest pay-out goes with the oldest entry. Where entries are left without a
    pay-out, they stand with all pay-outs that are left in one group of their account and currency.
    """
    loose = (entries["kind"] == PAYOUTS) & (entries["name"] == "")
    if not loose.any():
        return settled, entries
    waiting = _unbooked(settled, entries)
    names = entries["name"].copy()
    by = [entries[name][loose] for name in (*ACCOUNT_CURRENCY, "amount", "at", "entry_id")]
    rows = np.flatnonzero(loose).tolist()
    over: set[tuple[str, ...]] = set()
    for (*holder, amount, _, _), row in sorted(
        zip(zip(*(column.tolist() for column in by), strict=True), rows, strict=True)
    ):
        same = waiting.get((*holder,), {}).get(-amount)
        if same:
            names[row] = same.pop(0)
        else:
            over.add((*holder,))
    left = {
        (*holder, batch)
        for holder in over
        for batches in waiting.get(holder, {}).values()
        for batch in batches
    }
    if not left:
        return settled, entries.assign(name=names)
    columns = [settled[name].tolist() for name in (*ACCOUNT_CURRENCY, "name")]
    joins = np.array([key in left for key in zip(*columns, strict=True)], dtype=np.bool_)
    joins &= settled["kind"] == PAYOUTS
    return settled.assign(name=np.where(joins, "", settled["name"])), entries.assign(name=names)


def _unbooked(settled: Arrays, entries: Arrays) -> dict[tuple[str, ...], dict[int, list[str]]]:
    """Place -> what was paid out -> the batches that no entry names, the oldest first."""
    named = {*entries.take(entries["kind"] == PAYOUTS).rows(*ACCOUNT_CURRENCY, "name")}
    sums: dict[tuple[str, ...], tuple[str, int]] = {}
    paid = settled.take(settled["kind"] == PAYOUTS)
    for *key, day, amount in paid.rows(*ACCOUNT_CURRENCY, "name", "day", "amount"):
        before = sums.get((*key,), ("", 0))
        sums[*key,] = max(day, before[0]), before[1] - amount
    waiting: dict[tuple[str, ...], dict[int, list[str]]] = {}
    for batch, (_, amount) in sorted(sums.items(), key=lambda item: (item[1][0], item[0])):
        if batch not in named and amount:
            waiting.setdefault(batch[:3], {}).setdefault(amount, []).append(batch[3])
    return waiting


def _closed(ledger: pd.DataFrame | None, *, groups: Arrays, per: str) -> dict[int, Rows]:
    """Groups whose difference a write-off or an adjustment that names them is of.

    The name of a payment is its order's, too: what bears it is of the order, not of its fees.
    """
    gaps = groups["settled"] - groups["booked"]
    if ledger is None or not gaps.any():
        return {}
    closers = closing_entries(ledger)
    closed: dict[int, Rows] = {}
    for number in np.flatnonzero(gaps).tolist() if closers.named else ():
        merchant, account, currency = (groups[name][number] for name in ACCOUNT_CURRENCY)
        is_payment = per == "payment" and groups["kind"][number] == FEES
        words = [groups["key"][number], *(() if is_payment else (groups["name"][number],))]
        own = closers.take(words, of=(merchant, account, currency), gap=int(gaps[number]))
        if own:
            closed[number] = np.array(own, dtype=np.intp)
    return closed

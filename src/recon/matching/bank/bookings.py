"""Compares bank receipts with the ledger: receipts that are not booked, bookings without a receipt.

Only where `[ledger] bank = true`, a ledger and statements are given. An entry of type `bank`
belongs to the payout whose batch it names, else to one of its amount, else to a balance of all the
rest. Entries from before the first statement, or for a payout due before it, are not compared: no
statement covers them. A difference becomes a flag on the break that the payout already has; without
one it is BANK_NOT_BOOKED.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.pairing import Finding, Payout, bank_of
from recon.matching.bank.result import BankResult, about_of
from recon.matching.breaks.result import BANKED
from recon.matching.breaks.result_rows import NO_AMOUNT, frame_in_order, identified
from recon.matching.cash.ledger_groups import (
    GROUP,
    LedgerGroups,
    closed_groups,
    entries_of,
    local_days,
    midnights,
    numbered,
    paired,
)
from recon.matching.cash.result import days_not_ahead, found_of_groups
from recon.matching.causes.proposed_journals import OF_BANK
from recon.matching.classifying.grace import due, is_ahead
from recon.matching.frames.arrays import Arrays, Column, columns_of, texts
from recon.matching.frames.grouping import NO_INSTANT
from recon.matching.frames.sources import Basis, Sources
from recon.matching.frames.total_rows import ACCOUNT, ACCOUNT_KEY, AccountKey
from recon.matching.sides.ledger_side import GROUPED, is_base_type, marked_as
from recon.model.business_date import Grace
from recon.model.terms import EntryType, Flag

BALANCE = "bank"
"""Kind of these groups, and first part of the key of the remaining balance."""
BEFORE = "before"
BANKED_COLUMNS = (*columns_of(BANKED),)


class ArrivedGroup(NamedTuple):
    """One payout, an account's payouts received together, or an unexpected entry."""

    account_key: AccountKey
    key: str
    batches: tuple[str, ...]
    finding: Finding
    """The result of the comparison with the bank."""
    items: list[tuple[str, int]]
    """Value date and amount of each receipt."""


@dataclass(frozen=True, slots=True)
class Bookings:
    """The groups of bank receipts and ledger entries, classified."""

    ledger_groups: LedgerGroups
    compared: frozenset[tuple[str, ...]]
    """Merchant, account and id of the entries that are compared with statements."""
    reopens: Mapping[str, str]
    found: Arrays
    """FOUND; a group that agrees has the keys of its entries (grain: group)."""


def classify_bookings(
    sources: Sources,
    *,
    bank: BankResult | None,
    basis: Basis,
) -> Bookings | None:
    """Classify the groups; None where the ledger does not book bank receipts."""
    ledger, rules = sources.ledger, basis.rules
    if not rules.ledger.bank or bank is None or ledger is None:
        return None
    arrived = {(each.account_key, each.key): each for each in _arrived(bank)}
    ledger_groups = _groups(ledger, arrived=arrived, bank=bank, rules=rules)
    groups = ledger_groups.groups
    gap = groups["settled"] - groups["booked"]
    apart = np.array([key.startswith(BEFORE) for key in groups["key"]], dtype=np.bool_)
    nothing = np.zeros(len(groups), dtype=np.bool_)
    known = _of_groups(arrived, groups=groups)
    batches = [" ".join(each.batches) if each else "" for each in known]
    found = found_of_groups(
        ledger_groups,
        facts={
            "differs": (gap != 0) & ~apart,
            **dict.fromkeys(("before", "over_released", "unverified"), nothing),
        },
        flags={Flag.NOT_COMPARED: apart},
        ends=_ends(ledger_groups, bank=bank, basis=basis),
        basis=basis,
        names=[*map(_name, known)],
        columns={
            "leg": OF_BANK,
            "effect": gap,
            "bank_amount": groups["settled"],
            "exposure": np.abs(gap),
            "part": "bank",
            "about": batches,
        },
    )
    broken = found["code"] != ""
    found = found.assign(
        # Pending rows are counted from a file of their own: they have no effect on gateway or
        # orders.
        effect_orders=np.where(broken, 0, NO_AMOUNT),
        effect_ledger=np.where(broken, gap, NO_AMOUNT),
    )
    entries = {
        *ledger_groups.booked.take(~apart[ledger_groups.booked["group"]]).rows(*ACCOUNT, "entry_id")
    }
    entry_ids = texts(ledger["entry_id"])
    entries |= {
        (groups["merchant_id"][at], groups["account_id"][at], entry_ids[row])
        for at, rows in ledger_groups.closed.items()
        for row in rows.tolist()
    }
    found, reopens = identified(found, previous=basis.previous)
    return Bookings(ledger_groups, frozenset(entries), reopens, found)


def _of_groups(
    arrived: Mapping[tuple[AccountKey, str], ArrivedGroup], *, groups: Arrays
) -> list[ArrivedGroup | None]:
    """Return what arrived for each group; None for a balance and for groups not compared."""
    rows = groups.rows(*ACCOUNT_KEY, "key")
    return [arrived.get(((merchant, account, unit), key)) for merchant, account, unit, key in rows]


def _texts(labels: Iterable[str]) -> Column:
    return np.array([*labels], dtype=object)


def _name(arrived: ArrivedGroup | None) -> str:
    """Return the name of a group for sentences."""
    if arrived is None:
        return "all that arrived and that no entry of the ledger names"
    if arrived.batches:
        label = "batch" if len(arrived.batches) == 1 else "batches"
        return f"{label} {' and '.join(arrived.batches)}"
    return about_of(arrived.finding)


def _groups(
    ledger: pd.DataFrame,
    *,
    arrived: Mapping[tuple[AccountKey, str], ArrivedGroup],
    bank: BankResult,
    rules: Rules,
) -> LedgerGroups:
    """Return every group with both of its sides; `settled` is what arrived."""
    rows = [
        (*each.account_key, BALANCE, each.key, day, amount)
        for each in arrived.values()
        for day, amount in each.items
    ]
    received = _table(rows, names=(*GROUP, "day", "amount"))
    entries = entries_of(ledger, kinds={BALANCE: EntryType.BANK})
    if bank.night is not None:
        merchant, account = bank.night.account
        own = (entries["merchant_id"] == merchant) & (entries["account_id"] == account)
        entries = entries.take(own)
    entries = _named(entries, ledger=ledger, arrived=arrived, bank=bank, rules=rules)
    received, entries = paired(received, entries, kind=BALANCE)
    # Where a balance exists, payouts without an entry are part of it.
    balanced = {*entries.take(entries["name"] == "").rows(*ACCOUNT_KEY)}
    names = [
        (*account_key, BALANCE, key) for account_key, key in arrived if account_key not in balanced
    ]
    groups, received, entries = numbered(received, entries, more=_table(names, names=GROUP))
    balances = (f"{BALANCE}:{currency}" for currency in groups["currency"].tolist())
    groups.columns["key"] = np.where(groups["name"] != "", groups["name"], _texts(balances))
    # An adjustment of an order never closes a group.
    is_adjustment = is_base_type(ledger["entry_type"], EntryType.ADJUSTMENT)
    of_order = is_adjustment & (texts(ledger["order_no"]) != "")
    known = _of_groups(arrived, groups=groups)
    closed = closed_groups(
        ledger,
        groups=groups,
        labels=[
            (key, *(each.batches if each else ()))
            for key, each in zip(groups["key"].tolist(), known, strict=True)
        ],
        among=~marked_as(ledger, GROUPED) & ~of_order,
    )
    return LedgerGroups(groups, received, entries, closed)


def _table(rows: Sequence[tuple[object, ...]], *, names: tuple[str, ...]) -> Arrays:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    kinds = {"amount": np.int64}
    return Arrays(
        {
            name: np.array(cells, dtype=kinds.get(name, object))
            for name, cells in zip(names, columns, strict=True)
        },
        size=len(rows),
    )


def payouts_by_receipts(bank: BankResult) -> Iterator[tuple[Finding, tuple[Payout, ...]]]:
    """Yield findings of payouts, once per shared entries, with all payouts that these may mean."""
    together: dict[int, list[Finding]] = {}
    for own, found in enumerate(bank.ids.values()):
        if found.payouts:
            together.setdefault(id(found.receipts) if found.receipts else -own - 1, []).append(
                found
            )
    for several in together.values():
        yield several[0], tuple(payout for found in several for payout in found.payouts)


def _arrived(bank: BankResult) -> Iterator[ArrivedGroup]:
    """Yield a group per payout, per account of payouts received together, per unknown entry."""
    night = bank.night
    for found, payouts in payouts_by_receipts(bank):
        if any(one.currency != found.currency for one in payouts):
            continue  # other currency: its amount of the payout is unknown
        account_keys: dict[AccountKey, list[Payout]] = {}
        for one in payouts:
            account_keys.setdefault((one.merchant_id, one.account_id, one.currency), []).append(one)
        for number, (account_key, own) in enumerate(account_keys.items()):
            if night is None or account_key[:2] == night.account:
                others = sum(one.paid for one in payouts if one not in own)
                items = [*_items(found, own=own, bears=number == 0, others=others)]
                batches = tuple(one.batch_id for one in own)
                yield ArrivedGroup(account_key, own[0].key, batches, found, items)
    for found in bank.ids.values():
        if not found.payouts and found.account[1]:
            (entry,) = found.receipts
            if night is None or found.account == night.account:
                account_key = (*found.account, entry.currency)
                yield ArrivedGroup(
                    account_key, entry.key, (), found, [(entry.value_on, entry.amount)]
                )


def _items(
    found: Finding, *, own: list[Payout], bears: bool, others: int
) -> Iterator[tuple[str, int]]:
    """Yield receipts of one account's payouts; the first account gets what the others leave."""
    if not found.receipts:
        return
    newest = max(one.value_on for one in found.receipts)
    if not bears:
        yield newest, sum(one.paid for one in own)
        return
    for one in found.receipts:
        yield one.value_on, one.worth(found.currency) or 0
    if others:
        yield newest, -others


def _named(
    entries: Arrays,
    *,
    ledger: pd.DataFrame,
    arrived: Mapping[tuple[AccountKey, str], ArrivedGroup],
    bank: BankResult,
    rules: Rules,
) -> Arrays:
    """Return the entries with the group that they name; those without a statement are set apart."""
    by_batch = {
        (each.account_key, batch): each.key for each in arrived.values() for batch in each.batches
    }
    before = {
        ((one.merchant_id, one.account_id, one.currency), one.batch_id)
        for one in bank.paired.opening
    }
    labels = [texts(ledger[name])[entries["row"]] for name in ("order_no", "reference_no")]
    days, banks = _days(entries, rules=rules), _banks(entries, rules=rules)
    names = []
    for *account_key_, day, serving, one, two in entries.assign(
        day=days, bank=banks, one=labels[0], two=labels[1]
    ).rows(*ACCOUNT_KEY, "day", "bank", "one", "two"):
        account_key = (account_key_[0], account_key_[1], account_key_[2])
        cover = bank.classified.covers.get(serving)
        first = "" if cover is None else cover.first_day
        if not first or day < first or {(account_key, one), (account_key, two)} & before:
            names.append(f"{BEFORE}:{BALANCE}:{account_key[2]}")
        else:
            names.append(by_batch.get((account_key, one)) or by_batch.get((account_key, two), ""))
    return entries.assign(name=np.array(names, dtype=object))


def _days(entries: Arrays, *, rules: Rules) -> Column:
    """Return the booking days in the calendar's zone."""
    return local_days(entries["at"], zone=rules.business_calendar.zone)


def _banks(entries: Arrays, *, rules: Rules) -> Column:
    """Return the bank of each entry's account."""
    return _texts(
        bank_of(merchant, account, currency=currency, rules=rules)
        for merchant, account, currency in entries.rows(*ACCOUNT_KEY)
    )


def _ends(ledger_groups: LedgerGroups, *, bank: BankResult, basis: Basis) -> tuple[Column, Column]:
    """Return when the grace of each bank receipt and each ledger entry ends."""
    rules, entries, at = basis.rules, ledger_groups.booked, ledger_groups.booked["at"]
    calendar, now = basis.calendar, basis.now
    grace = Grace.parse(rules.grace.gateway_to_ledger)
    # No grace runs from a date far ahead.
    days, wrong = days_not_ahead(ledger_groups.settled["day"], basis=basis), is_ahead(at, now=now)
    received, later, ends = (
        due(starts, grace=grace, calendar=calendar)
        for starts in (
            midnights(days, zone=calendar.zone),
            np.array([now], dtype=np.int64),
            np.where(wrong, NO_INSTANT, at),
        )
    )
    covers = bank.classified.covers
    covered = [
        covers[name].to_day if name in covers else "" for name in _banks(entries, rules=rules)
    ]
    # Nothing can be missing at the bank on a day that no statement covers yet.
    unreported = (_days(entries, rules=rules) > np.array(covered, dtype=object)).astype(np.bool_)
    return received, np.where(unreported & ~wrong, later, ends)


def banked_frame(bookings: Bookings | None) -> dict[str, pd.DataFrame]:
    """Return BANKED_COLUMNS under the name of the file; empty where nothing was compared."""
    if bookings is None:
        return {}
    found, groups = bookings.found, bookings.ledger_groups.groups
    columns = {
        **{name: found[name] for name in (*ACCOUNT_KEY, "state", "flags", "effect")},
        "key": groups["key"],
        "arrived": groups["settled"],
        "booked": groups["booked"],
        "name": found["about"],
        "result_id": found["id"],
    }
    rows, by = Arrays(columns, size=len(groups)), [*ACCOUNT_KEY, "key"]
    return {BANKED: frame_in_order(rows, names=BANKED_COLUMNS, by=by)}

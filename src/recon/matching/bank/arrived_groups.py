"""What arrived at the bank and what the books have of it, in groups of one account and currency.

An entry of type `bank` belongs to the pay-out whose batch it names, else to one of its amount, else
to all that is left as one balance. What the books took in before the first statement, or for a
pay-out that was due before it, stands apart: no statement says anything of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.expected import Payout, bank_of
from recon.matching.bank.pairing import Finding
from recon.matching.bank.result import BankResult
from recon.matching.frames.arrays import texts
from recon.matching.frames.grouping import instants_of
from recon.matching.frames.versions import NEW
from recon.matching.sides.ledger_side import (
    GROUPED,
    booked_forward,
    closing_entries,
    entry_versions,
    is_base_type,
    marked_as,
)
from recon.model.words import EntryType, SetState

Holder = tuple[str, str, str]
"""Merchant, account, currency."""
BALANCE = "bank"
"""First word of the key of what is left."""


@dataclass(frozen=True, slots=True)
class BookedEntry:
    """One entry of the books of type `bank`, or what takes it back; minor units."""

    holder: Holder
    entry_id: str
    words: tuple[str, ...]
    """What it may name: its order and its reference."""
    at: int
    """Microseconds."""
    day: str
    """Of the calendar of the rules."""
    amount: int
    """What came in is positive."""


@dataclass(slots=True)
class ArrivedGroup:
    """What is compared as one, with both of its sides."""

    holder: Holder
    key: str
    bank: str
    batches: tuple[str, ...] = ()
    finding: Finding | None = None
    """What the bank makes of it; None of a balance."""
    items: list[tuple[str, int]] = field(default_factory=list)
    """Value date and amount of what arrived."""
    entries: list[BookedEntry] = field(default_factory=list)
    apart: bool = False
    """From before the first statement: not compared."""
    closers: tuple[str, ...] = ()
    """Numbers of the entries that write off what its sides differ by."""

    @property
    def arrived(self) -> int:
        """What the bank has of it."""
        return sum(amount for _, amount in self.items)

    @property
    def booked(self) -> int:
        """What the books have of it."""
        return sum(entry.amount for entry in self.entries)


def arrived_groups(
    ledger: pd.DataFrame, *, bank: BankResult, rules: Rules
) -> tuple[ArrivedGroup, ...]:
    """Every group with its entries, in the order of their places.

    Args:
        ledger: LEDGER_COLUMNS.
        bank: what the statements came to.
        rules: which bank serves which account.
    """
    night = bank.night
    groups = [
        group for group in _of_findings(bank) if night is None or group.holder[:2] == night.account
    ]
    entries = [
        entry
        for entry in _entries(ledger, rules=rules)
        if night is None or entry.holder[:2] == night.account
    ]
    loose, apart = _named(entries, groups=groups, bank=bank, rules=rules)
    left = _by_amount(loose, groups=groups)
    groups = sorted(_balanced(left, groups=groups, rules=rules), key=lambda one: one.key)
    _close(groups, ledger=ledger)
    return (*groups, *apart)


def _close(groups: Iterable[ArrivedGroup], *, ledger: pd.DataFrame) -> None:
    """Take to each group what writes off its difference; what belongs to an order never does."""
    is_adjustment = is_base_type(ledger["entry_type"], EntryType.ADJUSTMENT)
    of_order = is_adjustment & (texts(ledger["order_no"]) != "")
    closers = closing_entries(ledger, among=~marked_as(ledger, GROUPED) & ~of_order)
    numbers = texts(ledger["entry_id"])
    for group in groups if closers.named else ():
        gap = group.arrived - group.booked
        own = closers.take((group.key, *group.batches), of=group.holder, gap=gap) if gap else []
        group.closers = tuple(numbers[own].tolist())


def payouts_by_receipts(bank: BankResult) -> Iterator[tuple[Finding, tuple[Payout, ...]]]:
    """Each finding of pay-outs once for all that the same entries may mean, with all of these."""
    together: dict[int, list[Finding]] = {}
    for own, found in enumerate(bank.ids.values()):
        if found.payouts:
            together.setdefault(id(found.receipts) if found.receipts else -own - 1, []).append(
                found
            )
    for several in together.values():
        yield several[0], tuple(payout for found in several for payout in found.payouts)


def _of_findings(bank: BankResult) -> Iterator[ArrivedGroup]:
    """A group of each pay-out, of each account of several that came as one, of each unknown."""
    for found, payouts in payouts_by_receipts(bank):
        if any(one.currency != found.currency for one in payouts):
            continue  # in another currency, and nothing says what of the pay-out it is
        holders: dict[Holder, list[Payout]] = {}
        for one in payouts:
            holders.setdefault((one.merchant_id, one.account_id, one.currency), []).append(one)
        for number, (holder, own) in enumerate(holders.items()):
            items = [*_items(found, payouts=payouts, own=own, bears=number == 0)]
            batches = tuple(one.batch_id for one in own)
            yield ArrivedGroup(holder, own[0].key, own[0].bank, batches, found, items)
    for found in bank.ids.values():
        if not found.payouts and found.account[1]:
            (entry,) = found.receipts
            items = [(entry.value_on, entry.amount)]
            holder = (*found.account, entry.currency)
            yield ArrivedGroup(holder, entry.key, entry.bank, (), found, items)


def _items(
    found: Finding, *, payouts: Iterable[Payout], own: list[Payout], bears: bool
) -> Iterator[tuple[str, int]]:
    """What arrived of the pay-outs of one account: of the first account what others leave."""
    if found.state is SetState.PENDING or not found.receipts:
        return
    newest = max(one.value_on for one in found.receipts)
    if not bears:
        yield newest, sum(one.paid for one in own)
        return
    for one in found.receipts:
        yield one.value_on, one.worth(found.currency) or 0
    others = sum(one.paid for one in payouts if one not in own)
    if others:
        yield newest, -others


def _entries(ledger: pd.DataFrame, *, rules: Rules) -> Iterator[BookedEntry]:
    mine = is_base_type(ledger["entry_type"], EntryType.BANK) & (entry_versions(ledger) == NEW)
    rows = np.flatnonzero(mine)
    currency, forward = booked_forward(ledger)
    names = ("merchant_id", "account_id", "entry_id", "order_no", "reference_no")
    cells = [texts(ledger[name])[rows].tolist() for name in names]
    at = instants_of(ledger["booked_at"])[rows].tolist()
    money = texts(currency)[rows].tolist()
    signed = forward[rows].tolist()
    zone = rules.business_calendar.zone
    for (merchant, account, entry_id, *words), unit, instant, moved in zip(
        zip(*cells, strict=True), money, at, signed, strict=True
    ):
        day = datetime.fromtimestamp(instant / 1_000_000, tz=zone).date().isoformat()
        told = tuple(word for word in words if word)
        yield BookedEntry((merchant, account, unit), entry_id, told, instant, day, moved)


def _named(
    entries: Iterable[BookedEntry],
    *,
    groups: Iterable[ArrivedGroup],
    bank: BankResult,
    rules: Rules,
) -> tuple[list[BookedEntry], list[ArrivedGroup]]:
    """The entries that name nothing, and the groups of those that no statement speaks of."""
    by_batch = {(group.holder, batch): group for group in groups for batch in group.batches}
    before = {
        (one.merchant_id, one.account_id, one.currency, one.batch_id) for one in bank.paired.opening
    }
    loose: list[BookedEntry] = []
    apart: dict[Holder, ArrivedGroup] = {}
    for entry in entries:
        merchant, account, currency = entry.holder
        serving = bank_of(merchant, account, currency=currency, rules=rules)
        cover = bank.judged.covers.get(serving)
        first = "" if cover is None else cover.first_day
        old = any((*entry.holder, word) in before for word in entry.words)
        named = [
            by_batch[entry.holder, word] for word in entry.words if (entry.holder, word) in by_batch
        ]
        if not first or entry.day < first or old:
            key = f"before:{BALANCE}:{currency}"
            group = apart.setdefault(
                entry.holder, ArrivedGroup(entry.holder, key, serving, apart=True)
            )
            group.entries.append(entry)
        elif named:
            named[0].entries.append(entry)
        else:
            loose.append(entry)
    return loose, [*apart.values()]


def _by_amount(
    loose: Iterable[BookedEntry], *, groups: Iterable[ArrivedGroup]
) -> list[BookedEntry]:
    """Entries with what came in of their amount, the oldest with the oldest; what is left."""
    waiting: dict[tuple[Holder, int], list[ArrivedGroup]] = {}
    for group in sorted(groups, key=_place):
        if not group.entries and group.arrived:
            waiting.setdefault((group.holder, group.arrived), []).append(group)
    left = []
    for entry in sorted(loose, key=lambda one: (one.at, one.entry_id)):
        same = waiting.get((entry.holder, entry.amount))
        if same:
            same.pop(0).entries.append(entry)
        else:
            left.append(entry)
    return left


def _place(group: ArrivedGroup) -> tuple[str, str]:
    return min((day for day, _ in group.items), default=""), group.key


def _balanced(
    left: Iterable[BookedEntry], *, groups: Iterable[ArrivedGroup], rules: Rules
) -> Iterator[ArrivedGroup]:
    """The groups; where entries are left, all that has none stands with them as one balance."""
    balances: dict[Holder, ArrivedGroup] = {}
    for entry in left:
        merchant, account, currency = entry.holder
        serving = bank_of(merchant, account, currency=currency, rules=rules)
        key = f"{BALANCE}:{currency}"
        balance = balances.setdefault(entry.holder, ArrivedGroup(entry.holder, key, serving))
        balance.entries.append(entry)
    for group in groups:
        joined = balances.get(group.holder)
        if joined is not None and not group.entries:
            joined.items += group.items
        else:
            yield group
    yield from balances.values()


def compared_entries(groups: Iterable[ArrivedGroup]) -> frozenset[tuple[str, str, str]]:
    """Merchant, account and number of every entry that is held against statements."""
    return frozenset(
        (*group.holder[:2], entry.entry_id)
        for group in groups
        for entry in group.entries
        if not group.apart
    ) | {(*group.holder[:2], number) for group in groups for number in group.closers}

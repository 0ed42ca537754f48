"""Amounts that the gateway holds: what each settlement batch leaves over time, and reserves by day.

A batch is closed when it has a payout. A batch with a negative total waits for no payout: the
gateway deducts it from later payouts, so it counts at once; so does one whose total is no more than
the debts before it.

A batch that pays out less than its lines first repays earlier debts, and the rest is an item held
back; one that pays out more releases the oldest items. What no item covers is a debt, where the
lines themselves are below 0 and nothing was paid, else it is paid beyond.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from recon.config.rules import Rules
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import keyed
from recon.matching.frames.grouping import amounts_of, total
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT_KEY, AccountKey
from recon.matching.sides.ledger_side import is_base_type
from recon.matching.sides.settlement_side import is_payout
from recon.model.terms import EntryType, Reject, SourceKind

OPENING, ITEM, DEBT, BEYOND = "opening", "item", "debt", "beyond"
NO_PAYOUT, OTHER_CURRENCY, UNSURE, RESERVE = "no_payout", "other_currency", "unsure", "reserve"
"""Kinds of listed amounts: owed from before the opening, held back, owed to the gateway, paid
beyond what was due, of a batch without a payout, of a batch whose payout has another currency, of a
batch with an unreadable line, kept as a reserve."""
BatchOf = tuple[str, str, str, str]
"""Merchant, account, currency and batch. For an unreadable line, "" stands for any currency, or for
a batch that it does not name."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One amount that the gateway holds; debts and what was paid beyond are below 0."""

    merchant_id: str
    account_id: str
    currency: str
    what: str
    batch_id: str
    settled_on: str
    amount: int

    @property
    def account_key(self) -> AccountKey:
        """Merchant, account and currency."""
        return self.merchant_id, self.account_id, self.currency


class Batch(NamedTuple):
    """A batch of one account and currency; minor units."""

    settled_on: str
    batch_id: str
    lines: int
    paid: int
    is_closed: bool
    """It has a payout, or a negative total."""
    is_foreign: bool
    """Its payout has another currency."""
    is_unsure: bool
    """One of its lines could not be read."""


def listed(sources: Sources, *, rules: Rules) -> tuple[Listed, ...]:
    """Return what the gateway holds of every account and currency, the oldest first."""
    batches = batches_of(sources)
    reserves = _reserves(sources)
    account_keys = {*batches, *reserves}
    account_keys |= {
        (*account, currency)
        for account in {account_key[:2] for account_key in account_keys}
        for currency, opening in rules.settlement.items()
        if opening.opening_payable or opening.opening_reserve
    }
    return tuple(
        row
        for account_key in sorted(account_keys)
        for row in (
            *left_of_batches(
                batches.get(account_key, ()),
                account_key=account_key,
                opening=_opening(account_key, rules)[0],
            ),
            *left_of_reserves(
                reserves.get(account_key, {}),
                account_key=account_key,
                opening=_opening(account_key, rules)[1],
            ),
        )
    )


def batches_of(sources: Sources) -> Mapping[AccountKey, tuple[Batch, ...]]:
    """Return the batches of each account key, sorted by settled_on and batch_id."""
    lines = sources.settlement
    if lines is None or not len(lines):
        return {}
    paid = is_payout(lines)
    net = amounts_of(lines["net"])
    groups, keys = keyed(lines, by=(*ACCOUNT_KEY, "batch_id"))
    size = len(keys)
    sums = [total(np.where(rows, net, 0), groups=groups, size=size) for rows in (~paid, paid)]
    closed = np.bincount(groups[paid], minlength=size) > 0
    only_paid = closed & (np.bincount(groups[~paid], minlength=size) == 0)
    days: dict[int, str] = {}
    decides = paid | ~closed[groups]
    day = texts(lines["settled_on"])
    for group, settled_on in {*zip(groups[decides].tolist(), day[decides].tolist(), strict=True)}:
        days[group] = max(settled_on, days.get(group, ""))
    open_ones = {
        (*key[:2], key[3]) for key, shut in zip(keys, closed.tolist(), strict=True) if not shut
    }
    paid_out = {(*key[:2], key[3]) for key, shut in zip(keys, closed.tolist(), strict=True) if shut}
    unsure = unsure_batches(sources)
    # A payout of another currency that could not be read may belong to a batch without one, and
    # lines of another currency to a payout without lines.
    in_any = {(*held[:2], held[3]) for held in unsure}
    by_account: dict[AccountKey, list[Batch]] = {}
    for number, (merchant, account, currency, batch) in enumerate(keys):
        entry = Batch(
            days[number],
            batch,
            int(sums[0][number]),
            int(sums[1][number]),
            bool(closed[number])
            or (sums[0][number] < 0 and (merchant, account, batch) not in paid_out),
            bool(only_paid[number]) and (merchant, account, batch) in open_ones,
            (merchant, account, currency, batch) in unsure
            or (
                (merchant, account, batch) in in_any
                and bool(only_paid[number] or not closed[number])
            ),
        )
        by_account.setdefault((merchant, account, currency), []).append(entry)
    return {account_key: tuple(sorted(batches)) for account_key, batches in by_account.items()}


def unsure_batches(sources: Sources) -> set[BatchOf]:
    """Return the batches with a line that could not be read.

    A line that names no batch may belong to any batch of its file, or to an unknown one. A line
    whose currency could not be read belongs to the currencies of its batch, else to any ("").
    """
    lines, unread = sources.settlement, sources.unread_batches
    rejected = [entry for entry in sources.rejects if entry.kind is SourceKind.SETTLEMENT]
    if lines is None or not (rejected if unread is None else unread):
        return set()
    names = (*ACCOUNT_KEY, "batch_id", "source")
    known = {*zip(*(lines[name].tolist() for name in names), strict=True)}
    if unread is None:
        unread = frozenset(each for entry in rejected for each in _named_by(entry, known=known))
    currencies: dict[tuple[str, ...], set[str]] = {}
    for merchant, account, currency, batch, _ in known:
        currencies.setdefault((merchant, account, batch), set()).add(currency)
    return {
        (merchant, account, own, batch)
        for merchant, account, currency, batch in unread
        for own in ({currency} if currency else currencies.get((merchant, account, batch), {""}))
    }


def _named_by(entry: Reject, *, known: Collection[tuple[str, ...]]) -> set[BatchOf]:
    own = (entry.merchant_id, entry.account_id)
    mine = [each for each in known if own[0] in {"", each[0]} and own[1] in {"", each[1]}]
    named = [
        (each[0], each[1], entry.currency, each[3])
        for each in mine
        if (entry.batch_id == each[3] if entry.batch_id else entry.source == each[4])
    ]
    accounts = {own} if all(own) else {(each[0], each[1]) for each in named or mine}
    return {*named, *((*account, entry.currency, entry.batch_id) for account in accounts)}


def _opening(account_key: AccountKey, rules: Rules) -> tuple[int, int]:
    """Return the payable and the reserve that the gateway held before the first line."""
    opening = rules.settlement.get(account_key[2])
    return (0, 0) if opening is None else (opening.opening_payable, opening.opening_reserve)


def left_of_batches(
    batches: Iterable[Batch], *, account_key: AccountKey, opening: int
) -> Iterator[Listed]:
    """Yield what is left of an account key's batches, in order; `opening`: owed before them."""
    items: deque[Listed] = deque()
    debts: deque[Listed] = deque()
    beyond: deque[Listed] = deque()
    if opening:
        items.append(Listed(*account_key, OPENING, "", "", opening))
    apart: list[Listed] = []
    for entry in batches:
        row = Listed(*account_key, ITEM, entry.batch_id, entry.settled_on, entry.lines - entry.paid)
        what = _apart(entry)
        owes = -sum(debt.amount for debt in debts)
        if what and not (what == NO_PAYOUT and row.amount <= owes):
            apart += [replace(row, what=what)] if row.amount else []
            continue
        if row.amount > 0:
            left = _deducted(beyond, by=_deducted(debts, by=row.amount))
            items += [replace(row, amount=left)] if left else []
        elif row.amount < 0:
            left = _deducted(items, by=-row.amount)
            is_debt = entry.lines < 0 and not entry.paid
            if left and is_debt:
                debts.append(replace(row, what=DEBT, amount=-left))
            elif left:
                beyond.append(replace(row, what=BEYOND, amount=-left))
    yield from (*items, *debts, *beyond, *apart)


def _apart(entry: Batch) -> str:
    """Return why a batch is listed outside the order of time, "" when it is not."""
    if entry.is_unsure:
        return UNSURE
    if entry.is_foreign:
        return OTHER_CURRENCY
    return "" if entry.is_closed else NO_PAYOUT


def _deducted(rows: deque[Listed], *, by: int) -> int:
    """Deduct an amount from the oldest rows and return what could not be deducted."""
    while rows and by:
        first = rows.popleft()
        size = min(abs(first.amount), by)
        by -= size
        if size < abs(first.amount):
            less = size if first.amount > 0 else -size
            rows.appendleft(replace(first, amount=first.amount - less))
    return by


def _reserves(sources: Sources) -> Mapping[AccountKey, Mapping[str, int]]:
    """Return the reserve kept back (positive) or released (negative) by account key and day."""
    lines = sources.settlement
    if lines is None or not len(lines):
        return {}
    rows = lines[is_base_type(lines["entry_type"], EntryType.RESERVE) & ~is_payout(lines)]
    sums = rows.groupby([*ACCOUNT_KEY, "settled_on"])["gross"].sum().reset_index()
    by_account: dict[AccountKey, dict[str, int]] = {}
    for merchant, account, currency, day, amount in sums.itertuples(index=False, name=None):
        by_account.setdefault((merchant, account, currency), {})[day] = -amount
    return by_account


def left_of_reserves(
    days: Mapping[str, int], *, account_key: AccountKey, opening: int
) -> Iterator[Listed]:
    """Yield the reserve, the oldest first; what was released beyond the amount kept is below 0."""
    rows: deque[Listed] = deque()
    if opening:
        rows.append(Listed(*account_key, RESERVE, "", "", opening))
    over = 0
    for day, amount in sorted(days.items()):
        if amount > 0:
            left = amount - min(amount, over)
            over -= amount - left
            rows += [Listed(*account_key, RESERVE, "", day, left)] if left else []
        else:
            over += _deducted(rows, by=-amount)
    yield from rows
    if over:
        yield Listed(*account_key, RESERVE, "", max(days), -over)

"""The ledger's side of a set: captures, refunds and chargebacks as booked, signed.

It also compares entries in another currency than their payment with the agreed exchange rate, and
finds since when entries have stood without a reversal.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.exchange_rates import AppliedRate
from recon.config.rules import Rules
from recon.matching.frames.arrays import Arrays, Column, among, texts
from recon.matching.frames.coding import by_label, equals, label_of, numbered
from recon.matching.frames.grouping import (
    BASIS,
    Bools,
    Ints,
    Rows,
    amounts_or,
    cells_of,
    first_row,
    given,
    instants_of,
    latest,
    present,
    total,
)
from recon.matching.frames.total_rows import AccountKey
from recon.matching.frames.versions import CONFLICT, NEW, REPEAT, Versions, versions
from recon.matching.sides.orders_side import Side
from recon.model.money import exponent
from recon.model.terms import REVERSAL_SUFFIX, EntryType

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class ForeignEntry:
    """One entry booked in another currency than its payment, with both amounts in minor units."""

    row: int
    booked: int
    currency: str
    stated: int
    foreign: str
    rate: AppliedRate
    """The rate of its booking day, in the calendar's zone."""

    @property
    def gap(self) -> int:
        """Booked less expected in the payment's minor units; 0 without a rate or in tolerance."""
        if self.rate.rate is None:
            return 0
        booked = Decimal(self.booked).scaleb(-exponent(self.currency))
        expected = Decimal(self.stated).scaleb(-exponent(self.foreign)) * self.rate.rate
        gap = booked - expected
        limit = abs(expected) * self.rate.basis_points / BASIS
        if abs(gap) <= max(limit, Decimal(1).scaleb(-exponent(self.currency))):
            return 0
        shifted = (gap / self.rate.rate).scaleb(exponent(self.foreign))
        return int(shifted.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def exchange_gaps(ledger: pd.DataFrame, *, rules: Rules) -> Ints:
    """Return booked less expected per entry, in minor units of the transaction's currency.

    0 where the entry is not foreign, no rate applies on its day, or the rate's tolerance covers it.
    """
    gaps = np.zeros(len(ledger), dtype=np.int64)
    for entry in _foreign_entries(ledger, rules=rules) if rules.rate else ():
        gaps[entry.row] = entry.gap
    return gaps


def unrated_entries(ledger: pd.DataFrame | None, *, rules: Rules) -> Counter[AppliedRate]:
    """Count the foreign entries that no rate applies to, by why there is none."""
    if ledger is None:
        return Counter()
    entries = _foreign_entries(ledger, rules=rules)
    return Counter(entry.rate for entry in entries if entry.rate.rate is None)


def unrated_texts(unrated: Mapping[AppliedRate, int]) -> Iterator[str]:
    """Yield one text per currency pair for the entries that no rate applies to."""
    for pair in sorted({rate.pair for rate in unrated}):
        several = {rate: number for rate, number in unrated.items() if rate.pair == pair}
        first = min(several, key=lambda rate: rate.day)
        number = sum(several.values())
        entries = "1 entry" if number == 1 else f"{number} entries"
        yield f"exchange {pair} of {entries} of the ledger: {first.text}"


def _foreign_entries(ledger: pd.DataFrame, *, rules: Rules) -> Iterator[ForeignEntry]:
    stated = np.flatnonzero(ledger["transaction_amount"].notna())
    foreign, own = (
        texts(ledger[name].iloc[stated]) for name in ("transaction_currency", "currency")
    )
    rows = stated[(foreign != "") & (foreign != own)]
    at = instants_of(ledger["booked_at"])[rows].tolist()
    names = ("amount", "currency", "transaction_amount", "transaction_currency")
    cells = [ledger[name].iloc[rows].tolist() for name in names]
    zone = rules.business_calendar.zone
    for row, instant, booked, currency, stated, other in zip(
        rows.tolist(), at, *cells, strict=True
    ):
        day = datetime.fromtimestamp(instant / MICROSECONDS, tz=zone).date().isoformat()
        rate = rules.rate_of(other, into=currency, day=day)
        yield ForeignEntry(row, int(booked), currency, int(stated), other, rate)


SIGN = {
    EntryType.CAPTURE: 1,
    EntryType.REFUND: -1,
    EntryType.CHARGEBACK: -1,
    EntryType.ADJUSTMENT: 1,
    EntryType.PAYOUT: -1,
}
"""Sign of each entry type in the ledger's net; a reversal has the opposite sign."""

_NEVER_COMPARED = frozenset({EntryType.FEE, EntryType.RESERVE, EntryType.PAYOUT, EntryType.BANK})
CLASSIFIED = "payout_compared"
"""Column that the engine adds to the ledger: this payout entry is compared."""
GROUPED = "in_group"
"""Column that the engine adds to the ledger: this entry belongs to a group of fees, reserves or
payouts, and to no set."""
ADDED = (CLASSIFIED, GROUPED)
"""Columns that the engine adds and no ledger file has."""
_GROUPED_SIGN = {EntryType.FEE: -1, EntryType.RESERVE: -1, EntryType.PAYOUT: -1}
_MOVEMENTS = (EntryType.CAPTURE, EntryType.REFUND, EntryType.CHARGEBACK)
_MOVEMENT = ["set", "kind", "currency", "amount", "transaction_id", "reference_no"]
_LATER = int(np.iinfo(np.int64).max)
_ALIKE = ["set", "kind", "currency", "amount"]


def are_compared(ledger: pd.DataFrame) -> Bools:
    """Mark the entries that belong to a set; fees, reserves and keyless adjustments do not.

    Payouts do where they name a payout of ours (column `payout_compared`).
    """
    belongs = ~is_base_type(ledger["entry_type"], *_NEVER_COMPARED)
    unkeyed = is_base_type(ledger["entry_type"], EntryType.ADJUSTMENT)
    if unkeyed.any():
        belongs[unkeyed] = texts(ledger["order_no"])[unkeyed] != ""
    return (belongs | marked_as(ledger, CLASSIFIED)) & ~marked_as(ledger, GROUPED)


def not_compared(ledger: pd.DataFrame) -> Bools:
    """Mark the entries that belong to no set and to no group."""
    return ~are_compared(ledger) & ~marked_as(ledger, GROUPED)


def marked_as(ledger: pd.DataFrame, name: str) -> Bools:
    """Return one of the columns in ADDED as a mask, all False where the ledger lacks it."""
    if name not in ledger.columns:
        return np.zeros(len(ledger), dtype=np.bool_)
    return ledger[name].to_numpy(dtype=np.bool_).copy()


def is_base_type(entry_type: "pd.Series[str]", *types: EntryType) -> Bools:
    """Mark the entries of one of the types, their reversals included."""
    return equals(entry_type, *types, *(f"{kind}{REVERSAL_SUFFIX}" for kind in types))


def are_reversals(ledger: pd.DataFrame) -> Bools:
    """Mark the entries that reverse others."""
    return ledger["entry_type"].str.endswith(REVERSAL_SUFFIX).to_numpy(dtype=np.bool_)


def _sign(label: str, *, signs: Mapping[EntryType, int] = SIGN) -> int:
    base = label.removesuffix(REVERSAL_SUFFIX)
    sign = next((sign for kind, sign in signs.items() if kind.value == base), 0)
    return -sign if label.endswith(REVERSAL_SUFFIX) else sign


class Booked(NamedTuple):
    """Currency, amount and signed net of each entry, in minor units of `currency`."""

    currency: "pd.Series[str]"
    amount: Ints
    net: Ints


def booked(ledger: pd.DataFrame) -> Booked:
    """Return what each entry moves, in the transaction's currency where it is stated."""
    amount = amounts_or(ledger["transaction_amount"], otherwise=ledger["amount"])
    sign = by_label(ledger["entry_type"], of=_sign).astype(np.int64)
    net = np.where(are_compared(ledger), amount * sign, 0)
    grouped = marked_as(ledger, GROUPED)
    if grouped.any():
        of_group = partial(_sign, signs=_GROUPED_SIGN)
        sign = by_label(ledger["entry_type"], of=of_group).astype(np.int64)
        net = np.where(grouped, amount * sign, net)
    return Booked(booked_currency(ledger), amount, net)


def booked_forward(ledger: pd.DataFrame) -> tuple["pd.Series[str]", Ints]:
    """Return currency and amount of each entry; the amount of a reversal is negated."""
    currency, amount, _ = booked(ledger)
    return currency, np.where(are_reversals(ledger), -amount, amount)


def booked_currency(ledger: pd.DataFrame) -> "pd.Series[str]":
    """Return the transaction's currency of each entry where it is stated, else the ledger's."""
    currency = ledger["currency"].reset_index(drop=True)
    abroad = given(ledger["transaction_amount"])
    if abroad.any():
        abroad &= ~equals(ledger["transaction_currency"], "")
    if abroad.any():
        named = ledger["transaction_currency"].reset_index(drop=True)
        currency = currency.where(~abroad, named)
    return currency


def left_behind(ledger: pd.DataFrame) -> Booked:
    """Return what entries left out of the comparison moved, fees, reserves, payouts included."""
    of_gateway = is_base_type(ledger["entry_type"], *_GROUPED_SIGN)
    return booked(ledger.assign(**{GROUPED: of_gateway}))


def entry_versions(ledger: pd.DataFrame) -> Versions:
    """Return NEW, REPEAT or CONFLICT (same entry_id, other content) for each ledger row."""
    content = ledger.drop(columns=[*ADDED], errors="ignore")
    groups = numbered(ledger, by=("merchant_id", "account_id", "entry_id"))
    return versions(content, groups=groups, newest=None)


def ledger_items(ledger: pd.DataFrame) -> Arrays:
    """Return one row per entry with its amounts, in minor units of the transaction's currency."""
    reversal = are_reversals(ledger)
    currency, amount, net = booked(ledger)
    columns = {
        "row": np.arange(len(ledger)),
        "kind": label_of(ledger["entry_type"].str.removesuffix(REVERSAL_SUFFIX)),
        "reversal": reversal,
        "entry_id": texts(ledger["entry_id"]),
        "reverses": texts(ledger["reverses_entry_id"]),
        "currency": label_of(currency),
        "transaction_id": texts(ledger["transaction_id"]),
        "reference_no": texts(ledger["reference_no"]),
        "booked_at": instants_of(ledger["booked_at"]),
        "amount": amount,
        "forward": np.where(reversal, -amount, amount),
        "net": net,
    }
    return Arrays(columns, size=len(ledger))


def ledger_side(
    ledger: pd.DataFrame, *, versions: Versions, sets: Rows, size: int, rules: Rules
) -> Side:
    """Reduce the entries to one row per set; entries that are not compared have set -1.

    Columns of `sets` in the result: gross booked per movement (less reversals), currency, since
    when entries are open, their ids joined with `;`, what makes the set unverified or a duplicate.
    """
    conflict = versions == CONFLICT
    every = ledger_items(ledger)
    every = every.assign(
        set=sets,
        exchange=exchange_gaps(ledger, rules=rules),
        forward=np.where(conflict, 0, every["forward"]),
        net=np.where(conflict, 0, every["net"]),
    )
    items = every.take((versions != REPEAT) & (sets >= 0))
    groups, kinds = items["set"], items["kind"]
    present_in = partial(present, groups=groups, size=size)
    columns: dict[str, Column] = {"ledger_present": present_in(np.ones(len(items), np.bool_))}
    repeated = _repeated_movements(items)
    for kind in (*_MOVEMENTS, EntryType.ADJUSTMENT, EntryType.WRITE_OFF):
        mine = kinds == kind.value
        moved = np.where(mine, items["forward"], 0)
        columns[f"ledger_{kind.value}"] = total(moved, groups=groups, size=size)
        if kind in _MOVEMENTS:
            columns[f"booked_twice_{kind.value}"] = present_in(repeated & mine)
    columns["booked_at"] = open_since(items, size=size)
    columns["entry_conflict"] = present(conflict, groups=sets, size=size)
    named = ("currency", "transaction_id", "entry_id")
    chosen = first_row([items[name] for name in named], groups=groups, size=size)
    for name in named[:2]:
        columns[f"ledger_{name}"] = cells_of(items[name], rows=chosen)
    columns["entry_ids"] = cells_of(items["entry_id"], rows=chosen)
    several: dict[int, list[str]] = {}
    for number, entry in items.take(np.bincount(groups)[groups] > 1).rows("set", "entry_id"):
        several.setdefault(number, []).append(entry)
    for number, entries in several.items():
        columns["entry_ids"][number] = ";".join(sorted(entries))
    columns["exchange_gap"] = total(items["exchange"], groups=groups, size=size)
    return Side(items, Arrays(columns, size=size), versions)


def _repeated_movements(items: Arrays) -> Bools:
    """Mark the entries whose movement is booked more than once and not reversed."""
    mask = np.zeros(len(items), dtype=np.bool_)
    moves = np.flatnonzero(among(items["kind"], {kind.value for kind in _MOVEMENTS}))
    shared = np.bincount(items["set"][moves])[items["set"][moves]] > 1
    if not shared.any():
        return mask
    names = ("row", *_MOVEMENT, "reversal", "reverses", "entry_id")
    rows = moves[shared]
    every = pd.DataFrame({name: items[name][rows] for name in names}, index=rows)
    entries = every[every.duplicated(_MOVEMENT[:4], keep=False)]
    if entries.empty:
        return mask
    unnamed = entries[entries["reversal"] & entries["reverses"].eq("")]
    # An id names an entry of its own account only, so a reversal reaches no other set.
    reversed_ids = pd.MultiIndex.from_frame(entries.loc[entries["reversal"], ["set", "reverses"]])
    reversed_ = pd.MultiIndex.from_frame(entries[["set", "entry_id"]]).isin(reversed_ids)
    not_reversed = entries[~entries["reversal"] & ~reversed_]
    times = not_reversed.groupby(_MOVEMENT)["row"].transform("size")
    taken_back = unnamed.groupby(_MOVEMENT[:4]).size().rename("taken_back").reset_index()
    joined = not_reversed[_MOVEMENT[:4]].merge(taken_back, on=_MOVEMENT[:4], how="left")
    left = times.to_numpy() - joined["taken_back"].fillna(0).to_numpy(dtype=np.int64)
    mask[not_reversed.index.to_numpy()[left > 1]] = True
    return mask


def open_since(items: Arrays, *, size: int) -> Ints:
    """Return when the first entry of each set was booked that no reversal takes back.

    New entries never move this instant, so a break that only the ledger has grows old however many
    entries follow. Where all entries cancel out, it is the latest; NO_INSTANT without any.

    Args:
        items: see ledger_side.ledger_items, with the set of each entry.
        size: number of sets.
    """
    groups, at = items["set"], items["booked_at"]
    counts = ~_taken_back(items) & (items["net"] != 0)
    first = np.full(size, _LATER, dtype=np.int64)
    np.minimum.at(first, groups[counts], at[counts])
    return np.where(first == _LATER, latest(at, groups=groups, size=size), first)


def _taken_back(items: Arrays) -> Bools:
    """Mark entries that a reversal of the same amount takes back, and those reversals."""
    mask = np.zeros(len(items), dtype=np.bool_)
    reversal = items["reversal"]
    if not reversal.any():
        return mask
    at = np.flatnonzero(np.isin(items["set"], items["set"][reversal]))
    names = (*_ALIKE, "booked_at", "entry_id", "reversal", "reverses")
    inside = pd.DataFrame({"at": at, **{name: items[name][at] for name in names}})
    inside = inside.sort_values(["booked_at", "entry_id"], kind="stable")
    back, plain = inside[inside["reversal"]], inside[~inside["reversal"]]
    named = back[back["reverses"].ne("")].drop_duplicates(["set", "reverses"])
    pairs = named.merge(plain, left_on=[*_ALIKE, "reverses"], right_on=[*_ALIKE, "entry_id"])
    mask[pairs["at_x"]] = mask[pairs["at_y"]] = True
    plain = plain[~plain["at"].isin(pairs["at_y"])]
    unnamed = back[back["reverses"].eq("")]
    counted = [each.assign(nth=each.groupby(_ALIKE).cumcount()) for each in (unnamed, plain)]
    pairs = counted[0].merge(counted[1], on=[*_ALIKE, "nth"])
    mask[pairs["at_x"]] = mask[pairs["at_y"]] = True
    return mask


CLOSERS = (EntryType.WRITE_OFF, EntryType.ADJUSTMENT)
"""Types of entries that may close a group that they name."""


@dataclass(slots=True)
class ClosingEntries:
    """The entries that may close a group, by the name that they refer to."""

    signed: Ints
    """Amount of every ledger entry, minor units; a reversal is negated."""
    named: dict[tuple[AccountKey, str], list[int]] = field(default_factory=dict)
    """Account key and name -> rows of the ledger."""
    used: set[int] = field(default_factory=set)

    def take(self, labels: Iterable[str], *, of: AccountKey, gap: int) -> list[int]:
        """Claim the entries under the first name whose sum equals `gap` in size; [] if none."""
        for label in labels:
            own = [row for row in self.named.get((of, label), ()) if row not in self.used]
            if own and abs(sum(self.signed[own].tolist())) == abs(gap):
                self.used |= {*own}
                return own
        return []


def closing_entries(ledger: pd.DataFrame | None, *, among: Bools | None = None) -> ClosingEntries:
    """Collect the entries that may close a group.

    Args:
        ledger: LEDGER_COLUMNS.
        among: mask of the entries that may; None: all.
    """
    if ledger is None:
        return ClosingEntries(np.zeros(0, dtype=np.int64))
    mine = is_base_type(ledger["entry_type"], *CLOSERS)
    rows = np.flatnonzero(mine if among is None else mine & among)
    if not rows.size:
        return ClosingEntries(np.zeros(0, dtype=np.int64))
    rows = rows[entry_versions(ledger)[rows] == NEW]
    currency, amount, _ = booked(ledger)
    back = equals(ledger["entry_type"], *(f"{kind}{REVERSAL_SUFFIX}" for kind in CLOSERS))
    closing = ClosingEntries(np.where(back, -amount, amount))
    columns = [texts(ledger[name])[rows].tolist() for name in ("merchant_id", "account_id")]
    columns.append(texts(currency)[rows].tolist())
    labels = [texts(ledger[name])[rows].tolist() for name in ("order_no", "reference_no")]
    for row, merchant, account, unit, *names in zip(rows.tolist(), *columns, *labels, strict=True):
        for label in {*names} - {""}:
            closing.named.setdefault(((merchant, account, unit), label), []).append(row)
    return closing

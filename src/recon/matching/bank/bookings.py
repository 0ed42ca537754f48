"""The books' side of the bank, judged: what arrived and is not booked, or booked and not there.

Only where `[ledger] bank = true`, a ledger and statements are given. A group whose sides differ
waits while what is young on either side may explain it. A break stands on the break that the
pay-out has already, as a flag; where it has none it is BANK_NOT_BOOKED.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.arrived_groups import ArrivedGroup, arrived_groups, compared_entries
from recon.matching.bank.result import BankResult
from recon.matching.breaks.found_rows import flags_in_order, found_of, next_id
from recon.matching.breaks.result import BANKED
from recon.matching.breaks.result_rows import NO_AMOUNT
from recon.matching.cash.cash_findings import uneven_since
from recon.matching.causes.proposed_journals import OF_BANK
from recon.matching.frames.arrays import Arrays, text_column
from recon.matching.frames.sources import Previous, Sources
from recon.matching.judging.severity import due, microseconds
from recon.model.business_date import Grace, midnight
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag, SetState

BANKED_COLUMNS = (
    *("merchant_id", "account_id", "currency", "key", "name", "arrived", "booked", "effect"),
    *("state", "flags", "result_id"),
)
_AMOUNTS = frozenset({"arrived", "booked", "effect"})


@dataclass(frozen=True, slots=True)
class Booking:
    """One group, judged; minor units."""

    group: ArrivedGroup
    identity: str
    """The id of its break: of a pay-out the same as that of the books and of the bank."""
    state: SetState
    flags: tuple[str, ...]
    since: str
    """The first day after which it was never even again."""
    due_at: int
    """When the last of what is young is not young any more, microseconds."""

    @property
    def effect(self) -> int:
        """What arrived less what is booked."""
        return self.group.arrived - self.group.booked


@dataclass(frozen=True, slots=True)
class Bookings:
    """The books' side of the bank."""

    every: tuple[Booking, ...]
    compared: frozenset[tuple[str, str, str]]
    """Merchant, account and number of the entries that are held against statements."""
    reopens: Mapping[str, str]
    found: Arrays
    """FOUND; a group that agrees is told with its entries."""

    def broken(self) -> Iterator[Booking]:
        """Those that are breaks."""
        return (one for one in self.every if one.state is SetState.BREAK)


def judge_bookings(
    sources: Sources,
    *,
    bank: BankResult | None,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> Bookings | None:
    """The groups, judged; None where the books do not have what arrives at the bank."""
    if not rules.ledger.bank or bank is None or sources.ledger is None:
        return None
    groups = arrived_groups(sources.ledger, bank=bank, rules=rules)
    closed = previous.closed if previous is not None else frozenset()
    every, reopens = [], {}
    for group in groups:
        identity, last = next_id((*group.holder[:2], group.key), closed=closed)
        one = _judged(group, identity=identity, bank=bank, rules=rules, as_of=as_of)
        every.append(one)
        if last and one.state is SetState.BREAK:
            reopens[identity] = last
    ordered = sorted(every, key=lambda one: (one.group.holder, one.group.key))
    found = found_of(map(_row, ordered))
    return Bookings((*ordered,), compared_entries(groups), reopens, found)


def _judged(
    group: ArrivedGroup, *, identity: str, bank: BankResult, rules: Rules, as_of: datetime
) -> Booking:
    gap = group.arrived - group.booked
    if group.apart or not gap:
        flags = (Flag.NOT_COMPARED.value,) if group.apart else ()
        return Booking(group, identity, SetState.MATCHED, flags, "", 0)
    if group.closers:
        return Booking(group, identity, SetState.MATCHED, (Flag.WRITTEN_OFF.value,), "", 0)
    calendar = rules.business_calendar
    days = [
        microseconds(midnight(date.fromisoformat(day), zone=calendar.zone))
        for day, _ in group.items
    ]
    ends = _ends(days, rules=rules)
    young = [(-amount, end) for (_, amount), end in zip(group.items, ends, strict=True)]
    cover = bank.judged.covers.get(group.bank)
    covered = "" if cover is None else cover.to_day
    now = microseconds(as_of)
    (later,) = _ends([now], rules=rules)
    ends = _ends([entry.at for entry in group.entries], rules=rules)
    for entry, end in zip(group.entries, ends, strict=True):
        # Of a day that no statement tells of yet nothing can be missing at the bank.
        young.append((entry.amount, later if entry.day > covered else end))
    open_ones = [(amount, end) for amount, end in young if end > now]
    low = sum(min(0, -amount) for amount, _ in open_ones)
    high = sum(max(0, -amount) for amount, _ in open_ones)
    if open_ones and low <= gap <= high:
        due_at = max(end for _, end in open_ones)
        return Booking(group, identity, SetState.PENDING, (), "", due_at)
    moves = [*group.items, *((entry.day, -entry.amount) for entry in group.entries)]
    flags = (Flag.BOOKED_DIFFERS.value,) if group.booked else ()
    return Booking(group, identity, SetState.BREAK, flags, uneven_since(moves), 0)


def _ends(starts: list[int], *, rules: Rules) -> list[int]:
    """When each of some instants is not young any more."""
    grace = Grace.parse(rules.grace.gateway_to_ledger)
    at = np.array(starts, dtype=np.int64)
    ends: list[int] = due(at, grace=grace, calendar=rules.business_calendar).tolist()
    return ends


def banked_frame(bookings: Bookings | None) -> dict[str, pd.DataFrame]:
    """BANKED_COLUMNS under the name of the file; none where nothing was compared."""
    if bookings is None:
        return {}
    rows = [_cells(one) for one in bookings.every]
    columns = {
        name: pd.Series([row[name] for row in rows], dtype="int64")
        if name in _AMOUNTS
        else text_column([row[name] for row in rows])
        for name in BANKED_COLUMNS
    }
    return {BANKED: pd.DataFrame(columns)}


def _cells(one: Booking) -> dict[str, Any]:
    merchant, account, currency = one.group.holder
    return {
        "merchant_id": merchant,
        "account_id": account,
        "currency": currency,
        "key": one.group.key,
        "name": " ".join(one.group.batches),
        "arrived": one.group.arrived,
        "booked": one.group.booked,
        "effect": one.effect,
        "state": one.state.value,
        "flags": ";".join(one.flags),
        "result_id": one.identity,
    }


LEG = OF_BANK
"""Of effects: what arrived at the bank less what is booked of it."""


def with_bookings(matches: pd.DataFrame, *, bookings: Bookings | None) -> pd.DataFrame:
    """The matches, which say of each entry whether it is held against the bank."""
    if bookings is None or not bookings.compared:
        return matches
    names = ("merchant_id", "account_id", "entry_id", "rule", "flags")
    flags = [
        Flag.WITH_BANK.value
        if rule == Flag.NOT_COMPARED and (merchant, account, entry) in bookings.compared
        else words
        for merchant, account, entry, rule, words in zip(
            *(matches[name].tolist() for name in names), strict=True
        )
    ]
    return matches.assign(flags=pd.Series(flags, index=matches.index, dtype=matches["flags"].dtype))


def _row(one: Booking) -> dict[str, Any]:
    """A group as a row of the result."""
    merchant, account, currency = one.group.holder
    broken = one.state is SetState.BREAK
    return {
        "id": one.identity,
        "merchant_id": merchant,
        "account_id": account,
        "currency": currency,
        "state": one.state.value,
        "code": BreakCode.BANK_NOT_BOOKED.value if broken else "",
        "flags": flags_in_order(one.flags),
        "entry_id": one.group.key,
        "leg": LEG,
        "effect": one.effect,
        # What waits is counted from its own file: neither gateway nor orders differ by it.
        "effect_orders": 0 if broken else NO_AMOUNT,
        "effect_ledger": one.effect if broken else NO_AMOUNT,
        "bank_amount": one.group.arrived,
        "exposure": abs(one.effect),
        "since": one.since,
        "due_at": one.due_at,
        "expected_side": "bank" if abs(one.group.arrived) < abs(one.group.booked) else "ledger",
        "reason": booking_reason(one) if broken else "",
        "about": " ".join(one.group.batches) if broken else "",
        "part": "bank",
    }


def booking_reason(one: Booking) -> str:
    """Why it is open, in a sentence."""
    arrived, booked, gap = (
        f"{format_minor_units(abs(amount), currency=one.group.holder[2])} {one.group.holder[2]}"
        for amount in (one.group.arrived, one.group.booked, one.effect)
    )
    what = _what(one)
    if not one.group.booked:
        nothing = "the books have nothing of it at the bank"
        return f"{what}: the bank has {arrived}, {nothing}, since {one.since}."
    if not one.group.arrived:
        nothing = "and the bank has nothing of it"
        return f"{what}: the books have {booked} at the bank, {nothing}, since {one.since}."
    return (
        f"{what}: the bank has {arrived}, the books have {booked} of it at the bank, {gap} apart "
        f"since {one.since}."
    )


def _what(one: Booking) -> str:
    if one.group.batches:
        word = "Batch" if len(one.group.batches) == 1 else "Batches"
        return f"{word} {' and '.join(one.group.batches)}"
    if one.group.finding is not None:
        (receipt,) = one.group.finding.receipts
        return f"Entry {receipt.entry_no} of statement {receipt.statement_no}"
    return "All that arrived and that no entry of the books names"

"""Turns cash groups and held amounts into rows of the result."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import HELD_COLUMNS
from recon.matching.breaks.result_rows import FOUND, NO_AMOUNT, Comparison, identified
from recon.matching.cash.batches import (
    BEYOND,
    ITEM,
    NO_PAYOUT,
    OPENING,
    OTHER_CURRENCY,
    RESERVE,
    UNSURE,
    BatchOf,
    Listed,
    listed,
    unsure_batches,
)
from recon.matching.cash.ledger_groups import (
    BEFORE_LEDGER,
    FEES,
    PAYOUTS,
    RESERVES,
    UNASSIGNED,
    LedgerGroups,
    grouped,
    midnights,
    uneven_since,
)
from recon.matching.classifying.grace import due, is_ahead
from recon.matching.classifying.sentences import Clause, amount_of
from recon.matching.classifying.table import Unverified
from recon.matching.frames.arrays import Arrays, Column, columns_of, filled, stacked
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints, latest, present, total
from recon.matching.frames.sources import Basis, Sources, frame_of
from recon.matching.frames.total_rows import ACCOUNT_KEY, AccountKey, added, sums
from recon.matching.frames.versions import NEW
from recon.matching.sides.ledger_side import GROUPED, booked_forward, entry_versions, is_base_type
from recon.matching.sides.settlement_side import is_payout
from recon.model.business_date import Grace, day_text
from recon.model.gateway_holds import BEFORE_FIRST, FeesCharged, GatewayHolds, HeldBalance, Holding
from recon.model.terms import EntryType, Flag

LONG_PAST = "1970-01-01"
ITEM_SOURCES: Mapping[str, str] = {FEES: "fees", RESERVES: "reserves", PAYOUTS: "payouts"}
"""Kind of a group -> the source that its lines count as, account of its journals, its plural."""


_FIXED = {"rule": "group", "leg": "ledger", "effect_orders": 0}
"""`rule` of matches: the group agrees, or was written off."""
_OF_BOTH: Mapping[str, Clause] = {
    "name": lambda facts: str(facts.name),
    "since": lambda facts: day_text(facts.since),
    "exposure": amount_of("exposure", unsigned=True),
}
"""Clauses that sentences of groups and of held-back money may use."""


def group_of(kind: str, *, name: str) -> str:
    """Return a group's name as shown to people."""
    if kind not in ITEM_SOURCES:
        return name
    several = ITEM_SOURCES[kind]
    return f"{several} of {name}" if name else f"all {several} since the opening"


_GROUPS = Comparison(
    "groups",
    facts={
        "kind": str,
        **dict.fromkeys(("differs", "settled", "booked", "settled_less"), bool),
        **dict.fromkeys(("before", "over_released", "closed_ledger", "late_ledger"), bool),
    },
    more={"settled": int, "booked": int},
    clauses={
        **_OF_BOTH,
        "group": lambda facts: group_of(facts.kind, name=facts.name),
        "settled": amount_of("settled"),
        "booked": amount_of("booked"),
        "effect": amount_of("effect", unsigned=True),
        "arrived": amount_of("settled", unsigned=True),
        "booked_there": amount_of("booked", unsigned=True),
    },
)
"""`differs`: both sides are compared and are not the same; `settled`: it has a settlement line;
`booked`: its entries do not sum to 0; `settled_less`: the lines sum to less than the entries;
`before`: it was settled before the ledger begins; `late_ledger`: recent lines and entries do not
explain the difference."""


def findings_of_groups(
    ledger_groups: LedgerGroups,
    *,
    listed: Iterable[Listed],
    unsure: set[BatchOf],
    covered: bool,
    basis: Basis,
) -> Arrays:
    """Return one row of result_rows.FOUND per group.

    Args:
        ledger_groups: the groups.
        listed: what the gateway holds; a reserve below 0 was released too far.
        unsure: the batches with a line that could not be read.
        covered: whether a ledger was given.
        basis: the instant and the rules.
    """
    groups, size = ledger_groups.groups, len(ledger_groups.groups)
    settled, booked = groups["settled"], groups["booked"]
    gap, before = settled - booked, groups["name"] == BEFORE_LEDGER
    compared = ~before & covered
    over = np.where(compared, _over_released(groups, listed=listed), 0)
    effect = gap if covered else np.full(size, NO_AMOUNT)
    return found_of_groups(
        ledger_groups,
        facts={
            "differs": (gap != 0) & compared,
            "before": before & covered,
            "over_released": over > 0,
            "unverified": Unverified.BATCH_QUARANTINED
            * _unsure(ledger_groups, unsure=unsure, rules=basis.rules),
        },
        flags={Flag.NOT_COMPARED: np.full(size, not covered)},
        ends=_ends(ledger_groups, basis=basis),
        basis=basis,
        names=groups["name"].tolist(),
        columns={
            **_FIXED,
            "gateway_amount": np.where(groups["settled_items"] > 0, settled, NO_AMOUNT),
            "ledger_amount": np.where(groups["booked_items"] > 0, booked, NO_AMOUNT),
            "effect": effect,
            "effect_ledger": effect,
            "exposure": np.maximum(np.abs(gap), over),
            "part": [ITEM_SOURCES[kind] for kind in groups["kind"].tolist()],
            "about": [
                name or group_of(kind, name="") for kind, name in groups.rows("kind", "name")
            ],
        },
    )


def found_of_groups(
    ledger_groups: LedgerGroups,
    *,
    facts: Mapping[str, Column],
    flags: Mapping[Flag, Bools],
    ends: tuple[Ints, Ints],
    basis: Basis,
    names: Sequence[str],
    columns: Mapping[str, Any],
) -> Arrays:
    """Return one row of result_rows.FOUND per group, from facts that differ by kind of comparison.

    Args:
        ledger_groups: the groups.
        facts: `differs`, `before`, `over_released` and `unverified`.
        flags: masks of the flags that no row of codes.toml sets.
        ends: when the grace of each row of `settled` and of `booked` ends, microseconds.
        basis: the instant and the rules.
        names: names of the groups for their sentences.
        columns: other columns of their rows.
    """
    groups, size, now = ledger_groups.groups, len(ledger_groups.groups), basis.now
    closed = np.zeros(size, dtype=np.bool_)
    closed[[*ledger_groups.closed]] = True
    low, high = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    due_at = np.full(size, NO_INSTANT, dtype=np.int64)
    for items, end, sign in (
        (ledger_groups.settled, ends[0], 1),
        (ledger_groups.booked, ends[1], -1),
    ):
        young = end > now
        amounts = np.where(young, sign * items["amount"], 0)
        moved: Ints = total(amounts, groups=items["group"], size=size)
        low, high = low + np.minimum(0, moved), high + np.maximum(0, moved)
        mine = np.where(young, end, NO_INSTANT)
        due_at = np.maximum(due_at, latest(mine, groups=items["group"], size=size))
    settled, booked = groups["settled"], groups["booked"]
    gap, over = settled - booked, facts["over_released"]
    since = uneven_since(ledger_groups, rows=facts["differs"] | over, zone=basis.calendar.zone)
    known = {
        "kind": groups["kind"],
        "settled": groups["settled_items"] > 0,
        "booked": booked != 0,
        "settled_less": np.abs(settled) < np.abs(booked),
        "closed_ledger": closed,
        "late_ledger": (gap < low) | (gap > high),
    }
    return _GROUPS.found(
        {**known, **facts},
        columns={
            **{name: groups[name] for name in (*ACCOUNT_KEY, "key")},
            # The key of the group: it may have as many entries as there are payments.
            "entry_id": groups["key"],
            "since": since,
            "due_at": due_at,
            **columns,
        },
        # Positive: charged, kept or paid out; below 0 where it was given back.
        more={"name": names, "settled": -settled, "booked": -booked},
        flags={**flags, Flag.DATE_AHEAD: _has_dates_ahead(ledger_groups, basis=basis)},
    )


_HELD = Comparison(
    "held",
    facts={"what": str, "late_held_back": bool},
    clauses=_OF_BOTH,
)


def findings_of_held(listed: Iterable[Listed], *, covered: bool, basis: Basis) -> Arrays:
    """Return one row of result_rows.FOUND per listed amount, without reserves and opening amounts.

    Of a batch paid out in another currency than its lines, only the payout is reported.
    """
    every = [held for held in listed if held.what not in {OPENING, RESERVE}]
    foreign = {_batch_of(held) for held in every if held.what == OTHER_CURRENCY}
    rows = [held for held in every if held.what != NO_PAYOUT or _batch_of(held) not in foreign]
    what = np.array([held.what for held in rows], dtype=object)
    days = np.array([held.settled_on for held in rows], dtype=object)
    amounts = np.array([held.amount for held in rows], dtype=np.int64)
    due_at = due(
        midnights(days_not_ahead(days, basis=basis), zone=basis.calendar.zone),
        grace=Grace.parse(basis.rules.grace.held_back),
        calendar=basis.calendar,
    )
    keys = [
        f"{'beyond' if held.what == BEYOND else 'held'}:{held.currency}:{held.batch_id}"
        for held in rows
    ]
    batches = [held.batch_id for held in rows]
    effect = 0 if covered else NO_AMOUNT
    return _HELD.found(
        {
            "what": what,
            "late_held_back": due_at <= basis.now,
            "unverified": Unverified.BATCH_QUARANTINED * (what == UNSURE),
        },
        columns={
            **_FIXED,
            **{name: [getattr(held, name) for held in rows] for name in ACCOUNT_KEY},
            "key": keys,
            "entry_id": keys,
            "effect": effect,
            "effect_ledger": effect,
            "exposure": np.abs(amounts),
            "since": days,
            "due_at": due_at,
            "owed_to": np.where(amounts > 0, "merchant", "none"),
            "about": batches,
        },
        more={"name": batches},
        flags={Flag.DATE_AHEAD: days > basis.last_day},
    )


def _batch_of(held: Listed) -> tuple[str, str, str]:
    return held.merchant_id, held.account_id, held.batch_id


def _over_released(groups: Arrays, *, listed: Iterable[Listed]) -> Ints:
    """Return the reserve released beyond what was ever kept, for groups of reserves."""
    below: dict[AccountKey, int] = {
        held.account_key: -held.amount
        for held in listed
        if held.what == RESERVE and held.amount < 0
    }
    keys = groups.rows("merchant_id", "account_id", "currency", "kind")
    over = [below.get((*key,), 0) if kind == RESERVES else 0 for *key, kind in keys]
    return np.array(over, dtype=np.int64)


def _unsure(ledger_groups: LedgerGroups, *, unsure: set[BatchOf], rules: Rules) -> Bools:
    """Mark groups with a line that could not be read.

    For payouts, and fees by batch, the group of its batch; else those of its account and currency.
    Entries of a batch that no line reports are in the group of entries that name no batch.
    """
    groups, lines = ledger_groups.groups, ledger_groups.settled
    if not unsure:
        return np.zeros(len(groups), dtype=np.bool_)
    by_batch = {PAYOUTS: "", **({FEES: UNASSIGNED} if rules.ledger.fees_per == "batch" else {})}
    read = {*lines.rows(*ACCOUNT_KEY, "name", "kind")}
    accounts = {held[:3] for held in unsure}
    unreported = {
        kind: {held[:3] for held in unsure if (*held, kind) not in read} for kind in by_batch
    }
    masks = []
    for *of_account, kind, name in groups.rows(*ACCOUNT_KEY, "kind", "name"):
        mine = (
            unreported.get(kind, accounts)
            if name == by_batch.get(kind, name)
            else set[AccountKey]()
        )
        in_any_currency = (of_account[0], of_account[1], "")
        is_of_batch = kind in by_batch and (*of_account, name) in unsure
        masks.append(is_of_batch or (*of_account,) in mine or in_any_currency in mine)
    return np.array(masks, dtype=np.bool_)


def _ends(ledger_groups: LedgerGroups, *, basis: Basis) -> tuple[Ints, Ints]:
    """Return when the grace of each line and each entry ends; none runs from a date far ahead."""
    rules, calendar, booked = basis.rules, basis.calendar, ledger_groups.booked
    grace = Grace.parse(rules.grace.gateway_to_ledger)
    days = days_not_ahead(ledger_groups.settled["day"], basis=basis)
    at = np.where(is_ahead(booked["at"], now=basis.now), NO_INSTANT, booked["at"])
    if rules.ledger.fees_per == "month":
        # The grace of a month's fees runs from the month's last day.
        days = np.where(ledger_groups.settled["kind"] == FEES, _month_ends(days), days)
        is_fee = booked["kind"] == FEES
        months = days_not_ahead(np.where(is_fee, booked["name"], LONG_PAST), basis=basis)
        at = np.where(is_fee, midnights(_month_ends(months), zone=calendar.zone), at)
    settled_at = midnights(days, zone=calendar.zone)
    settled, entries = (due(since, grace=grace, calendar=calendar) for since in (settled_at, at))
    return settled, entries


def _month_ends(days: Column) -> Column:
    """Return the last day of the month of each day or month."""
    months = pd.PeriodIndex([day[:7] for day in days.tolist()], freq="M")
    return months.asfreq("D", how="END").strftime("%Y-%m-%d").to_numpy(dtype=object)


def days_not_ahead(days: Column, *, basis: Basis) -> Column:
    """Return the days or months with those too far ahead replaced by LONG_PAST."""
    return np.where(days > basis.last_day, LONG_PAST, days).astype(object)


def _has_dates_ahead(ledger_groups: LedgerGroups, *, basis: Basis) -> Bools:
    """Mark the groups that have a date too far ahead."""
    settled, booked, size = ledger_groups.settled, ledger_groups.booked, len(ledger_groups.groups)
    wrong = is_ahead(booked["at"], now=basis.now)
    both = [(settled["day"] > basis.last_day, settled), (wrong, booked)]
    masks = [present(mask, groups=items["group"], size=size) for mask, items in both]
    return masks[0] | masks[1]


@dataclass(frozen=True)
class CashResult:
    """The classified fees, reserves, payouts and held amounts."""

    ledger_groups: LedgerGroups
    listed: tuple[Listed, ...]
    found: Arrays
    """FOUND; first the rows of the groups, in their order."""
    reopens: Mapping[str, str]


def with_groups_marked(sources: Sources, *, rules: Rules) -> Sources:
    """Return the sources with column GROUPED: whether a ledger entry belongs to a group."""
    ledger_groups = grouped(sources, rules=rules)
    if ledger_groups is None or sources.ledger is None:
        return sources
    mask = np.zeros(len(sources.ledger), dtype=np.bool_)
    mask[ledger_groups.ledger_rows()] = True
    return replace(sources, ledger=sources.ledger.assign(**{GROUPED: mask}))


def classify_cash(
    sources: Sources, *, basis: Basis, used: Collection[str] = ()
) -> CashResult | None:
    """Classify the groups and the held amounts; None where no settlement was given.

    `used`: ids of the breaks of sets, one of which may have the key of a group.
    """
    ledger_groups = grouped(sources, rules=basis.rules)
    if ledger_groups is None:
        return None
    covered, rows = sources.ledger is not None, listed(sources, rules=basis.rules)
    unsure = unsure_batches(sources)
    parts = [
        findings_of_groups(ledger_groups, listed=rows, unsure=unsure, covered=covered, basis=basis),
        findings_of_held(rows, covered=covered, basis=basis),
    ]
    found, reopens = identified(stacked(parts, names=FOUND), previous=basis.previous, used=used)
    return CashResult(ledger_groups, rows, found, reopens)


def cash_items(result: CashResult | None) -> Iterator[Arrays]:
    """Yield the items of groups: source, its row, group, ACCOUNT_KEY, state, items, net."""
    if result is None:
        return
    ledger_groups, states = result.ledger_groups, result.found["state"]
    settled, booked = ledger_groups.settled, ledger_groups.booked
    closing = [np.full(len(rows), group) for group, rows in ledger_groups.closed.items()]
    net = np.concatenate([booked["amount"], np.zeros(sum(map(len, closing)), dtype=np.int64)])
    entries = {
        "row": ledger_groups.ledger_rows(),
        "group": np.concatenate([booked["group"], *closing]).astype(np.intp),
        "amount": net,
        "items": np.ones(len(net), dtype=np.int64),
    }
    sides = {source: settled.take(settled["kind"] == kind) for kind, source in ITEM_SOURCES.items()}
    for source, items in {**sides, "ledger": Arrays(entries, size=len(net))}.items():
        at = items["group"]
        columns = {
            **{name: ledger_groups.groups[name][at] for name in ACCOUNT_KEY},
            **{name: items[name] for name in ("row", "group", "items")},
            "source": filled(source, size=len(items)),
            "state": states[at],
            "net": items["amount"],
        }
        yield Arrays(columns, size=len(items))


def listed_frame(rows: Iterable[Listed]) -> pd.DataFrame:
    """Return what the gateway holds as a table of the result."""
    cells = sorted(tuple(getattr(row, name) for name in HELD_COLUMNS) for row in rows)
    listed = [dict(zip(HELD_COLUMNS, row, strict=True)) for row in cells]
    return frame_of(listed, columns=columns_of("held"))


_HELD_BACK = frozenset({OPENING, ITEM})
"""Kinds that paid-out batches leave; what the gateway owed before the first line is the oldest."""


def gateway_holds(
    held: pd.DataFrame, *, sources: Sources, cash: CashResult | None = None
) -> GatewayHolds | None:
    """Return payable, held back and reserve as listed, and the fees of lines and ledger.

    Args:
        held: HELD_COLUMNS of the result.
        sources: the lines and the entries that were compared.
        cash: the groups; fees from before the ledger begins are compared with nothing.

    Returns:
        None where no settlement was given.
    """
    if sources.settlement is None:
        return None
    charged, used = _charged(sources.settlement, cash=cash), _booked(sources.ledger)
    account_keys: list[AccountKey] = sorted({*charged, *(used or ())})
    fees = [
        FeesCharged(
            *account_key,
            charged=charged.get(account_key, 0),
            booked=None if used is None else used.get(account_key, 0),
        )
        for account_key in account_keys
    ]
    return GatewayHolds(_holdings(held), tuple(fees))


def _holdings(held: pd.DataFrame) -> tuple[Holding, ...]:
    by_account: dict[AccountKey, Holding] = {}
    for row in held.to_dict("records"):
        account_key = (row["merchant_id"], row["account_id"], row["currency"])
        known = by_account.get(account_key, Holding(*account_key))
        # Debts have a day too, but the oldest money that somebody waits for is shown.
        day = row["settled_on"] or BEFORE_FIRST
        piece = HeldBalance(int(row["amount"]), day if row["amount"] > 0 else "")
        if row["what"] == RESERVE:
            by_account[account_key] = replace(known, reserve=known.reserve + piece)
            continue
        known = replace(known, payable=known.payable + piece)
        if row["what"] in _HELD_BACK:
            known = replace(known, held_back=known.held_back + piece)
        by_account[account_key] = known
    return tuple(by_account[account_key] for account_key in sorted(by_account))


def _charged(lines: pd.DataFrame, *, cash: CashResult | None) -> Mapping[AccountKey, int]:
    every = sums(lines[~is_payout(lines)], column="fee")
    if cash is None:
        return every
    groups = cash.ledger_groups.groups
    before = groups.take((groups["name"] == BEFORE_LEDGER) & (groups["kind"] == FEES))
    rows = before.rows(*ACCOUNT_KEY, "settled")
    return added(every, {(*account_key,): amount for *account_key, amount in rows})


def _booked(ledger: pd.DataFrame | None) -> Mapping[AccountKey, int] | None:
    """Return fees less their reversals, each entry once."""
    if ledger is None:
        return None
    mine = is_base_type(ledger["entry_type"], EntryType.FEE) & (entry_versions(ledger) == NEW)
    currency, forward = booked_forward(ledger)
    columns = {name: ledger[name].to_numpy()[mine] for name in ACCOUNT_KEY[:2]}
    columns |= {"currency": currency.to_numpy()[mine], "amount": forward[mine]}
    return sums(pd.DataFrame(columns))

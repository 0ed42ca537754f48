"""The cash of a reconciliation: its groups and what is held, as rows of the result."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.movements import Fate
from recon.matching.breaks.result import (
    AMOUNT_COLUMNS,
    BREAK_COLUMNS,
    EFFECT_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
)
from recon.matching.breaks.result_rows import (
    BREAKS_SORTED_BY,
    EFFECTS_SORTED_BY,
    NO_AMOUNT,
    OPEN_SORTED_BY,
    Frames,
    business_date,
    frame_of_rows,
    id_of_text,
    instants,
)
from recon.matching.cash.batches import Listed, listed, unsure_batches
from recon.matching.cash.book_groups import BASES, PAYOUTS, BookGroups, grouped
from recon.matching.cash.cash_findings import (
    FINDING_COLUMNS,
    Clock,
    findings_of_groups,
    findings_of_held,
)
from recon.matching.cash.cash_sentences import group_of, reason_of
from recon.matching.causes.proposed_journals import BookingPart
from recon.matching.frames.arrays import Arrays, Column, filled, frame_of_cells, stacked
from recon.matching.frames.sorting import in_order
from recon.matching.frames.sources import Previous, Sources
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY
from recon.matching.judging.severity import money_at_risk, severity_of
from recon.matching.sides.ledger_side import GROUPED
from recon.model.words import BreakCode, SetState

RULE = "group"
"""Of matches: the group agrees, or was written off."""
ITEM_SOURCES: Mapping[str, str] = {"fees": "fees", "reserves": "reserves", PAYOUTS: "payouts"}
"""Kind of a group -> the source whose items its lines are."""
_JOURNAL_PARTS = {"fees": "fees", "reserves": "reserves", PAYOUTS: "payouts"}


@dataclass(frozen=True)
class CashResult:
    """Fees, reserves, pay-outs and what the gateway holds, judged."""

    books: BookGroups
    listed: tuple[Listed, ...]
    findings: Arrays
    """FINDING_COLUMNS and `id`; those of the groups first, in their order."""
    reopens: Mapping[str, str] = field(default_factory=dict)


def with_groups_marked(sources: Sources, *, rules: Rules) -> Sources:
    """The sources, the ledger saying of each entry whether it stands in a group."""
    books = grouped(sources, rules=rules)
    if books is None or sources.ledger is None:
        return sources
    marks = np.zeros(len(sources.ledger), dtype=np.bool_)
    marks[books.ledger_rows()] = True
    return replace(sources, ledger=sources.ledger.assign(**{GROUPED: marks}))


def judge_cash(
    sources: Sources,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
    taken: Collection[str] = (),
) -> CashResult | None:
    """The groups and what is held; None where no settlement was given.

    `taken`: ids of the breaks of sets, one of which may bear the key of a group.
    """
    books = grouped(sources, rules=rules)
    if books is None:
        return None
    clock = Clock(as_of, rules, sources.ledger is not None)
    rows = listed(sources, rules=rules)
    unsure = unsure_batches(sources)
    parts = [
        findings_of_groups(books, listed=rows, unsure=unsure, clock=clock),
        findings_of_held(rows, clock=clock),
    ]
    findings = stacked(parts, names=FINDING_COLUMNS)
    ids, reopens = _ids(findings, previous=previous, taken=taken)
    return CashResult(books, rows, findings.assign(id=ids), reopens)


def with_cash(
    frames: Frames,
    result: CashResult | None,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> Frames:
    """The frames with the rows of groups and of what is held.

    Args:
        frames: of the sets.
        result: of the cash.
        rules: severity and calendar.
        as_of: the instant that is judged.
        previous: since when a break is known.
    """
    if result is None or not len(result.findings):
        return frames
    shown = _shown(result.findings)
    state = shown["state"]
    broken = shown.take(state == SetState.BREAK.value)
    effects = broken.take((broken["effect"] != 0) & (broken["effect"] != NO_AMOUNT))
    effects = effects.assign(
        break_id=effects["id"], leg=filled("ledger", size=len(effects)), amount=effects["effect"]
    )
    broken_rows = _broken(broken, rules=rules, as_of=as_of, previous=previous)
    calm = {
        name: _added(getattr(frames, name), shown.take(state == own), names=names, by=_BY)
        for name, (own, names) in _CALM.items()
    }
    return Frames(
        breaks=_added(frames.breaks, broken_rows, names=BREAK_COLUMNS, by=BREAKS_SORTED_BY),
        effects=_added(frames.effects, effects, names=EFFECT_COLUMNS, by=EFFECTS_SORTED_BY),
        **calm,
    )


_BY = OPEN_SORTED_BY
_CALM: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "matches": (SetState.MATCHED.value, MATCH_COLUMNS),
    "pending": (SetState.PENDING.value, PENDING_COLUMNS),
    "unverified": (SetState.UNVERIFIED.value, UNVERIFIED_COLUMNS),
}


def fates_of_cash(result: CashResult | None) -> dict[str, Fate]:
    """What became of every id of the cash, for the roll-forward."""
    if result is None:
        return {}
    rows = result.findings.rows("id", "state", "flags")
    return {own: Fate(state, flags, hosted=False) for own, state, flags in rows}


def cash_parts(result: CashResult | None) -> list[BookingPart]:
    """What is to be booked of each group that is a break."""
    if result is None:
        return []
    rows = result.findings.rows("id", "currency", "what", "effect", "state")
    return [
        BookingPart(own, currency, _JOURNAL_PARTS[what], effect)
        for own, currency, what, effect, state in rows
        if state == SetState.BREAK and what in BASES and effect not in {0, NO_AMOUNT}
    ]


def cash_items(result: CashResult, *, ledger: pd.DataFrame | None) -> Iterator[Arrays]:
    """The items of the groups: source, row, group, amount, net, place and how many they are.

    `row` counts as `scope_items` counts: lines of one kind among themselves, entries in the ledger.
    """
    groups = result.books.groups
    for kind, source in ITEM_SOURCES.items():
        mine = result.books.settled.take(result.books.settled["kind"] == kind)
        mine = mine.take(np.argsort(mine["row"], kind="stable")).assign(row=np.arange(len(mine)))
        yield _items(mine, groups=groups, source=source)
    entries = result.books.booked
    yield _items(_each_once(entries), groups=groups, source="ledger")
    if ledger is not None:
        for group, rows in result.books.closed.items():
            size = len(rows)
            columns = {"row": rows, "group": np.full(size, group, dtype=np.intp)}
            columns["amount"] = np.zeros(size, dtype=np.int64)
            yield _items(_each_once(Arrays(columns, size=size)), groups=groups, source="ledger")


def _each_once(entries: Arrays) -> Arrays:
    return entries.assign(items=np.ones(len(entries), dtype=np.int64))


def _items(items: Arrays, *, groups: Arrays, source: str) -> Arrays:
    at, size, net = items["group"], len(items), items["amount"]
    columns = {
        **{name: groups[name][at] for name in ACCOUNT_CURRENCY},
        "source": filled(source, size=size),
        "row": items["row"],
        "group": at,
        "amount": np.abs(net),
        "net": net,
        "items": items["items"],
    }
    return Arrays(columns, size=size)


def placed_cash(
    result: CashResult | None, *, ledger: pd.DataFrame | None, payouts: int
) -> list[Arrays]:
    """The items as places.place_items has them, with what their groups came to.

    Pay-outs are counted behind those that we asked for (`payouts`: how many).
    """
    if result is None:
        return []
    findings = result.findings
    broken = findings["state"] == SetState.BREAK.value
    ids = np.where(broken, findings["id"], "")
    return [
        items.assign(
            state=findings["state"][items["group"]],
            break_id=ids[items["group"]],
            row=items["row"] + payouts * (items["source"] == "payouts"),
        )
        for items in cash_items(result, ledger=ledger)
    ]


def _ids(
    findings: Arrays, *, previous: Previous | None, taken: Collection[str]
) -> tuple[Column, dict[str, str]]:
    """The id of each finding: of a key that closed before, or that a set has, it is the next."""
    closed = previous.closed if previous is not None else frozenset()
    others = {*taken}
    ids, reopens = [], {}
    for *holder, state in findings.rows("merchant_id", "account_id", "key", "state"):
        number, own, last = 1, "", ""
        while not own or own in closed or own in others:
            last = own if own in closed else last
            own = id_of_text("\x1f".join((*holder, str(number))))
            number += 1
        ids.append(own)
        if last and state == SetState.BREAK:
            reopens[own] = last
    return np.array(ids, dtype=object), reopens


def _shown(findings: Arrays) -> Arrays:
    """What rows of all kinds have of a finding."""
    size = len(findings)
    blank, nothing = filled("", size=size), np.full(size, NO_AMOUNT)
    return findings.assign(
        match_id=findings["id"],
        break_id=findings["id"],
        order_no=blank,
        transaction_id=blank,
        # What names the group: its entries may be as many as the payments.
        entry_id=findings["key"],
        rule=filled(RULE, size=size),
        state_orders=filled("none", size=size),
        state_gateway=filled("none", size=size),
        order_amount=nothing,
        gateway_amount=findings["settled"],
        ledger_amount=findings["booked"],
        effect_orders=np.zeros(size, dtype=np.int64),
        effect_ledger=findings["effect"],
        bank_amount=nothing,
        effect_bank=nothing,
    )


def _broken(rows: Arrays, *, rules: Rules, as_of: datetime, previous: Previous | None) -> Arrays:
    """Breaks with their age, their severity and their reason."""
    today = business_date(as_of, rules=rules)
    ages, severities, seen, reasons, about = [], [], [], [], []
    known = _known(previous)
    for row in _rows(rows):
        age = rules.business_calendar.business_days_between(
            date.fromisoformat(row["since"]), end=today
        )
        effect = 0 if row["effect"] == NO_AMOUNT else row["effect"]
        risk = money_at_risk(row["exposure"], effects=(effect,))
        codes = (BreakCode(row["code"]),)
        ages.append(age)
        severities.append(
            severity_of(
                codes, at_risk=risk, currency=row["currency"], age_days=age, rules=rules
            ).value
        )
        seen.append(known.get(row["id"], today.isoformat()))
        reasons.append(reason_of(row))
        about.append(row["name"] or group_of(row["what"], name=""))
    return rows.assign(
        age_days=np.array(ages, dtype=np.int64),
        severity=np.array(severities, dtype=object),
        first_seen=np.array(seen, dtype=object),
        reason=np.array(reasons, dtype=object),
        cause=filled("", size=len(rows)),
        about=np.array(about, dtype=object),
    )


def _rows(rows: Arrays) -> Iterator[dict[str, Any]]:
    names = [*rows.columns]
    for cells in rows.rows(*names):
        yield dict(zip(names, cells, strict=True))


def _known(previous: Previous | None) -> dict[str, str]:
    """Since when each break of an earlier run is known."""
    if previous is None:
        return {}
    seen = zip(previous.breaks["break_id"], previous.breaks["first_seen"], strict=True)
    return {**previous.away, **{str(own): str(day)[:10] for own, day in seen}}


def _added(
    frame: pd.DataFrame, rows: Arrays, *, names: tuple[str, ...], by: list[str]
) -> pd.DataFrame:
    """A frame of the result with more rows, in its order."""
    if not len(rows):
        return frame
    amounts = tuple(name for name in AMOUNT_COLUMNS if name in names)
    more = frame_of_rows(rows, names=names, amounts=amounts)
    if "due_at" in names:
        more["due_at"] = instants(rows["due_at"])
    for name in names:
        if more[name].dtype != frame[name].dtype:
            more[name] = more[name].astype(frame[name].dtype)
    if not len(frame):
        return in_order(more, by=by)
    return in_order(pd.concat([frame, more], ignore_index=True), by=by)


def listed_frame(rows: Iterable[Listed]) -> pd.DataFrame:
    """What the gateway holds, as a table of the result."""
    names = ("merchant_id", "account_id", "currency", "what", "batch_id", "settled_on", "amount")
    cells = sorted(tuple(getattr(row, name) for name in names) for row in rows)
    listed = [dict(zip(names, row, strict=True)) for row in cells]
    return frame_of_cells(listed, names=names, numbers={"amount"})

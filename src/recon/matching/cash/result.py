"""The cash of a reconciliation: its groups and what is held, as rows of the result."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.found_rows import FOUND, next_id
from recon.matching.cash.batches import Listed, listed, unsure_batches
from recon.matching.cash.book_groups import BookGroups, grouped
from recon.matching.cash.cash_findings import (
    ITEM_SOURCES,
    Clock,
    findings_of_groups,
    findings_of_held,
)
from recon.matching.frames.arrays import Arrays, filled, frame_of_cells, stacked
from recon.matching.frames.sources import Previous, Sources
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY
from recon.matching.sides.ledger_side import GROUPED
from recon.model.words import SetState


@dataclass(frozen=True)
class CashResult:
    """Fees, reserves, payouts and what the gateway holds, judged."""

    books: BookGroups
    listed: tuple[Listed, ...]
    found: Arrays
    """FOUND; those of the groups first, in their order."""
    reopens: Mapping[str, str]


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
    findings = stacked(parts, names=FOUND)
    closed = previous.closed if previous is not None else frozenset()
    ids, reopens = [], {}
    for *key, state in findings.rows("merchant_id", "account_id", "entry_id", "state"):
        own, last = next_id(key, closed=closed, taken=taken)
        ids.append(own)
        if last and state == SetState.BREAK:
            reopens[own] = last
    found = findings.assign(id=np.array(ids, dtype=object))
    return CashResult(books, rows, found, reopens)


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

    Payouts are counted behind those that we asked for (`payouts`: how many).
    """
    if result is None:
        return []
    findings = result.found
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


def listed_frame(rows: Iterable[Listed]) -> pd.DataFrame:
    """What the gateway holds, as a table of the result."""
    names = ("merchant_id", "account_id", "currency", "what", "batch_id", "settled_on", "amount")
    cells = sorted(tuple(getattr(row, name) for name in names) for row in rows)
    listed = [dict(zip(names, row, strict=True)) for row in cells]
    return frame_of_cells(listed, names=names, numbers={"amount"})

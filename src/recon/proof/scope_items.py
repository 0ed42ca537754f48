"""Every row of every source beside its place and its net: the left side of T4 to T6.

Nothing here knows what became of a row in the result, but for repeats and superseded rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.calm.calm_sets import CalmAndLeft
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.coding import Columns, combined, is_word, placed, sums_of
from recon.matching.frames.grouping import Bools, Ints, Rows
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT, ACCOUNT_CURRENCY, Tally, as_places
from recon.matching.frames.versions import CONFLICT, NEW, Versions
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import shown
from recon.matching.sides.ledger_side import booked, is_base_type
from recon.matching.sides.orders_side import expected
from recon.matching.sides.settlement_side import of_payments, pay_outs
from recon.matching.sides.summed_lines import lines_of_rows
from recon.model.words import EntryType, KeyAnswer
from recon.proof.totals_of_settlement import paid_items

IN_SCOPE = ("orders", "gateway", "ledger", "settlement", "fees", "reserves", "payouts")
"""Sources of items, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class Scoped:
    """The rows of one source (grain: source row)."""

    source: str
    groups: Rows
    """The place of each row, by number."""
    places: list[tuple[str, ...]]
    """Merchant, account and currency."""
    net: Ints
    kept: Bools
    """Rows in scope."""
    items: Ints | None = None
    """How many items each row is; None: one."""

    def tally(self, *, rows: Bools) -> Tally:
        """How many items of these rows each place has, and their net."""
        groups, size = self.groups[rows], len(self.places)
        if self.items is None:
            counts = np.bincount(groups, minlength=size).tolist()
        else:
            counts = sums_of(self.items[rows], groups=groups, size=size).tolist()
        net = sums_of(self.net[rows], groups=groups, size=size).tolist()
        there = [number for number, count in enumerate(counts) if count]
        named = as_places(self.places)
        return Tally(
            {named[number]: counts[number] for number in there},
            {named[number]: net[number] for number in there},
        )


def scoped_items(
    sources: Sources, *, aside: CalmAndLeft, joined: Joined, places: Arrays, rules: Rules
) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """By source, the items in scope, and those that have a place or were set aside.

    What every row nets is held of one source at a time.

    Args:
        sources: the whole sources.
        aside: what was set aside of them.
        joined: what was left, in sets.
        places: where every item went.
        rules: how they were judged.
    """
    scope, claimed = {}, {}
    for scoped in _given(sources, aside=aside, joined=joined, rules=rules):
        name = scoped.source
        scope[name] = scoped.tally(rows=scoped.kept)
        claimed[name] = scoped.tally(rows=_claimed(scoped, aside=aside, places=places))
    return scope, claimed


def _claimed(scoped: Scoped, *, aside: CalmAndLeft, places: Arrays) -> Bools:
    claimed = np.zeros(len(scoped.kept), dtype=np.bool_)
    placed_rows = places["row"][places["source"] == scoped.source]
    claimed[placed_rows[placed_rows >= 0]] = True
    if scoped.source in aside.left:
        claimed[aside.calm.rows(scoped.source)] = True
    return claimed


def _given(
    sources: Sources, *, aside: CalmAndLeft, joined: Joined, rules: Rules
) -> Iterator[Scoped]:
    orders, gateway, ledger = sources.orders, sources.gateway, sources.ledger
    kept = _kept(aside, source="orders", versions=joined.orders.versions, size=len(orders))
    yield _scoped(
        "orders", orders, currency=orders["currency"], net=expected(orders).net, kept=kept
    )
    kept = _kept(aside, source="gateway", versions=joined.gateway.versions, size=len(gateway))
    kept &= is_word(gateway["answer"], KeyAnswer.FOUND)
    net = shown(gateway, rules=rules).net
    yield _scoped("gateway", gateway, currency=gateway["currency"], net=net, kept=kept)
    if ledger is not None:
        kept = _kept(aside, source="ledger", versions=joined.ledger.versions, size=len(ledger))
        currency, _, net = booked(ledger)
        net[aside.left["ledger"][joined.ledger.versions == CONFLICT]] = 0
        yield _scoped("ledger", ledger, currency=currency, net=net, kept=kept)
    if sources.settlement is not None:
        lines, kept = sources.settlement, of_payments(sources.settlement)
        net = lines["gross"].to_numpy(dtype=np.int64)
        yield _scoped("settlement", lines, currency=lines["currency"], net=net, kept=kept)
        if not sources.is_part:
            yield from _kept_of(lines)
    places, net = paid_items(sources)
    groups, known = combined(places)
    yield Scoped("payouts", groups, known, net, np.ones(len(net), dtype=np.bool_))


def _kept_of(lines: pd.DataFrame) -> Iterator[Scoped]:
    """What the gateway kept of lines: their fees, and reserves."""
    own = ~pay_outs(lines)
    fees = own & (lines["fee"] != 0).to_numpy()
    reserves = own & is_base_type(lines["entry_type"], EntryType.RESERVE)
    reserves &= (lines["gross"] != 0).to_numpy()
    for source, rows, name, sign in (("fees", fees, "fee", -1), ("reserves", reserves, "gross", 1)):
        at = np.flatnonzero(rows)
        mine = {column: lines[column].take(at) for column in ACCOUNT_CURRENCY}
        net = sign * lines[name].to_numpy(dtype=np.int64)[at]
        kept = np.ones(len(at), dtype=np.bool_)
        scoped = _scoped(source, mine, currency=mine["currency"], net=net, kept=kept)
        yield replace(scoped, items=lines_of_rows(lines)[at])


def _kept(aside: CalmAndLeft, *, source: str, versions: Versions, size: int) -> Bools:
    """Neither repeats nor superseded; what was set aside has no second row."""
    kept = np.ones(size, dtype=np.bool_)
    kept[aside.left[source]] = np.isin(versions, (NEW, CONFLICT))
    return kept


def _scoped(
    source: str, frame: Columns, *, currency: "pd.Series[str]", net: Ints, kept: Bools
) -> Scoped:
    columns = {name: frame[name] for name in ACCOUNT} | {"currency": currency}
    groups, places = placed(columns, by=ACCOUNT_CURRENCY)
    return Scoped(source, groups, places, net, kept)

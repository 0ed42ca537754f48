"""Where every item went: one place each, the ground of the totals about completeness."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.matching.classifying.outcomes import Outcomes
from recon.matching.frames.arrays import Arrays, Column, filled, frame_of_cells, stacked, texts
from recon.matching.frames.coding import combined
from recon.matching.frames.grouping import Bools, count, present, total
from recon.matching.frames.sources import Sources
from recon.matching.frames.versions import CONFLICT, NEW
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import NUMBER
from recon.matching.sides.ledger_side import GROUPED, booked, marked_as
from recon.matching.sides.orders_side import ORDER_STATES
from recon.matching.sides.settlement_side import of_payments
from recon.model.terms import OrderStatus, SetState

GROUP = ("merchant_id", "account_id", "currency")
PLACE_NAMES = (*GROUP, "source", "row", "state", "break_id", "amount", "net", "items")

EXACT = "exact"
"""Rule of a match whose legs agree without any more words."""


class Placement(NamedTuple):
    """How many items of one source and place came to one state, and what they net."""

    source: str
    state: str
    group: tuple[str, str, str]
    """GROUP."""
    items: int
    net: int


def place_items(
    joined: Joined,
    *,
    outcomes: Outcomes,
    break_sets: Mapping[int, str],
    ledger: pd.DataFrame | None,
) -> Arrays:
    """One row per item in scope of any side, payouts and settlement lines among them.

    Columns: items (1), source, row, merchant_id, account_id, currency, state, break_id ("" unless
    broken), amount (as the source states it) and net (as the legs count it), minor units.

    Args:
        joined: the sets.
        outcomes: what they came to.
        break_sets: the id of the break of each set that is one.
        ledger: for the entries that stand outside the sets.
    """
    sides = {
        "orders": joined.orders.items,
        "gateway": joined.gateway.items,
        "ledger": joined.ledger.items,
        "payouts": joined.payouts,
        "settlement": joined.settled,
    }
    states = outcomes.states()
    owner = np.where(outcomes.host >= 0, outcomes.host, np.arange(len(states)))
    ids = filled("", size=len(states))
    ids[[*break_sets]] = [*break_sets.values()]
    parts = [
        _placed(items, source=source, joined=joined).assign(
            state=states[items["set"]], break_id=ids[owner[items["set"]]]
        )
        for source, items in sides.items()
    ]
    if ledger is not None:
        parts.append(_not_compared(joined, ledger=ledger))
    return stacked(parts, names=PLACE_NAMES)


def _placed(items: Arrays, *, source: str, joined: Joined) -> Arrays:
    size, sets = len(items), items["set"]
    columns = {
        **{name: joined.sets[name][sets] for name in ("merchant_id", "account_id")},
        **{name: items[name] for name in ("row", "currency", "amount", "net")},
        "source": filled(source, size=size),
        "items": np.ones(size, dtype=np.int64),
    }
    return Arrays(columns, size=size)


def reported_by_match(
    joined: Joined, *, outcomes: Outcomes, flags: Column, sources: Sources
) -> Bools:
    """Sets of which their match says all: in each leg one plain row of the amount that it names."""
    sets, of, size = joined.sets, joined.keys.of, joined.keys.size
    plain = (outcomes.states() == SetState.MATCHED.value) & (flags == "")
    plain &= (outcomes.classified.of_each("rule") == EXACT) & (outcomes.host < 0)
    plain &= sets["order_state"] == ORDER_STATES.index(OrderStatus.PAID)
    plain &= (sets["gateway_state"] == NUMBER["paid"]) & (sets["gateway_refunded"] == 0)
    plain &= (sets["currencies"] == 1) & (sets["order_net"] > 0)
    plain &= sets["order_net"] == sets["gateway_net"]
    amounts = {"ledger": "ledger_capture", "settlement": "settled_gross"}
    for leg in ("orders", "gateway", *amounts):
        frame = getattr(sources, leg)
        if frame is None:
            continue
        rows = of_payments(frame) if leg == "settlement" else np.ones(len(frame), dtype=np.bool_)
        keyed = frame["order_no"].ne("").to_numpy(dtype=np.bool_)[rows]
        plain &= count(np.ones(len(keyed), np.bool_), groups=of[leg], size=size) == 1
        plain &= present(keyed, groups=of[leg], size=size)
        if leg in amounts:
            plain &= sets[amounts[leg]] == sets["order_net"]
    named = np.ones(len(of["instructions"]), dtype=np.bool_)
    return np.asarray(plain & ~present(named, groups=of["instructions"], size=size))


def _not_compared(joined: Joined, *, ledger: pd.DataFrame) -> Arrays:
    """Entries that stand outside the sets: matched, with nothing to be compared with."""
    outside = np.isin(joined.ledger.versions, (NEW, CONFLICT))
    outside[joined.ledger.items["row"]] = False
    outside &= ~marked_as(ledger, GROUPED)
    rows = np.flatnonzero(outside)
    size, (currency, amount, _) = len(rows), booked(ledger)
    labels = {"source": "ledger", "state": SetState.MATCHED.value, "break_id": ""}
    columns = {
        **{name: texts(ledger[name])[rows] for name in ("merchant_id", "account_id")},
        **{name: filled(label, size=size) for name, label in labels.items()},
        "row": rows,
        "currency": texts(currency)[rows],
        "amount": amount[rows],
        "net": np.zeros(size, dtype=np.int64),
        "items": np.ones(size, dtype=np.int64),
    }
    return Arrays(columns, size=size)


def placements_of(places: Arrays, *, rows: Bools | None = None) -> list[Placement]:
    """The items of all places, or of some rows of them, by source, state and place."""
    chosen = places if rows is None else places.take(rows)
    groups, keys = combined([chosen[name] for name in ("source", "state", *GROUP)])
    size = len(keys)
    items = total(chosen["items"], groups=groups, size=size).tolist()
    net = total(chosen["net"], groups=groups, size=size).tolist()
    return [
        Placement(source, state, (merchant, account, currency), count, amount)
        for (source, state, merchant, account, currency), count, amount in zip(
            keys, items, net, strict=True
        )
    ]


def sides_of(placements: list[Placement]) -> pd.DataFrame:
    """Count and amount (net) by source, account, currency and state."""
    names = ("source", *GROUP, "state", "count", "amount")
    rows = sorted(
        (placement.source, *placement.group, placement.state, placement.items, placement.net)
        for placement in placements
    )
    cells = [dict(zip(names, row, strict=True)) for row in rows]
    return frame_of_cells(cells, names=names, numbers={"count", "amount"})

"""What the exact sets add to a result: their matches, row by row, and their counts and amounts."""

import numpy as np
import pandas as pd

from recon.matching.breaks.result import MATCH_COLUMNS
from recon.matching.breaks.result_rows import identity_of, nullable
from recon.matching.exact.aside import Exact
from recon.matching.frames.arrays import Arrays, filled, stacked
from recon.matching.frames.coding import placed, sums_of
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY
from recon.model.words import OrderStatus, SetState

RULE = "exact"


def exact_matches(exact: Exact, *, sources: Sources) -> pd.DataFrame:
    """The matches of the exact sets (MATCH_COLUMNS), in no order.

    Args:
        exact: the sets.
        sources: the whole sources.
    """
    orders = sources.orders.iloc[exact.rows["orders"]].reset_index(drop=True)
    keys = [orders[name] for name in ("merchant_id", "account_id", "order_no")]
    ids = identity_of(*keys) if exact.match_ids is None else exact.match_ids
    columns = {"match_id": ids, **{str(key.name): key for key in keys}}
    columns["transaction_id"] = _transactions(exact, sources=sources)
    columns["entry_id"] = _texts(exact, sources.ledger, name="entry_id", leg="ledger")
    words = {"flags": "", "rule": RULE}
    words |= {"state_orders": OrderStatus.PAID.value, "state_gateway": OrderStatus.PAID.value}
    for name, word in words.items():
        columns[name] = pd.Series([word], dtype="str").repeat(exact.size).reset_index(drop=True)
    columns["currency"] = orders["currency"]
    everywhere, covered = np.ones(exact.size, dtype=np.bool_), "ledger" in exact.rows
    for side, given in (("order", True), ("gateway", True), ("ledger", covered)):
        columns[f"{side}_amount"] = nullable(exact.amount, given=everywhere & given)
    nothing = np.zeros(exact.size, dtype=np.int64)
    columns["effect_orders"] = nullable(nothing, given=everywhere)
    columns["effect_ledger"] = nullable(nothing, given=everywhere & covered)
    return pd.DataFrame(columns)[[*MATCH_COLUMNS]]


def _transactions(exact: Exact, *, sources: Sources) -> "pd.Series[str]":
    """The gateway's transaction, else the order's, the ledger's, the settled one."""
    frames = {
        name: getattr(sources, name) for name in ("gateway", "orders", "ledger", "settlement")
    }
    chosen = _texts(exact, frames["gateway"], name="transaction_id", leg="gateway")
    for leg in ("orders", "ledger", "settlement"):
        if chosen.ne("").all():
            break
        other = _texts(exact, frames[leg], name="transaction_id", leg=leg)
        chosen = chosen.where(chosen.ne(""), other)
    return chosen


def _texts(exact: Exact, frame: pd.DataFrame | None, *, name: str, leg: str) -> "pd.Series[str]":
    if frame is None or leg not in exact.rows:
        return pd.Series([""], dtype="str").repeat(exact.size).reset_index(drop=True)
    return frame[name].iloc[exact.rows[leg]].reset_index(drop=True)


def exact_tallies(exact: Exact, *, sources: Sources) -> Arrays:
    """Places of the exact items, many in one row (grain: source, account and currency).

    Columns as places.place_items has them: items says how many, amount and net are sums, row is
    negative.
    """
    groups, every = placed(sources.orders, by=ACCOUNT_CURRENCY)
    mine = groups[exact.rows["orders"]]
    counts = np.bincount(mine, minlength=len(every))
    net = sums_of(exact.amount, groups=mine, size=len(every))
    there = np.flatnonzero(counts)
    size = len(there)
    named = np.array([every[number] for number in there.tolist()], dtype=object).reshape(-1, 3)
    keys = Arrays(
        {
            **dict(zip(ACCOUNT_CURRENCY, named.T, strict=True)),
            "items": counts[there],
            "amount": net[there],
            "net": net[there],
            "state": filled(SetState.MATCHED.value, size=size),
            "break_id": filled("", size=size),
            "row": np.zeros(size, dtype=np.intp),
        },
        size=size,
    )
    parts = [keys.assign(source=filled(leg, size=size)) for leg in exact.rows]
    tallies = stacked(parts, names=(*keys.columns, "source"))
    return tallies.assign(row=-1 - np.arange(len(tallies)))

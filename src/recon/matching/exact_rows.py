"""What the exact sets add to a result: their matches, row by row, and their counts and amounts."""

import numpy as np
import pandas as pd

from recon.matching.coding import placed, sums_of
from recon.matching.exact import Exact
from recon.matching.result import MATCH_COLUMNS
from recon.matching.result_rows import identity_of, nullable
from recon.matching.sources import Sources
from recon.matching.total_rows import ACCOUNT_CURRENCY
from recon.model import OrderStatus, SetState

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


def exact_tallies(exact: Exact, *, sources: Sources) -> pd.DataFrame:
    """Places of the exact items, many in one row (grain: source, account and currency).

    Columns as places.place_items has them: items says how many, amount and net are sums, row is
    negative.
    """
    rows = sources.orders[ACCOUNT_CURRENCY].iloc[exact.rows["orders"]]
    groups, places = placed(rows, by=ACCOUNT_CURRENCY)
    size = len(places)
    net = sums_of(exact.amount, groups=groups, size=size)
    frame = pd.DataFrame(places, columns=ACCOUNT_CURRENCY, dtype="str")
    frame = frame.assign(items=np.bincount(groups, minlength=size), amount=net, net=net)
    frame = frame.assign(state=SetState.MATCHED.value, break_id="")
    parts = [frame.assign(source=leg) for leg in exact.rows]
    tallies = pd.concat(parts, ignore_index=True)
    return tallies.assign(row=-1 - np.arange(len(tallies)))

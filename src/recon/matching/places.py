"""Where every item went: one place each, the ground of the totals about completeness."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from recon.matching.grouping import Rows
from recon.matching.joined_sets import Joined
from recon.matching.ledger_side import ledger_items
from recon.matching.outcomes import Outcomes
from recon.matching.versions import CONFLICT, NEW, REPEAT
from recon.model import SetState

GROUP = ["merchant_id", "account_id", "currency"]
SIDES = ("orders", "gateway", "ledger")


def place_items(
    joined: Joined, *, outcomes: Outcomes, break_sets: pd.DataFrame, ledger: pd.DataFrame
) -> pd.DataFrame:
    """One row per item in scope of any side, payouts and settlement lines among them.

    Columns: items (1), source, row, merchant_id, account_id, currency, state, break_id ("" unless
    broken), amount (as the source states it) and net (as the legs count it), minor units.
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
    ids = np.full(len(states), "", dtype=object)
    ids[break_sets["set"].to_numpy()] = break_sets["break_id"].to_numpy(dtype=object)
    shown = ["set", "row", "currency", "amount", "net"]
    values = pd.concat([items[shown] for items in sides.values()], ignore_index=True)
    numbers = values.pop("set").to_numpy()
    place = joined.sets[["merchant_id", "account_id"]].iloc[numbers].reset_index(drop=True)
    part = pd.concat([place, values], axis=1)
    part["source"] = np.repeat([*sides], [len(items) for items in sides.values()])
    part["state"] = states[numbers]
    part["break_id"] = ids[owner[numbers]]
    places = pd.concat([part, _not_compared(joined, ledger=ledger)], ignore_index=True)
    return places.assign(items=np.int64(1))


def with_exact(
    places: pd.DataFrame, *, left: Mapping[str, Rows], tallies: pd.DataFrame
) -> pd.DataFrame:
    """The places with source rows counted in the whole sources, and those of the exact sets.

    Args:
        places: what was classified (see place_items).
        left: for each leg, the rows of the whole source that were left for classification.
        tallies: see exact_rows.exact_tallies; `row` is negative in them.
    """
    row = places["row"].to_numpy(dtype=np.int64).copy()
    for source, numbers in left.items():
        mine = places["source"].eq(source).to_numpy()
        row[mine] = numbers[row[mine]]
    return pd.concat([places.assign(row=row), tallies], ignore_index=True)


def _not_compared(joined: Joined, *, ledger: pd.DataFrame) -> pd.DataFrame:
    """Entries that stand outside the sets: matched, with nothing to be compared with."""
    outside = np.ones(len(ledger), dtype=np.bool_)
    outside[joined.ledger.items["row"].to_numpy()] = False
    outside &= np.isin(joined.ledger.versions, (NEW, CONFLICT))
    rows = ledger[outside].reset_index(drop=True)
    items = ledger_items(rows)[["currency", "amount"]]
    part = pd.concat([rows[["merchant_id", "account_id"]], items], axis=1)
    return part.assign(
        row=np.flatnonzero(outside),
        net=np.int64(0),
        source="ledger",
        state=SetState.MATCHED.value,
        break_id="",
    )


def in_scope(versions: "np.ndarray[tuple[int], np.dtype[np.int8]]") -> int:
    """Rows of a source that count: neither repeats nor superseded."""
    return int(np.isin(versions, (NEW, CONFLICT)).sum())


def repeated(versions: "np.ndarray[tuple[int], np.dtype[np.int8]]") -> int:
    """Identical repeats."""
    return int((versions == REPEAT).sum())


def sides_of(places: pd.DataFrame) -> pd.DataFrame:
    """Count and amount (net) by source, account, currency and state."""
    keys = ["source", *GROUP, "state"]
    sums = places.groupby(keys, sort=True)[["items", "net"]].sum().reset_index()
    frame = sums.rename(columns={"items": "count", "net": "amount"})
    return frame.astype({**dict.fromkeys(keys, "str"), "count": "int64", "amount": "int64"})

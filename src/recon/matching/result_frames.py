"""The frames of a Reconciliation, sorted and typed as the contract writes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.grouping import Ints
from recon.matching.joined_sets import Joined
from recon.matching.outcomes import Outcomes
from recon.matching.result import (
    EFFECT_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
)
from recon.matching.result_rows import SORTED_BY, not_compared_rows
from recon.matching.sorting import in_order
from recon.matching.sources import INSTANT
from recon.model import SetState

OPEN_SORTED_BY = [*SORTED_BY, "entry_id", "currency"]


@dataclass(frozen=True, slots=True)
class Frames:
    """The five frames."""

    breaks: pd.DataFrame
    effects: pd.DataFrame
    matches: pd.DataFrame
    pending: pd.DataFrame
    unverified: pd.DataFrame


def matches_of(rows: pd.DataFrame, *, outcomes: Outcomes, ledger: pd.DataFrame) -> pd.DataFrame:
    """Matched sets, and entries that are not compared."""
    rules = np.array([j.rule for j in outcomes.judgements] or [""], dtype=object)
    chosen = _in_state(rows, SetState.MATCHED)
    chosen["rule"] = pd.Series(rules[_patterns(chosen, outcomes=outcomes)], dtype="str")
    chosen["match_id"] = chosen["identity"].astype("str")
    alone = not_compared_rows(ledger)
    frame = chosen[[*MATCH_COLUMNS]]
    if len(alone):
        frame = pd.concat([frame, alone], ignore_index=True)
    return in_order(frame, by=OPEN_SORTED_BY)


def pending_of(rows: pd.DataFrame, *, outcomes: Outcomes) -> pd.DataFrame:
    """Sets within grace, with what they wait for."""
    sides = [j.waits[0].expected_side if j.waits else "" for j in outcomes.judgements]
    chosen = _in_state(rows, SetState.PENDING)
    numbers = _patterns(chosen, outcomes=outcomes)
    chosen["expected_side"] = pd.Series(np.array([*sides, ""], dtype=object)[numbers], dtype="str")
    due_at = outcomes.due_at[chosen["set"].to_numpy()]
    chosen["due_at"] = instants(due_at)
    return in_order(chosen[[*PENDING_COLUMNS]], by=OPEN_SORTED_BY)


def unverified_of(rows: pd.DataFrame, *, outcomes: Outcomes) -> pd.DataFrame:
    """Sets that could not be judged, with the reason."""
    reasons = np.array([j.reason for j in outcomes.judgements] or [""], dtype=object)
    chosen = _in_state(rows, SetState.UNVERIFIED)
    chosen["reason"] = pd.Series(reasons[_patterns(chosen, outcomes=outcomes)], dtype="str")
    return in_order(chosen[[*UNVERIFIED_COLUMNS]], by=OPEN_SORTED_BY)


def effects_of(joined: Joined, *, outcomes: Outcomes, break_ids: pd.DataFrame) -> pd.DataFrame:
    """Every effect of every break, per account, leg and currency (break_ids: set, break_id)."""
    nets = joined.nets
    host = outcomes.host[nets["set"].to_numpy()]
    owner = np.where(host >= 0, host, nets["set"])
    place = joined.sets[["merchant_id", "account_id"]].iloc[nets["set"].to_numpy()]
    base = place.reset_index(drop=True).assign(set=owner, currency=nets["currency"])
    legs = {"orders": nets["gateway_net"] - nets["order_net"]}
    if joined.covered:
        legs["ledger"] = nets["gateway_net"] + nets["payout_net"] - nets["ledger_net"]
    parts = [base.assign(leg=leg, amount=amount.to_numpy()) for leg, amount in legs.items()]
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[frame["amount"].ne(0)].merge(break_ids, on="set")
    frame = frame.astype({"leg": "str", "amount": "Int64", "break_id": "str"})
    by = ["merchant_id", "account_id", "break_id", "leg", "currency"]
    return in_order(frame[[*EFFECT_COLUMNS]], by=by)


def instants(microseconds: Ints) -> "pd.Series[pd.Timestamp]":
    """A column of instants from microseconds since 1970."""
    index: Any = pd.DatetimeIndex(microseconds.view("datetime64[us]"), tz="UTC")
    return pd.Series(index, dtype=INSTANT)


def _in_state(rows: pd.DataFrame, state: SetState) -> pd.DataFrame:
    chosen: pd.DataFrame = rows[rows["state"].to_numpy() == state.value].reset_index(drop=True)
    return chosen


def _patterns(rows: pd.DataFrame, *, outcomes: Outcomes) -> Ints:
    return np.asarray(outcomes.patterns[rows["set"].to_numpy()], dtype=np.int64)

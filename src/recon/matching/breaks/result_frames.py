"""The frames of a Reconciliation, sorted and typed as the contract writes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.breaks.result import (
    AMOUNT_COLUMNS,
    EFFECT_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
)
from recon.matching.breaks.result_rows import SORTED_BY, frame_of_rows
from recon.matching.frames.arrays import Arrays, filled, stacked
from recon.matching.frames.grouping import Ints
from recon.matching.frames.sorting import order_of
from recon.matching.frames.sources import INSTANT
from recon.matching.judging.outcomes import Outcomes
from recon.matching.sets.joined_sets import Joined
from recon.model.words import SetState

OPEN_SORTED_BY = [*SORTED_BY, "entry_id", "currency"]


@dataclass(frozen=True, slots=True)
class Frames:
    """The five frames."""

    breaks: pd.DataFrame
    effects: pd.DataFrame
    matches: pd.DataFrame
    pending: pd.DataFrame
    unverified: pd.DataFrame


def matches_of(rows: Arrays, *, outcomes: Outcomes, alone: Arrays) -> pd.DataFrame:
    """Matched sets, and entries that are not compared (`alone`, see not_compared_rows)."""
    rules = np.array([j.rule for j in outcomes.judgements] or [""], dtype=object)
    chosen = _in_state(rows, SetState.MATCHED)
    chosen.columns["rule"] = rules[_patterns(chosen, outcomes=outcomes)]
    chosen.columns["match_id"] = chosen["identity"]
    if len(alone):
        chosen = stacked([chosen, alone], names=MATCH_COLUMNS)
    return frame_in_order(chosen, names=MATCH_COLUMNS, by=OPEN_SORTED_BY)


def pending_of(rows: Arrays, *, outcomes: Outcomes) -> pd.DataFrame:
    """Sets within grace, with what they wait for."""
    sides = [j.expected_side for j in outcomes.judgements]
    chosen = _in_state(rows, SetState.PENDING)
    numbers = _patterns(chosen, outcomes=outcomes)
    chosen.columns["expected_side"] = np.array([*sides, ""], dtype=object)[numbers]
    chosen.columns["due_at"] = outcomes.due_at[chosen["set"]]
    frame = frame_in_order(chosen, names=PENDING_COLUMNS, by=OPEN_SORTED_BY)
    frame["due_at"] = instants(frame["due_at"].to_numpy())
    return frame


def unverified_of(rows: Arrays, *, outcomes: Outcomes) -> pd.DataFrame:
    """Sets that could not be judged, with the reason."""
    reasons = np.array([j.reason for j in outcomes.judgements] or [""], dtype=object)
    chosen = _in_state(rows, SetState.UNVERIFIED)
    chosen.columns["reason"] = reasons[_patterns(chosen, outcomes=outcomes)]
    return frame_in_order(chosen, names=UNVERIFIED_COLUMNS, by=OPEN_SORTED_BY)


def effects_of(
    joined: Joined, *, outcomes: Outcomes, break_sets: Mapping[int, str]
) -> pd.DataFrame:
    """Every effect of every break, per account, leg and currency (`break_sets`: set -> id)."""
    nets = joined.nets
    host = outcomes.host[nets["set"]]
    owner = np.where(host >= 0, host, nets["set"])
    ids = np.array([break_sets.get(number, "") for number in owner.tolist()], dtype=object)
    legs = {"orders": nets["gateway_net"] - nets["order_net"]}
    if joined.covered:
        legs["ledger"] = nets["gateway_net"] + nets["payout_net"] - nets["ledger_net"]
    base = Arrays(
        {
            **{name: joined.sets[name][nets["set"]] for name in ("merchant_id", "account_id")},
            "currency": nets["currency"],
            "break_id": ids,
        },
        size=len(nets),
    )
    parts = [
        base.assign(leg=filled(leg, size=len(nets)), amount=amount).take(
            (amount != 0) & (ids != "")
        )
        for leg, amount in legs.items()
    ]
    by = ["merchant_id", "account_id", "break_id", "leg", "currency"]
    return frame_in_order(stacked(parts, names=EFFECT_COLUMNS), names=EFFECT_COLUMNS, by=by)


def frame_in_order(rows: Arrays, *, names: tuple[str, ...], by: list[str]) -> pd.DataFrame:
    """Some columns as a frame, sorted by texts, whatever the order of the inputs."""
    ordered = rows.take(order_of(rows.columns, by=by))
    return frame_of_rows(ordered, names=names, amounts=AMOUNT_COLUMNS)


def instants(microseconds: Ints) -> "pd.Series[pd.Timestamp]":
    """A column of instants from microseconds since 1970."""
    index: Any = pd.DatetimeIndex(microseconds.view("datetime64[us]"), tz="UTC")
    return pd.Series(index, dtype=INSTANT)


def _in_state(rows: Arrays, state: SetState) -> Arrays:
    return rows.take(rows["state"] == state.value)


def _patterns(rows: Arrays, *, outcomes: Outcomes) -> Ints:
    return np.asarray(outcomes.patterns[rows["set"]], dtype=np.int64)

"""The rows of breaks: code, effects, exposure, age and severity; their reason is told later."""

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.grace import business_days
from recon.matching.grouping import NO_INSTANT, Ints
from recon.matching.joined_sets import Joined, event_instants
from recon.matching.outcomes import Outcomes
from recon.matching.residuals import effect_on_ledger, effect_on_orders
from recon.matching.result import BREAK_COLUMNS
from recon.matching.result_rows import SORTED_BY, nullable
from recon.matching.severity import exposure_of, exposures, owed_to, severity_of
from recon.matching.sorting import in_order
from recon.matching.sources import Previous
from recon.model import SetState
from recon.rules import Rules

EPOCH = date(1970, 1, 1).toordinal()


def breaks_of(
    rows: pd.DataFrame,
    *,
    joined: Joined,
    outcomes: Outcomes,
    as_of: datetime,
    rules: Rules,
    previous: Previous | None,
) -> pd.DataFrame:
    """One row per break (grain: set that is a break); sorted as the contract says."""
    chosen = rows["own"] & (rows["state"].to_numpy() == SetState.BREAK.value)
    chosen &= outcomes.host[rows["set"].to_numpy()] < 0
    frame = rows[chosen].reset_index(drop=True)
    numbers = frame["set"].to_numpy()
    found = [outcomes.judgements[n].codes for n in outcomes.patterns[numbers]]
    frame["break_id"] = frame["identity"].astype("str")
    frame["code"] = pd.Series([codes[0].value for codes in found], dtype="str")
    exposure = _exposure(joined, outcomes=outcomes, numbers=numbers, found=found)
    frame["exposure"] = nullable(exposure, given=np.ones(len(frame), dtype=np.bool_))
    age = _ages(joined.sets, numbers=numbers, as_of=as_of, rules=rules)
    frame["age_days"] = pd.Series(age, dtype="int64")
    frame["first_seen"] = _first_seen(
        frame["break_id"], as_of=as_of, rules=rules, previous=previous
    )
    effects = effect_on_orders(outcomes.sets, ours=outcomes.ours)[numbers].tolist()
    owed = [owed_to(c[0], effect_orders=int(e)) for c, e in zip(found, effects, strict=True)]
    frame["owed_to"] = pd.Series(owed, dtype="str")
    facts = zip(found, exposure.tolist(), frame["currency"], age.tolist(), strict=True)
    severities = [
        severity_of(codes, exposure=money, currency=currency, age_days=days, rules=rules).value
        for codes, money, currency, days in facts
    ]
    frame["severity"] = pd.Series(severities, dtype="str")
    frame["cause"] = pd.Series([""] * len(frame), dtype="str")
    frame["reason"] = pd.Series([""] * len(frame), dtype="str")
    return in_order(frame, by=[*SORTED_BY, "code", "break_id"])[["set", *BREAK_COLUMNS]]


def _exposure(joined: Joined, *, outcomes: Outcomes, numbers: Ints, found: list[Any]) -> Ints:
    """Money at risk by the worst of all findings: the largest effect, or the largest amount."""
    nets, size = joined.nets, joined.keys.size
    host = outcomes.host[nets["set"].to_numpy()]
    owner = np.where(host >= 0, host, nets["set"])
    own = nets["currency"].to_numpy() == joined.sets["currency"].to_numpy()[owner]
    effect = np.abs((nets["gateway_net"] - nets["order_net"]).to_numpy())
    if joined.covered:
        effect = np.maximum(effect, np.abs(_booking_gap(nets)))
    effects = np.zeros(size, dtype=np.int64)
    np.maximum.at(effects, owner[own], effect[own])
    effects = np.maximum(effects, _known(outcomes, covered=joined.covered))
    columns = exposures(outcomes.sets, effects=effects)
    measures = {codes: {exposure_of(code) for code in codes} for codes in {*found}}
    picked = [
        max(int(columns[name][number]) for name in measures[codes])
        for codes, number in zip(found, numbers.tolist(), strict=True)
    ]
    return np.array(picked, dtype=np.int64)


def _known(outcomes: Outcomes, *, covered: bool) -> Ints:
    """The largest effect with what our replies say of refunds and captures."""
    effect = np.abs(effect_on_orders(outcomes.sets, ours=outcomes.ours))
    if not covered:
        return effect
    return np.maximum(effect, np.abs(effect_on_ledger(outcomes.sets, ours=outcomes.ours)))


def _booking_gap(nets: pd.DataFrame) -> Ints:
    gap = nets["gateway_net"] + nets["payout_net"] - nets["ledger_net"]
    return gap.to_numpy(dtype=np.int64)


def _ages(sets: pd.DataFrame, *, numbers: Ints, as_of: datetime, rules: Rules) -> Ints:
    """Business days from the event's business date to that of as-of."""
    calendar = rules.business_calendar
    today = business_date(as_of, rules=rules)
    days = business_days(event_instants(sets)[numbers], calendar=calendar)
    known, which = np.unique(days, return_inverse=True)
    ages = [
        0
        if day == NO_INSTANT
        else calendar.business_days_between(date.fromordinal(EPOCH + int(day)), end=today)
        for day in known
    ]
    return np.array(ages, dtype=np.int64)[which]


def business_date(as_of: datetime, *, rules: Rules) -> date:
    """The business date that closes at as-of (or contains it)."""
    return rules.business_calendar.business_date_of(as_of - timedelta(microseconds=1))


def _first_seen(
    ids: "pd.Series[str]", *, as_of: datetime, rules: Rules, previous: Previous | None
) -> "pd.Series[str]":
    """The date an earlier run first showed the break, else the business date of this one."""
    today = business_date(as_of, rules=rules).isoformat()
    known: dict[str, str] = {}
    if previous is not None:
        seen = previous.breaks["first_seen"]
        known = dict(previous.away) | {
            str(key): str(day)[:10]
            for key, day in zip(previous.breaks["break_id"], seen, strict=True)
        }
    return pd.Series([known.get(key, today) for key in ids], dtype="str")

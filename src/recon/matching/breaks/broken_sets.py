"""The rows of breaks: code, effects, exposure, age and severity; their reason is told later."""

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import BREAK_COLUMNS
from recon.matching.breaks.result_frames import frame_in_order
from recon.matching.breaks.result_rows import NO_AMOUNT, SORTED_BY
from recon.matching.frames.arrays import Arrays, Column, filled
from recon.matching.frames.grouping import NO_INSTANT, Ints
from recon.matching.frames.sources import Previous
from recon.matching.judging.grace import business_days
from recon.matching.judging.outcomes import Outcomes
from recon.matching.judging.severity import (
    effects_in_question,
    exposure_of,
    exposures,
    money_at_risk,
    owed_to,
    severity_of,
)
from recon.matching.sets.joined_sets import Joined, event_instants
from recon.matching.sets.residuals import effect_on_ledger, effect_on_orders
from recon.model.words import SetState

EPOCH = date(1970, 1, 1).toordinal()

EFFECTS = ("effect_orders", "effect_ledger")


def breaks_of(
    rows: Arrays,
    *,
    joined: Joined,
    outcomes: Outcomes,
    as_of: datetime,
    rules: Rules,
    previous: Previous | None,
) -> pd.DataFrame:
    """One row per break (grain: set that is a break); sorted as the contract says."""
    chosen = rows["own"] & (rows["state"] == SetState.BREAK.value)
    chosen &= outcomes.host[rows["set"]] < 0
    broken = rows.take(chosen)
    numbers = broken["set"]
    findings = [outcomes.judgements[n].codes for n in outcomes.patterns[numbers]]
    exposure = _exposure(joined, outcomes=outcomes, numbers=numbers, amounts=findings)
    age = _ages(joined.sets, numbers=numbers, as_of=as_of, rules=rules)
    seen = _first_seen(broken["identity"], as_of=as_of, rules=rules, previous=previous)
    effects = effect_on_orders(outcomes.sets, ours=outcomes.ours)[numbers].tolist()
    owed = [owed_to(c[0], effect_orders=int(e)) for c, e in zip(findings, effects, strict=True)]
    known = [
        np.where(effect == NO_AMOUNT, 0, effect) for effect in (broken[name] for name in EFFECTS)
    ]
    legs = zip(*(is_one.tolist() for is_one in known), broken["flags"].tolist(), strict=True)
    risks = [
        money_at_risk(whole, effects=effects_in_question(orders, [ledger], flags=flags))
        for whole, (orders, ledger, flags) in zip(exposure.tolist(), legs, strict=True)
    ]
    facts = zip(findings, risks, broken["currency"].tolist(), age.tolist(), strict=True)
    severities = [
        severity_of(codes, at_risk=money, currency=currency, age_days=days, rules=rules).value
        for codes, money, currency, days in facts
    ]
    frame = broken.assign(
        break_id=broken["identity"],
        code=np.array([codes[0].value for codes in findings], dtype=object),
        exposure=exposure,
        age_days=age,
        first_seen=np.array(seen, dtype=object),
        owed_to=np.array(owed, dtype=object),
        severity=np.array(severities, dtype=object),
        cause=filled("", size=len(broken)),
        reason=filled("", size=len(broken)),
        about=filled("", size=len(broken)),
        # What the bank says of a pay-out stands here only once it was asked.
        bank_amount=np.full(len(broken), NO_AMOUNT),
        effect_bank=np.full(len(broken), NO_AMOUNT),
    )
    by = [*SORTED_BY, "code", "break_id"]
    return frame_in_order(frame, names=("set", *BREAK_COLUMNS), by=by)


def _exposure(joined: Joined, *, outcomes: Outcomes, numbers: Ints, amounts: list[Any]) -> Ints:
    """Money at risk by the worst of all findings: the largest effect, or the largest amount."""
    nets, size = joined.nets, joined.keys.size
    host = outcomes.host[nets["set"]]
    owner = np.where(host >= 0, host, nets["set"])
    own = nets["currency"] == joined.sets["currency"][owner]
    effect = np.abs(nets["gateway_net"] - nets["order_net"])
    if joined.covered:
        effect = np.maximum(effect, np.abs(_booking_gap(nets)))
    effects = np.zeros(size, dtype=np.int64)
    np.maximum.at(effects, owner[own], effect[own])
    effects = np.maximum(effects, _known(outcomes, covered=joined.covered))
    columns = exposures(
        outcomes.sets,
        effects=effects,
        uncaptured=outcomes.ours.uncaptured,
        beyond_ours=joined.sets["uncaptured"],
    )
    measures = {codes: {exposure_of(code) for code in codes} for codes in {*amounts}}
    picked = [
        max(int(columns[name][number]) for name in measures[codes])
        for codes, number in zip(amounts, numbers.tolist(), strict=True)
    ]
    return np.array(picked, dtype=np.int64)


def _known(outcomes: Outcomes, *, covered: bool) -> Ints:
    """The largest effect with what our replies say of refunds and captures."""
    effect = np.abs(effect_on_orders(outcomes.sets, ours=outcomes.ours))
    if not covered:
        return effect
    return np.maximum(effect, np.abs(effect_on_ledger(outcomes.sets, ours=outcomes.ours)))


def _booking_gap(nets: Arrays) -> Ints:
    gap: Ints = nets["gateway_net"] + nets["payout_net"] - nets["ledger_net"]
    return gap


def _ages(sets: Arrays, *, numbers: Ints, as_of: datetime, rules: Rules) -> Ints:
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
    ids: Column, *, as_of: datetime, rules: Rules, previous: Previous | None
) -> list[str]:
    """The date an earlier run first showed the break, else the business date of this one."""
    today = business_date(as_of, rules=rules).isoformat()
    known: dict[str, str] = {}
    if previous is not None:
        seen = previous.breaks["first_seen"]
        known = dict(previous.away) | {
            str(key): str(day)[:10]
            for key, day in zip(previous.breaks["break_id"], seen, strict=True)
        }
    return [known.get(key, today) for key in ids.tolist()]

"""When the graces of a set run out, in business days, and dates too far ahead to be right."""

from collections.abc import Mapping
from datetime import datetime, time, timedelta

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints
from recon.matching.frames.sources import Basis
from recon.matching.sides.instruction_side import DATED
from recon.model.business_date import AHEAD_MAX, BusinessCalendar, Grace

MINUTE_MICROSECONDS = 60_000_000
"""No business date ends within a minute."""
HOUR_MICROSECONDS = 60 * MINUTE_MICROSECONDS
DAY_MICROSECONDS = 24 * HOUR_MICROSECONDS
AHEAD_MAX_MICROSECONDS = AHEAD_MAX // timedelta(microseconds=1)
DATES = (
    *("ordered_at", "transaction_date", "booked_at", "instructed_at", "payout_at"),
    *(f"{name}_at" for name in sorted(DATED)),
)
"""Dates of all sides from which a grace may run."""
WAITING = ("capture_waiting", "cancel_waiting", "refund_waiting")
CLOCKS: Mapping[str, tuple[str, str]] = {
    "order_to_gateway": ("sold", "order_to_gateway"),
    "hard_limit": ("sold", "hard_limit"),
    "ledger_entry": ("booked_at", "gateway_to_ledger"),
    "gateway_to_ledger": ("taken", "gateway_to_ledger"),
    "refund_to_ledger": ("moved", "gateway_to_ledger"),
    "capture_confirmed": ("capture_confirmed_at", "instruction_to_gateway"),
    "cancel_confirmed": ("cancel_confirmed_at", "instruction_to_gateway"),
    "refund_confirmed": ("refund_confirmed_at", "refund_visible"),
    "review_confirmed": ("review_confirmed_at", "instruction_to_gateway"),
    **{name: (f"{name}_at", "instruction_to_gateway") for name in WAITING},
    "payout_booked": ("payout_at", "gateway_to_ledger"),
    "settlement": ("moved", "settlement"),
}
"""Clock of codes.toml that may delay a finding -> the instant it runs from, and its grace."""
NO_LIMIT = "no_limit"
"""Clock that never runs out: what it delays is pending for as long as it holds."""
NEVER = int(np.iinfo(np.int64).max)
"""When NO_LIMIT runs out."""


def due_columns(sets: Arrays, *, basis: Basis) -> dict[str, Ints]:
    """Return when each grace ends for each set; NO_INSTANT (late) where it never started.

    Settlement due after the last day that files prove is checked the next day.
    """
    ordered, dated = sets["ordered_at"], sets["transaction_date"]
    sold = np.where(ordered == NO_INSTANT, dated, ordered)
    sold = np.where(sold == NO_INSTANT, sets["instructed_at"], sold)
    taken = np.maximum.reduce([dated, sets["capture_confirmed_at"], sets["capture_doubtful_at"]])
    moved = np.maximum(taken, sets["refund_confirmed_at"])
    starts = {"sold": sold, "taken": taken, "moved": moved}
    ends = {
        clock: due(
            starts[since] if since in starts else sets[since],
            grace=Grace.parse(getattr(basis.rules.grace, length)),
            calendar=basis.calendar,
        )
        for clock, (since, length) in CLOCKS.items()
    }
    unproven = (ends["settlement"] > sets["settled_until"]) & (ends["settlement"] <= basis.now)
    ends["settlement"] = np.where(unproven, basis.now + DAY_MICROSECONDS, ends["settlement"])
    return {**ends, NO_LIMIT: np.full(len(sets), NEVER, dtype=np.int64)}


def without_ahead(sets: Arrays, *, now: int) -> Arrays:
    """Return the sets without dates too far ahead, from which no grace and no age runs.

    `date_ahead` marks the sets that had one. A waiting instruction without a date arrived now.
    """
    columns: dict[str, Column] = {}
    marked = np.zeros(len(sets), dtype=np.bool_)
    for name in DATES:
        ahead = is_ahead(sets[name], now=now)
        columns[name] = np.where(ahead, NO_INSTANT, sets[name])
        marked |= ahead
    for name in WAITING:
        undated = sets[f"{name}_any"] & (sets[f"{name}_at"] == NO_INSTANT)
        columns[f"{name}_at"] = np.where(undated, now, columns[f"{name}_at"])
    return sets.assign(**columns, date_ahead=marked)


def is_ahead(instants: Ints, *, now: int) -> Bools:
    """Mark dates too far ahead to be right."""
    return np.asarray(instants > now + AHEAD_MAX_MICROSECONDS, dtype=np.bool_)


def due(since: Ints, *, grace: Grace, calendar: BusinessCalendar) -> Ints:
    """Compute `BusinessCalendar.due_at` for a whole column."""
    started = since != NO_INSTANT
    if grace.unit == "h":
        return np.where(started, since + grace.count * HOUR_MICROSECONDS, NO_INSTANT)
    ends = np.full(len(since), NO_INSTANT, dtype=np.int64)
    if started.any():
        ends[started] = _business_days_later(since[started], grace=grace, calendar=calendar)
    return ends


def business_days(instants: Ints, *, calendar: BusinessCalendar) -> Ints:
    """Return the business date of each instant, in days since 1970; NO_INSTANT is kept."""
    given = np.where(instants == NO_INSTANT, 0, instants)
    wall = _wall_clock(given, calendar=calendar)
    cut_off = int(calendar.cut_off.total_seconds()) * 1_000_000
    days = (wall - cut_off) // DAY_MICROSECONDS + 1
    return np.where(instants == NO_INSTANT, NO_INSTANT, days)


def _wall_clock(instants: Ints, *, calendar: BusinessCalendar) -> Ints:
    local = pd.DatetimeIndex(instants.view("datetime64[us]"), tz="UTC").tz_convert(calendar.zone)
    return np.asarray(local.tz_localize(None).as_unit("us").asi8, dtype=np.int64)


def _business_days_later(since: Ints, *, grace: Grace, calendar: BusinessCalendar) -> Ints:
    wall = _wall_clock(since, calendar=calendar)
    days, which = np.unique(wall // DAY_MICROSECONDS, return_inverse=True)
    later = np.array([_later(int(day), grace=grace, calendar=calendar) for day in days])
    moved = later[which] * DAY_MICROSECONDS + wall % DAY_MICROSECONDS
    local = pd.DatetimeIndex(moved.astype(np.int64).view("datetime64[us]")).tz_localize(
        calendar.zone,
        ambiguous=np.ones(len(moved), dtype=np.bool_),
        nonexistent=pd.Timedelta(hours=1),
    )
    return np.asarray(local.tz_convert("UTC").as_unit("us").asi8, dtype=np.int64)


def _later(day: int, *, grace: Grace, calendar: BusinessCalendar) -> int:
    """Return the day number that many business days later."""
    noon = datetime.combine(np.datetime64(day, "D").item(), time(12), calendar.zone)
    end = calendar.local_date(calendar.due_at(noon, grace=grace))
    return int(np.datetime64(end).astype(np.int64))

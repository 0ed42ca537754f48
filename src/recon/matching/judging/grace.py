"""When something one-sided becomes late: every grace as a column of instants."""

from datetime import date, datetime, time, timedelta

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints
from recon.model.business_date import AHEAD_MAX, BusinessCalendar, Grace

MINUTE_MICROSECONDS = 60_000_000
"""No business date ends within a minute."""
HOUR_MICROSECONDS = 60 * MINUTE_MICROSECONDS
DAY_MICROSECONDS = 24 * HOUR_MICROSECONDS
AHEAD_MAX_MICROSECONDS = AHEAD_MAX // timedelta(microseconds=1)
DATES = (
    *("ordered_at", "transaction_date", "booked_at", "instructed_at", "payout_at"),
    *("capture_confirmed_at", "cancel_confirmed_at", "refund_confirmed_at", "review_confirmed_at"),
    *("capture_waiting_at", "cancel_waiting_at", "refund_waiting_at", "capture_doubtful_at"),
)
"""Of every side, from which a grace may run."""
WAITING = ("capture_waiting", "cancel_waiting", "refund_waiting")
CLOCKS = (
    *("order_to_gateway", "hard_limit", "ledger_entry", "gateway_to_ledger", "refund_to_ledger"),
    *("capture_confirmed", "cancel_confirmed", "refund_confirmed", "review_confirmed", *WAITING),
    *("payout_booked", "settlement"),
)
"""What may delay a finding, as the table of codes names it."""


def microseconds(instant: datetime) -> int:
    """An instant as the frames count it."""
    return int(pd.Timestamp(instant).as_unit("us").value // 1000)


def due_columns(sets: Arrays, *, rules: Rules) -> dict[str, Ints]:
    """For every grace, when it ends for each set; NO_INSTANT (late) where it never started."""
    ordered, dated = sets["ordered_at"], sets["transaction_date"]
    sold = np.where(ordered == NO_INSTANT, dated, ordered)
    sold = np.where(sold == NO_INSTANT, sets["instructed_at"], sold)
    taken = np.maximum.reduce([dated, sets["capture_confirmed_at"], sets["capture_doubtful_at"]])
    moved = np.maximum(taken, sets["refund_confirmed_at"])
    grace = rules.grace
    starts = {
        "order_to_gateway": (sold, grace.order_to_gateway),
        "hard_limit": (sold, grace.hard_limit),
        "ledger_entry": (sets["booked_at"], grace.gateway_to_ledger),
        "gateway_to_ledger": (taken, grace.gateway_to_ledger),
        "refund_to_ledger": (moved, grace.gateway_to_ledger),
        "capture_confirmed": (sets["capture_confirmed_at"], grace.instruction_to_gateway),
        "cancel_confirmed": (sets["cancel_confirmed_at"], grace.instruction_to_gateway),
        "refund_confirmed": (sets["refund_confirmed_at"], grace.refund_visible),
        "capture_waiting": (sets["capture_waiting_at"], grace.instruction_to_gateway),
        "cancel_waiting": (sets["cancel_waiting_at"], grace.instruction_to_gateway),
        "refund_waiting": (sets["refund_waiting_at"], grace.instruction_to_gateway),
        "review_confirmed": (sets["review_confirmed_at"], grace.instruction_to_gateway),
        "payout_booked": (sets["payout_at"], grace.gateway_to_ledger),
        "settlement": (moved, grace.settlement),
    }
    return {
        clock: due(since, grace=Grace.parse(length), calendar=rules.business_calendar)
        for clock, (since, length) in starts.items()
    }


def without_ahead(sets: Arrays, *, as_of: int) -> dict[str, Column]:
    """The dates of sets without those that lie too far ahead: they begin no grace and no age.

    `date_ahead` marks the sets that had one. An instruction that waits and has no date arrived now.
    """
    columns: dict[str, Column] = {}
    marked = np.zeros(len(sets), dtype=np.bool_)
    for name in DATES:
        ahead = is_ahead(sets[name], as_of=as_of)
        columns[name] = np.where(ahead, NO_INSTANT, sets[name])
        marked |= ahead
    for name in WAITING:
        undated = sets[f"{name}_any"] & (sets[f"{name}_at"] == NO_INSTANT)
        columns[f"{name}_at"] = np.where(undated, as_of, columns[f"{name}_at"])
    return {**columns, "date_ahead": marked}


def is_ahead(instants: Ints, *, as_of: int) -> Bools:
    """Dates that cannot be right."""
    return np.asarray(instants > as_of + AHEAD_MAX_MICROSECONDS, dtype=np.bool_)


def with_unproven(due: dict[str, Ints], *, sets: Arrays, as_of: int) -> dict[str, Ints]:
    """Settlement that fell due after the last day that files prove is looked for the next day."""
    ends = due["settlement"]
    unproven = (ends > sets["settled_until"]) & (ends <= as_of)
    return due | {"settlement": np.where(unproven, as_of + DAY_MICROSECONDS, ends)}


def due(since: Ints, *, grace: Grace, calendar: BusinessCalendar) -> Ints:
    """`BusinessCalendar.due_at` for a whole column."""
    started = since != NO_INSTANT
    if grace.unit == "h":
        return np.where(started, since + grace.count * HOUR_MICROSECONDS, NO_INSTANT)
    ends = np.full(len(since), NO_INSTANT, dtype=np.int64)
    if started.any():
        ends[started] = _business_days_later(since[started], grace=grace, calendar=calendar)
    return ends


def business_days(instants: Ints, *, calendar: BusinessCalendar) -> Ints:
    """The business date each instant belongs to, in days since 1970; NO_INSTANT stays."""
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
    """The day number so many business days later."""
    start = date.fromordinal(date(1970, 1, 1).toordinal() + day)
    noon = datetime.combine(start, time(12), calendar.zone)
    end = calendar.local_date(calendar.due_at(noon, grace=grace))
    return end.toordinal() - date(1970, 1, 1).toordinal()

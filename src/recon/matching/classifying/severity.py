"""Computes the money at risk in a break, who is owed, its due dates and its severity."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules, SeverityRules
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints
from recon.matching.sets.residuals import charged_by_lines, ints
from recon.model.business_date import AHEAD_MAX, BusinessCalendar, Grace
from recon.model.money import exponent
from recon.model.terms import BreakCode, Flag, Severity

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


def microseconds(instant: datetime) -> int:
    """Return an instant as microseconds since 1970, as the frames count it."""
    return int(pd.Timestamp(instant).as_unit("us").value // 1000)


def due_columns(sets: Arrays, *, rules: Rules) -> dict[str, Ints]:
    """Return when each grace ends for each set; NO_INSTANT (late) where it never started."""
    ordered, dated = sets["ordered_at"], sets["transaction_date"]
    sold = np.where(ordered == NO_INSTANT, dated, ordered)
    sold = np.where(sold == NO_INSTANT, sets["instructed_at"], sold)
    taken = np.maximum.reduce([dated, sets["capture_confirmed_at"], sets["capture_doubtful_at"]])
    moved = np.maximum(taken, sets["refund_confirmed_at"])
    starts = {"sold": sold, "taken": taken, "moved": moved}
    ends = {
        clock: due(
            starts[since] if since in starts else sets[since],
            grace=Grace.parse(getattr(rules.grace, length)),
            calendar=rules.business_calendar,
        )
        for clock, (since, length) in CLOCKS.items()
    }
    return {**ends, NO_LIMIT: np.full(len(sets), NEVER, dtype=np.int64)}


def without_ahead(sets: Arrays, *, as_of: int) -> dict[str, Column]:
    """Return the dates of sets without those too far ahead, from which no grace and no age runs.

    `date_ahead` marks the sets that had one. A waiting instruction without a date arrived now.
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
    """Mark dates too far ahead to be right."""
    return np.asarray(instants > as_of + AHEAD_MAX_MICROSECONDS, dtype=np.bool_)


def with_unproven(due: dict[str, Ints], *, sets: Arrays, as_of: int) -> dict[str, Ints]:
    """Postpone settlement due after the last day that files prove: it is checked the next day."""
    ends = due["settlement"]
    unproven = (ends > sets["settled_until"]) & (ends <= as_of)
    return due | {"settlement": np.where(unproven, as_of + DAY_MICROSECONDS, ends)}


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
    start = date.fromordinal(date(1970, 1, 1).toordinal() + day)
    noon = datetime.combine(start, time(12), calendar.zone)
    end = calendar.local_date(calendar.due_at(noon, grace=grace))
    return end.toordinal() - date(1970, 1, 1).toordinal()


AGE_RAISES_AFTER_DAYS = 3
"""More business days than this raise the severity by one step."""

LEVELS = tuple(Severity)


def owed_to(code: BreakCode, *, effect_orders: int) -> str:
    """Return `shopper`, `merchant` or `none`, by the sign of gateway minus order.

    A result has no other values; for display see `owed_text`.
    """
    owed = CODES[code].owed_to
    if owed == "shopper":
        return owed
    if owed == "nobody" or effect_orders == 0:
        return "none"
    return "shopper" if effect_orders > 0 else "merchant"


def owed_text(row: Mapping[Any, Any]) -> str:
    """Return who is owed, for display.

    Where a result has `none`, a payout that was too high is owed to the gateway.
    """
    owed = str(row["owed_to"])
    return CODES[BreakCode(str(row["code"]))].otherwise if owed == "none" else owed


_EFFECTS = ("effect_orders", "effect_ledger", "effect_bank")


def risk_of_break(row: Mapping[Any, Any]) -> int:
    """Return the money at risk of a break's row (BREAK_COLUMNS), in minor units."""
    known = [0 if pd.isna(row[name]) else int(row[name]) for name in _EFFECTS]
    effects = effects_in_question(known[0], known[1:], flags=str(row["flags"]))
    return money_at_risk(int(row["exposure"]), effects=effects)


def effects_in_question(on_orders: int, others: Sequence[int], *, flags: str) -> Sequence[int]:
    """Return the effects of a break, without one that our own instruction explains to the cent.

    Where only ledger or bank differ for a payment that we captured, that amount is not at risk.

    Args:
        on_orders: 0 where none is known, as of the others.
        others: On ledger and bank, signed minor units.
        flags: Of the break, as its row has them.
    """
    if any(others) and Flag.INSTRUCTED in flags.split(";"):
        return others
    return (on_orders, *others)


def money_at_risk(exposure: int, *, effects: Iterable[int]) -> int:
    """Return what is at risk in a break: its effect where one is known, at most the whole.

    The one rule behind the severity, the column on Breaks and the sums of page one.

    Args:
        exposure: The whole amount that may be at risk, minor units.
        effects: On orders, ledger and bank, signed minor units; 0 where none is known.
    """
    effect = max((abs(effect) for effect in effects), default=0)
    return min(effect, exposure) if effect else exposure


def severity_of(
    codes: Sequence[BreakCode], *, at_risk: int, currency: str, age_days: int, rules: Rules
) -> Severity:
    """Return the severity by money at risk, raised by age, capped by `ignore`, above the floors."""
    thresholds = rules.severity.get(currency, SeverityRules())
    unit = 10 ** (exponent(currency) if currency else 0)
    limits = (thresholds.medium, thresholds.high, thresholds.critical)
    level: int = sum(int(at_risk >= limit * unit) for limit in limits)
    if age_days > AGE_RAISES_AFTER_DAYS:
        level = min(level + 1, len(LEVELS) - 1)
    if at_risk < thresholds.ignore * unit:
        level = 0
    return LEVELS[max((level, *(LEVELS.index(CODES[code].lowest) for code in codes)))]


def worse(severity: str, other: str) -> str:
    """The worse of two severities."""
    return max(severity, other, key=lambda label: LEVELS.index(Severity(label)))


def urgency(row: Mapping[Any, Any]) -> tuple[int, bool, str, int, int, str]:
    """Return the sort key of a break's row for display: highest severity first, then by currency.

    Within a currency the largest amount comes first; amounts of two currencies are never compared.
    Rows without a currency come last.
    """
    currency, age_days = str(row["currency"] or ""), int(row["age_days"] or 0)
    level = -LEVELS.index(Severity(row["severity"]))
    return (level, not currency, currency, -risk_of_break(row), -age_days, str(row["break_id"]))


def exposure_of(code: BreakCode) -> str:
    """Return the column of `exposures` that measures a code."""
    return CODES[code].risk


def exposures(
    sets: Arrays, *, effects: Ints, uncaptured: Ints, beyond_ours: Ints
) -> dict[str, Ints]:
    """Return the amounts that a set may put at risk, by measure; minor units, unsigned.

    No figure is a difference across currencies: where sides have two, the whole amount is at risk.
    `uncaptured`: what our confirmed capture, which explains the set, left of the payment;
    `beyond_ours`: the same, and what one in doubt left.
    """
    amount = np.maximum.reduce([np.abs(sets[name]) for name in _AMOUNTS])
    ordered, shown = np.abs(sets["order_amount"]), np.abs(sets["gateway_amount_shown"])
    whole = np.where(ordered != 0, ordered, shown)
    captured = np.abs(sets["gateway_captured"] - uncaptured)
    amount = np.where(uncaptured > 0, np.minimum(amount, captured), amount)
    taken = np.minimum(amount, np.abs(sets["gateway_captured"] - beyond_ours))
    apart = np.abs(sets["settled_captured"] - sets["gateway_captured"])
    back = np.abs(sets["settled_refunded"] - sets["gateway_refunded"])
    apart = apart + np.where(sets["settled_refund_any"], back, 0)
    foreign = sets["settled_capture_any"] & (sets["settled_currency"] != sets["currency"])
    charged = np.where(ints(sets["ledger_chargeback"]) == 0, charged_by_lines(sets), 0)
    return {
        "effect": np.maximum(effects, charged),
        "amount": amount,
        "whole": whole,
        "captured": captured,
        "taken": np.where(beyond_ours > 0, taken, amount),
        "settled": np.abs(sets["settled_gross"]),
        "settlement gap": np.where(foreign, whole, apart),
        "fee": np.abs(sets["fee_gap"]),
        "exchange": np.abs(sets["exchange_gap"]),
    }


_AMOUNTS = ("order_amount", "gateway_amount_shown", "instruction_amount", "payout_amount")

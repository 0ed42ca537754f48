"""The books' side of the bank as rows of the result."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.bookings import Booking, Bookings
from recon.matching.bank.result import appended, first_seen, flags_in_order
from recon.matching.breaks.broken_sets import business_date
from recon.matching.breaks.result import BREAK_COLUMNS, EFFECT_COLUMNS, PENDING_COLUMNS
from recon.matching.breaks.result_frames import OPEN_SORTED_BY, Frames
from recon.matching.breaks.result_rows import SORTED_BY
from recon.matching.causes.proposed_journals import OF_BANK
from recon.matching.frames.sources import Previous
from recon.matching.judging.severity import graver, money_at_risk, severity_of
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag, SetState

LEG = OF_BANK
"""Of effects: what arrived at the bank less what is booked of it."""
_CODE = BreakCode.BANK_NOT_BOOKED
_JOINED = ("flags", "exposure", "severity", "reason")
Row = dict[str, Any]


def with_bookings(
    frames: Frames,
    bookings: Bookings | None,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> Frames:
    """The frames with what the books lack; of what is a break already it is a flag.

    Args:
        frames: of everything else.
        bookings: of the bank.
        rules: severity and calendar.
        as_of: the instant that is judged.
        previous: since when a break is known.
    """
    if bookings is None:
        return frames
    seen, today = first_seen(previous), business_date(as_of, rules=rules)
    broken = [*bookings.broken()]
    rows = [_break_row(one, rules=rules, today=today, seen=seen) for one in broken]
    waiting = [_pending_row(one) for one in bookings.every if one.state is SetState.PENDING]
    effects = [_effect_row(one) for one in broken]
    by_effect = ["merchant_id", "account_id", "break_id", "leg", "currency"]
    return Frames(
        breaks=_joined(frames.breaks, rows),
        effects=appended(frames.effects, effects, names=EFFECT_COLUMNS, by=by_effect),
        matches=_told(frames.matches, bookings=bookings),
        pending=appended(frames.pending, waiting, names=PENDING_COLUMNS, by=OPEN_SORTED_BY),
        unverified=frames.unverified,
    )


def _told(matches: pd.DataFrame, *, bookings: Bookings) -> pd.DataFrame:
    """The matches, which say of each entry whether it is held against the bank."""
    if not bookings.compared:
        return matches
    names = ("merchant_id", "account_id", "entry_id", "rule", "flags")
    flags = [
        Flag.WITH_BANK.value
        if rule == Flag.NOT_COMPARED and (merchant, account, entry) in bookings.compared
        else words
        for merchant, account, entry, rule, words in zip(
            *(matches[name].tolist() for name in names), strict=True
        )
    ]
    return matches.assign(flags=pd.Series(flags, index=matches.index, dtype=matches["flags"].dtype))


def _named(one: Booking) -> Row:
    merchant, account, currency = one.group.holder
    return {
        "merchant_id": merchant,
        "account_id": account,
        "currency": currency,
        **dict.fromkeys(("order_no", "transaction_id"), ""),
        **dict.fromkeys(("state_orders", "state_gateway"), "none"),
        **dict.fromkeys(("order_amount", "gateway_amount", "ledger_amount")),
    }


def _break_row(one: Booking, *, rules: Rules, today: date, seen: dict[str, str]) -> Row:
    age = rules.business_calendar.business_days_between(date.fromisoformat(one.since), end=today)
    exposure, currency = abs(one.effect), one.group.holder[2]
    risk = money_at_risk(exposure, effects=(one.effect,))
    severity = severity_of((_CODE,), at_risk=risk, currency=currency, age_days=age, rules=rules)
    return {
        **_named(one),
        "break_id": one.identity,
        "code": _CODE.value,
        "flags": flags_in_order(one.flags),
        "effect_orders": 0,
        "effect_ledger": one.effect,
        "exposure": exposure,
        "owed_to": "none",
        "age_days": age,
        "first_seen": seen.get(one.identity) or today.isoformat(),
        "severity": severity.value,
        "cause": "",
        "reason": booking_reason(one),
        "bank_amount": one.group.arrived,
        "effect_bank": None,
        "about": " ".join(one.group.batches),
    }


def _effect_row(one: Booking) -> Row:
    cells = {name: _named(one)[name] for name in ("merchant_id", "account_id", "currency")}
    return {**cells, "break_id": one.identity, "leg": LEG, "amount": one.effect}


def _pending_row(one: Booking) -> Row:
    side = "bank" if abs(one.group.arrived) < abs(one.group.booked) else "ledger"
    return {
        **_named(one),
        "entry_id": one.group.key,
        "flags": flags_in_order(one.flags),
        # What waits is counted from its own file: neither gateway nor orders differ by it.
        **dict.fromkeys(("effect_orders", "effect_ledger")),
        "expected_side": side,
        "due_at": datetime.fromtimestamp(one.due_at / 1_000_000, tz=UTC),
    }


def _joined(breaks: pd.DataFrame, rows: Sequence[Row]) -> pd.DataFrame:
    """The breaks with those of the books; what is a break already bears it as a flag."""
    known = {one: at for at, one in enumerate(breaks["break_id"].tolist())}
    cells = {name: breaks[name].tolist() for name in _JOINED}
    for row in rows:
        at = known.get(row["break_id"])
        if at is None:
            continue
        words = {*cells["flags"][at].split(";"), *row["flags"].split(";"), row["code"]}
        cells["flags"][at] = flags_in_order(words - {""})
        cells["exposure"][at] = max(cells["exposure"][at], row["exposure"])
        cells["severity"][at] = graver(cells["severity"][at], row["severity"])
        cells["reason"][at] = f"{cells['reason'][at]} {row['reason']}"
    columns = {
        name: pd.Series(values, index=breaks.index, dtype=breaks[name].dtype)
        for name, values in cells.items()
    }
    alone = [row for row in rows if row["break_id"] not in known]
    by = [*SORTED_BY, "code", "break_id"]
    return appended(breaks.assign(**columns), alone, names=BREAK_COLUMNS, by=by)


def booking_reason(one: Booking) -> str:
    """Why it is open, in a sentence."""
    arrived, booked, gap = (
        f"{format_minor_units(abs(amount), currency=one.group.holder[2])} {one.group.holder[2]}"
        for amount in (one.group.arrived, one.group.booked, one.effect)
    )
    what = _what(one)
    if not one.group.booked:
        nothing = "the books have nothing of it at the bank"
        return f"{what}: the bank has {arrived}, {nothing}, since {one.since}."
    if not one.group.arrived:
        nothing = "and the bank has nothing of it"
        return f"{what}: the books have {booked} at the bank, {nothing}, since {one.since}."
    return (
        f"{what}: the bank has {arrived}, the books have {booked} of it at the bank, {gap} apart "
        f"since {one.since}."
    )


def _what(one: Booking) -> str:
    if one.group.batches:
        word = "Batch" if len(one.group.batches) == 1 else "Batches"
        return f"{word} {' and '.join(one.group.batches)}"
    if one.group.finding is not None:
        (receipt,) = one.group.finding.receipts
        return f"Entry {receipt.entry_no} of statement {receipt.statement_no}"
    return "All that arrived and that no entry of the books names"

"""Flags that do not decide a set: words beside a result that people should see."""

from datetime import datetime

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.codes import PRECEDENCE
from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.grouping import NO_INSTANT, Bools, Rows
from recon.matching.judging.grace import DAY_MICROSECONDS, business_days, microseconds
from recon.matching.judging.outcomes import Outcomes
from recon.matching.sides.gateway_side import NUMBER
from recon.model.business_date import midnight
from recon.model.words import BreakCode, Flag, SetState

_PAIR = [NUMBER[word] for word in ("paid", "partially_refunded", "refunded")]


def set_flags(
    sets: Arrays, *, outcomes: Outcomes, instructed: bool, as_of: datetime, rules: Rules
) -> Column:
    """The flags of every set as text: secondary codes in order of precedence, then words sorted."""
    matched = outcomes.states() == SetState.MATCHED.value
    marks = {
        Flag.REFERENCE_CONFLICT: _reference_conflict(sets),
        Flag.ZERO_AMOUNT: _zero_amount(sets),
        Flag.EXPIRING: _expiring(sets, as_of=as_of, rules=rules),
        Flag.DATE_AHEAD: sets["date_ahead"],
        Flag.ENTRY_VANISHED: sets["entry_vanished"],
        Flag.PORTAL_ACTION: _portal_action(sets, instructed=instructed, rules=rules),
        Flag.REFUND_FROM_SETTLEMENT: sets["refund_settled"],
        Flag.CUT_OFF_DIFFERENCE: matched & _cut_off_difference(sets, rules=rules),
    }
    bits = np.zeros(len(sets), dtype=np.int64)
    for bit, mask in enumerate(marks.values()):
        bits |= np.asarray(mask).astype(np.int64) << bit
    return _texts(outcomes, bits=bits, words=tuple(marks))


def _texts(outcomes: Outcomes, *, bits: Rows, words: tuple[Flag, ...]) -> Column:
    """One text per distinct pattern and marks."""
    combined, known = pd.factorize(outcomes.patterns * (1 << len(words)) + bits)
    texts = []
    for value in known:
        pattern, marked = divmod(int(value), 1 << len(words))
        judgement = outcomes.judgements[pattern]
        own = {word for bit, word in enumerate(words) if marked >> bit & 1}
        texts.append(flag_text(judgement.codes[1:], flags={*judgement.flags, *own}))
    return np.array([*texts, ""], dtype=object)[combined]


def flag_text(codes: tuple[BreakCode, ...], *, flags: set[Flag]) -> str:
    """Codes in the order of precedence, then words sorted, joined by `;`."""
    ordered = sorted(codes, key=PRECEDENCE.index)
    return ";".join([*(code.value for code in ordered), *sorted(flag.value for flag in flags)])


def _reference_conflict(sets: Arrays) -> Bools:
    ours, theirs = sets["order_transaction"], sets["gateway_transaction"]
    return np.asarray((ours != "") & (theirs != "") & (ours != theirs), dtype=np.bool_)


def _zero_amount(sets: Arrays) -> Bools:
    ordered = (sets["order_state"] != 0) & (sets["order_amount"] == 0)
    shown = np.isin(sets["gateway_state"], _PAIR) & (sets["gateway_captured"] == 0)
    return np.asarray(ordered | shown, dtype=np.bool_)


def _expiring(sets: Arrays, *, as_of: datetime, rules: Rules) -> Bools:
    """Authorised, and its validity ends within the days of warning."""
    days = rules.authorisation.valid_days - rules.authorisation.warn_days
    warned = sets["transaction_date"] + days * DAY_MICROSECONDS <= microseconds(as_of)
    dated = sets["transaction_date"] != NO_INSTANT
    held = sets["gateway_state"] == NUMBER["authorised"]
    return np.asarray(held & dated & warned, dtype=np.bool_)


def _portal_action(sets: Arrays, *, instructed: bool, rules: Rules) -> Bools:
    """A movement after the opening date that no instruction of ours explains."""
    opening = rules.window.opening_date
    if not instructed or rules.account.capture_mode != "manual" or opening is None:
        return np.zeros(len(sets), dtype=np.bool_)
    start = microseconds(midnight(opening, zone=rules.business_calendar.zone))
    ours = {
        kind: sets[f"{kind}_confirmed_any"] | sets[f"{kind}_doubtful_any"]
        for kind in ("capture", "refund", "cancel")
    }
    moved = (sets["gateway_captured"] > 0) & ~ours["capture"]
    moved |= (sets["gateway_refunded"] > 0) & ~ours["refund"]
    moved |= (sets["gateway_state"] == NUMBER["cancelled"]) & ~ours["cancel"]
    since = (sets["transaction_date"] >= start) | sets["date_ahead"]
    return np.asarray(moved & since, dtype=np.bool_)


def _cut_off_difference(sets: Arrays, *, rules: Rules) -> Bools:
    """Both sides agree, but on different business dates."""
    calendar = rules.business_calendar
    sold = business_days(sets["ordered_at"], calendar=calendar)
    paid = business_days(sets["transaction_date"], calendar=calendar)
    money = np.isin(sets["gateway_state"], _PAIR)
    return np.asarray(money & (sold != paid) & (sold != NO_INSTANT) & (paid != NO_INSTANT))

"""What the groups and what the gateway holds come to: matched, waiting, unverified or a break.

A group whose sides differ waits only while what is young on either side may explain it.
"""

import calendar
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np

from recon.config.rules import Rules
from recon.matching.breaks.result_rows import NO_AMOUNT
from recon.matching.cash.batches import (
    BEYOND,
    NO_PAYOUT,
    OPENING,
    OTHER_CURRENCY,
    RESERVE,
    UNSURE,
    BatchOf,
    Listed,
)
from recon.matching.cash.before_books import BEFORE_BOOKS
from recon.matching.cash.book_groups import FEES, PAYOUTS, RESERVES, UNASSIGNED, BookGroups
from recon.matching.causes.reasons import in_words, sentences_of
from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, Column, filled
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints, latest, present, total
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY, Place
from recon.matching.judging.severity import due, is_ahead, microseconds
from recon.model.business_date import AHEAD_MAX, Grace, midnight
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag, SetState, UnverifiedReason

_CODES: Mapping[str, tuple[BreakCode, BreakCode]] = {
    FEES: (BreakCode.FEE_NOT_BOOKED, BreakCode.FEE_BOOKED_DIFFERS),
    RESERVES: (BreakCode.RESERVE_NOT_BOOKED, BreakCode.RESERVE_BOOKED_DIFFERS),
    PAYOUTS: (BreakCode.PAYOUT_NOT_BOOKED, BreakCode.PAYOUT_AMOUNT_MISMATCH),
}
"""Kind of a group -> its code when the books have nothing, and when they have something else."""
LONG_PAST = "1970-01-01"
AHEAD = Flag.DATE_AHEAD.value
FINDING_COLUMNS = (
    *("merchant_id", "account_id", "currency", "key", "what", "name", "state", "code", "flags"),
    *("settled", "booked", "effect", "exposure", "since", "due_at", "expected_side", "owed_to"),
    "reason",
)


@dataclass(frozen=True, slots=True)
class Clock:
    """When the comparison stands, and whether the books were given."""

    as_of: datetime
    rules: Rules
    covered: bool

    @property
    def last_day(self) -> str:
        """The last day that may be right; no grace runs from one further ahead."""
        calendar = self.rules.business_calendar
        return calendar.local_date(self.as_of + AHEAD_MAX).isoformat()


def findings_of_groups(
    books: BookGroups, *, listed: Iterable[Listed], unsure: set[BatchOf], clock: Clock
) -> Arrays:
    """What each group comes to (FINDING_COLUMNS; grain: group).

    Args:
        books: the groups.
        listed: what the gateway holds, of which a reserve below 0 was released too far.
        unsure: the batches of which a line could not be read.
        clock: when, by which rules.
    """
    groups, size = books.groups, len(books.groups)
    gap = groups["settled"] - groups["booked"]
    before = groups["name"] == BEFORE_BOOKS
    over = np.where(before, 0, _over_released(groups, listed=listed))
    closed = np.zeros(size, dtype=np.bool_)
    closed[[*books.closed]] = True
    waits, due_at = _waiting(books, gap=gap, clock=clock)
    ahead = _with_date_ahead(books, clock=clock)
    sure = ~_unsure(books, unsure=unsure, rules=clock.rules)
    same = ((gap == 0) & (over == 0)) | before
    if not clock.covered:
        same, closed, waits = (np.full(size, held) for held in (True, False, False))
    open_ones = sure & ~same & ~(closed & (over == 0))
    states = np.where(sure, SetState.MATCHED.value, SetState.UNVERIFIED.value).astype(object)
    states[open_ones & waits & (over == 0)] = SetState.PENDING.value
    broken = open_ones & (~waits | (over > 0))
    states[broken] = SetState.BREAK.value
    codes = filled("", size=size)
    codes[broken] = _codes(groups, over=over)[broken]
    flags = filled("", size=size)
    flags[(over > 0) & broken] = Flag.OVER_RELEASED.value
    flags[sure & closed & ~broken & ~same] = Flag.WRITTEN_OFF.value
    flags[sure & before] = Flag.BEFORE_BOOKS.value
    if not clock.covered:
        flags[:] = Flag.NOT_COMPARED.value
    flags[ahead] = [";".join(sorted(filter(None, (flag, AHEAD)))) for flag in flags[ahead]]
    columns = {
        **_named(groups),
        "state": states,
        "code": codes,
        "flags": flags,
        "effect": gap if clock.covered else np.full(size, NO_AMOUNT),
        "exposure": np.maximum(np.abs(gap), over),
        "since": _since(books, rows=broken, clock=clock),
        "due_at": due_at,
        "owed_to": filled("none", size=size),
        "reason": np.where(sure, "", UnverifiedReason.BATCH_QUARANTINED.value).astype(object),
    }
    return Arrays(columns, size=size)


def _named(groups: Arrays) -> dict[str, Column]:
    """What a group is of, and what either side has of it."""
    settled, booked = groups["settled"], groups["booked"]
    return {
        **{name: groups[name] for name in ("merchant_id", "account_id", "currency", "key")},
        "what": groups["kind"],
        "name": groups["name"],
        "settled": np.where(groups["settled_items"] > 0, settled, NO_AMOUNT),
        "booked": np.where(groups["booked_items"] > 0, booked, NO_AMOUNT),
        "expected_side": np.where(np.abs(settled) < np.abs(booked), "settlement", "ledger"),
    }


def findings_of_held(listed: Iterable[Listed], *, clock: Clock) -> Arrays:
    """What each listed amount comes to; reserves and what is from before the opening are none.

    Of a batch that is paid out in another currency than its lines, the pay-out alone is told.
    """
    every = [*listed]
    foreign = {_batch_of(held) for held in every if held.what == OTHER_CURRENCY}
    rows = [
        cells
        for held in every
        if held.what not in {OPENING, RESERVE}
        and (held.what != NO_PAYOUT or _batch_of(held) not in foreign)
        for cells in [_held(held, clock=clock)]
    ]
    numbers = {"settled", "booked", "effect", "exposure", "due_at"}
    columns: dict[str, Column] = {}
    for name in FINDING_COLUMNS:
        kind: Any = np.int64 if name in numbers else object
        columns[name] = np.array([row[name] for row in rows], dtype=kind)
    return Arrays(columns, size=len(rows))


def _batch_of(held: Listed) -> tuple[str, str, str]:
    return held.merchant_id, held.account_id, held.batch_id


def _held(held: Listed, *, clock: Clock) -> dict[str, Any]:
    """A batch that keeps something, or paid more than there was."""
    word = "beyond" if held.what == BEYOND else "held"
    grace = Grace.parse(clock.rules.grace.held_back)
    calendar_ = clock.rules.business_calendar
    ahead = held.settled_on > clock.last_day
    start = (
        midnight(date.fromisoformat(held.settled_on), zone=calendar_.zone) if not ahead else None
    )
    due_at = microseconds(calendar_.due_at(start, grace=grace)) if start else NO_INSTANT
    state, code, reason = SetState.BREAK, BreakCode.HELD_BACK, ""
    if held.what == BEYOND:
        code = BreakCode.UNEXPECTED_RECEIPT
    elif held.what == OTHER_CURRENCY:
        code = BreakCode.CURRENCY_MISMATCH
    elif held.what == UNSURE:
        state, reason = SetState.UNVERIFIED, UnverifiedReason.BATCH_QUARANTINED.value
    elif due_at > microseconds(clock.as_of):
        state = SetState.PENDING
    return {
        **{name: getattr(held, name) for name in ("merchant_id", "account_id", "currency", "what")},
        "key": f"{word}:{held.currency}:{held.batch_id}",
        "name": held.batch_id,
        "state": state.value,
        "code": code.value if state is SetState.BREAK else "",
        "flags": ";".join([AHEAD] * ahead + [Flag.NO_PAYOUT.value] * (held.what == NO_PAYOUT)),
        "settled": NO_AMOUNT,
        "booked": NO_AMOUNT,
        "effect": 0 if clock.covered else NO_AMOUNT,
        "exposure": abs(held.amount),
        "since": held.settled_on,
        "due_at": due_at,
        "expected_side": "settlement",
        "owed_to": "merchant" if held.amount > 0 else "none",
        "reason": reason,
    }


def _codes(groups: Arrays, *, over: Ints) -> Column:
    """What each group is called where it is a break."""
    codes = filled("", size=len(groups))
    nothing = (groups["booked"] == 0) & (over == 0)
    for kind, (absent, other) in _CODES.items():
        mine = groups["kind"] == kind
        codes[mine] = np.where(nothing, absent.value, other.value)[mine]
    alone = (groups["kind"] == PAYOUTS) & (groups["settled_items"] == 0)
    codes[alone] = BreakCode.LEDGER_PAYOUT_ONLY.value
    return codes


def _over_released(groups: Arrays, *, listed: Iterable[Listed]) -> Ints:
    """What was released beyond what was ever kept, of groups of reserves."""
    below: dict[Place, int] = {
        held.holder: -held.amount for held in listed if held.what == RESERVE and held.amount < 0
    }
    places = groups.rows("merchant_id", "account_id", "currency", "kind")
    over = [
        below.get(holder, 0) if kind == RESERVES else 0
        for *place_, kind in places
        for holder in [tuple(place_)]
    ]
    return np.array(over, dtype=np.int64)


def _unsure(books: BookGroups, *, unsure: set[BatchOf], rules: Rules) -> Bools:
    """Groups of which a line could not be read.

    Of pay-outs, and of fees by batch, that of its batch; of all else those of its account and
    currency. What the books have of a batch that no line tells of stands where they name none.
    """
    groups, lines = books.groups, books.settled
    if not unsure:
        return np.zeros(len(groups), dtype=np.bool_)
    by_batch = {PAYOUTS: "", **({FEES: UNASSIGNED} if rules.ledger.fees_per == "batch" else {})}
    read = {*lines.rows(*ACCOUNT_CURRENCY, "name", "kind")}
    places = {held[:3] for held in unsure}
    untold = {kind: {held[:3] for held in unsure if (*held, kind) not in read} for kind in by_batch}
    marks = []
    for *place, kind, name in groups.rows(*ACCOUNT_CURRENCY, "kind", "name"):
        mine = untold.get(kind, places) if name == by_batch.get(kind, name) else set[Place]()
        in_any_currency = (place[0], place[1], "")
        is_of_batch = kind in by_batch and (*place, name) in unsure
        marks.append(is_of_batch or (*place,) in mine or in_any_currency in mine)
    return np.array(marks, dtype=np.bool_)


def _waiting(books: BookGroups, *, gap: Ints, clock: Clock) -> tuple[Bools, Ints]:
    """Groups that what is young may explain, and when the last of it is not young any more."""
    size, as_of = len(books.groups), microseconds(clock.as_of)
    sums, ends = [], np.full(size, NO_INSTANT, dtype=np.int64)
    for items, starts in (
        (books.settled, _settled_at(books, clock=clock)),
        (books.booked, _booked_at(books, clock=clock)),
    ):
        grace = Grace.parse(clock.rules.grace.gateway_to_ledger)
        over = due(starts, grace=grace, calendar=clock.rules.business_calendar)
        young = over > as_of
        amounts = np.where(young, items["amount"], 0)
        sums.append(total(amounts, groups=items["group"], size=size))
        mine = np.where(young, over, NO_INSTANT)
        ends = np.maximum(ends, latest(mine, groups=items["group"], size=size))
    lines, entries = sums
    low = np.minimum(0, lines) + np.minimum(0, -entries)
    high = np.maximum(0, lines) + np.maximum(0, -entries)
    return np.asarray((gap >= low) & (gap <= high), dtype=np.bool_), ends


def _with_date_ahead(books: BookGroups, *, clock: Clock) -> Bools:
    """Groups that have a date too far ahead."""
    settled, booked = books.settled, books.booked
    wrong = is_ahead(booked["at"], as_of=microseconds(clock.as_of))
    both = [(settled["day"] > clock.last_day, settled), (wrong, booked)]
    size = len(books.groups)
    marks = [present(mask, groups=items["group"], size=size) for mask, items in both]
    return np.asarray(marks[0] | marks[1], dtype=np.bool_)


def _settled_at(books: BookGroups, *, clock: Clock) -> Ints:
    """From when the books have time for each line."""
    monthly = (books.settled["kind"] == FEES) & (clock.rules.ledger.fees_per == "month")
    days = _not_ahead(books.settled["day"], clock=clock)
    return _midnights(_month_ends(days, rows=monthly), clock=clock)


def _not_ahead(days: Column, *, clock: Clock) -> Column:
    """Days or months; those that lie too far ahead as long past."""
    return np.where(days > clock.last_day, LONG_PAST, days).astype(object)


def _booked_at(books: BookGroups, *, clock: Clock) -> Ints:
    """From when the settlement has time for each entry."""
    at: Ints = books.booked["at"].astype(np.int64)
    at = np.where(is_ahead(at, as_of=microseconds(clock.as_of)), NO_INSTANT, at)
    if clock.rules.ledger.fees_per != "month":
        return at
    monthly = books.booked["kind"] == FEES
    days = filled("1970-01", size=len(at))
    days[monthly] = _not_ahead(books.booked["name"][monthly], clock=clock)
    ends = _midnights(_month_ends(days, rows=np.ones(len(at), np.bool_)), clock=clock)
    return np.where(monthly, ends, at)


def _month_ends(days: Column, *, rows: Bools) -> Column:
    """The last day of the month of some days."""
    known = {day: _last_day(day) for day in {*days[rows].tolist()}}
    ends = days.copy()
    ends[rows] = [known[day] for day in days[rows].tolist()]
    return ends


def _last_day(day: str) -> str:
    year, month = int(day[:4]), int(day[5:7])
    return f"{day[:7]}-{calendar.monthrange(year, month)[1]:02d}"


def _midnights(days: Column, *, clock: Clock) -> Ints:
    zone = clock.rules.business_calendar.zone
    known = {
        day: microseconds(midnight(date.fromisoformat(day), zone=zone)) for day in {*days.tolist()}
    }
    return np.array([known[day] for day in days.tolist()], dtype=np.int64)


def _since(books: BookGroups, *, rows: Bools, clock: Clock) -> Column:
    """Of each broken group the first day after which it was never even again."""
    since = filled("", size=len(rows))
    wanted = {*np.flatnonzero(rows).tolist()}
    if not wanted:
        return since
    zone = clock.rules.business_calendar.zone
    moves: dict[int, list[tuple[str, int]]] = {}
    for group, day, amount in books.settled.rows("group", "day", "amount"):
        if group in wanted:
            moves.setdefault(group, []).append((day, amount))
    for group, at, amount in books.booked.rows("group", "at", "amount"):
        if group in wanted:
            booked_on = datetime.fromtimestamp(at / 1_000_000, tz=zone).date().isoformat()
            moves.setdefault(group, []).append((booked_on, -amount))
    for group, listed in moves.items():
        since[group] = uneven_since(listed)
    return since


def uneven_since(moves: Iterable[tuple[str, int]]) -> str:
    """The first of some days after which what moved never came to 0 again."""
    by_day: dict[str, int] = {}
    for day, amount in moves:
        by_day[day] = by_day.get(day, 0) + amount
    left, first = 0, ""
    for day, amount in sorted(by_day.items()):
        if left == 0:
            first = day
        left += amount
    return first


_NAMES = {FEES: "fees", RESERVES: "reserves", PAYOUTS: "pay-outs"}


def reason_of(row: Mapping[str, Any]) -> str:
    """The sentence of a break of cash (see cash_findings.FINDING_COLUMNS)."""
    is_over = Flag.OVER_RELEASED.value in row["flags"].split(";")
    facts = SimpleNamespace(**row, over_released=is_over)
    sentence = next(one for one in SENTENCES[BreakCode(row["code"])] if one.holds(facts))
    return in_words(sentence, facts=facts, words=_WORDS)


def _known(amount: int) -> int:
    return 0 if amount == NO_AMOUNT else int(amount)


def _money(amount: int, *, facts: SimpleNamespace) -> str:
    return f"{format_minor_units(amount, currency=facts.currency)} {facts.currency}"


def group_of(what: str, *, name: str) -> str:
    """Of which group of the books a finding is, in words."""
    words = _NAMES[what]
    return f"{words} of {name}" if name else f"all {words} since the opening"


_WORDS: Mapping[str, Callable[[SimpleNamespace], str]] = {
    "group": lambda facts: group_of(facts.what, name=facts.name),
    "name": lambda facts: str(facts.name),
    "since": lambda facts: str(facts.since),
    # What was charged, kept or paid out, below 0 where it was given back; then how far apart.
    "settled": lambda facts: _money(-_known(facts.settled), facts=facts),
    "booked": lambda facts: _money(-_known(facts.booked), facts=facts),
    "effect": lambda facts: _money(abs(_known(facts.effect)), facts=facts),
    "exposure": lambda facts: _money(abs(_known(facts.exposure)), facts=facts),
}
SENTENCES = sentences_of(
    {code: row.say_of_cash for code, row in CODES.items()},
    facts={"what": str, "over_released": bool},
    sayable=_WORDS,
)

"""Times of one source that are a whole number of quarters of an hour off those of the others.

A zone that is set wrong moves the records around the end of a business date to its neighbour: a
file of one date then lacks some and has others too many. Told are breaks of records that stand
alone, whose date the shift changes, at an end of a date where nearly no record has its other side.
The shift itself is read from the sets that have both sides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recon.matching.causes.aside_evidence import Account, PairCounts
from recon.matching.causes.cause_evidence import (
    BREAKS_MIN,
    SHARE_MIN,
    Breaks,
    CauseEvidence,
    Found,
)
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints, Rows
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.judging.grace import (
    HOUR_MICROSECONDS,
    MINUTE_MICROSECONDS,
    business_days,
)
from recon.matching.sets.joined_sets import Joined
from recon.model.words import BreakCode

STEP_MICROSECONDS = HOUR_MICROSECONDS // 4
"""Zones differ by hours, halves or quarters (Kathmandu is 5 3/4 hours ahead of UTC); a payment
follows its order, and an entry its payment, within a step."""
SLACK_MICROSECONDS = 2 * MINUTE_MICROSECONDS
"""So far clocks of two systems may be apart."""
NEAR_MICROSECONDS = 2 * STEP_MICROSECONDS
STEP_HOURS = 0.25
STEPS_MIN, STEPS_MAX = 4, 56
"""Less than an hour is a delay; no zone is more than 14 hours away from UTC."""
WIDTH = 2 * STEPS_MAX + 3
"""So many steps are told apart, beyond all zones on either side counted as one."""
NO_EDGE = NO_INSTANT
NO_PAIRS = PairCounts()
NO_MINUTES = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

PAID_AT = "transaction_date"
DATED = {"orders": "ordered_at", "ledger": "booked_at"}
"""The time that each source has beside the gateway's."""
ALONE: Mapping[str, Mapping[BreakCode, str]] = {
    "orders": {
        BreakCode.MISSING_IN_ORDERS: PAID_AT,
        BreakCode.MISSING_AT_GATEWAY: DATED["orders"],
        BreakCode.BOOKED_NOT_AT_GATEWAY: DATED["orders"],
    },
    "ledger": {
        BreakCode.MISSING_IN_LEDGER: PAID_AT,
        BreakCode.LEDGER_ONLY: DATED["ledger"],
    },
}
"""By source, the breaks of a record whose other side is missing, and the time it stands under."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The sets that have a time of one source and one of the gateway (grain: set)."""

    account: Rows
    """By number, as Keys.accounts counts."""
    times: Mapping[str, Ints]
    """The source's time and the gateway's, by the name of their column."""


@dataclass(frozen=True, slots=True)
class _Every:
    """Those that are judged here, and those of parts, which are counted already."""

    pairs: _Pairs
    accounts: Sequence[Account]
    """By number."""
    parts: Mapping[Account, PairCounts]

    def of_parts(self, account: Account) -> PairCounts:
        """What parts counted of one account."""
        return self.parts.get(account, NO_PAIRS)


def find_zone_shifts(breaks: Breaks, evidence: CauseEvidence) -> Found:
    """Records around the end of a business date that one shift of a source keeps apart."""
    alone = breaks["code"].isin([code for codes in ALONE.values() for code in codes])
    if alone.sum() < BREAKS_MIN:
        return
    accounts = [*map(tuple, evidence.joined.numbers.accounts)]
    pairs = {
        source: _Every(
            _pairs(source, joined=evidence.joined), accounts, evidence.parts.pairs.get(source, {})
        )
        for source in DATED
    }
    shifts = {source: _common_shifts(pair) for source, pair in pairs.items()}
    for account_key in sorted({*shifts["orders"], *shifts["ledger"]}):
        inside = alone & breaks[ACCOUNT].eq(list(account_key)).all(axis=1)
        of_account = {
            source: known[account_key] for source, known in shifts.items() if account_key in known
        }
        rows_of = {
            source: _kept_apart(
                breaks[inside], source=source, steps=steps, pairs=pairs[source], evidence=evidence
            )
            for source, steps in of_account.items()
        }
        yield from _told(rows_of, shifts=of_account, account=account_key[1])


def _told(rows_of: Mapping[str, pd.Index], *, shifts: Mapping[str, int], account: str) -> Found:
    """One sentence where orders and ledger agree against the gateway, else one for each."""
    if len(shifts) == len(DATED) and len({*shifts.values()}) == 1:
        steps = -next(iter(shifts.values()))
        rows = rows_of["orders"].append(rows_of["ledger"])
        parts = [("gateway", rows, steps, "of the orders and the ledger")]
    else:
        parts = [(source, rows_of[source], shifts[source], "of the gateway") for source in shifts]
    for source, rows, steps, others in parts:
        if len(rows) >= BREAKS_MIN:
            yield rows, _sentence(source, steps=steps, others=others, account=account)


def _sentence(source: str, *, steps: int, others: str, account: str) -> str:
    hours = f"{abs(steps) * STEP_HOURS:g} hour{'' if abs(steps) == STEPS_MIN else 's'}"
    word = "ahead of" if steps > 0 else "behind"
    return (
        f"The times of the {source} in account {account} are {hours} {word} those {others}, which "
        "moves records at the end of a business date to another one: is its time zone right?"
    )


def counted_pairs(source: str, *, joined: Joined) -> dict[Account, PairCounts]:
    """The pairs of a source, counted by account: all that is ever asked of them."""
    pairs, accounts = _pairs(source, joined=joined), joined.numbers.accounts
    size = len(accounts)
    sums, alike = np.bincount(pairs.account, minlength=size), _alike(pairs, size=size)
    steps = _by_steps(pairs, size=size).reshape(size, WIDTH)
    return {
        tuple(account): PairCounts(
            int(sums[number]),
            int(alike[number]),
            steps[number],
            {
                clock: np.unique(
                    times[pairs.account == number] // MINUTE_MICROSECONDS, return_counts=True
                )
                for clock, times in pairs.times.items()
            },
        )
        for number, account in enumerate(accounts)
        if sums[number]
    }


def _pairs(source: str, *, joined: Joined) -> _Pairs:
    """The sets whose times are both known."""
    sets = joined.sets
    times = {name: sets[name] for name in (DATED[source], PAID_AT)}
    known: Bools = sets["account"] >= 0
    for at in times.values():
        known &= at != NO_INSTANT
    return _Pairs(sets["account"][known], {name: at[known] for name, at in times.items()})


def _common_shifts(every: _Every) -> dict[Account, int]:
    """By account, how many steps nearly all times of the source are ahead of the gateway's."""
    size = len(every.accounts)
    before = [every.of_parts(account) for account in every.accounts]
    sums = np.bincount(every.pairs.account, minlength=size) + np.array(
        [counts.pairs for counts in before], np.intp
    )
    alike = _alike(every.pairs, size=size) + np.array([counts.alike for counts in before], np.intp)
    if ((alike > (1 - SHARE_MIN) * sums) | (sums == 0)).all():
        return {}
    steps = _by_steps(every.pairs, size=size).reshape(size, WIDTH)
    for number, counts in enumerate(before):
        if counts.by_steps is not None:
            steps[number] += counts.by_steps
    return {
        every.accounts[account]: spot - STEPS_MAX - 1
        for account, spot in np.argwhere(steps).tolist()
        if STEPS_MIN <= abs(spot - STEPS_MAX - 1) <= STEPS_MAX
        and steps[account, spot] >= max(BREAKS_MIN, SHARE_MIN * sums[account])
    }


def _alike(pairs: _Pairs, *, size: int) -> Rows:
    """By account, the pairs that are hardly apart: a few of them rule a shift out."""
    left, other = pairs.times.values()
    near = np.abs(left - other) < NEAR_MICROSECONDS
    return np.bincount(pairs.account[near], minlength=size)


def _by_steps(pairs: _Pairs, *, size: int) -> Rows:
    """How many pairs are so many steps apart, by account and steps."""
    (clock, ours), (_, paid) = pairs.times.items()
    # What came second is a little later than the shift alone would have it.
    if clock == DATED["orders"]:
        steps = -((paid - ours + SLACK_MICROSECONDS) // STEP_MICROSECONDS)
    else:
        steps = (ours - paid + SLACK_MICROSECONDS) // STEP_MICROSECONDS
    spots = np.clip(steps, -STEPS_MAX - 1, STEPS_MAX + 1).astype(np.intp) + STEPS_MAX + 1
    return np.bincount(pairs.account * WIDTH + spots, minlength=size * WIDTH)


def _kept_apart(
    breaks: Breaks, *, source: str, steps: int, pairs: _Every, evidence: CauseEvidence
) -> pd.Index:
    """The breaks of one account that the shift of this source explains."""
    rows: list[pd.Index] = [
        edge
        for code, clock in ALONE[source].items()
        for edge in _at_bare_edges(
            breaks[breaks["code"].eq(code)],
            clock=clock,
            shift=(steps if clock == PAID_AT else -steps) * STEP_MICROSECONDS,
            pairs=pairs,
            evidence=evidence,
        )
    ]
    return rows[0].append(rows[1:]) if rows else breaks.index[:0]


def _at_bare_edges(
    breaks: Breaks, *, clock: str, shift: int, pairs: _Every, evidence: CauseEvidence
) -> Iterator[pd.Index]:
    """By end of a business date, breaks beside which nearly no record has its other side."""
    if breaks.empty:
        return
    times = evidence.joined.sets[clock][breaks["set"].to_numpy()]
    edges = _edges(times, shift=shift, evidence=evidence)
    account: Account = tuple(breaks[ACCOUNT].iloc[0])
    number = pairs.accounts.index(account)
    beside = pairs.pairs.times[clock][pairs.pairs.account == number]
    whole = _edges(beside, shift=shift, evidence=evidence)
    minutes, counts = pairs.of_parts(account).minutes.get(clock, NO_MINUTES)
    of_parts = _edges(minutes * MINUTE_MICROSECONDS, shift=shift, evidence=evidence)
    for edge in np.unique(edges[edges != NO_EDGE]):
        apart: Bools = edges == edge
        others = (whole == edge).sum() + counts[of_parts == edge].sum()
        if apart.sum() >= SHARE_MIN * (apart.sum() + others):
            yield breaks.index[apart]


def _edges(times: Ints, *, shift: int, evidence: CauseEvidence) -> Ints:
    """The business date that begins between each time and the shifted one; NO_EDGE for none."""
    calendar = evidence.rules.business_calendar
    known = times != NO_INSTANT
    shifted = np.where(known, times + shift * known, NO_INSTANT)
    here, there = (business_days(clocks, calendar=calendar) for clocks in (times, shifted))
    return np.where(here == there, NO_EDGE, np.maximum(here, there))

"""Sets that stand by themselves and come to no break, judged some thousand at a time.

One order, one payment, and entries and settled lines that nothing else names: whatever the rest of
a night holds, such a set comes to the same. So it is judged with others like it, and only what it
shows is kept: nearly all sets of a night are like this. Whatever is broken, explained by a flag,
rounded or spoken of from elsewhere (by a row without an order key, our own instructions, rejected
rows, the breaks of the night before) is left for the one place where all sets stand beside each
other; a flag that says when explains nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.breaks.places import GROUP, PLACE_NAMES, place_items, told_by_match
from recon.matching.breaks.result_frames import (
    OPEN_SORTED_BY,
    Frames,
    matches_of,
    pending_of,
    unverified_of,
)
from recon.matching.breaks.result_rows import first_identities, judged_rows, name_entries
from recon.matching.calm.elsewhere import Elsewhere
from recon.matching.calm.spoken_sets import belonging, loose_words, marked, named, spoken_of
from recon.matching.frames.arrays import Arrays, among, stacked
from recon.matching.frames.coding import Codes, combined, sums_of
from recon.matching.frames.grouping import Bools, Rows
from recon.matching.frames.numbering import Keys, WholeKeys, keys_of
from recon.matching.frames.same_words import taken, without_copies
from recon.matching.frames.sorting import columns_in_order
from recon.matching.frames.sources import KEY_COLUMNS, Previous, Sources
from recon.matching.judging.grace import microseconds
from recon.matching.judging.outcomes import Outcomes, judge_sets
from recon.matching.sets.joined_sets import Joined, join_sides, keyed_quarantine
from recon.matching.sets.residuals import legs
from recon.matching.sets.sets import NO_SET
from recon.matching.sides.exchange import unrated_rows
from recon.matching.sides.settlement_side import first_days_told, of_payments
from recon.model.uptime import YOUNG, give_back
from recon.model.words import EntryType, Flag, SetState

SETS_PER_PART = 32_000
"""Some 2.5 kB each while they are judged."""
SETS_MIN = 20_000
"""Fewer are judged with everything else: parts cost more than they save."""

ASKED = "universe"
"""The one source beside the legs that speaks of a key without making it need a judgement."""
_SUMMED_BY = ("source", "state", "merchant_id", "account_id", "currency")
_OF_EVIDENCE = (
    *("account", "ordered_at", "transaction_date", "booked_at"),
    *("order_state", "order_captured", "gateway_captured", "ledger_capture"),
)
_OF_ITEMS = ("currency", "state", "told_by_match")
_OPEN_FRAMES = ("matches", "pending", "unverified")
_NO_ENTRIES = Arrays({}, size=0)
_TEXTS = {*GROUP, "source", "state", "break_id"}
_NONE = Arrays(
    {
        name: np.zeros(0, dtype=object if name in _TEXTS else np.int64)
        for name in (*_OF_EVIDENCE, *_OF_ITEMS, *PLACE_NAMES)
    },
    size=0,
)
"""Of no part at all."""
_OF_DATES = (Flag.CUT_OFF_DIFFERENCE, Flag.EXPIRING)
"""Flags that two instants of a set give it: they move nothing, and no other row asks for them."""
_FLAGS_OF_CALM = frozenset({"", *_OF_DATES, ";".join(_OF_DATES)})


@dataclass(frozen=True, slots=True)
class Calm:
    """Sets that were judged in parts and came to no break."""

    of: Mapping[str, Codes]
    """For each leg, the number of the set of each row of the whole source, NO_SET for none."""
    sets: Arrays
    """What may speak against a cause, and what items ask of a set (grain: set)."""
    places: Arrays
    """Where their items went, added up (see places.place_items; `row` is negative)."""
    frames: dict[str, pd.DataFrame]
    """Their matches, pending and unverified, in no order; they go where all others are joined."""

    def rows(self, leg: str) -> Rows:
        """The rows of the whole source that are in one of them."""
        return np.flatnonzero(self.of[leg] != NO_SET)

    def of_rows(self, rows: Mapping[str, Rows]) -> "Calm":
        """The same of some rows of each leg, all of these sets among them."""
        return replace(self, of={leg: of[rows[leg]] for leg, of in self.of.items()})


@dataclass(frozen=True, slots=True)
class CalmAndLeft:
    """The sets that were judged by themselves, and what is left."""

    calm: Calm
    left: Mapping[str, Rows]
    """For each leg, the source rows that are left for classification."""
    keys: WholeKeys
    sources: Sources
    """What is left for classification."""
    left_keys: Keys
    """The numbers of what is left; they are drawn once, for the whole."""

    def item_rows(self) -> dict[str, Rows]:
        """For each leg, the whole source's row of each row that the engine counts items by."""
        rows = dict(self.left)
        if self.sources.settlement is not None:
            rows["settlement"] = rows["settlement"][of_payments(self.sources.settlement)]
        return rows


def set_aside(
    sources: Sources,
    *,
    rules: Rules,
    previous: Previous | None,
    as_of: datetime,
    elsewhere: Elsewhere | None = None,
) -> CalmAndLeft:
    """Judge the calm sets, and say what is left of the sources without them.

    Args:
        sources: all rows, or all of some order numbers.
        rules: how they are judged.
        previous: what the night before left open; what it speaks of is not calm.
        as_of: when they are judged.
        elsewhere: what is known of all rows, where these are not all; None: they are.
    """
    marks = marked(sources, elsewhere=elsewhere)
    belongs = belonging(marks)
    others = _others_of(sources, previous=previous)
    if elsewhere is not None and sources.ledger is not None:
        # How many there are is said of all at once.
        others["unrated"] = unrated_rows(sources.ledger, rules=rules)
    frames = {name: getattr(marks, name) for name in belongs}
    keys = keys_of({**frames, **others}, belongs=belongs)
    few = SETS_MIN if elsewhere is None else 1
    alone = _pairs(keys, others=others)
    if np.count_nonzero(alone) >= few:
        words = elsewhere.words if elsewhere else loose_words(marks, belongs=belongs)
        is_part = elsewhere is not None
        alone &= ~spoken_of(frames, keys=keys, words=words, rules=rules, is_part=is_part)
    chosen = np.flatnonzero(alone)
    whole = _Whole(
        sources=sources,
        keys=keys,
        first_days=_first_days(elsewhere, lines=sources.settlement, keys=keys),
        rules=rules,
        as_of=as_of,
        ids=_ids_of(previous),
    )
    calm = _judged_in_parts(chosen if len(chosen) >= few else chosen[:0], whole=whole, legs=frames)
    left = {name: np.flatnonzero(of == NO_SET) for name, of in calm.of.items()}
    if not len(calm.sets):
        return CalmAndLeft(calm, left, keys, sources, keys.take({}))
    if sources.universe is not None:
        left[ASKED] = np.flatnonzero(~_asked_of(calm, keys=keys))
    rest: dict[str, Any] = {
        name: taken(getattr(sources, name), rows=numbers) for name, numbers in left.items()
    }
    left_keys = keys.take(left)
    left.pop(ASKED, None)
    return CalmAndLeft(calm, left, keys, replace(sources, **rest), left_keys)


def _asked_of(calm: Calm, *, keys: WholeKeys) -> Bools:
    """The keys asked that are of calm sets."""
    done = np.zeros(keys.size + 1, dtype=np.bool_)
    done[keys.of["orders"][calm.rows("orders")]] = True
    asked: Bools = done[keys.of[ASKED]]
    return asked


def without_left(aside: CalmAndLeft, *, sources: Sources) -> tuple[Sources, CalmAndLeft]:
    """What was set aside as a night of its own: its rows alone, and nothing that is left.

    `sources` are those that it was set aside from.
    """
    calm, keys, nothing = aside.calm, aside.keys, np.zeros(0, dtype=np.intp)
    rows = {name: calm.rows(name) for name in calm.of}
    numbers = {**dict.fromkeys(keys.of, nothing), **rows}
    if sources.universe is not None:
        numbers[ASKED] = np.flatnonzero(_asked_of(calm, keys=keys))
    frames: dict[str, Any] = {
        name: taken(getattr(sources, name), rows=numbers[name])
        for name in (*rows, *([] if sources.universe is None else [ASKED]))
    }
    own = CalmAndLeft(
        calm.of_rows(rows),
        dict.fromkeys(rows, nothing),
        replace(
            keys,
            of={name: of[numbers[name]] for name, of in keys.of.items()},
            account_of={name: of[numbers[name]] for name, of in keys.account_of.items()},
        ),
        _none_of(aside.sources),
        keys.take(dict.fromkeys(keys.of, nothing)),
    )
    return replace(_none_of(sources), **frames), own


def _none_of(sources: Sources) -> Sources:
    """The sources without a row of those that were given, and without what speaks of others."""
    names = ("orders", "gateway", "ledger", "settlement", "instructions", ASKED)
    given = {name: getattr(sources, name) for name in names}
    empty: dict[str, Any] = {
        name: frame.iloc[:0] for name, frame in given.items() if frame is not None
    }
    return replace(sources, **empty, rejects=(), quarantined=())


def _others_of(sources: Sources, *, previous: Previous | None) -> dict[str, pd.DataFrame]:
    """The frames beside the legs (KEY_COLUMNS); but for ASKED their keys need a judgement."""
    rejected = [(r.merchant_id, r.account_id, r.order_no) for r in sources.rejects]
    frames = {"rejects": pd.DataFrame(rejected, columns=[*KEY_COLUMNS], dtype="str")}
    if sources.quarantined:
        frames["quarantined"] = keyed_quarantine(sources.quarantined)
    if sources.instructions is not None:
        frames["instructions"] = sources.instructions
    if previous is not None:
        frames |= {"breaks": previous.breaks, "chargebacks": previous.chargebacks}
        frames["vanished"] = previous.vanished
    if sources.universe is not None:
        frames[ASKED] = sources.universe
    return frames


def first_days_of(lines: pd.DataFrame | None, *, keys: WholeKeys) -> Mapping[int, str]:
    """See first_days_told; `keys`: the numbers of all rows."""
    nothing = np.zeros(0, dtype=np.int32)
    return first_days_told(lines, accounts=keys.account_of.get("settlement", nothing))


def _first_days(
    elsewhere: Elsewhere | None, *, lines: pd.DataFrame | None, keys: WholeKeys
) -> Mapping[int, str]:
    """The first day that was ever settled of each account, by number."""
    if elsewhere is None:
        return first_days_of(lines, keys=keys)
    known = elsewhere.first_days
    return {at: known[account] for at, account in enumerate(keys.accounts) if account in known}


@dataclass(frozen=True, slots=True)
class _Whole:
    """What all parts have in common."""

    sources: Sources
    keys: WholeKeys
    first_days: Mapping[int, str]
    rules: Rules
    as_of: datetime
    ids: pa.Array
    """Of breaks of earlier nights."""


def _judged_in_parts(alone: Rows, *, whole: _Whole, legs: Iterable[str]) -> Calm:
    """Judge the sets of these keys."""
    keys = whole.keys
    part_of = np.full(keys.size + 1, NO_SET, dtype=np.int32)
    part_of[alone] = np.arange(len(alone)) // SETS_PER_PART
    # The place of NO_KEY is the last one, which is in no part.
    parts = {name: part_of[keys.of[name]] for name in legs}
    of = {name: np.full(len(part), NO_SET, dtype=np.int32) for name, part in parts.items()}
    judged: list[Calm] = []
    first = 0
    for chosen in range(-(-len(alone) // SETS_PER_PART)):
        rows = {name: np.flatnonzero(part == chosen) for name, part in parts.items()}
        part = _judge(whole, rows=rows, first=first)
        first += len(part.sets)
        for name, numbers in part.of.items():
            of[name][rows[name]] = numbers
        judged.append(part)
        give_back(generation=YOUNG)
    return _together(judged, of=of)


def _ids_of(previous: Previous | None) -> pa.Array:
    if previous is None:
        return pa.array([], pa.large_string())
    known = {*previous.breaks["break_id"].tolist(), *previous.closed, *previous.away}
    return pa.array(sorted(known), pa.large_string())


def _pairs(keys: WholeKeys, *, others: Iterable[str]) -> Bools:
    """The keys with one order and one payment, of which none of the others speaks (grain: key)."""
    calm = np.ones(keys.size, dtype=np.bool_)
    for name in others:
        if name != ASKED:
            calm[named(keys.of[name])] = False
    for name in ("orders", "gateway"):
        calm &= np.bincount(named(keys.of[name]), minlength=keys.size) == 1
    return calm


def _judge(whole: _Whole, *, rows: Mapping[str, Rows], first: int) -> Calm:
    """Judge one part; its sets are numbered from `first` on."""
    sources, as_of, rules = _part_of(whole.sources, rows=rows), whole.as_of, whole.rules
    nothing = np.zeros(0, dtype=np.intp)
    numbers = whole.keys.take({name: rows.get(name, nothing) for name in whole.keys.of})
    joined = join_sides(
        sources, numbers=numbers, rules=rules, previous=None, first_days=whole.first_days
    )
    name_entries(joined)
    outcomes = judge_sets(joined, rules=rules, as_of=microseconds(as_of))
    shown = judged_rows(joined, outcomes=outcomes, sources=sources, rules=rules, as_of=as_of)
    sets = joined.sets
    ids = first_identities(sets)
    flags = shown["flags"][: len(sets)]
    calm = _is_calm(joined, outcomes=outcomes, flags=flags, rules=rules)
    calm &= ~np.asarray(pc.is_in(pa.array(ids), value_set=whole.ids), dtype=np.bool_)
    number = np.where(calm, first + np.cumsum(calm) - 1, NO_SET).astype(np.int32)
    # With one currency a set shows itself in one row.
    shown.columns["identity"] = ids.to_numpy(dtype=object)[shown["set"]]
    shown = shown.take(calm[shown["set"]])
    items = place_items(joined, outcomes=outcomes, break_sets={}, ledger=None)
    by_match = told_by_match(joined, outcomes=outcomes, flags=flags, sources=sources)
    kept = {name: sets[name][calm] for name in (*_OF_EVIDENCE, "currency")}
    kept |= {"state": outcomes.states()[calm], "told_by_match": by_match[calm]}
    return Calm(
        {name: number[joined.keys.of[name]] for name in rows},
        Arrays(kept, size=int(calm.sum())),
        _summed(items.take(_of_calm(joined, calm=calm))),
        {
            "matches": matches_of(shown, outcomes=outcomes, alone=_NO_ENTRIES),
            "pending": pending_of(shown, outcomes=outcomes),
            "unverified": unverified_of(shown, outcomes=outcomes),
        },
    )


def _part_of(sources: Sources, *, rows: Mapping[str, Rows]) -> Sources:
    """All rows of some keys, and nothing else."""
    frames: dict[str, Any] = {
        name: _taken_near(getattr(sources, name), rows=numbers) for name, numbers in rows.items()
    }
    moves = sources.instructions
    return replace(
        sources,
        **frames,
        # Whether there is a source of instructions matters; whom they speak of is not calm.
        instructions=None if moves is None else moves.iloc[:0],
        universe=None,
        rejects=(),
        quarantined=(),
        bank=None,
    )


def _taken_near(frame: pd.DataFrame, *, rows: Rows) -> pd.DataFrame:
    """Some rows, in order, looked for where they stand: a part is a stretch of the orders."""
    first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, -1)
    return taken(frame.iloc[first : last + 1], rows=rows - first)


def _is_calm(joined: Joined, *, outcomes: Outcomes, flags: np.ndarray, rules: Rules) -> Bools:
    """The sets that come to the same whatever else the night holds, and need no explanation."""
    sets, states = joined.sets, outcomes.states()
    agrees = (sets["gateway_net"] == sets["order_net"]) & (
        (sets["gateway_net"] == sets["ledger_net"]) | (not joined.covered)
    )
    calm = (states == SetState.MATCHED.value) & among(flags, _FLAGS_OF_CALM) & agrees
    calm |= (states == SetState.PENDING.value) | (states == SetState.UNVERIFIED.value)
    calm &= ~_touched_by_rounding(outcomes, rules=rules, covered=joined.covered)
    calm &= (sets["currencies"] <= 1) & (outcomes.host < 0)
    calm &= ~(sets["wrong_account"] | sets["account_ambiguous"])
    # Of another amount than ordered: causes look at such sets one by one.
    both = (sets["order_captured"] > 0) & (sets["gateway_captured"] > 0)
    calm &= ~both | (sets["order_captured"] == sets["gateway_captured"])
    entries = joined.ledger.items
    written = entries["set"][entries["kind"] == EntryType.WRITE_OFF.value]
    calm[written] = False
    return np.asarray(calm, dtype=np.bool_)


def _touched_by_rounding(outcomes: Outcomes, *, rules: Rules, covered: bool) -> Bools:
    """Sets that come to something else once the night's budget of rounding is spent."""
    nowhere = np.zeros(len(outcomes.sets), dtype=np.bool_)
    free, hard = (
        legs(outcomes.sets, ours=outcomes.ours, rules=rules, strict=strict, covered=covered)
        for strict in (nowhere, ~nowhere)
    )
    touched = free.rounded != 0
    for name, fact in free.facts.items():
        touched |= fact != hard.facts[name]
    return np.asarray(touched, dtype=np.bool_)


def _of_calm(joined: Joined, *, calm: Bools) -> Bools:
    """Which of the items that place_items gives are of calm sets, in its order."""
    sides = (joined.orders.items, joined.gateway.items, joined.ledger.items)
    items = (*sides, joined.payouts, joined.settled)
    return np.concatenate([calm[part["set"]] for part in items])


def _summed(items: Arrays) -> Arrays:
    """One row for all items of one source, state, account and currency."""
    groups, places = combined([items[name] for name in _SUMMED_BY])
    size = len(places)
    named = np.array(places, dtype=object).reshape(-1, len(_SUMMED_BY))
    sums = {
        name: sums_of(items[name], groups=groups, size=size) for name in ("items", "amount", "net")
    }
    columns = {**dict(zip(_SUMMED_BY, named.T, strict=True)), **sums}
    places_of_calm = Arrays(columns, size=size).assign(row=-1 - np.arange(size))
    return places_of_calm.assign(break_id=np.full(size, "", dtype=object))


def _together(parts: list[Calm], *, of: Mapping[str, Codes]) -> Calm:
    frames = {name: [part.frames[name] for part in parts] for name in _OPEN_FRAMES if parts}
    return Calm(
        of,
        stacked([part.sets for part in parts] or [_NONE], names=(*_OF_EVIDENCE, *_OF_ITEMS)),
        _summed(stacked([part.places for part in parts] or [_NONE], names=PLACE_NAMES)),
        {name: without_copies(pd.concat(each, ignore_index=True)) for name, each in frames.items()},
    )


def with_calm(frames: Frames, calm: Calm) -> Frames:
    """The frames of a result with what was judged in parts, which `calm` does not hold any more."""
    both = {
        name: _joined(getattr(frames, name), calm.frames.pop(name))
        for name in [*calm.frames]
        if len(calm.frames[name])
    }
    return replace(frames, **both)


def _joined(judged: pd.DataFrame, calm: pd.DataFrame) -> pd.DataFrame:
    """All rows sorted, those of `calm` taken out of it column by column."""
    every = {
        name: pd.concat([judged[name], calm.pop(name)], ignore_index=True)
        for name in [*calm.columns]
    }
    return columns_in_order(every, by=OPEN_SORTED_BY)

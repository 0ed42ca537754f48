"""A break that closed and is there again: a new break, which points to the old one.

The id of a break is a digest of its key and a sequence. What closed keeps its number for ever; the
same key broken again takes the next. A break that was only out of sight (no usable answer, not yet
due, outside the window) did not close: it comes back under its own id, with its age.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
import pandas as pd

from recon.matching.breaks.movements import CLOSED, FOR_GOOD, NOT_SEEN, RESOLVED
from recon.matching.breaks.result import Reconciliation
from recon.matching.breaks.result_rows import id_of_text
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.grouping import Bools
from recon.matching.frames.sources import Previous

Ids = np.ndarray[tuple[int], np.dtype[np.object_]]


@dataclass(frozen=True, slots=True)
class BreakEnd:
    """How and when an open break stopped being one."""

    break_id: str
    movement: str
    first_seen: str


def sequenced(
    ids: Ids, *, sets: Arrays, broken: Bools, previous: Previous | None
) -> tuple[Ids, Mapping[str, str]]:
    """The id of each set tonight, and id -> the closed break that it opens again.

    Args:
        ids: the first id of each set.
        sets: columns merchant_id, account_id, key.
        broken: the sets that are breaks tonight.
        previous: what closed, and what is open.
    """
    if previous is None or not previous.closed:
        return ids, {}
    seen = np.fromiter(
        (identity in previous.closed for identity in ids), dtype=np.bool_, count=len(ids)
    )
    again = np.flatnonzero(seen)
    if not again.size:
        return ids, {}
    # What is out of sight has not closed: it goes on under its own number, and closes under it.
    known, taken = {*previous.breaks["break_id"], *previous.away}, set(ids)
    changed, older = ids.copy(), {}
    for number in again.tolist():
        set_key = tuple(sets[name][number] for name in ("merchant_id", "account_id", "key"))
        *_, last, fresh = _sequence(set_key, first=ids[number], closed=previous.closed, taken=taken)
        if fresh in known or broken[number]:
            changed[number], older[fresh] = fresh, last
    return changed, older


def _sequence(
    set_key: tuple[str, ...], *, first: str, closed: frozenset[str], taken: set[str]
) -> Iterator[str]:
    """The ids of one key from its first to the one that never closed."""
    yield first
    for number in count(2):
        break_id = id_of_text("\x1f".join((*set_key, str(number))))
        if break_id in taken:
            continue  # the same key of another kind has this number
        yield break_id
        if break_id not in closed:
            return


def ends_of(result: Reconciliation, *, previous: Previous | None) -> tuple[BreakEnd, ...]:
    """The breaks that are not open any more after a night, with the day they were first seen.

    One that was out of sight closes when its set is matched again.
    """
    if previous is None:
        return ()
    moved = result.movements
    seen = dict(zip(previous.breaks["break_id"], previous.breaks["first_seen"], strict=True))
    ended = moved[moved["movement"].isin(CLOSED)]
    ends = [
        BreakEnd(str(identity), str(movement), str(seen[identity])[:10])
        for identity, movement in zip(ended["break_id"], ended["movement"], strict=True)
    ]
    ids = result.matches["match_id"] if previous.away else ()
    matched = sorted(previous.away.keys() & {*ids})
    ends += [BreakEnd(identity, RESOLVED, previous.away[identity]) for identity in matched]
    return tuple(ends)


def split_ends(
    ends: Mapping[str, BreakEnd], *, breaks: pd.DataFrame
) -> tuple[frozenset[str], Mapping[str, str]]:
    """The ids that closed, and those that only went out of sight with the day they were seen.

    Args:
        ends: the last end of each break.
        breaks: what is open; it has not ended, whatever was said before.
    """
    gone = {
        identity: end for identity, end in ends.items() if identity not in set(breaks["break_id"])
    }
    closed = frozenset(identity for identity, end in gone.items() if end.movement in FOR_GOOD)
    return closed, {
        identity: end.first_seen for identity, end in gone.items() if identity not in closed
    }


def ended_so_far(
    result: Reconciliation, *, previous: Previous | None
) -> tuple[frozenset[str], Mapping[str, str]]:
    """What the next run must know of breaks that are not open any more (see `split_ends`)."""
    if previous is None:
        return frozenset(), {}
    ends = {identity: BreakEnd(identity, FOR_GOOD[0], "") for identity in previous.closed}
    ends |= {identity: BreakEnd(identity, NOT_SEEN, day) for identity, day in previous.away.items()}
    ends |= {end.break_id: end for end in ends_of(result, previous=previous)}
    return split_ends(ends, breaks=result.breaks)


def with_reopened(result: Reconciliation) -> pd.DataFrame:
    """The breaks, each with the closed break that it opens again (`reopens`, "" for most)."""
    moved = result.movements
    older = dict(zip(moved["break_id"], moved["reopens"], strict=True))
    return result.breaks.assign(
        reopens=[older.get(identity, "") for identity in result.breaks["break_id"]]
    )

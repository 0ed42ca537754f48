"""A night in memory, compared in parts of its order numbers."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from recon.config.rules import Rules
from recon.matching.breaks.result import Deferred, Reconciliation
from recon.matching.breaks.result_frames import OPEN_SORTED_BY
from recon.matching.frames.sources import Previous, Sources
from recon.proof.books_bridge import Books
from recon.proof.night_parts import (
    FRAMES,
    Gathering,
    JudgedPart,
    judged_part,
    reconcile_rest,
    settled_of_parts,
)


class InMemory:
    """The rows of parts as frames."""

    def __init__(self, parts: list[JudgedPart]) -> None:
        self.parts = parts

    def columns(self, section: str, *, rest: pd.DataFrame) -> pd.DataFrame:
        """All rows, sorted as a result is."""
        every = pd.concat([rest, *(part.frames[section] for part in self.parts)])
        return every.sort_values(OPEN_SORTED_BY, kind="stable").reset_index(drop=True)


def stretches_of(night: Sources, *, size: int) -> Iterator[Sources]:
    """All rows of so many order numbers at a time."""
    frames = {name: getattr(night, name) for name in FRAMES}
    given = {name: frame for name, frame in frames.items() if frame is not None}
    names = sorted({word for frame in given.values() for word in frame["order_no"]})
    for first in range(0, len(names), size):
        mine = names[first : first + size]
        own: dict[str, Any] = {
            name: frame[frame["order_no"].isin(mine)].reset_index(drop=True)
            for name, frame in given.items()
        }
        yield replace(night, **own)


class InParts(NamedTuple):
    """A night in parts."""

    result: Reconciliation
    """Its frames with the rows of the parts."""
    parts: list[JudgedPart]
    books: Books


def left_of(night: Sources, *, parts: list[JudgedPart]) -> Sources:
    """What is left of all parts, with all that is not cut."""
    frames: dict[str, Any] = {
        name: pd.concat([getattr(part.left, name) for part in parts], ignore_index=True)
        for name in FRAMES
        if getattr(night, name) is not None
    }
    settled = settled_of_parts(frames.get("settlement"), parts=[part.figures for part in parts])
    return replace(night, **frames | {"settlement": settled})


def reconciled_in_parts(
    night: Sources, *, size: int, rules: Rules, as_of: datetime, previous: Previous | None
) -> InParts:
    """Compare a night in parts of so many order numbers."""
    told: dict[str, Any] = {"rules": rules, "as_of": as_of, "previous": previous}
    gathering = Gathering(night, rules=rules)
    rows = [*stretches_of(night, size=size)]
    for each in rows:
        gathering.see(each)
    for number in gathering.to_see_again():
        gathering.see_again(rows[number])
    known = gathering.elsewhere()
    parts = [judged_part(each, elsewhere=known, **told) for each in rows]
    merged = InMemory(parts)
    result = reconcile_rest(
        left_of(night, parts=parts),
        parts=[part.figures for part in parts],
        merged=merged,
        **told,
    )
    items = pa.concat_tables([result.items, *(part.items for part in parts)])
    open_sets = {
        name: merged.columns(name, rest=getattr(result, name)) for name in ("pending", "unverified")
    }
    whole = replace(result, **open_sets, aside={}, every_item=Deferred(lambda: items))
    return InParts(whole, parts, gathering.books())

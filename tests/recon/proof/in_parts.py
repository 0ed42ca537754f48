"""A night in memory, compared in parts of its order numbers."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.breaks.result_frames import OPEN_SORTED_BY
from recon.matching.frames.sources import Previous, Sources
from recon.proof.gathering import Gathering
from recon.proof.night_parts import FRAMES, JudgedPart, digest_turned, judged_part
from recon.proof.whole_of_parts import reconcile_rest


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


def parts_of(
    night: Sources, *, size: int, rules: Rules, as_of: datetime, previous: Previous | None
) -> tuple[list[JudgedPart], Gathering, list[str]]:
    """Every part judged, what was gathered for it, and the digests in the other order."""
    gathering = Gathering(night, rules=rules)
    rows = [*stretches_of(night, size=size)]
    for each in rows:
        gathering.see(each)
    for number in gathering.to_see_again():
        gathering.see_again(rows[number])
    told: dict[str, Any] = {
        "elsewhere": gathering.elsewhere(),
        "rules": rules,
        "as_of": as_of,
        "previous": previous,
    }
    parts = [judged_part(each, **told) for each in rows]
    return parts, gathering, [digest_turned(each, **told) for each in rows]


def left_of(night: Sources, *, parts: list[JudgedPart]) -> Sources:
    """What is left of all parts, with all that is not cut."""
    frames: dict[str, Any] = {
        name: pd.concat([getattr(part.left, name) for part in parts], ignore_index=True)
        for name in FRAMES
        if getattr(night, name) is not None
    }
    return replace(night, **frames)


def reconciled_in_parts(
    night: Sources, *, size: int, rules: Rules, as_of: datetime, previous: Previous | None
) -> tuple[Reconciliation, list[JudgedPart]]:
    """The result of a night in parts, its frames with the rows of the parts."""
    parts, _, _ = parts_of(night, size=size, rules=rules, as_of=as_of, previous=previous)
    merged = InMemory(parts)
    result = reconcile_rest(
        left_of(night, parts=parts),
        parts=[part.figures for part in parts],
        merged=merged,
        rules=rules,
        as_of=as_of,
        previous=previous,
    )
    items = pa.concat_tables([result.items, *(part.items for part in parts)])
    open_sets = {
        name: merged.columns(name, rest=getattr(result, name)) for name in ("pending", "unverified")
    }
    whole = replace(result, **open_sets, aside={})
    whole.every_item.get()
    return replace(whole, every_item=_held(items)), parts


def _held(items: pa.Table) -> Any:
    from recon.matching.breaks.result import Deferred

    return Deferred(lambda: items)

"""Card numbers in columns of files: an id that holds one is refused, never masked.

One long id in forty looks like a card by chance, so a column of ids is judged by all that it says:
it holds cards only where more of what an issuer could have given passes the check digit than does
not. In sentences every number counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.typing.cell_bytes import digits_max_of
from recon.privacy.card_numbers import DIGITS_MIN, LIKELY, Likeness, likeness


def likely_cards(cells: pa.Array) -> tuple[list[int], list[int]]:
    """Row numbers of cells with a card in them, and of those that only lack its check digit."""
    long = pa.array(np.flatnonzero(digits_max_of(cells) >= DIGITS_MIN))
    if not len(long):
        return [], []
    likely: Any = pc.indices_nonzero(pc.match_substring_regex(cells.take(long), LIKELY))
    rows = long.take(likely)
    judged = [
        (row, likeness(text))
        for row, text in zip(rows.to_pylist(), cells.take(rows).to_pylist(), strict=True)
    ]
    hits, misses = (
        [row for row, looks in judged if looks is sought]
        for sought in (Likeness.CARD, Likeness.BUT_CHECK_DIGIT)
    )
    return hits, misses


@dataclass(slots=True)
class CardTally:
    """Whether a column holds cards, judged over all parts of a file: more pass than do not."""

    decided: Mapping[str, bool] = field(default_factory=dict)
    """By an earlier reading of the same file, for every column."""
    hits: dict[str, int] = field(default_factory=dict)
    misses: dict[str, int] = field(default_factory=dict)
    taken: dict[str, set[bool]] = field(default_factory=dict)
    """How parts of a column were judged by themselves."""

    def takes(self, column: str, *, hits: int, misses: int) -> bool:
        """Whether the cells of this part that look like cards count as such."""
        takes = bool(hits) and self.decided.get(column, hits > misses)
        judged = {column: {takes}} if hits else {}
        self.add(CardTally(hits={column: hits}, misses={column: misses}, taken=judged))
        return takes

    def add(self, part: "CardTally") -> None:
        """Count what was seen in another part of the same file."""
        for name, hits in part.hits.items():
            self.hits[name] = self.hits.get(name, 0) + hits
            self.misses[name] = self.misses.get(name, 0) + part.misses[name]
        for name, taken in part.taken.items():
            self.taken.setdefault(name, set()).update(taken)

    @property
    def whole(self) -> dict[str, bool]:
        """Column -> whether it holds cards, by all that was read."""
        return {column: hits > self.misses[column] for column, hits in self.hits.items()}

    @property
    def agrees(self) -> bool:
        """Whether every part was judged as the whole file is."""
        return all(taken == {self.whole[column]} for column, taken in self.taken.items())


def holds_card_numbers(cells: pa.Array) -> bool:
    """Whether cards stand in a column, by the rule of columns."""
    hits, misses = card_runs(cells)
    return hits > misses


def card_runs(cells: pa.Array) -> tuple[int, int]:
    """Cells of a column with a card in them, and cells that only lack its check digit."""
    hits, misses = likely_cards(cells)
    return len(hits), len(misses)

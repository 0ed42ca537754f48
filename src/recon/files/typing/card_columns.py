"""Card numbers in columns of files: an id that holds one is refused, never masked.

One long id in forty looks like a card by chance, so a column of ids is judged by all that it says:
it holds cards only where more of what an issuer could have given passes the check digit than does
not. In sentences every number counts.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recon.privacy.card_numbers import DIGITS_MIN, LIKELY, Likeness, likeness


def likely_cards(cells: pa.Array) -> tuple[list[int], list[int]]:
    """Row numbers of cells with a card in them, and of those that only lack its check digit."""
    lengths: Any = pc.binary_length(cells)
    long: Any = pc.indices_nonzero(pc.greater_equal(lengths, pa.scalar(DIGITS_MIN, lengths.type)))
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


def holds_card_numbers(cells: pa.Array) -> bool:
    """Whether cards stand in a column, by the rule of columns."""
    hits, misses = likely_cards(cells)
    return len(hits) > len(misses)

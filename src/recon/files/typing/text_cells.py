"""Text columns of ids, codes and terms: check each cell against its grammar.

Most columns of a large file have few distinct values, so each is checked once. An id that contains
a card number is refused, never masked. One long id in forty looks like a card number by chance, so
an id column is judged as a whole: it holds card numbers only if more of its issuable numbers pass
the check digit than fail it. In free text every number counts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.formats.format_limits import NUMBER_DIGITS_MAX
from recon.files.typing.table_schema import Grammar
from recon.privacy.card_numbers import DIGITS_MIN, LIKELY, Likeness, holds_card, likeness

LOOKED_AT = 64
"""Number of leading rows by which a column is found to be worth dictionary encoding."""
ROWS_PER_TEXT = 16
"""Average number of rows per distinct text from which encoding is worthwhile."""


class Distinct(NamedTuple):
    """A column as texts, and the index of a text for each row."""

    texts: pa.Array
    codes: npt.NDArray[np.int64]

    @property
    def by_cell(self) -> pa.Array:
        """The original column."""
        return self.texts.take(pa.array(self.codes))

    def by_row(self, problems: Mapping[int, str]) -> dict[int, str]:
        """Return the problems by row, given those by text index."""
        if not problems:
            return {}
        rows = np.flatnonzero(np.isin(self.codes, [*problems]))
        return {int(row): problems[int(self.codes[row])] for row in rows}

    def rows_of(self, texts: Sequence[int]) -> int:
        """Return how many rows have one of these texts."""
        return int(np.isin(self.codes, texts).sum())


def distinct(cells: pa.Array) -> Distinct:
    """Return the distinct texts of a column, in order of first appearance."""
    encoded: Any = cells.dictionary_encode()
    return Distinct(encoded.dictionary, np.asarray(encoded.indices).astype(np.int64))


def distinct_if_few(cells: pa.Array) -> Distinct:
    """Like `distinct`; but if the column begins with many different texts, one text per row."""
    seen = pc.unique(cells.slice(0, LOOKED_AT))
    if len(seen) * ROWS_PER_TEXT <= len(cells.slice(0, LOOKED_AT)):
        return distinct(cells)
    return Distinct(cells, np.arange(len(cells)))


CellProblems = dict[int, str]
"""Row number -> reason."""


def note_cells(problems: CellProblems, wrong: Any, *, why: str) -> None:
    """Record `why` for every row where `wrong` holds, unless it has a reason already."""
    rows = np.flatnonzero(np.array(wrong, dtype=bool)).tolist()
    problems.update({row: why for row in rows if row not in problems})


def likely_cards(cells: pa.Array) -> tuple[list[int], list[int]]:
    """Return the rows that contain a card number, and those that only fail its check digit."""
    lengths: Any = pc.binary_length(cells)
    long: Any = pc.indices_nonzero(pc.greater_equal(lengths, pa.scalar(DIGITS_MIN, lengths.type)))
    likely: Any = pc.indices_nonzero(pc.match_substring_regex(cells.take(long), LIKELY))
    rows = long.take(likely)
    classified = [
        (row, likeness(text))
        for row, text in zip(rows.to_pylist(), cells.take(rows).to_pylist(), strict=True)
    ]
    hits, misses = (
        [row for row, looks in classified if looks is sought]
        for sought in (Likeness.CARD, Likeness.BUT_CHECK_DIGIT)
    )
    return hits, misses


def holds_card_numbers(cells: pa.Array) -> bool:
    """Return whether a column holds card numbers, by the rule for whole columns."""
    hits, misses = likely_cards(cells)
    return len(hits) > len(misses)


FREE_TEXTS = frozenset({Grammar.REASON, Grammar.NAME})
"""Grammars in which a card number may occur between other words."""

OF_OTHERS = frozenset({Grammar.WORDS})
"""Text that other people wrote to a bank: it may contain a card number, and is masked before it is
displayed or stored, if it is stored at all."""

_WHOLE_NUMBER = rf"\A-?[0-9]{{1,{NUMBER_DIGITS_MAX}}}\z"
_WORDS_DISPLAYED_MAX = 20


def read_text(cells: pa.Array, *, grammar: Grammar, numbers: pa.Array | None) -> dict[int, str]:
    """Return the problems of filled cells by row number; blank cells are checked elsewhere."""
    own = distinct_if_few(cells)
    pattern, sentence = grammar.value
    fits = pc.match_substring_regex(own.texts, rf"\A(?:{pattern})?\z")
    misfits = {
        row: f"is not {sentence}{_foreign_mark(own.texts[row].as_py())}"
        for row in _rows(pc.invert(fits))
    }
    problems = own.by_row(misfits)
    if numbers is not None:
        odd = pc.and_(numbers, pc.invert(pc.match_substring_regex(cells, _WHOLE_NUMBER)))
        why = f"is no text and no whole number of up to {NUMBER_DIGITS_MAX} digits; make it text"
        problems |= dict.fromkeys(_rows(pc.and_(odd, pc.not_equal(cells, ""))), why)
    if grammar not in OF_OTHERS:
        hits, misses = likely_cards(own.texts)
        if grammar in FREE_TEXTS or own.rows_of(hits) > own.rows_of(misses):
            why = "looks like a card number, which does not belong here"
            problems |= own.by_row(dict.fromkeys(hits, why))
    return problems


def is_fit(text: str, *, grammar: Grammar) -> bool:
    """Return whether a cell is blank, or fits its grammar without a card number."""
    return not text or bool(re.fullmatch(grammar.value[0], text, re.ASCII) and not holds_card(text))


def read_words(cells: pa.Array, *, words: frozenset[str]) -> dict[int, str]:
    """Return the problems of filled cells that are not one of the terms."""
    shown = ", ".join(sorted(words)[:_WORDS_DISPLAYED_MAX])
    own = distinct(cells)
    wrong = np.flatnonzero(~is_one_of(own.texts, {"", *words})).tolist()
    return own.by_row(dict.fromkeys(wrong, f"is none of {shown}"))


def is_one_of(cells: pa.Array, words: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return which cells are one of these terms."""
    known = pa.array([str(word) for word in words], pa.large_string())
    return np.array(pc.is_in(cells, value_set=known), dtype=bool)


def _rows(mask: Any) -> list[int]:
    return np.flatnonzero(np.array(mask, dtype=bool)).tolist()


def _foreign_mark(text: str) -> str:
    """Name the first non-ASCII or unprintable character, which may be invisible on a screen."""
    for number, character in enumerate(text, start=1):
        if not (character.isascii() and character.isprintable()):
            return f" (character {number} is U+{ord(character):04X})"
    return ""

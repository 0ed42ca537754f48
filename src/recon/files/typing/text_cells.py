"""Columns of ids, codes and words: what does not fit its grammar, and why."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.formats.format_limits import NUMBER_DIGITS_MAX
from recon.files.typing.card_columns import CardTally, likely_cards
from recon.files.typing.cell_bytes import surely_fit
from recon.files.typing.few_words import few_words
from recon.files.typing.table_schema import Grammar
from recon.privacy.card_numbers import holds_card

FREE_TEXTS = frozenset({Grammar.REASON, Grammar.NAME})
"""In which a card number may stand between other words."""

OF_OTHERS = frozenset({Grammar.WORDS})
"""What other people write to a bank: it may hold a card number, and is masked before it is shown or
kept, where it is kept at all."""

_WHOLE_NUMBER = rf"\A-?[0-9]{{1,{NUMBER_DIGITS_MAX}}}\z"
_WORDS_SHOWN_MAX = 20


def read_text(
    cells: pa.Array,
    *,
    grammar: Grammar,
    numbers: pa.Array | None,
    column: str = "",
    cards: CardTally | None = None,
) -> dict[int, str]:
    """Problems of filled cells by row number; blank cells are nobody's problem here."""
    if numbers is None and (few := few_words(cells)) is not None:
        judged, times = few.words, few.times()
    else:
        few, judged, times = None, cells, None
    problems = _misfits(judged, grammar=grammar)
    if numbers is not None:
        odd = pc.and_(numbers, pc.invert(pc.match_substring_regex(cells, _WHOLE_NUMBER)))
        why = f"is no text and no whole number of up to {NUMBER_DIGITS_MAX} digits; make it text"
        problems |= dict.fromkeys(_rows(pc.and_(odd, pc.not_equal(cells, ""))), why)
    if grammar not in OF_OTHERS:
        tally = cards or CardTally()
        hits = _cards(judged, times=times, grammar=grammar, column=column, cards=tally)
        problems |= dict.fromkeys(hits, "looks like a card number, which does not belong here")
    return problems if few is None else few.by_row(problems)


def _misfits(cells: pa.Array, *, grammar: Grammar) -> dict[int, str]:
    """Filled cells that are not what the grammar allows."""
    pattern, sentence = grammar.value
    if surely_fit(cells, pattern=pattern):
        return {}
    filled = np.array(pc.not_equal(cells, ""), dtype=bool)
    misfits = ~np.array(pc.match_substring_regex(cells, rf"\A(?:{pattern})\z"), dtype=bool)
    return {
        row: f"is not {sentence}{_foreign_mark(cells[row].as_py())}"
        for row in np.flatnonzero(filled & misfits).tolist()
    }


def _cards(
    judged: pa.Array,
    *,
    times: npt.NDArray[np.intp] | None,
    grammar: Grammar,
    column: str,
    cards: CardTally,
) -> list[int]:
    """Which cells, or words that stand in so many rows each, hold a card that counts as one."""
    hits, misses = likely_cards(judged)
    if grammar in FREE_TEXTS:
        return hits
    counts = [len(rows) if times is None else int(times[rows].sum()) for rows in (hits, misses)]
    return hits if cards.takes(column, hits=counts[0], misses=counts[1]) else []


def is_fit(text: str, *, grammar: Grammar) -> bool:
    """Whether one cell is blank, or fits its grammar and holds no card number."""
    return not text or bool(re.fullmatch(grammar.value[0], text, re.ASCII) and not holds_card(text))


def read_words(cells: pa.Array, *, words: frozenset[str]) -> dict[int, str]:
    """Problems of filled cells that are none of the words."""
    known = pa.array(["", *sorted(words)], pa.large_string())
    shown = ", ".join(sorted(words)[:_WORDS_SHOWN_MAX])
    few = few_words(cells)
    wrong = _rows(pc.invert(pc.is_in(cells if few is None else few.words, value_set=known)))
    problems = dict.fromkeys(wrong, f"is none of {shown}")
    return problems if few is None else few.by_row(problems)


def _rows(mask: Any) -> list[int]:
    return np.flatnonzero(np.array(mask, dtype=bool)).tolist()


def _foreign_mark(text: str) -> str:
    """Which character is foreign: look-alikes and invisible ones cannot be seen on a screen."""
    for number, character in enumerate(text, start=1):
        if not (character.isascii() and character.isprintable()):
            return f" (character {number} is U+{ord(character):04X})"
    return ""

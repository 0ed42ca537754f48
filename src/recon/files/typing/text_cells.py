"""Columns of ids, codes and words: what does not fit its grammar, and why."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.formats.format_limits import NUMBER_DIGITS_MAX
from recon.files.typing.card_columns import likely_cards
from recon.files.typing.distinct import distinct, distinct_if_few
from recon.files.typing.table_schema import Grammar
from recon.privacy.card_numbers import holds_card

FREE_TEXTS = frozenset({Grammar.REASON, Grammar.NAME})
"""In which a card number may stand between other words."""

OF_OTHERS = frozenset({Grammar.WORDS})
"""What other people write to a bank: it may hold a card number, and is masked before it is shown or
kept, where it is kept at all."""

_WHOLE_NUMBER = rf"\A-?[0-9]{{1,{NUMBER_DIGITS_MAX}}}\z"
_WORDS_SHOWN_MAX = 20


def read_text(cells: pa.Array, *, grammar: Grammar, numbers: pa.Array | None) -> dict[int, str]:
    """Problems of filled cells by row number; blank cells are nobody's problem here."""
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
    """Whether one cell is blank, or fits its grammar and holds no card number."""
    return not text or bool(re.fullmatch(grammar.value[0], text, re.ASCII) and not holds_card(text))


def read_words(cells: pa.Array, *, words: frozenset[str]) -> dict[int, str]:
    """Problems of filled cells that are none of the words."""
    known = pa.array(["", *sorted(words)], pa.large_string())
    shown = ", ".join(sorted(words)[:_WORDS_SHOWN_MAX])
    own = distinct(cells)
    wrong = _rows(pc.invert(pc.is_in(own.texts, value_set=known)))
    return own.by_row(dict.fromkeys(wrong, f"is none of {shown}"))


def _rows(mask: Any) -> list[int]:
    return np.flatnonzero(np.array(mask, dtype=bool)).tolist()


def _foreign_mark(text: str) -> str:
    """Which character is foreign: look-alikes and invisible ones cannot be seen on a screen."""
    for number, character in enumerate(text, start=1):
        if not (character.isascii() and character.isprintable()):
            return f" (character {number} is U+{ord(character):04X})"
    return ""

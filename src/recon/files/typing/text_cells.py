"""Columns of ids, codes and words: what does not fit its grammar, and why."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.typing.card_columns import CardTally, likely_cards
from recon.files.typing.cell_bytes import surely_fit
from recon.files.typing.table_schema import Grammar
from recon.privacy.card_numbers import holds_card

FREE_TEXTS = frozenset({Grammar.REASON, Grammar.NAME})
"""In which a card number may stand between other words."""

OF_OTHERS = frozenset({Grammar.WORDS})
"""What other people write to a bank: it may hold a card number, and is masked before it is shown or
kept, where it is kept at all."""

NUMBER_DIGITS_MAX = 15
"""Digits that a spreadsheet's number holds exactly."""

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
    pattern, sentence = grammar.value
    filled = pc.not_equal(cells, "")
    places = np.flatnonzero(np.array(filled, dtype=bool))
    given = cells.filter(filled) if len(places) < len(cells) else cells
    # A column of one value, such as the account's own id, is judged by its first cell.
    same = len(given) > 1 and bool(pc.all(pc.equal(given, given[0])).as_py())
    times = len(given) if same else 1
    judged = given.slice(0, 1) if same else given
    problems = {
        int(places[at]): f"is not {sentence}{_foreign_mark(given[at].as_py())}"
        for at in _every(_unfit(judged, pattern=pattern), times=times)
    }
    if numbers is not None:
        odd = pc.and_(numbers, pc.invert(pc.match_substring_regex(cells, _WHOLE_NUMBER)))
        why = f"is no text and no whole number of up to {NUMBER_DIGITS_MAX} digits; make it text"
        problems |= dict.fromkeys(_rows(pc.and_(odd, filled)), why)
    if grammar in OF_OTHERS:
        return problems
    tally = cards or CardTally()
    for at in _cards(judged, times=times, grammar=grammar, column=column, cards=tally):
        problems[int(places[at])] = "looks like a card number, which does not belong here"
    return problems


def _unfit(cells: pa.Array, *, pattern: str) -> list[int]:
    if surely_fit(cells, pattern=pattern):
        return []
    return _rows(pc.invert(pc.match_substring_regex(cells, rf"\A(?:{pattern})\z")))


def _cards(
    judged: pa.Array, *, times: int, grammar: Grammar, column: str, cards: CardTally
) -> list[int]:
    card_rows, misses = likely_cards(judged)
    if grammar in FREE_TEXTS:
        return _every(card_rows, times=times)
    hits = _every(card_rows, times=times)
    return hits if cards.takes(column, hits=len(hits), misses=misses * times) else []


def _every(rows: list[int], *, times: int) -> list[int]:
    """The rows, or all rows of a column whose one value was judged."""
    return rows if times == 1 or not rows else list(range(times))


def is_fit(text: str, *, grammar: Grammar) -> bool:
    """Whether one cell is blank, or fits its grammar and holds no card number."""
    return not text or bool(re.fullmatch(grammar.value[0], text, re.ASCII) and not holds_card(text))


def read_words(cells: pa.Array, *, words: frozenset[str]) -> dict[int, str]:
    """Problems of filled cells that are none of the words."""
    known = pa.array(["", *sorted(words)], pa.large_string())
    shown = ", ".join(sorted(words)[:_WORDS_SHOWN_MAX])
    wrong = pc.invert(pc.is_in(cells, value_set=known))
    return dict.fromkeys(_rows(wrong), f"is none of {shown}")


def _rows(mask: Any) -> list[int]:
    return np.flatnonzero(np.array(mask, dtype=bool)).tolist()


def _foreign_mark(text: str) -> str:
    """Which character is foreign: look-alikes and invisible ones cannot be seen on a screen."""
    for number, character in enumerate(text, start=1):
        if not (character.isascii() and character.isprintable()):
            return f" (character {number} is U+{ord(character):04X})"
    return ""

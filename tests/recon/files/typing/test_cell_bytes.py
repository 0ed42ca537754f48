"""One look at the bytes of a column never says more than a match of each of its cells."""

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.files.typing.card_columns import likely_cards
from recon.files.typing.cell_bytes import digits_max_of, surely_fit
from recon.files.typing.table_schema import Grammar
from recon.privacy.card_numbers import holds_card

CELLS = st.lists(st.text("aZ09#._-/: é\uff14\x00\n", max_size=52) | st.just("A" * 50), max_size=4)


@settings(max_examples=200)
@given(cells=CELLS, skipped=st.integers(0, 2), grammar=st.sampled_from(Grammar))
def test_what_surely_fits_fits(cells: list[str], skipped: int, grammar: Grammar) -> None:
    """Also of a part of a column, whose bytes begin among those of others."""
    part = pa.array(cells, pa.large_string()).slice(skipped)
    fits = all(re.fullmatch(grammar.value[0], cell, re.ASCII) for cell in part.to_pylist())

    assert fits or not surely_fit(part, pattern=grammar.value[0])


@pytest.mark.parametrize("grammar", [Grammar.ORDER_KEY, Grammar.ACCOUNT, Grammar.TRANSACTION])
def test_ordinary_ids_need_no_further_look(grammar: Grammar) -> None:
    """Fifty characters are the most, and one is the least."""
    cells = ["A", "a-1._", "9" * 50]

    assert surely_fit(pa.array(cells), pattern=grammar.value[0])
    assert not surely_fit(pa.array([*cells, "9" * 51]), pattern=grammar.value[0])
    assert not surely_fit(pa.array([*cells, ""]), pattern=grammar.value[0])


def test_ordinary_references_need_no_further_look() -> None:
    """Blanks may stand between two other characters, and sixty-four characters are the most."""
    pattern = Grammar.REFERENCE.value[0]

    assert surely_fit(pa.array(["A", "L 1", "!" * 64]), pattern=pattern)
    for cell in (" A", "A ", "!" * 65, ""):
        assert not surely_fit(pa.array(["A", cell]), pattern=pattern)


@settings(max_examples=200)
@given(st.lists(st.text("a4é\uff14- ", max_size=40), max_size=4))
def test_no_digit_is_missed(cells: list[str]) -> None:
    """Digits of other scripts are digits of a card too."""
    texts = pa.array(cells, pa.large_string())

    assert all(
        most >= sum(character.isdigit() for character in cell)
        for most, cell in zip(digits_max_of(texts).tolist(), cells, strict=True)
    )
    assert [*map(holds_card, cells)] == [row in likely_cards(texts)[0] for row in range(len(cells))]

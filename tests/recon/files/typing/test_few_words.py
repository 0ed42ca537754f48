"""A column of few words is judged word by word, and each row as it would be by itself."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.files.typing.card_columns import CardTally
from recon.files.typing.few_words import ROWS_MIN, few_words, numbered_words
from recon.files.typing.table_schema import Grammar
from recon.files.typing.text_cells import read_text, read_words

CARD, ALMOST = "4111111111111111", "4111111111111112"
WORDS = ["M1", "", " M", CARD, ALMOST, "4-x", "é"]


@settings(max_examples=100)
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), grammar=st.sampled_from(Grammar)
)
def test_each_row_is_judged_as_if_it_stood_among_many_words(
    words: list[str], grammar: Grammar
) -> None:
    """Whether a column is read word by word or row by row shows in nothing, nor in its tally."""
    texts = words * ROWS_MIN
    tallies = [CardTally(), CardTally()]
    column = pa.array(texts, pa.large_string())
    assert few_words(column) is not None
    by_word, by_row = (
        read_text(column, grammar=grammar, numbers=numbers, column="c", cards=tally)
        for numbers, tally in zip((None, pa.array([False] * len(texts))), tallies, strict=True)
    )

    assert by_word == by_row
    assert tallies[0] == tallies[1]


def test_a_word_that_is_none_of_them_is_told_for_each_of_its_rows() -> None:
    """Row numbers are those of the column."""
    column = pa.array(["paid", "", "payed"] * ROWS_MIN, pa.large_string())
    problems = read_words(column, words=frozenset({"paid"}))

    assert problems == dict.fromkeys(range(2, 3 * ROWS_MIN, 3), "is none of paid")


@pytest.mark.parametrize(
    "texts",
    [
        ["same"] * (ROWS_MIN - 1),
        [str(row) for row in range(ROWS_MIN)],
        ["same"] * ROWS_MIN + [str(row) for row in range(ROWS_MIN)],
    ],
)
def test_few_rows_and_many_words_are_judged_row_by_row(texts: list[str]) -> None:
    """Also where the many words stand behind the rows that are looked at first."""
    assert few_words(pa.array(texts, pa.large_string())) is None


@given(texts=st.lists(st.sampled_from(["a", "b", ""]), max_size=9), skipped=st.integers(0, 3))
def test_each_row_has_the_number_of_its_word(texts: list[str], skipped: int) -> None:
    """Also in a part of a column."""
    column = pa.array(texts, pa.large_string()).slice(skipped)
    numbered = numbered_words(column)

    assert np.array(numbered.words.to_pylist(), object)[numbered.numbers].tolist() == (
        column.to_pylist()
    )
    assert len(set(numbered.words.to_pylist())) == len(numbered.words)
    assert int(numbered.times().sum()) == len(column)

"""A column is judged text by text, and each row as it would be by itself."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.files.typing.table_schema import Grammar
from recon.files.typing.text_cells import (
    LOOKED_AT,
    distinct,
    distinct_if_few,
    read_text,
    read_words,
)

CARD, ALMOST = "4111111111111111", "4111111111111112"
WORDS = ["M1", "", " M", CARD, ALMOST, "4-x", "é"]


@settings(max_examples=100)
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), grammar=st.sampled_from(Grammar)
)
def test_each_row_is_judged_as_if_it_stood_among_many_texts(
    words: list[str], grammar: Grammar
) -> None:
    """Whether the texts of a column are few shows in nothing, cards among them."""
    texts = words * LOOKED_AT
    few = pa.array(texts, pa.large_string())
    many = pa.array([*map(str, range(LOOKED_AT)), *texts], pa.large_string())
    assert len(distinct_if_few(few).texts) < len(distinct_if_few(many).texts) == len(many)
    behind = read_text(many, grammar=grammar, numbers=None)
    behind = {row - LOOKED_AT: why for row, why in behind.items() if row >= LOOKED_AT}

    assert read_text(few, grammar=grammar, numbers=None) == behind


def test_a_word_that_is_none_of_them_is_told_for_each_of_its_rows() -> None:
    """Row numbers are those of the column."""
    column = pa.array(["paid", "", "payed"] * LOOKED_AT, pa.large_string())
    problems = read_words(column, words=frozenset({"paid"}))

    assert problems == dict.fromkeys(range(2, 3 * LOOKED_AT, 3), "is none of paid")


@given(texts=st.lists(st.sampled_from(["a", "b", ""]), max_size=9), skipped=st.integers(0, 3))
def test_each_row_has_the_code_of_its_text(texts: list[str], skipped: int) -> None:
    """Also in a part of a column."""
    column = pa.array(texts, pa.large_string()).slice(skipped)
    own = distinct(column)

    assert own.texts.take(pa.array(own.codes)).to_pylist() == column.to_pylist()
    assert len(set(own.texts.to_pylist())) == len(own.texts)
    assert own.rows_of(range(len(own.texts))) == len(column)

"""Distinct fingerprints prove distinct texts; equal texts always share one."""

import pandas as pd
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.matching.frames.digest import are_distinct, are_repeated, numbers_of

NEAR = ["", "a", "ab", "ba", "a" * 8, "a" * 9, "a" * 16, "a" * 17, "é", "ä", "b" + "a" * 16, "A"]


def column(texts: list[str | None]) -> "pd.Series[str]":
    """Texts as a column in two pieces, the second of them cut out of a longer one."""
    half = len(texts) // 2
    longer = pa.array(["cut off", *texts[half:]], pa.large_string())
    pieces = [pa.array(texts[:half], pa.large_string()), longer.slice(1)]
    return pd.Series(pd.array(pa.chunked_array(pieces, pa.large_string()), dtype="str"))


@settings(max_examples=60)
@given(st.lists(st.text(max_size=20), max_size=8))
def test_repeated_texts_are_never_distinct(texts: list[str]) -> None:
    """Whatever the texts, a repeat is seen, and a few texts that differ are told apart."""
    assert are_distinct(column([*texts])) == (len({*texts}) == len(texts))


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["", "a", "b", "bb", "c" * 9]), max_size=8))
def test_no_repeated_text_is_overlooked(texts: list[str]) -> None:
    """Every row whose text stands elsewhere is marked, and among few texts no other one."""
    expected = [text != "" and texts.count(text) > 1 for text in texts]

    assert are_repeated(column([*texts])).tolist() == expected


def test_texts_that_nearly_agree_are_told_apart() -> None:
    """One byte more, less or elsewhere is another text; a blank beside them is no text."""
    assert are_distinct(column([*NEAR]))
    assert not are_distinct(column([*NEAR, "a" * 17]))


def test_a_text_has_one_number_wherever_it_stands() -> None:
    """Beside other texts, and in another process: it is stated here."""
    numbers = numbers_of(column(["x", "", "x", ""]))

    assert numbers.tolist() == [7869353157402288317, 1760245841805064774] * 2

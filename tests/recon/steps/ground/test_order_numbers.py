"""Order numbers as a column are those that a sorted set of texts would be."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from recon.steps.ground.order_numbers import order_numbers

WORDS = st.lists(st.text(st.characters(codec="utf-8"), max_size=3), max_size=8)


@given(WORDS, WORDS, WORDS)
def test_each_comes_once_and_sorted(texts: list[str], some: list[str], more: list[str]) -> None:
    """Whether they come as texts, an array or chunks, as Python would sort them."""
    chunks = pa.chunked_array([some, more], pa.large_string())
    numbers = order_numbers([(each for each in texts), pa.array(some, pa.string()), chunks])
    wanted = sorted({*texts, *some, *more})

    assert [*numbers] == wanted
    assert numbers[1:3] == wanted[1:3]
    assert len(numbers) == len(wanted)


def test_of_nothing_there_are_none() -> None:
    """Neither of no part nor of empty ones."""
    assert [*order_numbers([])] == []
    assert [*order_numbers([[], pa.array([], pa.string())])] == []

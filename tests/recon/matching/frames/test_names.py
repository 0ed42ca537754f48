"""Whether names are among others: the same however many there are of each."""

from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.matching.frames.arrays import text_column
from recon.matching.frames.names import MANY_MORE, is_among
from tests.arrow_memory import counted

NAMES = st.lists(st.sampled_from(["", "a", "b", "ä", "ab"]), max_size=4)
MANY = 500_000


@given(column=NAMES, others=NAMES, copies=st.sampled_from([1, MANY_MORE * 5]))
def test_each_name_is_looked_for_among_the_others(
    column: list[str], others: list[str], copies: int
) -> None:
    """As Python says it, in the index of the column."""
    index = pd.RangeIndex(7, 7 + len(column))
    texts = pd.Series(column, index=index, dtype="str")

    among = is_among(texts, text_column(others * copies))

    assert among.index.equals(index)
    assert among.tolist() == [name in others for name in column]


@pytest.fixture
def pool() -> Iterator[pa.MemoryPool]:
    """Counts what Arrow takes."""
    with counted() as counting:
        yield counting


def test_few_names_among_very_many_take_no_table_of_all(pool: pa.MemoryPool) -> None:
    """Five million orders stood in one of 360 MB to say which of a few were among them."""
    many = text_column([f"order-{number:09}" for number in range(MANY)])
    before = pool.bytes_allocated()

    assert is_among(text_column(["order-000000007", "other"]), many).tolist() == [True, False]

    assert pool.max_memory() - before < 10 * MANY

"""Partitions by the order key: balanced, and the same everywhere."""

import numpy as np
import pandas as pd
import pytest

from recon.matching.exact.partitioned import partition_of, rows_by_partition


def texts(*words: str) -> "pd.Series[str]":
    """A column of order numbers."""
    return pd.Series(words, dtype="str")


@pytest.mark.parametrize("form", ["{}", "INV.2026.11.20-0000-{:06d}", "{:032d}", "é{}-ABCDEFG"])
def test_partitions_are_about_as_large_as_each_other(form: str) -> None:
    """Whatever the shop's order numbers look like."""
    sizes = np.bincount(partition_of(texts(*map(form.format, range(9_000))), partitions=3))

    assert sizes.min() > 2_700
    assert sizes.sum() == 9_000


def test_a_row_is_in_the_partition_of_its_number_wherever_it_stands() -> None:
    """Another frame, order, slice or length of its neighbours changes nothing."""
    words = [f"{'x' * (number % 40)}{number}" for number in range(200)]
    told = dict(zip(words, partition_of(texts(*words), partitions=5), strict=True))

    for others in (words[::-1], words[7:9], words[50:]):
        again = partition_of(texts(*others), partitions=5)
        assert [told[word] for word in others] == again.tolist()
    cut = texts(*words).iloc[11:20]
    assert partition_of(cut, partitions=5).tolist() == [told[word] for word in words[11:20]]


def test_a_row_without_a_number_is_in_no_partition() -> None:
    """Every other row is in exactly one, in its order."""
    split = rows_by_partition(texts("b", "", "a", "b", ""), partitions=4)

    assert sorted(row for rows in split for row in rows) == [0, 2, 3]
    assert next(rows.tolist() for rows in split if 0 in rows)[-1] == 3
    assert [len(rows) for rows in rows_by_partition(texts(), partitions=2)] == [0, 0]

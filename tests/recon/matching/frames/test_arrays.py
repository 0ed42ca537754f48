"""Columns of one length, and the frames that they become."""

import numpy as np
import pandas as pd
import pytest

from recon.matching.frames.arrays import (
    Arrays,
    among,
    filled,
    frame_of_cells,
    records,
    stacked,
    text_column,
)
from recon.matching.frames.sources import TEXT


def table() -> Arrays:
    """Three rows of a text and a number."""
    return Arrays({"name": np.array(["b", "", "a"], dtype=object), "n": np.arange(3)}, size=3)


@pytest.mark.parametrize(
    ("rows", "names"),
    [([2, 0], ["a", "b"]), (np.array([True, False, True]), ["b", "a"]), (slice(1), ["b"])],
    ids=["numbers", "mask", "slice"],
)
def test_rows_are_taken_by_number_by_mask_and_by_slice(rows: object, names: list[str]) -> None:
    """Every column gives the same rows, and the table knows how many there are."""
    some = table().take(rows)

    assert [name for name, _ in some.rows("name", "n")] == names
    assert len(some) == len(names)


def test_a_single_value_stands_in_every_row_and_the_first_table_stays() -> None:
    """Other columns make another table."""
    one = table()

    assert [*one.assign(n=7).rows("name", "n")] == [("b", 7), ("", 7), ("a", 7)]
    assert [*one.rows("n")] == [(0,), (1,), (2,)]


def test_tables_are_stacked_by_the_names_of_their_columns() -> None:
    """The columns may stand in any order; what is not asked for is left out."""
    other = Arrays({"x": np.zeros(1), "n": np.array([9]), "name": filled("z", size=1)}, size=1)

    assert [*stacked([table(), other], names=("name", "n")).rows("name", "n")][2:] == [
        ("a", 2),
        ("z", 9),
    ]


def test_texts_come_back_as_a_column_of_the_type_of_the_sources() -> None:
    """Also where there is none."""
    for words in (["x", ""], []):
        assert text_column(words).dtype == pd.Series(words, dtype=TEXT).dtype
    assert text_column(filled("w", size=2)).tolist() == ["w", "w"]


def test_cells_become_a_frame_and_the_other_way_round() -> None:
    """Texts and whole numbers, row by row, in the order that is asked for."""
    cells = [{"a": "x", "n": 1}, {"a": "y", "n": 2}]

    frame = frame_of_cells(cells, names=("n", "a"), numbers={"n"})

    assert [str(kind) for kind in frame.dtypes] == ["int64", "str"]
    assert [*records(frame, rows=np.array([1]), names=("a", "n"))] == [{"a": "y", "n": 2}]


def test_words_are_looked_for_row_by_row() -> None:
    """A blank is a word like any other."""
    assert among(table()["name"], {"a", ""}).tolist() == [False, True, True]

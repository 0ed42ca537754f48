"""Words have the numbers of their first appearance, however many there are and whoever asks."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.matching.frames import coding
from recon.matching.frames.arrays import text_column
from recon.matching.frames.coding import coded

LABELS = st.sampled_from(["", "EUR", "SEK", "capture", "refund", "é"])


@pytest.fixture(autouse=True)
def _any_number_is_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of two rows is long."""
    monkeypatch.setattr(coding, "FEW_ROWS", 1)


def column(labels: list[str | None]) -> "pd.Series[str]":
    """Words as a column in two pieces."""
    half = len(labels) // 2
    pieces = [
        pa.array(labels[:half], pa.large_string()),
        pa.array(labels[half:], pa.large_string()),
    ]
    return pd.Series(pd.array(pa.chunked_array(pieces, pa.large_string()), dtype="str"))


@settings(max_examples=80)
@given(st.lists(st.lists(LABELS | st.none(), min_size=1, max_size=8), min_size=2, max_size=3))
def test_columns_share_the_numbers_of_first_appearance(columns: list[list[str | None]]) -> None:
    """Of few words or of many, asked once or again: a blank of any kind is the word without any."""
    series = [column(labels) for labels in columns]
    said = [["" if label is None else label for label in labels] for labels in columns]
    expected = [*dict.fromkeys(label for labels in said for label in labels)]

    for _ in range(2):
        codes, labels = coded(series)
        assert labels.to_pylist() == expected
        assert [[expected[code] for code in part] for part in codes] == said


def said_by(columns: list["pd.Series[str]"]) -> list[list[str]]:
    """The way back: what each column said."""
    codes, labels = coded(columns)
    texts = np.array(labels.to_pylist(), dtype=object)
    return [texts[code].tolist() if len(code) else [] for code in codes]


@pytest.mark.parametrize("pieces", [1, 3])
def test_columns_that_lie_in_one_place_are_numbered_once(pieces: int) -> None:
    """A column given twice, a copy of it, a part of it and none of it come back as they were."""
    names = [f"A{number % 100}" for number in range(257)]
    cuts = np.array_split(np.array(names, dtype=object), pieces)
    chunks = [pa.array(cut, pa.large_string()) for cut in cuts]
    column = text_column(pa.chunked_array(chunks, pa.large_string()))
    others = [text_column(names), column.iloc[5:], column.iloc[:0], text_column(["B1"])]
    columns = [column, others[0], column, *others[1:]]

    assert said_by(columns) == [each.tolist() for each in columns]
    assert len(coded(columns).labels) == 101

"""Words have the numbers of their first appearance, however many there are and whoever asks."""

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.matching.frames import coding
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

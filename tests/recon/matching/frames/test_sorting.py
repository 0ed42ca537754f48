"""Many rows are sorted as pandas would, whatever ties they have."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.matching.frames import sorting
from recon.matching.frames.sorting import LEADING, in_order, many_in_order

BY = [*LEADING, "transaction_id", "currency"]
WORDS = st.sampled_from(["", "1", "10", "2", "A", "a", "Ä", "é", "😀", "\uffee"])


@settings(max_examples=80)
@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS, WORDS), max_size=12))
def test_the_order_is_that_of_a_stable_sort(rows: list[tuple[str, ...]]) -> None:
    """Accounts, names and ties of any letters; rows that are equal in all keep their order."""
    frame = pd.DataFrame(rows, columns=BY, dtype="str").assign(at=range(len(rows)))

    expected = frame.sort_values(BY, kind="stable").reset_index(drop=True)

    pd.testing.assert_frame_equal(in_order(frame, by=BY), expected)


def test_other_columns_are_sorted_too() -> None:
    """By any columns."""
    frame = pd.DataFrame({"b": ["2", "1"], "a": ["1", "1"]}, dtype="str")

    assert in_order(frame, by=["a", "b"])["b"].tolist() == ["1", "2"]


@settings(max_examples=80)
@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS, WORDS), max_size=12))
def test_many_rows_are_in_order_and_few_stay_as_they_are(rows: list[tuple[str, ...]]) -> None:
    """As a stable sort has them; a frame in order is given back itself."""
    frame = pd.DataFrame(rows, columns=BY, dtype="str").assign(at=range(len(rows)))
    expected = frame.sort_values(BY, kind="stable").reset_index(drop=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "PIECE_ROWS", 1)
        ordered = many_in_order(frame, by=BY)

        pd.testing.assert_frame_equal(ordered, expected)
        assert many_in_order(ordered, by=BY) is ordered
    assert many_in_order(frame, by=BY) is frame

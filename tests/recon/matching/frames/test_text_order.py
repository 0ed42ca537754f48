"""Texts are ordered as their bytes are, and those that stand twice are known."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.matching.frames.text_order import in_text_order

ALPHABET = st.sampled_from(["a", "b", "\0", "é", "😀", "12345678", "INV.2026.11.20-"])
TEXTS = st.lists(ALPHABET, max_size=4).map("".join)


def ordered(texts: list[str], *, within: list[int]) -> tuple[list[tuple[int, bytes]], list[bool]]:
    """Group and bytes of each text in the order that was come to, and what is tied."""
    column = pa.array(["cut off", *texts], pa.large_string()).slice(1)
    rows, tied = in_text_order(column, within=np.array(within, dtype=np.intp))
    assert sorted(rows.tolist()) == [*range(len(texts))]
    return [(within[row], texts[row].encode()) for row in rows], tied.tolist()


@settings(max_examples=80)
@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 300]), TEXTS), max_size=12))
def test_the_order_is_that_of_the_bytes_inside_each_group(rows: list[tuple[int, str]]) -> None:
    """Of any letters, with beginnings in common, and texts that only end with zeros."""
    within, texts = [group for group, _ in rows], [text for _, text in rows]

    keys, tied = ordered(texts, within=within)

    assert keys == sorted((group, text.encode()) for group, text in rows)
    assert tied == [keys.count(key) > 1 for key in keys]


def test_many_beginnings_that_several_texts_share_are_kept_apart() -> None:
    """Some hundred groups take more than one byte of the number that is sorted."""
    texts = [f"{begin:08}-{end:04}" for end in range(3, 0, -1) for begin in range(999, 0, -1)]

    keys, tied = ordered([*texts, texts[0]], within=[0] * (len(texts) + 1))

    assert keys == sorted((0, text.encode()) for text in [*texts, texts[0]])
    assert sum(tied) == 2

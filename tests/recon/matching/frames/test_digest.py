import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from recon.matching.frames.digest import digest_of


def breaks(**columns: list[int | None]) -> pd.DataFrame:
    """Two breaks with these columns more, amounts in minor units."""
    frame = pd.DataFrame({"break_id": ["b1", "b2"], "effect_ledger": pd.array([5, None], "Int64")})
    for name, values in columns.items():
        frame[name] = pd.array(values, "Int64")
    return frame


def test_what_a_column_says_is_in_the_digest() -> None:
    """Each amount of a bank counts, and a zero is no blank."""
    amounts = [digest_of([breaks(bank_amount=[None, each])]) for each in (0, 1, None)]
    other = digest_of([breaks(effect_bank=[None, 1])])

    assert len({*amounts, other}) == 4


def test_a_column_counts_though_it_is_blank() -> None:
    """None may be missing."""
    assert digest_of([breaks(exposure=[None, None])]) != digest_of([breaks()])


@pytest.mark.parametrize(
    "chunks",
    [
        [["a", "", None, "né"]],
        [["a", ""], [], [None, "né"]],
        [[], ["a"], ["", None, "né"], []],
    ],
)
def test_texts_are_hashed_as_they_always_were(chunks: list[list[str | None]]) -> None:
    """Blanks told from texts, then all texts with a mark between, however the column lies."""
    column = pa.chunked_array(chunks, pa.large_string())
    frame = pd.DataFrame(
        {"word": column.to_pandas(types_mapper=lambda _: pd.StringDtype(na_value=np.nan))}
    )
    content = b"['word']4" + bytes([0, 0, 1, 0]) + "a\x1f\x1f\x1fné".encode()

    assert digest_of([frame]) == hashlib.sha256(content).hexdigest()


def test_a_column_without_rows_has_no_text() -> None:
    """Nothing is hashed of it."""
    frame = pd.DataFrame({"word": pd.array([], dtype=pd.StringDtype(na_value=np.nan))})

    assert digest_of([frame]) == hashlib.sha256(b"['word']0").hexdigest()

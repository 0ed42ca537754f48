"""What is held once says what it said."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from recon.matching.frames import same_words
from recon.matching.frames.digest import digest_of
from recon.matching.frames.same_words import (
    held_once,
    permuted,
    stated_once,
    taken,
    without_copies,
)

TEXT = pd.StringDtype(na_value=np.nan)
ROWS = 11


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven rows are three pieces."""
    monkeypatch.setattr(same_words, "PIECE_ROWS", 4)


def night() -> pd.DataFrame:
    """One merchant, several orders, blank words, amounts that are given, blank and both."""
    numbers = range(ROWS)
    return pd.DataFrame(
        {
            "merchant_id": pd.array(["100042"] * ROWS, TEXT),
            "order_no": pd.array([f"A{number}" for number in numbers], TEXT),
            "currency": pd.array(["EUR"] * 5 + ["USD"] + ["EUR"] * 5, TEXT),
            "reference_no": pd.array([""] * ROWS, TEXT),
            "amount": np.arange(ROWS),
            "refund_amount": pd.array([None] * ROWS, "Int64"),
            "captured_amount": pd.array([None, 5] + [None] * 9, "Int64"),
        }
    )


def addresses(column: "pd.Series[Any]") -> set[int]:
    """Where the texts of a column lie."""
    array: Any = pa.array(column)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return {chunk.buffers()[2].address for chunk in chunks}


def test_a_word_of_every_row_is_held_once_and_says_the_same() -> None:
    """Three pieces are one; the digest and every cell are those of before."""
    frame = without_copies(night())

    pd.testing.assert_frame_equal(frame, night())
    assert digest_of([frame]) == digest_of([night()])
    assert len(pa.array(frame["merchant_id"]).chunks) == 3
    assert len(addresses(frame["merchant_id"])) == 1
    blank: Any = frame["refund_amount"].array
    assert blank._data.strides == (0,)


@pytest.mark.parametrize("at", [0, 4, ROWS - 1])
def test_one_other_word_keeps_a_column_as_it_is(at: int) -> None:
    """Wherever it stands: in the first row, in the middle, in the last one."""
    words = ["EUR"] * ROWS
    words[at] = "USD"

    assert stated_once([pa.array(words, pa.large_string())], size=ROWS) is None


def test_few_rows_are_left_as_they_are() -> None:
    """A piece is no shorter than the column that it stands for."""
    assert stated_once([pa.array(["EUR"] * 4, pa.large_string())], size=4) is None
    frame = night().iloc[:4]
    assert without_copies(frame) is frame


def test_a_blank_of_the_type_null_is_no_word() -> None:
    """Nobody knows what it says."""
    assert stated_once([pa.nulls(ROWS, pa.large_string())], size=ROWS) is None


def upside_down(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows the other way round, as they are sorted into another order."""
    rows = np.arange(len(frame), dtype=np.intp)[::-1]
    return pd.DataFrame(
        {name: permuted(frame[name], rows=rows) for name in frame.columns}, copy=False
    )


def test_rows_the_other_way_round() -> None:
    """As pandas turns them, and twice is as before."""
    turned = upside_down(night())

    pd.testing.assert_frame_equal(turned, night().iloc[::-1].reset_index(drop=True))
    pd.testing.assert_frame_equal(upside_down(turned), night())
    assert len(addresses(turned["merchant_id"])) == 1


def test_what_was_held_once_is_cut_joined_and_summed_as_ever() -> None:
    """The engine takes rows, joins frames, replaces blanks and adds up."""
    plain, once = night(), without_copies(night())
    for do in (
        lambda frame: frame.iloc[[9, 2, 2]],
        lambda frame: frame[frame["currency"].eq("EUR")],
        lambda frame: pd.concat([frame, frame], ignore_index=True),
        lambda frame: frame.sort_values(["currency", "order_no"]),
        lambda frame: frame.fillna({"refund_amount": 7}),
        lambda frame: frame.groupby(["merchant_id", "currency"])["amount"].sum().reset_index(),
    ):
        pd.testing.assert_frame_equal(do(once), do(plain))


def test_ids_that_two_sources_have_alike_are_held_once() -> None:
    """The answers take the orders' column; one other id, and they keep their own."""
    other = night().assign(order_no=night()["order_no"].where(np.arange(ROWS) != 7, "B7"))
    frames = {"orders": night(), "gateway": night(), "ledger": other, "few": night().iloc[:4]}
    shared = held_once(frames)

    for name, frame in frames.items():
        pd.testing.assert_frame_equal(shared[name], frame)
    of_orders = addresses(shared["orders"]["order_no"])
    assert addresses(shared["gateway"]["order_no"]) == of_orders
    assert addresses(shared["ledger"]["order_no"]) != of_orders


def begins(column: "pd.Series[Any]") -> set[int]:
    """Where it is held at which byte each text of a column begins."""
    array: Any = pa.array(column)
    return {chunk.buffers()[1].address for chunk in array.chunks}


def of_one_length() -> pd.DataFrame:
    """Currencies, of which the first piece says only one, and ids with and without a long one."""
    numbers = range(ROWS)
    return pd.DataFrame(
        {
            "currency": pd.array(["EUR"] * 5 + ["USD"] + ["JPY"] * 5, TEXT),
            "reference_no": pd.array([f"é{number:02}" for number in numbers], TEXT),
            "transaction_id": pd.array([f"T{number}" for number in numbers], TEXT),
            "amount": pd.array(numbers, "Int64"),
            "captured_amount": pd.array([None, *numbers][:ROWS], "Int64"),
        }
    )


def test_texts_of_one_length_hold_once_where_they_begin() -> None:
    """Three pieces share it and say what they said; texts of several lengths stay as they are."""
    given = of_one_length()
    once = held_once({"orders": given})["orders"]

    pd.testing.assert_frame_equal(once, given)
    assert digest_of([once]) == digest_of([given])
    for name in ("currency", "reference_no"):
        column: Any = pa.array(once[name])
        assert (len(column.chunks), len(begins(once[name]))) == (3, 1)
    assert addresses(once["transaction_id"]) == addresses(given["transaction_id"])
    amounts, some = (once[name].array for name in ("amount", "captured_amount"))
    assert amounts._mask.strides == (0,)
    assert some._mask.strides == (1,)


@pytest.mark.parametrize("rows", [[9, 2, 2, 5], [], [*range(ROWS)], [0, 1]])
def test_rows_of_texts_of_one_length_are_those_of_the_column(rows: list[int]) -> None:
    """A first piece of one word is not taken for the word of all of them."""
    once = held_once({"orders": of_one_length()})["orders"]
    expected = of_one_length().iloc[rows].reset_index(drop=True)
    numbers = np.array(rows, dtype=np.intp)

    pd.testing.assert_frame_equal(taken(once, rows=numbers), expected)
    again = held_once({"orders": once})["orders"]
    assert addresses(again["currency"]) == addresses(once["currency"])
    pd.testing.assert_frame_equal(upside_down(upside_down(again)), of_one_length())


def test_cut_texts_of_one_length_are_held_once_from_where_they_were_cut() -> None:
    """The bytes before and after them are not theirs, and a blank column has no length."""
    cut = of_one_length().iloc[2:9].reset_index(drop=True)
    cut["source"] = pd.array([""] * len(cut), TEXT)

    pd.testing.assert_frame_equal(held_once({"orders": cut})["orders"], cut)

"""Keys and accounts have one number in all sources, in as few bytes as they need."""

import numpy as np
import pandas as pd

from recon.matching.frames.coding import NO_KEY
from recon.matching.frames.numbering import WholeKeys, keys_of


def numbers(*sources: str) -> WholeKeys:
    """The keys of orders and payments of these accounts, one row of each."""
    rows = {name: ["M" for _ in sources] for name in ("merchant_id",)}
    frame = pd.DataFrame({**rows, "account_id": [*sources], "order_no": ["A", "", "B"]})
    frames = {"orders": frame, "gateway": frame, "universe": frame.iloc[:1]}
    return keys_of(frames, belongs={"orders": np.ones(len(frame), dtype=np.bool_)})


def test_of_one_account_nothing_is_held_beside_the_numbers_of_the_orders() -> None:
    """One number stands for the account of all rows; what is judged has whole numbers again."""
    keys = numbers("1", "1", "1")

    assert {column.dtype for column in keys.of.values()} == {np.dtype(np.int32)}
    held = [keys.account, *keys.account_of.values()]
    assert {column.strides for column in held} == {(0,)}
    assert keys.of["orders"].tolist() == [0, NO_KEY, 2]
    rest = keys.take({"orders": np.array([2, 0])})
    assert rest.of["orders"].tolist() == [2, 0]
    assert rest.of["gateway"].tolist() == [0, NO_KEY, 2]
    assert {column.dtype for column in rest.of.values()} == {np.dtype(np.intp)}


def test_keys_of_several_accounts_are_told_apart() -> None:
    """The same order number of another account has another number, and its own account."""
    keys = numbers("1", "1", "2")

    a, blank, b = keys.of["orders"].tolist()
    assert blank == NO_KEY
    assert keys.accounts == [("M", "1"), ("M", "2")]
    assert keys.account[[a, b]].tolist() == [0, 1]
    assert keys.account_of["gateway"].tolist() == [0, 0, 1]

"""Rows in order, names among others, and one digest, whatever columns hold."""

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.matching.frames.arrays import in_order
from recon.matching.frames.digest import digest_of

BY = ["merchant_id", "account_id", "order_no", "transaction_id", "currency"]
LABELS = st.sampled_from(["", "1", "10", "2", "A", "a", "Ä", "é", "😀", "\uffee"])


@settings(max_examples=80)
@given(st.lists(st.tuples(LABELS, LABELS, LABELS, LABELS, LABELS), max_size=12))
def test_the_order_is_that_of_a_stable_sort(rows):
    """Accounts, names and ties of any letters; rows that are equal in all keep their order."""
    frame = pd.DataFrame(rows, columns=BY, dtype="str").assign(at=range(len(rows)))

    expected = frame.sort_values(BY, kind="stable").reset_index(drop=True)

    pd.testing.assert_frame_equal(in_order(frame, by=BY), expected)


NAMES = st.lists(st.sampled_from(["", "a", "b", "ä", "ab"]), max_size=4)
MANY = 500_000


def breaks(**columns):
    """Two breaks with these columns more, amounts in minor units."""
    frame = pd.DataFrame({"break_id": ["b1", "b2"], "effect_ledger": pd.array([5, None], "Int64")})
    for name, values in columns.items():
        frame[name] = pd.array(values, "Int64")
    return frame


def test_what_a_column_says_is_in_the_digest():
    """Each amount of a bank counts, and a zero is no blank."""
    amounts = [digest_of([breaks(bank_amount=[None, each])]) for each in (0, 1, None)]
    other = digest_of([breaks(effect_bank=[None, 1])])

    assert len({*amounts, other}) == 4

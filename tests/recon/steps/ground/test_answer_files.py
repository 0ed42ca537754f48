"""Answers of one phase: of a key that was answered twice the later one counts."""

import pyarrow as pa

from recon.steps.ground.answer_files import once


def table(*keys: str) -> pa.Table:
    """Rows of a file that answer these orders."""
    place = {name: ["M"] * len(keys) for name in ("merchant_id", "account_id")}
    return pa.table({**place, "order_no": pa.array(keys, pa.string())})


def test_files_that_share_no_key_are_given_back_as_they_are() -> None:
    """Some rows of a file, and several payments of one order, are no reason to look at each."""
    files = [table("A", "A", "B"), table("C"), table("D")]

    kept = once(files)

    assert [each is file for each, file in zip(kept, files, strict=True)] == [True, True, True]


def test_of_a_key_that_was_answered_twice_the_later_file_counts() -> None:
    """All rows of the earlier file for it go, and no other row does."""
    kept = once([table("A", "A", "B"), table("C", "A")])

    assert [each["order_no"].to_pylist() for each in kept] == [["B"], ["C", "A"]]

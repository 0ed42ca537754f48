import pandas as pd

from recon.matching.frames.digest import LATER_COLUMNS, digest_of


def breaks(**columns: list[int | None]) -> pd.DataFrame:
    """Two breaks with these columns more, amounts in minor units."""
    frame = pd.DataFrame({"break_id": ["b1", "b2"], "effect_ledger": pd.array([5, None], "Int64")})
    for name, values in columns.items():
        frame[name] = pd.array(values, "Int64")
    return frame


def test_a_column_that_came_later_changes_no_earlier_digest() -> None:
    """A night that knew nothing of banks has the digest that it was signed with."""
    blank = breaks(**{name: [None, None] for name in sorted(LATER_COLUMNS)})

    assert digest_of([blank]) == digest_of([breaks()])


def test_what_a_later_column_says_is_in_the_digest() -> None:
    """Each amount of a bank counts, and a zero is no blank."""
    amounts = [digest_of([breaks(bank_amount=[None, each])]) for each in (0, 1, None)]
    other = digest_of([breaks(effect_bank=[None, 1])])

    assert len({*amounts, other}) == 4


def test_any_other_column_counts_though_it_is_blank() -> None:
    """Only what came later may be missing."""
    assert digest_of([breaks(exposure=[None, None])]) != digest_of([breaks()])

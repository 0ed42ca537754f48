import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.gateway_client.query.query_bounds import grouped, retry_after_seconds
from tests.recon.gateway_client.played import NOW


@given(
    lengths=st.lists(st.integers(1, 50), max_size=300),
    rows_max=st.integers(1, 100),
    characters_max=st.sampled_from([0, 60, 1000]),
)
def test_groups_hold_every_key_once_within_both_bounds(
    lengths: list[int], rows_max: int, characters_max: int
) -> None:
    """In order, nothing twice, nothing lost."""
    keys = [f"{n}".rjust(length, "x") for n, length in enumerate(lengths)]

    groups = grouped(keys, rows_max=rows_max, characters_max=characters_max)

    assert [key for group in groups for key in group] == keys
    assert all(1 <= len(group) <= rows_max for group in groups)
    assert all(not characters_max or len(",".join(group)) <= characters_max for group in groups)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        ("-5", 0),
        ("1e9", 0),
        ("", 0),
        ("9" * 400, 999_999_999),
        ("Fri, 20 Nov 2026 22:01:00 GMT", 60),
        ("Fri, 20 Nov 2020 22:01:00 GMT", 0),
        ("soon", 0),
    ],
)
def test_retry_after_is_a_count_or_a_date_and_never_negative(text: str, seconds: float) -> None:
    """Everything else says nothing."""
    assert retry_after_seconds(text, now=NOW) == seconds

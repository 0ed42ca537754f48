import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.gateway_client.money.reply_echo import _shows_same

ALPHABET = "ab*"


@given(st.text(alphabet=ALPHABET, max_size=8), st.text(alphabet="ab", max_size=6))
def test_a_masked_echo_is_what_was_sent_where_it_shows_anything(shown: str, sent: str) -> None:
    """The same as a pattern with anything for each masked part."""
    pattern = ".*".join(re.escape(part) for part in re.split(r"\*+", shown))

    assert _shows_same(shown, sent=sent) is (re.fullmatch(pattern, sent) is not None)


@pytest.mark.parametrize("sent", ["a" * 34, "a" * 33 + "b"])
def test_a_mask_of_many_parts_costs_no_time(sent: str) -> None:
    """A foreign pattern never becomes a search that does not end."""
    assert _shows_same("*a" * 50_000 + "*c", sent=sent) is False

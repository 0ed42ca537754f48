"""A reason that does not fit its column ends where a reader can see that it was cut."""

import pytest

from recon.store.schema.columns import LEFT_OUT, REASON_CHARACTERS, reason_that_fits

COMMAND = "two people say `recon db accept-restore --as NAME --code CODE`, then nights go on"


def test_a_reason_that_fits_is_kept_as_it_is() -> None:
    """Also the longest one, with its line breaks."""
    longest = ("x\n" * REASON_CHARACTERS)[:REASON_CHARACTERS]
    assert reason_that_fits(longest) == longest


@pytest.mark.parametrize("before", range(REASON_CHARACTERS - len(COMMAND) - 2, REASON_CHARACTERS))
def test_no_command_is_cut_in_two(before: int) -> None:
    """Wherever the end falls, a command stands whole or not at all, and what is left out shows."""
    sentence = f"{('ab ' * REASON_CHARACTERS)[:before]} {COMMAND}"
    kept = reason_that_fits(sentence)
    assert len(kept) <= REASON_CHARACTERS
    assert kept.count("`") in {0, 2}
    assert (kept == sentence) == (len(sentence) <= REASON_CHARACTERS)
    assert kept == sentence or kept.endswith(LEFT_OUT)

import pytest

from recon.model.words import Flag
from reports.sheets.words import FLAG_WORDS, flag_words, state_words, worded


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("", ""),
        ("rounding", "rounding within the tolerance"),
        ("REFUND_DUE;instructed", "refund still to do; moved on our instruction"),
        ("=1+1", "=1+1"),
    ],
)
def test_flags_are_said_in_words(flags: str, words: str) -> None:
    """Codes by the title of their break, flags by their sentence, what is neither as it is."""
    assert flag_words(flags) == words


def test_every_flag_has_words() -> None:
    """A new flag is not shown as a code."""
    assert set(FLAG_WORDS) == set(Flag)


def test_a_state_reads_as_text() -> None:
    """No underscore, and no "none" where a record is missing; blank stays blank."""
    words = worded("state", state_words)

    assert [words({"state": one}) for one in ("partially_refunded", "none", "in_review", None)] == [
        "partly refunded",
        "no record",
        "in review",
        "",
    ]

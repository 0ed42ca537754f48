import pytest

from recon.model.terms import Flag
from reports.sheets.labels import FLAG_LABELS, flag_labels, state_label, worded


@pytest.mark.parametrize(
    ("flags", "labels"),
    [
        ("", ""),
        ("rounding", "rounding within the tolerance"),
        ("REFUND_DUE;instructed", "refund still to do; moved on our instruction"),
        ("=1+1", "=1+1"),
    ],
)
def test_flags_are_said_in_words(flags: str, labels: str) -> None:
    """Codes by the title of their break, flags by their sentence, what is neither as it is."""
    assert flag_labels(flags) == labels


def test_every_flag_has_words() -> None:
    """A new flag is not shown as a code."""
    assert set(FLAG_LABELS) == set(Flag)


def test_a_state_reads_as_text() -> None:
    """No underscore, and no "none" where a record is missing; blank stays blank."""
    labels = worded("state", state_label)

    assert [
        labels({"state": one}) for one in ("partially_refunded", "none", "in_review", None)
    ] == [
        "partly refunded",
        "no record",
        "in review",
        "",
    ]

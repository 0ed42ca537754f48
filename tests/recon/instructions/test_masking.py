import json

import pytest

from recon.instructions.masking import masked

CARD = b"4111111111111111"


def test_a_card_number_in_a_reply_is_cut() -> None:
    """A number that passes the card test keeps its first six and last four digits only."""
    assert masked(b'{"note":"' + CARD + b'"}', known=b"") == b'{"note":"411111******1111"}'


def test_our_own_ids_stay_readable() -> None:
    """A number that our request carried is an id of ours, even if it looks like a card."""
    assert masked(b'{"id":"' + CARD + b'"}', known=b"..." + CARD + b"...") == (
        b'{"id":"' + CARD + b'"}'
    )


def test_other_numbers_stay() -> None:
    """Numbers that are no card numbers are left alone."""
    assert masked(b"4111111111111112 12345", known=b"") == b"4111111111111112 12345"


@pytest.mark.parametrize("form", ["4111 1111 1111 1111", "4111-1111-1111-1111"])
def test_a_card_number_in_groups_is_cut(form: str) -> None:
    """People and gateways write cards in groups of four."""
    shown = masked(f'{{"note":"card {form} declined"}}'.encode(), known=b"")
    assert form.encode() not in shown
    assert b"1111 declined" in shown


def test_what_is_named_for_a_person_or_a_card_is_not_kept() -> None:
    """Text, numbers and quoted quotes behind such a name; the other fields stand as they came."""
    text = (
        b'{"security_code": "917", "CVV":917, "birth_date" : "1980-02-29", "order_no": "A\\"1",'
        b' "last_name": "O\\"Quill", "note": "to DE89370400440532013000", "status": "1"}'
    )
    assert json.loads(masked(text, known=b"")) == {
        "security_code": "***",
        "CVV": "***",
        "birth_date": "***",
        "order_no": 'A"1',
        "last_name": "***",
        "note": "to DE***3000",
        "status": "1",
    }


def test_bytes_that_are_no_text_come_out_as_they_went_in() -> None:
    """A reply of another alphabet, or of none, is kept byte by byte."""
    everything = bytes(range(256))
    assert masked(everything, known=b"") == everything


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            '{"m": "4111\u20111111\u20111111\u20111111"}',
            '{"m": "4111\u201111**\u2011****\u20111111"}',
        ),
        (
            r'{"m": "4111\u20111111\u20111111\u20111111"}',
            '{"m": "4111\u201111**\u2011****\u20111111"}',
        ),
        (r'{"m": "caf\u00e9 cvv 917"}', r'{"m": "caf\u00e9 cvv ***"}'),
    ],
)
def test_gaps_of_other_kinds_hide_no_card(text: str, kept: str) -> None:
    """Nor do digits and gaps that JSON wrote by their numbers, nor the code beside its name."""
    assert masked(text.encode(), known=b"").decode() == kept

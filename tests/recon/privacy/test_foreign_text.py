import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.gateway_client import NotSentError
from recon.privacy.foreign_text import MESSAGE_CHARACTERS_MAX, code_and_text, masked_cards, redacted


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("card 4111111111111111 bad", "card 411111******1111 bad"),
        ("card 4111 1111-1111 1111", "card 4111 11**-**** 1111"),
        ("card 4111111111111111 11/2026", "card 411111******1111 11/2026"),
        ("2026-11-20 4111-1111-1111-1111 9", "2026-11-20 4111-11**-****-1111 9"),
        ("PAN4111111111111111X", "PAN411111******1111X"),
        ("order 4111111111111112", "order 4111111111111112"),
        ("a\r\nb\x00\u202ec\ud800", "a  b  c"),
        ("x" * 1000, "x" * MESSAGE_CHARACTERS_MAX),
    ],
)
def test_foreign_text_is_one_bounded_line_without_card_numbers(text, kept):
    assert redacted(text) == kept


def test_a_card_number_cannot_hide_behind_the_cut():
    text = "x" * (MESSAGE_CHARACTERS_MAX - 13) + " 4111111111111111"

    assert "411111111111" not in redacted(text)


def test_a_flood_of_digits_costs_no_time():
    assert len(redacted("1 " * 1_000_000)) == MESSAGE_CHARACTERS_MAX


CARDS = st.sampled_from(["4111111111111111", "378282246310005", "6304000000000000000"])


@given(
    st.text(alphabet="0123456789 -a", max_size=30),
    CARDS,
    st.sampled_from(["", " ", "-"]),
    st.text(alphabet="0123456789 -a", max_size=30),
)
def test_no_company_hides_a_card_number(before, card, gap, behind):
    shown = gap.join(card[at : at + 4] for at in range(0, len(card), 4))

    masked = masked_cards(f"{before} {shown} {behind}")

    assert shown not in masked


@given(st.text())
def test_redacted_text_can_always_be_stored(text):
    got = redacted(text)

    assert len(got.encode().decode()) <= MESSAGE_CHARACTERS_MAX
    assert not {"\n", "\r", "\x00"} & set(got)


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("V0000:OK", ("V0000", "OK")),
        ("I0013_signature", ("I0013", "signature")),
        ("I0013", ("I0013", "")),
        ("A0008:a:b", ("A0008", "a:b")),
        ("OK", ("", "OK")),
        ("not possible", ("", "not possible")),
        ("", ("", "")),
    ],
)
def test_a_message_is_split_at_its_first_separator_only(message, parts):
    assert code_and_text(message) == parts


def test_an_error_masks_a_card_number_that_got_into_it():
    assert "4111111111111111" not in str(NotSentError("4111111111111111 failed", kind="x"))

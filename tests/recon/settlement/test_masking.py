from recon.settlement.masking import masked

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

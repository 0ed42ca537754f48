import pyarrow as pa
import pytest

from recon.files.typing.text_cells import holds_card_numbers, likely_cards
from recon.privacy.card_numbers import has_check_digit
from recon.privacy.shown_text import scrubbed

PANS = [
    *("4111111111111111", "5555555555554444", "2223003122003222", "378282246310005"),
    *("6011111111111117", "3530111333300000", "30569309025904", "4222222222222"),
]


@pytest.mark.parametrize("pan", PANS)
def test_a_card_number_is_shown_by_its_ends_only(pan: str) -> None:
    """First six and last four digits, however the number is written or surrounded."""
    spaced = " ".join(pan[start : start + 4] for start in range(0, len(pan), 4))
    dashed = spaced.replace(" ", "-")
    for written in (pan, spaced, dashed, f"card {pan}, valid", f"x{pan}y", f"{pan}\t1"):
        shown = scrubbed(written)
        together = shown.replace(" ", "").replace("-", "")
        assert f"{pan[:6]}{'*' * (len(pan) - 10)}{pan[-4:]}" in together
        assert pan not in together


def test_a_card_number_inside_a_longer_run_is_cut_too() -> None:
    """Digits glued before or behind do not save it."""
    assert "11111111" not in scrubbed("99994111111111111111777777")


@pytest.mark.parametrize(
    "text", ["4111111111111112", "1234567890", "2026-01-05T10:30:00", "A-1", ""]
)
def test_other_text_stays(text: str) -> None:
    """What does not pass the check digit, or is too short, is shown as it is."""
    assert scrubbed(text) == text


def test_a_shown_value_is_one_short_line() -> None:
    """Line feeds, direction marks and length cannot disturb a log."""
    assert scrubbed("a\nb\u202ec\x1b[0m") == "a\\u000ab\\u202ec\\u001b[0m"
    shown = scrubbed("x" * 100_000)
    assert len(shown) < 160
    assert shown.endswith("(100000 characters)")


def test_a_column_with_card_numbers_names_them() -> None:
    """Cells that an issuer could have given are found; other long numbers are not."""
    column = pa.array([*PANS, "ORD-1", "4111111111111112", "1000000000000008", ""])
    assert likely_cards(column) == (list(range(len(PANS))), [len(PANS) + 1])


@pytest.mark.parametrize(
    "gap", ["", *" \t-._/:#", "\u00a0", "\u2009", "\u2011", "\u2212", "\u00b7", "\u200b"], ids=ascii
)
def test_a_column_is_looked_through_whatever_stands_between_the_digits(gap: str) -> None:
    """Up to three of any mark may part the groups of a card, at any place of a cell."""
    for several in (gap, gap * 3):
        cards = [several.join((pan[:4], pan[4:8], pan[8:])) for pan in PANS]
        cells = [f"{before}{card}" for card in cards for before in ("", "x", "A-")]
        assert likely_cards(pa.array(["INV.2026.11.20-0000-5376732", *cells])) == (
            [*range(1, len(cells) + 1)],
            [],
        )


def test_a_column_numbered_like_cards_is_left_alone() -> None:
    """One long id in ten passes the check digit by chance; such a column is no list of cards."""
    numbers = [str(4_000_000_000_000_000 + n) for n in range(200)]
    assert sum(map(has_check_digit, numbers)) == 20
    assert len(likely_cards(pa.array(numbers))[0]) == 20
    assert not holds_card_numbers(pa.array(numbers))
    assert holds_card_numbers(pa.array(PANS))

import pytest

from recon.sandbox.ground.options import CLOCK_START
from recon.sandbox.operations.card import expiry, has_expired, luhn_holds, masked


def test_luhn_and_mask() -> None:
    """The check digit is looked at; of a card number only ten digits are ever shown."""
    assert luhn_holds("4111111111111111")
    assert not luhn_holds("4111111111111121")
    assert masked("4111 1111 1111 1111") == "411111***1111"
    assert masked("not a card") == ""


@pytest.mark.parametrize(
    ("year", "month", "expires", "expired"),
    [
        ("2026", "11", "2026-11", False),
        ("26", "10", "2026-10", True),
        ("2030", "5", "2030-05", False),
        ("2030", "13", "", True),
        ("2030", "0", "", True),
        ("1930", "5", "", True),
        ("", "", "", True),
    ],
)
def test_a_card_is_good_to_the_end_of_its_month_and_no_month_is_no_good(
    year: str, month: str, expires: str, *, expired: bool
) -> None:
    """Two or four digits of a year; the instant is the clock's."""
    assert expiry(year, month=month) == expires
    assert has_expired(expires, now=int(CLOCK_START.timestamp())) is expired

import pytest

from recon.foreign_bytes import scrubbed
from recon.foreign_bytes.account_numbers import masked_accounts


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GB29NWBK60161331926819", "GB…6819"),
        ("DE89 3704 0044 0532 0130 00", "DE…3000"),
        ("'NO9386011117947' is not a code", "'NO…7947' is not a code"),
    ],
)
def test_an_account_in_the_wrong_cell_is_not_shown(text: str, shown: str) -> None:
    """A reject names the cell; of an account it shows country and end only."""
    assert masked_accounts(text) == shown
    assert scrubbed(text) == shown


@pytest.mark.parametrize("text", ["GB29NWBK60161331926818", "SO100000720261120000001", "DE89"])
def test_what_is_no_account_stays(text: str) -> None:
    """Wrong check digits, an order number, a short word."""
    assert masked_accounts(text) == text

import pytest

from recon.privacy.bank_accounts import masked_accounts
from recon.privacy.shown_text import scrubbed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("paid to DE89370400440532013000", "paid to DE…3000"),
        ("DE89 3704 0044 0532 0130 00 IS CLOSED", "DE…3000 IS CLOSED"),
        ("GB29-NWBK-6016-1331-9268-19,NO9386011117947", "GB…6819,NO…7947"),
        ("(FR1420041010050500013M02606)", "(FR…2606)"),
    ],
)
def test_an_account_number_is_cut_wherever_it_stands(text: str, shown: str) -> None:
    """In one piece or in groups, between words or signs; only country and end are left."""
    assert masked_accounts(text) == shown
    assert scrubbed(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "DE89370400440532013001",
        "DE8937040044053201300",
        "SO100000720261120000001",
        "order XDE89370400440532013000",
        "QQ89370400440532013000",
    ],
)
def test_what_is_no_account_number_stays(text: str) -> None:
    """Wrong check digits, a wrong length, a country without such numbers, a longer word."""
    assert masked_accounts(text) == text

import os

import pytest

from recon.privacy.bank_accounts import masked_accounts
from recon.privacy.displayed_text import (
    defused,
    displayed_name,
    masked,
    name_problem,
    printable,
    redacted,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CVV 917 is wrong", "CVV *** is wrong"),
        ("cvc2: 9173", "cvc2: ***"),
        ("the security code is 917.", "the security code is ***."),
        ("cvv=917&x=1", "cvv=***&x=1"),
        ('"security_code": "917"', '"security_code": "***"'),
        ("917 is not a valid CVV", "*** is not a valid CVV"),
        (
            "card 4111-1111-1111-1111 to DE89370400440532013000",
            "card 4111-11**-****-1111 to DE…3000",
        ),
        ("error 4021, 12 rows of ORD-2026-000123", "error 4021, 12 rows of ORD-2026-000123"),
    ],
)
def test_what_is_private_is_starred_in_a_sentence(text, shown):
    assert masked(text) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"orders-caf\xe9.csv", "orders-caf\\xe9.csv"),
        (b"\xff\xfe.csv", "\\xff\\xfe.csv"),
        ("a\u202eb\n.csv".encode(), "a\\u202eb\\u000a.csv"),
        ("orders-münchen.csv".encode(), "orders-münchen.csv"),
        (b"orders-4111 1111 1111 1111.csv", "orders-4111 11** **** 1111.csv"),
    ],
)
def test_every_name_of_a_file_can_be_shown_and_stored(name, shown):
    text = os.fsdecode(name)
    assert displayed_name(text) == shown
    assert displayed_name(text).encode().decode() == shown
    assert bool(name_problem(text)) == (shown != text)


def test_text_of_a_stranger_can_be_written_everywhere():
    """A lone surrogate, as JSON can bring one, has a number too."""
    assert printable("a\ud800b") == "a\\ud800b"
    assert redacted("x" * 200) == f"{'x' * 120}… (200 characters)"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("-2+3", "'-2+3"),
        (" @SUM(A1)", " '@SUM(A1)"),
        ("a;=HYPERLINK(1)", "a;'=HYPERLINK(1)"),
        ("a\t+49 30", "a\t'+49 30"),
        ("|\uff1d1", "|'\uff1d1"),
        ("'=1+1", "''=1+1"),
        ("-12.50", "-12.50"),
        ("order 7-1", "order 7-1"),
    ],
)
def test_a_cell_that_begins_like_a_formula_is_text(text, cell):
    assert defused(text) == cell


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("paid to DE89370400440532013000", "paid to DE…3000"),
        ("DE89 3704 0044 0532 0130 00 IS CLOSED", "DE…3000 IS CLOSED"),
        ("GB29-NWBK-6016-1331-9268-19,NO9386011117947", "GB…6819,NO…7947"),
        ("(FR1420041010050500013M02606)", "(FR…2606)"),
    ],
)
def test_an_account_number_is_cut_wherever_it_stands(text, shown):
    assert masked_accounts(text) == shown
    assert redacted(text) == shown


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
def test_what_is_no_account_number_stays(text):
    assert masked_accounts(text) == text

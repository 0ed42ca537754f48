import os

import pytest

from recon.privacy.shown_text import masked, name_problem, printable, scrubbed, shown_name


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
def test_what_is_private_is_starred_in_a_sentence(text: str, shown: str) -> None:
    """Cards, the codes behind or before their name, bank accounts; nothing else."""
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
def test_every_name_of_a_file_can_be_shown_and_stored(name: bytes, shown: str) -> None:
    """Bytes that are not UTF-8 by their number, cards starred; what is fine stays."""
    text = os.fsdecode(name)
    assert shown_name(text) == shown
    assert shown_name(text).encode().decode() == shown
    assert bool(name_problem(text)) == (shown != text)


def test_text_of_a_stranger_can_be_written_everywhere() -> None:
    """A lone surrogate, as JSON can bring one, has a number too."""
    assert printable("a\ud800b") == "a\\ud800b"
    assert scrubbed("x" * 200) == f"{'x' * 120}… (200 characters)"

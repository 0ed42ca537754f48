"""A column is judged text by text, and each row as it would be by itself."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.files.typing.table_schema import Grammar
from recon.files.typing.text_cells import (
    LOOKED_AT,
    distinct_if_few,
    holds_card_numbers,
    likely_cards,
    read_text,
)
from recon.privacy.card_numbers import has_check_digit


def test_ids_that_came_as_numbers_must_be_whole():
    cells = pa.array(["100042", "1.5", "1234567890123456", "A-1"], pa.large_string())
    numbers = pa.array([True, True, True, False])
    assert list(read_text(cells, grammar=Grammar.TRANSACTION, numbers=numbers)) == [1, 2]


def test_every_kind_of_order_key_of_the_contract_is_accepted():
    keys = ["A", "#1001", "2026/11-A_1.b:c", "9" * 50, "a" * 50]
    cells = pa.array(keys, pa.large_string())
    assert read_text(cells, grammar=Grammar.ORDER_KEY, numbers=None) == {}


def test_no_line_end_slips_through_at_the_end():
    cells = pa.array(["A-1\n", "\nA-1"], pa.large_string())
    assert list(read_text(cells, grammar=Grammar.ORDER_KEY, numbers=None)) == [0, 1]


@pytest.mark.parametrize(
    "reason",
    [
        "4111111111111111",
        "card 4111 1111 1111 1111",
        "2 of 4111-1111-1111-1111, late",
        "order 12 4111 1111 1111 1111",
    ],
)
def test_a_reason_that_quotes_a_card_is_refused(reason):
    """It would be sent to the gateway and rest in the journal; other reasons are not touched."""
    cells = pa.array(["returned", reason, "order 2026112022000000301"], pa.large_string())
    problems = read_text(cells, grammar=Grammar.REASON, numbers=None)
    assert list(problems) == [1]
    assert "card number" in problems[1]
    assert reason not in problems[1]


CARD, ALMOST = "4111111111111111", "4111111111111112"
WORDS = ["M1", "", " M", CARD, ALMOST, "4-x", "é"]


@settings(max_examples=100)
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), grammar=st.sampled_from(Grammar)
)
def test_each_row_is_judged_as_if_it_stood_among_many_texts(words, grammar):
    texts = words * LOOKED_AT
    few = pa.array(texts, pa.large_string())
    many = pa.array([*map(str, range(LOOKED_AT)), *texts], pa.large_string())
    assert len(distinct_if_few(few).texts) < len(distinct_if_few(many).texts) == len(many)
    behind = read_text(many, grammar=grammar, numbers=None)
    behind = {row - LOOKED_AT: why for row, why in behind.items() if row >= LOOKED_AT}

    assert read_text(few, grammar=grammar, numbers=None) == behind


PANS = [
    *("4111111111111111", "5555555555554444", "2223003122003222", "378282246310005"),
    *("6011111111111117", "3530111333300000", "30569309025904", "4222222222222"),
]


@pytest.mark.parametrize(
    "gap", ["", *" \t-._/:#", "\u00a0", "\u2009", "\u2011", "\u2212", "\u00b7", "\u200b"], ids=ascii
)
def test_a_column_is_looked_through_whatever_stands_between_the_digits(gap):
    for several in (gap, gap * 3):
        cards = [several.join((pan[:4], pan[4:8], pan[8:])) for pan in PANS]
        cells = [f"{before}{card}" for card in cards for before in ("", "x", "A-")]
        assert likely_cards(pa.array(["INV.2026.11.20-0000-5376732", *cells])) == (
            [*range(1, len(cells) + 1)],
            [],
        )


def test_a_column_numbered_like_cards_is_left_alone():
    """One long id in ten passes the check digit by chance; such a column is no list of cards."""
    numbers = [str(4_000_000_000_000_000 + n) for n in range(200)]
    assert sum(map(has_check_digit, numbers)) == 20
    assert len(likely_cards(pa.array(numbers))[0]) == 20
    assert not holds_card_numbers(pa.array(numbers))
    assert holds_card_numbers(pa.array(PANS))

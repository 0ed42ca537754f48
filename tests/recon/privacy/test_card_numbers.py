"""Published test numbers, and order numbers as shops make them."""

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from recon.privacy.card_numbers import Likeness, holds_card, likeness, masked_cards

PANS = [
    *("4111111111111111", "5555555555554444", "2223003122003222", "378282246310005"),
    *("6011111111111117", "3530111333300000", "30569309025904", "4222222222222"),
    *("6304000000000000", "6212345678901232", "2200000000000004", "5067310000000010"),
]
GAPS = ["", " ", "-", ".", "/", "_", ":", "#", "\u00a0", "\u2009", "\u202f", "\u3000", "\t"]
GAPS += [
    "\u2010",
    "\u2011",
    "\u2013",
    "\u2014",
    "\u2212",
    "\uff0d",
    "\u00ad",
    "\u200b",
    "\u2060",
    " - ",
]
ZEROS = ["\u0660", "\u06f0", "\u0966", "\u09e6", "\uff10", "\u0e50", "\U0001d7ce"]
"""Arabic, Persian, Devanagari, Bengali, full width, Thai, mathematical bold."""
SURROUNDINGS = [
    "{}",
    "ORD-{}",
    "ORD{}",
    "#{}",
    "PAN{}X",
    "2026-{}",
    "20261122-{}-01",
    "000{}",
    "orders {}.csv",
]

START = datetime(2026, 1, 1, tzinfo=UTC)


def in_groups(pan, *, gap):
    """As it is printed: fours, or 4-6-5."""
    sizes = [4, 6, 5] if len(pan) == 15 else [4] * (len(pan) // 4 + 1)
    groups, rest = [], pan
    for size in sizes:
        groups, rest = [*groups, rest[:size]], rest[size:]
    return gap.join(group for group in groups if group)


@pytest.mark.parametrize("gap", GAPS, ids=ascii)
@pytest.mark.parametrize("pan", PANS)
def test_a_card_number_is_found_and_starred_however_it_is_written(pan, gap):
    written = in_groups(pan, gap=gap)
    for around in SURROUNDINGS:
        text = around.format(written)
        assert holds_card(text), ascii(text)
        shown = masked_cards(text)
        assert len(shown) == len(text)
        assert shown.count("*") == len(pan) - 10
        assert written not in shown


@pytest.mark.parametrize("zero", ZEROS, ids=ascii)
def test_a_card_number_in_digits_of_another_script_is_found(zero):
    pan = "".join(chr(ord(zero) + int(digit)) for digit in "4111111111111111")
    assert holds_card(f"order {pan}")
    assert masked_cards(pan) == f"{pan[:6]}******{pan[-4:]}"


@pytest.mark.parametrize(
    "written", ["4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "41-11-11-11-11-11-11-11", "411111 1111111111"]
)
def test_a_card_number_in_other_groups_is_found(written):
    assert holds_card(written)


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112",
        "9999999999999995",
        "411111111111111",
        "1234567890",
        "2026-01-30 05:22:42.672123",
        "41,11,11,11,11,11,11,11",
        "4111 1111\n1111 1111",
    ],
)
def test_other_numbers_stay(text):
    """A wrong check digit, no issuer's number, another length, a time, a list of numbers."""
    assert not holds_card(text)
    assert masked_cards(text) == text


def test_our_own_ids_stay_as_they_are():
    text = "4111111111111111 5555-5555-5555-4444"
    for keep in (["4111111111111111"], '{"order_no": "4111111111111111"}'):
        assert masked_cards(text, keep=keep) == "4111111111111111 5555-55**-****-4444"


def test_a_number_that_only_lacks_its_check_digit_is_told_apart():
    words = ["A-1", "ORD-4111111111111112", "ORD-4111111111111111"]
    assert [likeness(word) for word in words] == [*Likeness]


def dated(dice, form):
    """A moment of the year in a format."""
    return (START + timedelta(microseconds=dice.randrange(31_000_000_000_000))).strftime(form)


def digits(dice, count):
    """So many random digits."""
    return "".join(dice.choices("0123456789", k=count))


ORDER_NUMBERS: dict[str, tuple[Callable[[random.Random], str], int]] = {
    "counter": (lambda dice: str(dice.randrange(1_000, 10_000_000)), 0),
    "year": (lambda dice: f"ORD-{dice.randrange(2020, 2027)}-{digits(dice, 6)}", 0),
    "time": (lambda dice: f"{dated(dice, '%Y%m%d-%H%M%S')}-{digits(dice, 4)}", 0),
    "microseconds": (lambda dice: dated(dice, "%Y%m%d%H%M%S%f"), 0),
    "date": (lambda dice: f"{dated(dice, '%Y-%m-%d')}-{digits(dice, 4)}-{digits(dice, 4)}", 0),
    "path": (lambda dice: f"{dated(dice, '%Y%m%d')}/100042/{digits(dice, 6)}", 0),
    "epoch": (lambda dice: f"{1_700_000_000_000 + dice.randrange(10**11)}-{digits(dice, 4)}", 0),
    "twelve": (lambda dice: digits(dice, 12), 0),
    "uuid": (lambda dice: str(uuid.UUID(int=dice.getrandbits(128), version=4)), 5),
    "3-7-7": (lambda dice: f"{digits(dice, 3)}-{digits(dice, 7)}-{digits(dice, 7)}", 80),
    "thirteen": (lambda dice: digits(dice, 13), 120),
    "sixteen": (lambda dice: digits(dice, 16), 280),
    "eighteen": (lambda dice: digits(dice, 18), 100),
}
"""How shops number their orders, and how many of 10,000 may be taken for a card."""


@pytest.mark.parametrize("form", ORDER_NUMBERS)
def test_order_numbers_are_hardly_ever_taken_for_cards(form):
    """None of those with dates and counters; of random long digits one in forty at worst."""
    number, most = ORDER_NUMBERS[form]
    dice = random.Random(7)
    assert sum(holds_card(number(dice)) for _ in range(10_000)) <= most

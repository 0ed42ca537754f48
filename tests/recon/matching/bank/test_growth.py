"""What many entries of one name, of one amount or of one doubt cost: as many steps as entries."""

import sys
from collections.abc import Callable

import pytest

from tests.recon.matching.bank.cases import Case

FEW, MANY = 60, 240
STEPS_MORE_MAX = 6
"""Four times as many entries may take so many times the steps: 4, and what sorting adds."""
KINDS: dict[str, Callable[[int], Case]] = {
    "all name one batch": lambda size: _came(
        Case().paid("BATCH-001", 1_000), "BATCH-001", size=size
    ),
    "each names its own and differs": lambda size: _each(size, amount=900),
    "nothing names one of an amount": lambda size: _came(_paid(size), "", size=size),
    "one too few of an amount": lambda size: _came(_paid(size), "", size=size - 1),
}


def _paid(size):
    case = Case()
    for number in range(size):
        case = case.paid(f"BATCH-{number:03}", 1_000)
    return case


def _came(case, text, *, size):
    for _ in range(size):
        case = case.came(text, 1_000, counterparty="Gateway")
    return case


def _each(size, *, amount):
    case = _paid(size)
    for number in range(size):
        case = case.came(f"BATCH-{number:03}", amount)
    return case


def steps(work):
    """How many calls of our rooms some work makes, each step of a generator one of them."""
    counted = 0

    def count(frame, event, _):
        nonlocal counted
        counted += event == "call" and "recon/matching" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("kind", KINDS)
def test_many_entries_cost_no_more_than_many_times_one(kind):
    """A statement that names everything alike keeps no night waiting."""
    few, many = (KINDS[kind](size) for size in (FEW, MANY))
    assert steps(many.compared) <= STEPS_MORE_MAX * steps(few.compared)

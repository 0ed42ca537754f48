from dataclasses import replace
from datetime import date

import pytest

from recon.config.rules import Rules
from recon.matching.bank.statements import classify_statements
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BankSource,
    BankStatement,
    RefusedBankFile,
)
from recon.matching.frames.sources import frame_of

IBAN = "DE89370400440532013000"
FIRST = BankStatement(
    "b.xml", "s7", IBAN, "7", "EUR", "2026-11-19", "2026-11-19", opening=100, closing=300
)
SECOND = BankStatement(
    "b.xml", "s8", IBAN, "8", "EUR", "2026-11-20", "2026-11-20", opening=300, closing=250
)
THIRD = BankStatement(
    "b.xml", "s9", IBAN, "9", "EUR", "2026-11-23", "2026-11-23", opening=250, closing=250
)


def rules(**calendar):
    """One bank in euros."""
    bank = {"iban": IBAN, "currency": "EUR", "accounts": ["M/A"]}
    return Rules.of({"bank": {"main": bank}, "calendar": calendar}, source="test")


def classified(*statements, amounts=None, day="2026-11-30", **calendar):
    """These statements, each with one entry of its movement."""
    moved = {n: (one.closing or 0) - (one.opening or 0) for n, one in enumerate(statements)}
    rows = [
        {"statement": n, "part": 0, "amount": amount, "status": "booked", "charges": 0}
        for n, amount in (moved | dict(amounts or {})).items()
    ]
    source = BankSource(frame_of(rows, columns=BANK_ENTRY_COLUMNS), statements)
    return classify_statements(source, rules=rules(**calendar), day=date.fromisoformat(day))


def test_a_chain_covers_to_its_last_day():
    """In whatever order the statements lie; a weekend leaves no gap."""
    found = classified(THIRD, FIRST, SECOND)
    cover = found.covers["main"]
    assert (cover.first_day, cover.to_day, cover.counted) == ("2026-11-19", "2026-11-23", (1, 2, 0))
    assert found.problems == ()


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (replace(SECOND, opening=301), r"closes with 3\.00 EUR, .* opens with 3\.01 EUR"),
        (replace(SECOND, statement_no="9"), r"statement 9 .* follows on statement 7"),
        (replace(SECOND, from_date="2026-11-23", to_date="2026-11-23"), "covers 2026-11-20"),
    ],
)
def test_a_gap_ends_the_cover(second, why):
    """A balance, a number or a business day that is missing; what is later does not count."""
    found = classified(FIRST, second)
    assert found.covers["main"].to_day == "2026-11-19"
    assert found.counted == {0}
    (problem,) = found.problems
    assert __import__("re").search(why, problem)


def test_a_bank_holiday_is_no_gap():
    """Thursday and Monday, and the Friday between them is a holiday of the bank."""
    later = replace(SECOND, from_date="2026-04-07", to_date="2026-04-07")
    first = replace(FIRST, from_date="2026-04-02", to_date="2026-04-02")
    assert classified(first, later, bank="XECB").problems == ()
    assert "covers 2026-04-03" in classified(first, later).problems[0]


def test_a_statement_told_again_counts_once():
    """The same number and content, in one file or in two formats."""
    found = classified(FIRST, replace(FIRST, source="again.sta", sha256="x"), SECOND)
    assert found.covers["main"].counted == (0, 2)
    assert found.problems == ()


def test_a_corrected_statement_takes_the_place_of_the_first():
    """The newest holds; where neither is newer none of them counts."""
    first = replace(FIRST, created="2026-11-19T20:00:00")
    newer = replace(first, created="2026-11-20T09:00:00", closing=300, sha256="n")
    found = classified(first, newer, SECOND, amounts={0: 199})
    assert found.covers["main"].counted == (1, 2)
    tie = classified(first, replace(first, closing=299), SECOND)
    assert tie.covers["main"].counted == (2,)
    assert "neither counts" in tie.problems[0]


def test_of_two_versions_that_both_add_up_the_newest_holds():
    """Not the one that lies first, and not the one that fits what follows."""
    old = replace(FIRST, created="2026-11-19T20:00:00", sha256="a")
    new = replace(FIRST, created="2026-11-20T09:00:00", closing=310, sha256="z")
    for versions, holds in (((old, new), 1), ((new, old), 0)):
        found = classified(*versions, SECOND)
        assert found.covers["main"].counted == (holds,)
        assert "closes with 3.10 EUR" in found.problems[0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"iban": "FR1420041010050500013M02606"}, "no [bank] of the rules names"),
        ({"currency": "USD"}, "is in USD, and the bank main in EUR"),
        ({"to_date": "2026-12-01"}, "after the business date 2026-11-30"),
        ({"from_date": "2026-11-18", "to_date": "2026-11-20"}, "begins on 2026-11-18, within"),
    ],
)
def test_what_is_not_ours_or_not_yet_is_refused_with_its_number(change, why):
    """Another account, another currency, a day to come, a day within another statement."""
    last = replace(FIRST, **change, sha256="y", opening=300, closing=310)
    before = replace(FIRST, statement_no="6")
    changed = last if "iban" in change or "currency" in change else replace(last, source="c.xml")
    found = classified(before, changed)
    assert any(why in one and "nothing of it counts" in one for one in found.problems)
    assert found.counted == {0}


def test_pages_and_a_new_year_leave_no_gap():
    """Page 2 follows page 1, number 1 of a year follows the last of the year before."""
    last = replace(FIRST, from_date="2026-12-31", to_date="2026-12-31", statement_no="250")
    page = replace(last, statement_no="250/2", opening=300, closing=310)
    year = replace(
        SECOND, from_date="2027-01-01", to_date="2027-01-04", statement_no="1", opening=310
    )
    found = classified(last, page, year, day="2027-01-05")
    assert (found.problems, found.covers["main"].counted) == ((), (0, 1, 2))


def test_a_refused_file_is_told():
    """Its own sentence stands among the problems."""
    empty = BankSource(
        frame_of([], columns=BANK_ENTRY_COLUMNS), (), (RefusedBankFile("b.xml", "b.xml is odd"),)
    )
    found = classify_statements(empty, rules=rules(), day=date(2026, 11, 30))
    assert found.problems == ("b.xml is odd",)
    assert found.covers["main"].to_day == ""


def moved(one, *, number, days, opening, closing):
    """A statement of some days, from `from/to` of November or December."""
    first, last = days.split("/")
    return replace(
        one,
        statement_no=number,
        from_date=first,
        to_date=last,
        opening=opening,
        closing=closing,
        sha256=f"{number}{days}{opening}{closing}",
    )


@pytest.mark.parametrize("number", ["0", "ID"])
def test_statements_that_bear_one_number_count_where_their_balances_chain(number):
    """A number that is always 0, or an Id that repeats, makes no two statements one."""
    days = ("2026-11-19/2026-11-20", "2026-11-20/2026-11-20", "2026-11-20/2026-11-23")
    chain = [
        moved(FIRST, number=number, days=each, opening=at, closing=at + 50)
        for at, each in zip((100, 150, 200), days, strict=True)
    ]
    found = classified(*chain)

    assert found.covers["main"].counted == (0, 1, 2)
    assert found.problems == ()


def test_number_one_again_in_january_is_another_statement():
    """One that reaches into the new year is of the year in which it ends."""
    first = moved(FIRST, number="1", days="2025-01-02/2025-12-30", opening=0, closing=100)
    again = moved(FIRST, number="1", days="2025-12-31/2026-01-02", opening=100, closing=200)
    found = classified(first, again)

    assert (found.covers["main"].counted, found.problems) == ((0, 1), ())


def test_of_two_statements_that_contradict_neither_counts():
    """Equal days with other balances, or equal openings of other days: the bank is asked."""
    one = moved(FIRST, number="0", days="2026-11-19/2026-11-19", opening=100, closing=150)
    for days, opening in (("2026-11-19/2026-11-19", 90), ("2026-11-20/2026-11-20", 100)):
        other = moved(FIRST, number="0", days=days, opening=opening, closing=160)
        found = classified(one, other)

        assert found.covers["main"].counted == ()
        assert ["neither counts" in each for each in found.problems] == [True]


def test_a_day_without_movement_that_is_told_again_counts_once():
    """Equal balances and days are one statement, although the balances would chain."""
    quiet = moved(FIRST, number="0", days="2026-11-19/2026-11-19", opening=100, closing=100)
    found = classified(quiet, replace(quiet, source="again.xml", sha256="x"))

    assert found.covers["main"].counted == (0,)

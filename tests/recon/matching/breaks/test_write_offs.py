"""What the ledger wrote off, and sums that would not be exact."""

from dataclasses import replace

import pytest

from recon.matching.breaks.movements import left_open
from recon.matching.frames.sources import AgreedWriteOffs
from recon.model.errors import SourceUnreadableError
from recon.model.terms import Verdict
from tests.proving import reconcile_proven

NAME = "write-offs in the ledger = those that two people agreed to"


def reconciled(case, *, breaks=None, entries=None):
    """The case, with what people agreed to."""
    agreed = AgreedWriteOffs(breaks or {}, entries or {})
    sources = replace(case.sources(), agreed_write_offs=agreed)
    return reconcile_proven(sources, rules=case.rules, as_of=case.as_of, previous=case.previous)


def failing(result):
    """Name and sides of each T10 that does not hold."""

    def told(one):
        return one.name, one.left, one.right

    return [told(one) for one in result.control_totals if one.id == "T10" and not one.passed]


def short(case):
    """An order of 100.00 that was paid and booked with 98.00."""
    return case.order().payment(amount=9800).entry(amount=9800)


def break_of(case):
    """The id of its one break."""
    (found,) = case.run().breaks["break_id"]
    return str(found)


BEFORE_ITS_BREAK = [
    ("at once, so that no break ever shows", lambda c: short(c).entry("write_off", amount=200)),
    ("while its set waits", lambda c: c.order(ordered_at="2026-11-20T12:00:00Z").entry(
        "write_off", amount=200, booked_at="2026-11-20T12:00:00Z")),
    ("of a set that is broken still", lambda c: short(c).entry("write_off", amount=150)),
    ("of a set without an answer", lambda c: c.order().answer("failed").entry(
        "write_off", amount=200)),
    ("of a set that agrees", lambda c: c.order().payment().entry().entry(
        "write_off", amount=200)),
    ("under no order at all", lambda c: short(c).entry(
        "write_off", amount=200, order_no="", transaction_id="")),
]  # fmt: skip


@pytest.mark.parametrize("booked", [pytest.param(f, id=name) for name, f in BEFORE_ITS_BREAK])
def test_a_write_off_that_nobody_agreed_to_is_found_whatever_its_set_came_to(case, booked):
    """T10 counts entries, not breaks that ended: it fails by count and by amount, and by name."""
    result = reconciled(booked(case))
    amounts = [(left, right) for name, left, right in failing(result) if name == NAME]

    assert sorted(amounts) in ([(1, 0), (200, 0)], [(1, 0), (150, 0)])
    assert [name for name, *_ in failing(result) if name.startswith("write-off of ")]
    assert result.verdict is Verdict.NOT_PROVEN


def test_what_two_people_agreed_to_may_be_booked(case, new_case):
    """Up to what its break came to then, in its currency."""
    agreed = {break_of(short(new_case())): ("EUR", 200)}

    assert failing(reconciled(short(case).entry("write_off", amount=200), breaks=agreed)) == []


@pytest.mark.parametrize("money", [("EUR", 199), ("USD", 200)])
def test_more_or_other_money_than_was_agreed_is_found(case, new_case, money):
    """An agreement to 1.99 EUR, or to dollars, is none to 2.00 EUR."""
    agreed = {break_of(short(new_case())): money}
    found = failing(reconciled(short(case).entry("write_off", amount=200), breaks=agreed))

    allowed = 199 if money[0] == "EUR" else 0
    assert (NAME, 200, allowed) in found
    assert ("write-off of A1 = agreed", 200, allowed) in found


def test_a_reversed_write_off_gives_nothing_up(case):
    """The way out for one that was booked too early."""
    booked = short(case).entry("write_off", amount=200)
    booked.entry("write_off_reversal", amount=200, reverses_entry_id="E1")
    result = reconciled(booked)

    assert failing(result) == []
    assert [*result.breaks["code"]] == ["AMOUNT_UNDER"]


def test_an_agreement_holds_while_its_entry_stands_in_the_books(case, new_case):
    """Nights later the break is closed and forgotten, and its key may be broken again."""
    first = short(new_case()).run()
    agreed = {str(first.breaks["break_id"].iloc[0]): ("EUR", 200)}
    booked = short(new_case()).entry("write_off", amount=200).after(first)
    ended = reconciled(booked, breaks=agreed)
    later = short(case).entry("write_off", amount=200)
    later.after(booked.run())
    later.previous = left_open(
        later.previous.breaks,
        moved=ended.movements,
        matched=ended.matches["match_id"],
        as_of=later.previous.as_of,
        previous=booked.previous,
        chargebacks=later.previous.chargebacks,
    )

    assert failing(reconciled(later, breaks=agreed)) == []


def test_what_stood_in_the_books_before_anybody_could_agree_is_taken_over_and_told(case):
    """By id, currency and amount: a changed one is not what was there."""
    booked = short(case).entry("write_off", amount=200)
    same = reconciled(booked, entries={"E1": ("EUR", 200)})
    changed = reconciled(booked, entries={"E1": ("EUR", 20)})

    assert failing(same) == []
    assert any(
        "1 stood in the ledger before anybody could agree" in one for one in same.not_covered
    )
    assert (NAME, 200, 0) in failing(changed)


def test_nothing_is_asked_where_nobody_keeps_such_a_list(case):
    """Two files compared by hand know no approvals; that is told, and no total claims it."""
    result = short(case).entry("write_off", amount=200).proven()

    assert failing(result) == []
    assert any("no list of approved write-offs" in one for one in result.not_covered)


def test_rows_that_repeat_or_contradict_each_other_are_not_counted_twice(case):
    """The same row again is one write-off; one id told in two ways is refused and none."""
    once = short(case).entry("write_off", entry_id="W", amount=200)
    twice = once.entry("write_off", entry_id="W", amount=200)
    twice.entry("write_off", entry_id="V", amount=5).entry("write_off", entry_id="V", amount=6)
    totals = [one for one in reconciled(twice).control_totals if one.name == NAME]

    assert {(one.measure, one.left) for one in totals} == {("count", 1), ("amount", 200)}


def test_a_night_whose_sums_would_wrap_is_refused(case):
    """Payments that come to 2^64 more than their order would pass for the right sum."""
    part, rest = divmod(2**64, 200)
    case.order().payment()
    for number in range(200):
        amount = part + (rest if number == 0 else 0)
        case.payment(transaction_id=f"X{number}", amount=amount)

    with pytest.raises(SourceUnreadableError, match=r"the gateway .* in amount"):
        case.run()

"""Breaks from night to night: their ids, and what became of them."""

import hashlib

import pytest

from recon.matching.breaks.movements import left_open, with_reopened
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import KEY_COLUMNS, Previous, frame_of
from tests.proving import failed


def missing(case):
    """An order that the gateway does not know."""
    return case.order().ledger()


def paid(case):
    """All three sides agree."""
    return case.order().payment().entry()


def silent(case):
    """The gateway gave no usable answer."""
    return case.order().answer("failed").ledger()


def short(case):
    """The gateway took less than the order says."""
    return case.order(amount=1100).payment().entry()


def reported_of(order, *, sequence):
    """The id that the contract gives a break of the case's account."""
    return hashlib.sha256(f"M\x1f1\x1f{order}\x1f{sequence}".encode()).hexdigest()[:16]


@pytest.fixture
def nights(new_case):
    """Nights one after the other, each carrying the one before forward."""

    def run(*builds):
        results: list[Reconciliation] = []
        previous: Previous | None = None
        for build in builds:
            case = build(new_case())
            case.previous = previous
            result = case.proven()
            previous = left_open(
                result.breaks,
                moved=result.movements,
                matched=result.matches["match_id"],
                as_of=result.as_of,
                previous=previous,
                chargebacks=frame_of([], columns=KEY_COLUMNS),
            )
            results.append(result)
        return results

    return run


@pytest.mark.parametrize(
    ("builds", "ids", "movements"),
    [
        pytest.param(
            [missing, paid, short, short], [1, None, 2, 2], ["matched late", "reopened", "stays"]
        ),
        pytest.param([missing, paid, paid, missing], [1, None, None, 2], ["reopened"]),
        pytest.param([missing, paid, missing, paid, missing], [1, None, 2, None, 3], ["reopened"]),
        pytest.param([missing, silent, missing], [1, None, 1], ["unverified", "returned"]),
        pytest.param(
            [missing, silent, paid, missing], [1, None, None, 2], ["unverified", "reopened"]
        ),
        pytest.param(
            [missing, paid, missing, silent, missing],
            [1, None, 2, None, 2],
            ["reopened", "unverified", "returned"],
            id="the-second-is-out-of-sight",
        ),
        pytest.param(
            [missing, paid, missing, silent, paid, missing],
            [1, None, 2, None, None, 3],
            ["reopened", "unverified", "reopened"],
            id="the-second-closes-out-of-sight",
        ),
    ],
)
def test_a_break_keeps_its_id_until_it_closes(nights, builds, ids, movements):
    """Closed and broken again is the next number; out of sight for a night is the same break."""
    results = nights(*builds)

    wanted = [[] if one is None else [reported_of("A1", sequence=one)] for one in ids]
    assert [result.breaks["break_id"].tolist() for result in results] == wanted
    seen = [one for result in results for one in result.movements["movement"]]
    assert seen[-len(movements) :] == movements
    assert [total for result in results for total in failed(result)] == []


def test_the_new_break_points_to_the_old_every_night(nights):
    """A reader of any later night finds what was said of it before."""
    results = nights(missing, paid, short, short)

    pointers = [with_reopened(result)["reopens"].tolist() for result in results]
    assert pointers == [[""], [], [reported_of("A1", sequence=1)], [reported_of("A1", sequence=1)]]


def test_a_match_under_a_later_number_says_its_rows(nights):
    """Its order alone gives the first number: whoever looks a row up needs the row's own."""
    *_, late = nights(missing, paid, missing, paid)

    second = reported_of("A1", sequence=2)
    assert late.matches["match_id"].tolist() == [second]
    assert {(row["order_no"], row["result_id"]) for row in late.items.to_pylist()} == {
        ("A1", second)
    }


def test_a_break_that_was_out_of_sight_keeps_the_day_it_was_first_seen(nights, new_case):
    """An outage makes no break younger."""
    first, _, back = nights(missing, silent, missing)

    assert back.breaks["first_seen"].tolist() == first.breaks["first_seen"].tolist()
    assert back.breaks["code"].tolist() == missing(new_case()).run().breaks["code"].tolist()


JUST_NOW = "2026-11-20T20:00:00Z"


@pytest.mark.parametrize(
    ("build", "movement"),
    [
        pytest.param(lambda c: c.order().ledger(), "stays", id="as-it-was"),
        pytest.param(lambda c: c.order(amount=500).ledger(), "revalued", id="other-money"),
        pytest.param(
            lambda c: c.order().payment("authorised").ledger(), "reclassified", id="other-code"
        ),
        pytest.param(lambda c: c.order().payment().entry(), "matched late", id="leg-arrived"),
        pytest.param(
            lambda c: c.order().payment().entry().reject(), "unverified", id="row-in-quarantine"
        ),
        pytest.param(
            lambda c: c.order(ordered_at=JUST_NOW).ledger(), "pending", id="within-grace-again"
        ),
        pytest.param(lambda c: c.order(order_no="other").payment(order_no="other"), "not seen"),
    ],
)
def test_how_a_break_moves_on(case, new_case, build, movement):
    """Each break of last night has exactly one movement tonight, and the roll-forward holds."""
    result = build(case).after(missing(new_case()).run()).proven()

    told = result.movements[result.movements["order_no"].eq("A1")]
    assert told["movement"].tolist() == [movement]
    assert failed(result) == []


def test_a_difference_that_ends_is_resolved(case, new_case):
    """Amounts do not arrive late: somebody corrected them."""
    earlier = new_case().order().payment(amount=9000).entry(amount=9000).run()

    result = case.order(amount=9000).payment(amount=9000).entry(amount=9000).after(earlier).run()

    assert result.movements["movement"].tolist() == ["resolved"]
    assert result.movements["exposure_before"].tolist() == [1000]

"""A night that never started can tell nobody itself: who looks is told."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest

from recon.model.errors import ReconError
from recon.model.nights import Mode, StepSummary
from recon.steps.night import whole_night as night
from recon.steps.night.lookout import Watched, counted, watched, worst


def _look(merchant: Any) -> Sequence[Watched]:
    with merchant.environment() as environment:
        return watched(environment)


def _good_night(merchant: Any) -> None:
    merchant.drop("orders.csv", *(merchant.order(p) for p in merchant.payments("captured")[:2]))
    merchant.night()


def test_an_account_that_never_ran_has_missed_nothing(merchant: Any) -> None:
    """Whoever declares an account today is not told of ten nights."""
    (one,) = _look(merchant)

    assert (one.newest, one.missed, one.troubles, one.exit_code) == (None, (), (), 0)


def test_a_night_is_missed_when_half_a_day_has_passed_since_its_day_closed(merchant: Any) -> None:
    """Friday's ran; Monday's is missed from Tuesday noon on, and no Saturday ever is."""
    _good_night(merchant)
    merchant.wait(hours=3 * 24)  # Tuesday, two o'clock in the night
    (before,) = _look(merchant)
    merchant.wait(hours=10)
    (after,) = _look(merchant)

    assert (before.missed, before.exit_code) == ((), 3)
    assert (after.missed, after.exit_code) == ((date(2026, 11, 23),), 4)
    (told,) = after.troubles
    assert told.startswith("No night ran for 2026-11-23: run what is missing")
    assert counted([after])["missed"] == 1


def test_a_dry_run_stands_for_no_night(merchant: Any) -> None:
    """What sent nothing has not settled its day: the night is still missed."""
    _good_night(merchant)
    merchant.wait(hours=3 * 24 + 10)
    merchant.night(date="2026-11-23", mode=Mode.DRY_RUN)

    assert _look(merchant)[0].missed == (date(2026, 11, 23),)


def test_a_skipped_night_is_not_missed(merchant: Any) -> None:
    """A person said why: nobody is rung for it again."""
    _good_night(merchant)
    merchant.wait(hours=4 * 24)
    merchant.night(date="2026-11-24", skip="the gateway was closed")

    assert _look(merchant)[0].missed == ()


def test_a_night_that_stopped_is_told_at_once(merchant: Any) -> None:
    """Its cause stands in the sentence, and the code is that of what is not proven."""

    def stops(_: StepSummary) -> None:
        msg = "the disk is full"
        raise ReconError(msg)

    with merchant.environment() as environment, pytest.raises(ReconError):
        night.run(
            merchant.request,
            environment=environment,
            workbooks=merchant.workbooks(),
            progress=stops,
        )
    (one,) = _look(merchant)

    assert one.troubles == ("The night of 2026-11-20 stopped after ingest: the disk is full.",)
    assert worst([one]) == 4


def test_money_in_doubt_is_seen_by_who_looks(merchant: Any) -> None:
    """Counts for a monitor, the worst code, and not only a source that is missing."""
    payments = merchant.payments("authorised")[:3]
    rows = [merchant.order(one, status="paid", action="capture") for one in payments]
    merchant.drop("orders.csv", *rows)
    merchant.fault({"operation": "capture", "kind": "wrong_signature", "nth": 1})
    merchant.night()
    (one,) = _look(merchant)

    assert one.exit_code == 5
    assert counted([one]) == {"in_doubt": 3, "not_sent": 0, "missed": 0}
    assert not one.only_incomplete
    assert one.troubles[0].startswith("The night of 2026-11-20 ended MONEY IN DOUBT. In doubt: 3 ")


def test_a_missing_source_alone_is_a_warning(merchant: Any) -> None:
    """Without an order file the night is INCOMPLETE and nothing worse."""
    merchant.night()
    (one,) = _look(merchant)

    assert one.only_incomplete
    assert one.exit_code == 4

"""A night takes the files that are its own, whoever starts it when, and however often."""

from datetime import datetime

import pytest

from recon.model.nights import Mode
from recon.model.terms import Verdict

FRIDAY, MONDAY, TUESDAY = "2026-11-20", "2026-11-23", "2026-11-24"


def _file(merchant, day, *, number, hour=18):
    paid = merchant.payments("captured")[number]
    merchant.drop(f"orders-{day}.csv", merchant.order(paid, updated_at=f"{day}T{hour:02}:00:00Z"))


def _at(merchant, moment):
    now = datetime.fromisoformat(moment)
    merchant.wait(hours=int((now - merchant.now).total_seconds() // 3600) + 1)


def test_a_dry_run_binds_no_file(merchant):
    """Whatever date it names, the live night reads the file for itself, and sends once."""
    capture = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(capture, status="paid", action="capture"))
    merchant.wait(hours=3 * 24)
    merchant.night(date=FRIDAY, mode=Mode.DRY_RUN)
    merchant.night(date=MONDAY, mode=Mode.DRY_RUN)
    verdict = merchant.night(date=MONDAY)
    _at(merchant, "2026-11-25T02:00:00+00:00")
    merchant.night(date=TUESDAY)
    known = merchant.said("ingest")

    assert verdict is Verdict.RECONCILED
    assert [row["operation"] for row in merchant.effects()] == ["capture"]
    assert merchant.instruction_states() == {"confirmed": 1}
    assert "0 new order files" in known
    assert "1 files were known already" in known


def test_two_missed_nights_take_a_file_each(merchant):
    _file(merchant, FRIDAY, number=0)
    _file(merchant, MONDAY, number=1)
    _at(merchant, "2026-11-24T02:00:00+00:00")
    first = merchant.night(date=FRIDAY)
    told = merchant.said("ingest")
    second = merchant.night(date=MONDAY)

    assert Verdict.INCOMPLETE not in {first, second}
    assert "1 new order files with 1 rows accepted" in told
    assert (
        "orders-2026-11-23.csv was left: its newest rows are of 2026-11-23 18:00 UTC: "
        "the night of 2026-11-23 takes it." in told
    )
    assert "1 new order files with 1 rows accepted" in merchant.said("ingest")


def test_a_second_start_of_a_night_leaves_the_next_ones_file(merchant):
    """Monday's file came before Monday closed: Friday, started again, does not take it."""
    _file(merchant, FRIDAY, number=0)
    merchant.night(date=FRIDAY)
    _at(merchant, "2026-11-23T20:00:00+00:00")
    _file(merchant, MONDAY, number=1)
    merchant.night(date=FRIDAY)
    _at(merchant, "2026-11-24T02:00:00+00:00")

    assert merchant.night(date=MONDAY) is not Verdict.INCOMPLETE
    assert "1 new order files" in merchant.said("ingest")


def test_a_name_of_which_no_row_was_taken_is_not_the_nights_own(merchant):
    _file(merchant, FRIDAY, number=0)
    paid = merchant.payments("captured")[1]
    merchant.drop(f"orders-{MONDAY}.csv", merchant.order(paid, amount="none"))
    merchant.night(date=FRIDAY)
    _at(merchant, "2026-11-23T20:00:00+00:00")
    _file(merchant, MONDAY, number=1)
    merchant.night(date=FRIDAY)

    assert f"orders-{MONDAY}.csv was left" in merchant.said("ingest")


@pytest.mark.parametrize("name", ["orders-2026-11-20.csv", "late.csv"])
def test_a_nights_own_file_that_comes_late_or_again_is_taken(merchant, name):
    """A corrected version with newer rows, or the first file of a night that lacked one."""
    if name != "late.csv":
        _file(merchant, FRIDAY, number=0)
    merchant.night(date=FRIDAY)
    _at(merchant, "2026-11-23T15:00:00+00:00")
    paid = merchant.payments("captured")
    rows = [merchant.order(one) for one in paid[:2]]
    merchant.drop(name, *rows, merchant.order(paid[2], updated_at="2026-11-23T14:00:00Z"))
    verdict = merchant.night(date=FRIDAY)

    assert verdict is not Verdict.INCOMPLETE
    assert "1 new order files with 3 rows accepted" in merchant.said("ingest")


def test_rows_of_the_first_hours_after_the_cut_off_and_strays_do_not_count(merchant):
    """A file made at five in the morning, with one row of a wrong year, is of the day before."""
    paid = merchant.payments("captured")[0]
    rows = [merchant.order(paid, order_no=f"Z-{n}", status="pending") for n in range(150)]
    rows[0] |= {"updated_at": "2026-12-24T10:00:00Z"}
    rows[1] |= {"updated_at": "2026-11-21T05:00:00Z"}
    merchant.drop("orders.csv", *rows)
    _at(merchant, "2026-11-24T02:00:00+00:00")
    merchant.night(date=FRIDAY)

    assert "1 new order files with 150 rows accepted" in merchant.said("ingest")

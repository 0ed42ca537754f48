"""What a night hands out for the ledger: nothing that waits for the close of the month before."""

import pytest

from recon.model.business_date import BusinessMonth
from recon.month.journal_exports import WRITTEN_OFF, HandOut, export_of_night
from tests.recon.steps.approvals.test_sign_off import PEOPLE
from tests.recon.steps.compare.test_journals import RULES, ask_write_off, newest, proposed
from tests.recon.steps.month.test_month_closes import LAST
from tests.recon.steps.month.test_month_exports import close_with, exported
from tests.recon.steps.month.test_signed_closes import close

pytestmark = pytest.mark.xdist_group("closes")
"""They share a month that takes longer to make than to look at."""
AFTER = "2026-12-01"
UNCLOSED = (
    "it may be of 2026-11, which nobody closed: the close hands it out with its day "
    "(`recon journals --period 2026-11`), --day-of-night books it on 2026-12-01"
)


def play_over(merchant):
    """A captured payment of November that the ledger lacks, in no closed month, on 1 December."""
    merchant.configure("rules.toml", RULES)
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.night()
    merchant.wait(hours=10 * 24)
    merchant.night(date=LAST, skip="the cluster was down")
    merchant.wait(hours=24)
    merchant.night(date=AFTER)


def of_night(merchant, out, *, is_of_night=False):
    """`recon journals NIGHT`."""
    with merchant.environment() as environment:
        wanted = HandOut(out, is_of_night=is_of_night)
        return export_of_night(newest(merchant).run_id, hand_out=wanted, environment=environment)


def only_journal(merchant):
    result, _, _ = proposed(merchant, newest(merchant).run_id)
    (name,) = result.journals["journal_id"].unique()
    return str(name)


def days_of(path):
    header, *lines = path.read_text().splitlines()
    at = header.split(",").index("date")
    return [line.split(",")[at] for line in lines]


def test_what_may_be_of_an_ended_month_waits_for_its_close(begun, tmp_path, monkeypatch):
    """The night hands nothing out; the close does, on the month's last day."""
    merchant = begun(play_over)
    name = only_journal(merchant)

    handed = of_night(merchant, tmp_path / "night")

    assert (handed.paths, handed.journals, handed.held_back_journals) == ((), 0, {name: UNCLOSED})
    close_with(monkeypatch, fees=1234)
    close(merchant)
    signed = of_night(merchant, tmp_path / "night")
    assert [*signed.held_back_journals] == [name]
    assert "two people signed it with its day in 2026-11" in signed.held_back_journals[name]
    (path,) = exported(merchant, tmp_path / "month").paths
    assert name in path.read_text()
    assert days_of(path) == [LAST] * 4 + [AFTER] * 2
    last = of_night(merchant, tmp_path / "night")
    assert (last.journals, last.exported_before, last.held_back_journals) == (0, 1, {})


def test_by_a_word_all_of_a_night_is_booked_on_its_own_day(begun, tmp_path):
    """Where nobody will close the month, or the ledger of it takes no entry any more."""
    handed = of_night(begun(play_over), tmp_path / "night", is_of_night=True)

    assert (handed.journals, handed.held_back_journals) == (1, {})
    assert days_of(*handed.paths) == [AFTER] * 2


def test_a_break_that_is_written_off_waits_for_no_close(begun, tmp_path):
    merchant = begun(play_over)
    result, _, _ = proposed(merchant, newest(merchant).run_id)
    ask_write_off(merchant, result.breaks["break_id"].iloc[0], run_id=newest(merchant).run_id)

    assert of_night(merchant, tmp_path / "night").held_back_journals == {
        only_journal(merchant): WRITTEN_OFF
    }


def test_a_month_without_a_live_night_is_waited_for_by_nothing(begun, tmp_path, monkeypatch):
    merchant = begun(play_over)
    october = BusinessMonth.named("2026-10")
    monkeypatch.setattr(BusinessMonth, "month_before", property(lambda _: october))

    assert of_night(merchant, tmp_path / "night").journals == 1

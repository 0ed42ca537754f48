"""A demo that goes on by itself finds the files of each next day, once it has closed there."""

import math
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest

from recon import cli
from recon.cli.demo_work import (
    UNANSWERED_MAX,
    DemoFolder,
    deliver_due,
    deliver_until_stopped,
    demo_gateway,
    recall,
    whole_night,
)
from recon.model.errors import ConfigurationError
from recon.steps.runtime.environment import system_clock

FRIDAY = date(2026, 11, 20)
NIGHT = time(2, 30)


def prepared_demo(folder):
    assert cli.main(["demo", "--dir", str(folder), "--orders", "40", "--prepare-only"]) == 0
    return DemoFolder(folder)


def its_time(demo, *, at):
    """The machine's time at which the demo has a time."""
    memory = recall(demo)
    return at - timedelta(seconds=memory.clock_shift)


def test_each_day_that_closed_is_delivered_once_and_its_night_compares_it(tmp_path):
    demo = prepared_demo(tmp_path / "d")
    memory = recall(demo)
    assert memory is not None
    saturday = datetime.fromisoformat("2026-11-22T00:16:00+00:00")
    with demo_gateway(demo, memory):
        before = [*deliver_due(demo, now=its_time(demo, at=saturday - timedelta(minutes=2)))]
        first = [*deliver_due(demo, now=its_time(demo, at=saturday))]
        again = [*deliver_due(demo, now=its_time(demo, at=saturday))]
        later = [*deliver_due(demo, now=its_time(demo, at=saturday + timedelta(days=2)))]
    assert before == again == []
    assert first == [date(2026, 11, 21)]
    assert later == [date(2026, 11, 22), date(2026, 11, 23)]
    for day in ("2026-11-21", "2026-11-22", "2026-11-23"):
        assert {*demo.inbox.glob(f"orders-{day}-*.csv")}


def test_the_night_of_a_delivered_day_compares_its_files(tmp_path):
    """Also of a Saturday: a schedule goes on every night, and none may find that nothing came."""
    demo = prepared_demo(tmp_path / "d")
    ended = []
    for day in (FRIDAY, FRIDAY + timedelta(days=1)):
        memory = recall(demo)
        assert memory is not None
        after = datetime.combine(day + timedelta(days=1), NIGHT, UTC)
        with demo_gateway(demo, memory):
            assert [*deliver_due(demo, now=its_time(demo, at=after))] == [day][: day != FRIDAY]
            shift = math.ceil((after - system_clock()).total_seconds())
            known = replace(recall(demo) or memory, clock_shift=shift)
            ended.append(whole_night(demo, known, report=print, day=day))

    assert [figures["end"] for figures in ended] == ["BREAKS OPEN", "BREAKS OPEN"]
    assert {*demo.reports.glob("reconciliation-*-2026-11-21.xlsx")}


def test_without_a_prepared_folder_and_its_sandbox_nothing_is_delivered(tmp_path):
    (tmp_path / "d").mkdir()
    for demo in (DemoFolder(tmp_path / "d"), prepared_demo(tmp_path / "e")):
        with pytest.raises(ConfigurationError, match="`make serve` starts both"):
            next(deliver_due(demo, now=system_clock()))


def test_a_sandbox_that_once_does_not_answer_ends_no_delivery(tmp_path):
    demo = prepared_demo(tmp_path / "d")
    memory = recall(demo)
    assert memory is not None
    spoken: list[str] = []
    with ExitStack() as until_it_stops:
        until_it_stops.enter_context(demo_gateway(demo, memory))

        def without_it(_):
            until_it_stops.close()

        with pytest.raises(ConfigurationError, match="`make serve` starts both"):
            deliver_until_stopped(demo, clock=system_clock, sleep=without_it, report=spoken.append)
    unanswered = [sentence for sentence in spoken if "nothing was delivered" in sentence]
    assert len(unanswered) == UNANSWERED_MAX

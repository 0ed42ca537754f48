"""What a closed month refuses, and how a night and a close at the same moment end."""

import threading
from contextlib import ExitStack
from dataclasses import replace
from datetime import date

import pytest

from recon.model.errors import ReconError, UsageError
from recon.model.nights import FINISH, PLANS, Mode, NightRequest
from recon.model.resolutions import Returned
from recon.steps.approvals import returned_answers
from recon.steps.night import whole_night
from recon.steps.runtime.identity import identify
from recon.steps.runtime.predecessor import refuse_closed
from recon.store.nights import runs
from recon.store.people import closed_months
from tests.recon.steps.month import test_signed_closes as closes

pytestmark = closes.pytestmark
ended = closes.ended
"""A month that is over."""
SENTENCE = r"2026-11-\d\d lies in 2026-11, which is CLOSED \(Dan Orr .* and Anna Berg .*recon close"


@pytest.fixture
def closed(ended):
    """A month that two people closed."""
    closes.close(ended)
    return ended


def count(merchant):
    """How many runs there are."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        return len(runs.newest(connection, count=100))


@pytest.mark.parametrize("date", ["2026-11-20", "2026-11-30"])
def test_a_live_night_of_a_closed_date_is_refused(closed, date):
    """By whom, when, and what to do; no run begins."""
    before = count(closed)

    with pytest.raises(UsageError, match=SENTENCE):
        closed.night(date=date)

    assert count(closed) == before


def test_a_date_before_a_closed_month_is_refused(closed):
    """The closed month begins with what it left."""
    with pytest.raises(UsageError, match="2026-10-20 lies before 2026-11, which is CLOSED"):
        closed.night(date="2026-10-20")


def test_files_for_a_closed_date_are_refused_and_a_dry_night_is_not(closed):
    """A dry night stands for nothing: no statement and no hold on money goes by it."""
    request = replace(closed.request, mode=Mode.DRY_RUN)
    with closed.environment() as environment:
        files = whole_night.hold(request, environment=environment, plan=PLANS["ingest"])
        with pytest.raises(UsageError, match=SENTENCE), files:
            pass
        with whole_night.hold(request, environment=environment) as run_id:
            assert run_id


def test_a_stopped_night_of_a_closed_date_is_not_brought_to_its_end(ended):
    """It would be a night of the month that nobody signed."""
    request = replace(ended.request, business_date=date(2026, 11, 30))
    with ended.environment() as environment:
        with pytest.raises(ZeroDivisionError), whole_night.hold(request, environment=environment):
            raise ZeroDivisionError
        with environment.store.writing() as connection:
            stopped = runs.of_night(connection, request)
            runs.note_step(connection, stopped.run_id, step="query again")
    closes.close(ended)

    with (
        ended.environment() as environment,
        pytest.raises(UsageError, match=SENTENCE),
        whole_night.hold(request, environment=environment, plan=FINISH),
    ):
        pass


def test_answers_to_a_night_of_a_closed_month_are_refused(closed):
    """What was open at the close stays so there; a newer night's workbook takes the answer."""
    with closed.environment() as environment, environment.store.reading() as connection:
        run = runs.of_night(connection, closed.request)
        assert run is not None
    returned = Returned("answers.xlsx", "0" * 64, {"run_id": run.run_id}, (), (), ())
    form = returned_answers.Form(lambda _: returned, lambda _: "")

    with closed.environment() as environment:
        person = identify("anna", code=None, environment=environment)
        with pytest.raises(UsageError, match="nothing of answers"):
            returned_answers.import_resolutions(closed.folder, person=person, form=form)


def test_an_open_month_refuses_nothing(closed):
    """Neither the month after, nor another account."""
    with closed.environment() as environment, environment.store.reading() as connection:
        for account, day in ((closes.OWN, date(2026, 12, 1)), (("1", "2"), date(2026, 11, 20))):
            night = NightRequest(*account, day, Mode.LIVE)
            refuse_closed(connection, night, saved="")
        assert closed_months.state_of(connection, closes.OWN, month="2026-11").is_closed


@pytest.mark.parametrize("is_first", [True, False], ids=["night first", "close first"])
def test_a_night_that_begins_while_a_month_is_closed_ends_one_way(ended, *, is_first):
    """Between the folder and the transaction a night begins: then the month stays open."""
    closes.signed(ended, role="reviewer", name="dan")
    request = replace(ended.request, business_date=date(2026, 11, 30))
    seen = closes.digest_of(ended)
    wanted = "before a month is closed" if is_first else "after a month is closed"
    begun: list[object] = []

    def begin(point):
        if point == wanted:
            try:
                begun.append(kept.enter_context(whole_night.hold(request, environment=own)))
            except UsageError as error:
                begun.append(error)

    with ended.environment() as environment, ended.environment() as own, ExitStack() as kept:
        speak = closes.said
        words = {"role": "approver", "name": "anna", "seen": seen}
        if is_first:
            with pytest.raises(UsageError, match="is at work"):
                speak(environment, **words, crash_point=begin)
        else:
            assert speak(environment, **words, crash_point=begin).closed is not None

    assert closes.state(ended).is_closed is not is_first
    assert [isinstance(each, UsageError) for each in begun] == [not is_first]


def test_of_a_close_and_a_night_at_the_same_moment_one_is_refused(ended):
    """Whichever came first: never a closed month with a night at work in it."""
    closes.signed(ended, role="reviewer", name="dan")
    seen, barrier = closes.digest_of(ended), threading.Barrier(2)
    ends: dict[str, object] = {}

    def end(name, act):
        with ended.environment() as environment:
            barrier.wait(timeout=60)
            try:
                ends[name] = act(environment)
            except ReconError as error:
                ends[name] = error

    def night(environment):
        request = replace(ended.request, business_date=date(2026, 11, 30))
        with whole_night.hold(request, environment=environment) as run_id:
            threads[0].join(timeout=60)
            return run_id

    def word(environment):
        return closes.said(environment, role="approver", name="anna", seen=seen)

    threads = [
        threading.Thread(target=end, args=each) for each in (("close", word), ("night", night))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    refused = [name for name, each in ends.items() if isinstance(each, ReconError)]
    assert len(refused) == 1, ends
    assert closes.state(ended).is_closed is (refused == ["night"])

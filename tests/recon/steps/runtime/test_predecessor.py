"""The night before is there, or a person said why not: nothing else may begin a night."""

from dataclasses import replace
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from recon.config.rules import Rules
from recon.model.business_date import BusinessCalendar
from recon.model.errors import UsageError
from recon.model.nights import Mode, NightRequest
from recon.steps.runtime.predecessor import (
    BEFORE_OPENING,
    MISSING,
    NO_BUSINESS_DAY,
    STILL_OPEN,
    missed_without_a_run,
    missing_days,
    previous_night,
    stated_of_predecessor,
)
from recon.store.database.engine import open_store
from recon.store.database.history import links_of
from recon.store.nights import runs

NIGHT = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
OPENED = Rules.of({"window": {"opening_date": "2026-11-16"}}, source="x")


@pytest.fixture
def store(sqlite_url):
    """An empty database."""
    opened = open_store(sqlite_url)
    yield opened
    opened.close()


def ran(store, day, *, mode=Mode.LIVE, said="", ended=True):
    """A night of the account that came to its end, or stopped."""
    run_id = f"{day}-{mode}"
    request = replace(NIGHT, business_date=date.fromisoformat(day), mode=mode)
    now = datetime(2026, 11, 30, 2, tzinfo=UTC)
    with store.writing() as connection:
        runs.start(connection, request, run_id=run_id, as_of=now, now=now, predecessor=said)
        status = "finished" if ended else "stopped"
        runs.finish(connection, run_id, status=status, problem="", now=now)
        if ended:
            runs.note_result(connection, run_id, values={"verdict": "RECONCILED"})
    return run_id


def said(store, request, *, rules=None):
    """What stands in place of the night before."""
    with store.reading() as connection:
        return stated_of_predecessor(connection, request, rules=rules or Rules())


def refused(store, request, *, rules=None):
    """Why a night may not begin."""
    with pytest.raises(UsageError) as caught:
        said(store, request, rules=rules)
    return str(caught.value)


def test_a_first_night_is_declared(store):
    """By a person or by the rules; a dry run needs no word, and an earlier day is refused."""
    assert "start it with --opening" in refused(store, NIGHT)
    assert "a first night takes --opening" in refused(store, replace(NIGHT, skip="closed"))
    assert said(store, replace(NIGHT, opening=True)) == "opening"
    assert said(store, NIGHT, rules=OPENED) == "opening"
    assert said(store, replace(NIGHT, mode=Mode.DRY_RUN)) == ""
    early = refused(
        store, replace(NIGHT, business_date=date(2026, 11, 13), opening=True), rules=OPENED
    )
    assert "is reconciled from 2026-11-16 on" in early


def test_a_missing_night_needs_a_reason(store):
    """Business days between the last live night and this one, whoever ran them dry or in part."""
    ran(store, "2026-11-17", said="opening")
    ran(store, "2026-11-18", mode=Mode.DRY_RUN)
    ran(store, "2026-11-19", ended=False)

    told = refused(store, NIGHT)

    assert "no finished night of 2026-11-18 to 2026-11-19" in told
    assert "--skip REASON" in told
    assert said(store, replace(NIGHT, skip="the shop was closed")) == "skipped: the shop was closed"
    assert "leave --opening away" in refused(store, replace(NIGHT, opening=True))


def test_a_night_after_its_predecessor_needs_no_word(store):
    """The next business day follows; a weekend needs no night, and a reason does not fit."""
    ran(store, "2026-11-19", said="opening")
    assert said(store, NIGHT) == ""
    assert "leave --skip away" in refused(store, replace(NIGHT, skip="why not"))
    ran(store, "2026-11-20")
    assert said(store, replace(NIGHT, business_date=date(2026, 11, 23))) == ""


def test_what_was_said_holds_when_the_night_starts_again(store):
    """A killed night goes on with the same command, a finished one may always run again.

    Nobody slips under the opening by mistake.
    """
    ran(store, "2026-11-16", said="opening")
    ran(store, "2026-11-18", said="skipped: a fair", ended=False)
    ran(store, "2026-11-20")

    assert said(store, replace(NIGHT, business_date=date(2026, 11, 16))) == "opening"
    assert said(store, replace(NIGHT, business_date=date(2026, 11, 18))) == "skipped: a fair"
    assert said(store, NIGHT) == ""
    back = replace(NIGHT, business_date=date(2026, 11, 13))
    assert "that of 2026-11-16 opened it" in refused(store, back)
    assert said(store, replace(back, opening=True)) == "opening"


def test_what_was_said_is_in_the_history(store):
    """Page one and the chain keep the reason."""
    run_id = ran(store, "2026-11-20", said="skipped: moved house")

    with store.reading() as connection:
        assert runs.get(connection, run_id).predecessor == "skipped: moved house"
        (started, _) = links_of(connection, [run_id], entity="run")
    assert "skipped: moved house" in started.text


def test_holidays_are_no_missing_days():
    """Only days on which the calendar has business are missing."""
    calendar = BusinessCalendar.of(holidays=[date(2026, 11, 19)])

    found = missing_days(date(2026, 11, 18), day=date(2026, 11, 24), calendar=calendar)

    assert found == [date(2026, 11, 20), date(2026, 11, 23)]


def test_a_day_without_a_night_says_why(store):
    """Missing is only a business day since the opening that nobody gave a reason for."""
    ran(store, "2026-11-17", said="opening")
    ran(store, "2026-11-19", mode=Mode.DRY_RUN)
    ran(store, "2026-11-20", said="skipped: the machine was away")
    with store.reading() as connection:
        nights = runs.live_nights(connection, ("100042", "100042001"))
    days = ["2026-11-16", "2026-11-18", "2026-11-19", "2026-11-21", "2026-11-23"]

    def standings(**account):
        now = datetime(2026, 11, 24, 2, tzinfo=UTC)
        given = {"nights": nights, "rules": Rules(), "now": now} | account
        return [missed_without_a_run(date.fromisoformat(day), **given) for day in days]  # type: ignore[arg-type]  # one of two mappings by name

    skipped = "skipped: the machine was away"
    assert standings() == [BEFORE_OPENING, skipped, skipped, NO_BUSINESS_DAY, MISSING]
    assert standings(rules=OPENED)[0] == MISSING
    assert standings(nights={})[:2] == [MISSING, MISSING]
    assert standings(now=datetime(2026, 11, 23, 20, tzinfo=UTC))[-1] == STILL_OPEN


@pytest.mark.parametrize(
    ("mode", "expected"), [(Mode.LIVE, "2026-11-18-live"), (Mode.DRY_RUN, "2026-11-19-dry-run")]
)
def test_a_live_night_carries_on_from_live_nights_only(store, mode, expected):
    """What a dry run left open nobody was told, so only a dry run may carry on from it."""
    ran(store, "2026-11-18", said="opening")
    ran(store, "2026-11-19", mode=Mode.DRY_RUN)
    tonight = ran(store, "2026-11-20", mode=mode)
    with store.reading() as connection:
        night = runs.get(connection, tonight)
    environment = cast("Any", SimpleNamespace(store=store))
    previous = previous_night(night, environment=environment)
    assert previous.run_id == expected

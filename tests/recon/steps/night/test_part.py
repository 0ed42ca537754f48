from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from recon.model.errors import NightHeldError, UsageError
from recon.model.nights import Part
from recon.steps.night import whole_night as night
from recon.store.nights import runs


def test_a_part_holds_the_account_and_says_so(merchant: Any) -> None:
    """A night that starts meanwhile ends at once and hears which part is at work."""
    with (
        merchant.environment() as first,
        night.hold(merchant.request, environment=first, part=Part.SETTLE),
        pytest.raises(NightHeldError, match=r"2026-11-20 \(settle alone\)"),
    ):
        merchant.night()


def did(merchant: Any, part: Part, *, day: str = "2026-11-20") -> str:
    """A live part of a night, done; its run."""
    request = replace(merchant.request, business_date=date.fromisoformat(day))
    with merchant.environment() as environment:
        return night.run_part(
            request,
            part=part,
            environment=environment,
            workbooks=merchant.workbooks(),
            progress=merchant.told.append,
        )


def test_a_part_never_counts_as_the_night(merchant: Any) -> None:
    """It does its own steps, its run ends as a part, and no night is finished by it."""
    run_id = did(merchant, Part.SETTLE)
    with merchant.environment() as environment, environment.store.reading() as connection:
        end, finished = runs.get(connection, run_id), runs.finished(connection)

    assert [one.step for one in merchant.told] == ["query", "settle", "query again"]
    assert (end.part, end.status, finished) == ("settle", "part", [])


def test_a_finished_night_stays_and_only_questions_are_let_in(merchant: Any) -> None:
    """Its workbook would not show files and money of parts, nor of an earlier day's."""
    merchant.night()
    did(merchant, Part.QUERY)
    for part in (Part.INGEST, Part.SETTLE, Part.PAYOUTS):
        for day in ("2026-11-20", "2026-11-19"):
            with pytest.raises(UsageError, match="the night of 2026-11-20 is finished"):
                did(merchant, part, day=day)


@pytest.mark.parametrize("only", [None, Part.QUERY])
@pytest.mark.parametrize("stops", [False, True])
def test_what_was_taken_over_does_not_end_well(
    merchant: Any, only: Part | None, *, stops: bool
) -> None:
    """A process that slept through a takeover says so; what stopped it before is what it tells."""

    def held() -> None:
        with night.hold(merchant.request, environment=environment, part=only) as run_id:
            with environment.store.writing() as connection:
                runs.finish(connection, run_id, status="stopped", problem="", now=merchant.now)
            if stops:
                raise UsageError("the disk is full")

    told = "the disk is full" if stops else "another run took the account over"
    with merchant.environment() as environment:
        with pytest.raises((NightHeldError, UsageError), match=told):
            held()
        with environment.store.reading() as connection:
            assert [one.status for one in runs.unfinished(connection)] == ["stopped"]

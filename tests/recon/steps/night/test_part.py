from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from recon.model.errors import NightHeldError, UsageError
from recon.model.nights import Mode, Part
from recon.model.words import Verdict
from recon.steps.money.sending import stop_sending
from recon.steps.night import whole_night
from recon.steps.night import whole_night as night
from recon.store.nights import runs, sign_off_rows


def did(merchant: Any, wanted: Part, *, day: str = "2026-11-20", mode: Mode = Mode.LIVE) -> str:
    """A part of a night, done; its run."""
    merchant.told = []
    with merchant.environment() as environment:
        return whole_night.run_part(
            replace(merchant.request, business_date=date.fromisoformat(day), mode=mode),
            part=wanted,
            environment=environment,
            workbooks=merchant.workbooks(),
            progress=merchant.told.append,
        )


def capture_two(merchant: Any) -> list[str]:
    """An order file that captures two payments; their orders."""
    wanted = merchant.payments("authorised")[:2]
    merchant.drop("o.csv", *(merchant.order(p, status="paid", action="capture") for p in wanted))
    return sorted(payment.order_no for payment in wanted)


def sent(merchant: Any) -> list[str]:
    """Orders whose money we moved."""
    return sorted(row["order_no"] for row in merchant.effects())


def test_a_part_passes_the_gate_and_tells_what_it_would_send(merchant: Any) -> None:
    """A dry part and one while sending is stopped send nothing, and say so."""
    capture_two(merchant)
    belong_to = next_night_of(merchant)
    did(merchant, Part.INGEST, day=belong_to.isoformat())
    did(merchant, Part.SETTLE, mode=Mode.DRY_RUN)
    would = merchant.told[1].sentence
    with merchant.environment() as environment:
        stop_sending(by="Dan", reason="a drill", environment=environment)
    did(merchant, Part.SETTLE)

    assert belong_to == date(2026, 11, 20)
    assert "would send batch 1: capture 2 of" in would
    assert "sending stopped: sending was stopped by Dan" in merchant.told[1].sentence
    assert sent(merchant) == []


def test_parts_one_after_the_other_do_what_their_night_then_reports(merchant: Any) -> None:
    """Files by noon, money by itself, then the night: sent once, and one night."""
    wanted = capture_two(merchant)
    did(merchant, Part.INGEST)
    asked = did(merchant, Part.QUERY)
    settled = did(merchant, Part.SETTLE)
    steps = [one.step for one in merchant.told]
    moved_by_settle = sent(merchant)
    verdict = merchant.night()
    with merchant.environment() as environment, environment.store.reading() as connection:
        nights = sign_off_rows.live_runs(connection, first=date.min, last=date.max)
        finished = [one.run_id for one in runs.finished(connection)]
        end = runs.get(connection, settled)

    assert steps == ["query", "settle", "query again"]
    assert (moved_by_settle, sent(merchant)) == (wanted, wanted)
    assert verdict is Verdict.RECONCILED
    assert (end.part, end.status) == ("settle", "part")
    assert ([one.run_id for one in nights], len(finished)) == (finished, 1)
    with merchant.environment() as environment:
        assert whole_night.moved_since(settled, environment=environment) == ()
        (moved, _) = whole_night.moved_since(asked, environment=environment)
    assert (moved.order_no, moved.then, moved.now) == (wanted[0], "paid", "authorised")


def test_a_part_holds_the_account_and_says_so(merchant: Any) -> None:
    """A night that starts meanwhile ends at once and hears which part is at work."""
    with (
        merchant.environment() as first,
        night.hold(merchant.request, environment=first, part=Part.SETTLE),
        pytest.raises(NightHeldError, match=r"2026-11-20 \(settle alone\)"),
    ):
        merchant.night()


def test_only_files_may_come_before_their_day_has_closed(merchant: Any) -> None:
    """Money of a day that is still open waits; its files are checked as they come."""
    capture_two(merchant)
    did(merchant, Part.INGEST, day="2026-11-21")

    for wanted in (Part.QUERY, Part.SETTLE):
        with pytest.raises(UsageError, match="closes at"):
            did(merchant, wanted, day="2026-11-21")
    assert sent(merchant) == []


def test_a_finished_night_stays_and_only_questions_are_let_in(merchant: Any) -> None:
    """Its workbook would not show files and money of parts; asking again tells what moved."""
    authorised = merchant.payments("authorised")[0]
    merchant.drop("o.csv", merchant.order(authorised))
    before = merchant.night()
    quiet = did(merchant, Part.QUERY)
    merchant.wait(hours=24 * 8)
    moved = did(merchant, Part.QUERY)
    with merchant.environment() as environment:
        told = [whole_night.moved_since(one, environment=environment) for one in (quiet, moved)]
        with environment.store.reading() as connection:
            stands = runs.of_night(connection, merchant.request)
    for wanted in (Part.INGEST, Part.SETTLE, Part.PAYOUTS):
        for day in ("2026-11-20", "2026-11-19"):
            with pytest.raises(UsageError, match="the night of 2026-11-20 is finished"):
                did(merchant, wanted, day=day)

    assert told == [(), (whole_night.Moved(authorised.order_no, "authorised", "expired"),)]
    assert stands is not None
    assert (stands.status, stands.verdict) == ("finished", before.value)
    assert next_night_of(merchant) == date(2026, 11, 21)


def next_night_of(merchant: Any) -> date:
    """To which night files belong that come when the 20th has closed."""
    with merchant.environment() as environment:
        place = ("100042", "100042001")
        return whole_night.next_night(
            place, last_closed=date(2026, 11, 20), environment=environment
        )


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

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from recon.model.business_date import BusinessCalendar
from recon.model.errors import HistoryBrokenError, UsageError
from recon.steps.admin import doctor
from recon.steps.admin.verify import verify
from recon.steps.approvals import people
from recon.steps.money import gate
from recon.steps.money.approve import approve, reject, waiting
from recon.steps.money.gate import accept_restore, gate_of, stop_sending
from recon.steps.runtime.identity import identify
from recon.store.database.history import Event, append
from recon.store.database.outside_heads import ACCEPTED_RESTORE, HeadFile
from recon.store.money.case_rows import CLOCK
from recon.store.nights import runs
from recon.store.schema import history as links
from recon.store.schema import instruction
from tests.recon.steps.conftest import UNREAD
from tests.recon.steps.people import declared

pytestmark = pytest.mark.xdist_group("restored databases")
"""They share what takes longer to make than to look at."""

"""The workbooks of these nights are no workbooks."""

REASON = "the disk of the database server died"
PEOPLE = declared(jo="Jo Ahn", kim="Kim Bell", limit="EUR = 1000000")


def accept(environment, *names, reason=REASON):
    """What the restore's acceptance says to each person in turn."""
    said = [identify(name, code=None, environment=environment) for name in names]
    return [accept_restore(person=one, reason=reason, environment=environment) for one in said]


def database(merchant):
    """The merchant's SQLite file, everything in it."""
    path = merchant.sqlite_path
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def restored_over(merchant, backup):
    """Put yesterday's backup in place of the database."""
    path = database(merchant)
    for beside in (path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        beside.unlink(missing_ok=True)
    shutil.copy(backup, path)


def lose(merchant):
    """A backup made before a night that refunded three payments; then restored."""
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:3]
    merchant.drop("orders.csv", *[merchant.order(one) for one in paid])
    merchant.night()
    kept = merchant.folder / "backup.sqlite"
    shutil.copy(database(merchant), kept)
    refunds = [merchant.order(one, status="refunded", action="refund") for one in paid]
    merchant.drop("refunds.csv", *refunds)
    merchant.night()
    assert len(merchant.effects()) == 3
    restored_over(merchant, kept)
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)


@pytest.fixture
def restored(begun):
    """A merchant who lost that night's database."""
    return begun(lose)


def test_the_newest_database_put_back_goes_on_after_nights_on_an_older_one(merchant, tmp_path):
    """What an older database did meanwhile does not make the newest one look restored."""
    older, newest = tmp_path / "older.sqlite", tmp_path / "newest.sqlite"
    shutil.copy(database(merchant), older)
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.night()
    shutil.copy(database(merchant), newest)
    restored_over(merchant, older)
    merchant.night()
    restored_over(merchant, newest)
    with merchant.environment() as environment:
        problems = verify(environment, reading=UNREAD).problems
    # The night on the older one sent nothing, said so, and wrote that over the workbook.
    assert ["is not the workbook that was written" in problem for problem in problems] == [True]
    merchant.move_money()
    told = next(one for one in merchant.told[::-1] if one.step == "settle")

    assert told.figures["stopped"] == ""


@pytest.fixture
def alone(restored):
    """The same merchant, whose head file is gone as well."""
    (restored.folder / "reports" / "history-head.jsonl").unlink()
    return restored


def test_a_database_without_its_head_file_sends_nothing(alone):
    """That money was sent and nothing beside the database says up to where is reason to stop."""
    for _ in range(2):
        alone.night()
        told = next(one for one in alone.told[::-1] if one.step == "settle")

        assert len(alone.effects()) == 3
        assert "history-head.jsonl is not there or empty" in str(told.figures["stopped"])


def test_doctor_and_verify_miss_a_link_and_the_head_file(restored):
    for is_gone in (False, True):
        if is_gone:
            (restored.folder / "reports" / "history-head.jsonl").unlink()
        looked = doctor.checks(restored.variables, clock=restored.clock, randomness=Random(1))
        (history,) = [check for check in looked if check.name.startswith("history")]
        assert not history.ok
        assert "recon approve --hold restore" in history.sentence
    with restored.environment() as environment:
        problems = verify(environment, reading=UNREAD).problems

    assert any("history-head.jsonl is not there or empty" in one for one in problems)


def test_two_people_go_on_without_the_head_file(alone):
    """Deliberately and on record; then what the files ask for again waits for people."""
    with alone.environment() as environment:
        accept(environment, "jo", "kim")
    alone.move_money()
    told = next(one for one in alone.told[::-1] if one.step == "settle")

    assert not told.figures["stopped"]
    assert alone.instruction_states() == {"planned": 3}
    assert len(alone.effects()) == 3


def wait_for_people(merchant):
    """A night whose three refunds nobody has approved, and a backup of it."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    path = merchant.folder / "config" / "merchants.toml"
    path.write_text(path.read_text() + "auto_approve = false\n")
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:3]
    refunds = [merchant.order(one, status="refunded", action="refund") for one in paid]
    merchant.drop("refunds.csv", *refunds)
    merchant.night()
    shutil.copy(database(merchant), merchant.folder / "backup.sqlite")


def withdraw_one(environment, wanted):
    """One person's word."""
    people.withdraw(wanted, by="Jo Ahn", reason="not meant", environment=environment)


def reject_one(environment, wanted):
    """One person's no."""
    person = identify("jo", code=None, environment=environment)
    reject([wanted], person=person, reason="not meant", environment=environment)


def stop_all(environment, _):
    """One person's hand on the switch."""
    stop_sending(by="Jo Ahn", reason="the gateway misbehaves", environment=environment)


@pytest.mark.parametrize("restriction", [withdraw_one, reject_one, stop_all])
def test_a_backup_that_forgot_what_a_person_forbade_sends_nothing(begun, restriction):
    """Made before the word, restored after it: no night went on in between, and it is noticed."""
    merchant = begun(wait_for_people)
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            wanted = connection.execute(select(instruction.c.instruction_id)).scalars().first()
        restriction(environment, wanted)
    restored_over(merchant, merchant.folder / "backup.sqlite")
    with merchant.environment() as environment:
        for name in ("jo", "kim"):
            person = identify(name, code=None, environment=environment)
            digest = waiting(environment).approvals.digest
            approve(digest, person=person, environment=environment)
    merchant.move_money()
    told = next(one for one in merchant.told[::-1] if one.step == "settle")

    assert "recon approve --hold restore" in str(told.figures["stopped"])
    assert merchant.effects() == []


def test_after_acceptance_people_decide_what_was_sent(restored):
    """One word changes nothing; after two what the files ask for again waits and is not sent."""
    with restored.environment() as environment:
        first = accept(environment, "jo")
        with pytest.raises(UsageError, match="second person"):
            accept(environment, "jo")
    restored.night()
    with restored.environment() as environment:
        second = accept(environment, "kim")
        with environment.store.reading() as connection:
            clocks = (
                connection.execute(select(links.c.at).where(links.c.entity == CLOCK))
                .scalars()
                .all()
            )
    restored.move_money()

    told = next(one for one in restored.told[::-1] if one.step == "settle")
    assert not told.figures["stopped"]
    assert first + second == [None, 3]
    assert len(clocks) == 3
    assert restored.instruction_states() == {"needs_human": 3}
    assert len(restored.effects()) == 3


@pytest.mark.parametrize("days", [0, 3])
def test_the_first_night_after_acceptance_is_for_people_whatever_its_date(restored, days):
    """Nights that nobody started meanwhile: the files of the lost days still lie there."""
    with restored.environment() as environment:
        accept(environment, "jo", "kim")
    restored.now += timedelta(days=days)
    restored.move_money(date=f"2026-11-{20 + days}")

    assert restored.instruction_states() == {"planned": 3}
    assert len(restored.effects()) == 3


@pytest.mark.parametrize(
    ("zone", "date", "expected"),
    [
        ("Asia/Tokyo", "2026-11-21", True),
        ("Asia/Tokyo", "2026-11-22", True),
        ("Asia/Tokyo", "2026-11-23", False),
        ("America/New_York", "2026-11-21", True),
        ("America/New_York", "2026-11-22", False),
    ],
)
def test_the_days_for_people_end_with_the_one_that_was_open(
    merchant, monkeypatch, zone, date, *, expected
):
    """Accepted at 20:00 UTC, it is the next day in Tokyo already, and not yet in New York."""
    at = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
    day = datetime.fromisoformat(date).date()
    run = SimpleNamespace(business_date=day, merchant_id="100042", account_id="100042001")
    monkeypatch.setattr(gate.runs, "any_finished_since", lambda *_, **__: True)
    with merchant.environment() as environment, environment.store.writing() as connection:
        event = Event(gate.ENTITY, gate.ENTITY, gate.ACCEPTED, {})
        append(connection, [event], at=at)
        calendar = BusinessCalendar.of(timezone=zone)
        found = gate.by_people_only(connection, run, calendar=calendar)

    assert found is expected


def test_a_history_that_does_not_close_is_not_accepted(restored):
    """Two people cannot make whole what was changed by hand besides being restored."""
    with closing(sqlite3.connect(database(restored))) as connection:
        connection.executescript(
            "DROP TRIGGER history_no_update; UPDATE history SET data = '{}' WHERE sequence = 2"
        )
    with (
        restored.environment() as environment,
        pytest.raises(HistoryBrokenError, match=r"history 2 .*nothing was accepted"),
    ):
        accept(environment, "jo")


REPLAYED = {"by": "Jo Ahn and Kim Bell", "reason": "for me", "instructions": 0}


def closed(environment):
    """Why the gate is closed."""
    with environment.store.reading() as connection:
        run = runs.newest_live(connection, ("100042", "100042001"))
    assert run is not None
    return gate_of(run, environment=environment).closed_because


def noted_elsewhere(reports):
    """What the newer database noted after somebody had spoken."""
    path = reports / "history-head.jsonl"
    newest = json.loads(path.read_text().splitlines()[-1])
    more = newest | {"sequence": newest["sequence"] + 1, "hash": "e" * 64}
    with path.open("a") as file:
        file.write(json.dumps(more) + "\n")


def forge(environment, reports, **data):
    """An acceptance with the night's login and files alone."""
    with environment.store.writing() as connection:
        event = Event("database", "database", ACCEPTED_RESTORE, {**REPLAYED, **data})
        head = append(connection, [event], at=environment.clock())
    HeadFile(reports).note(lambda: head, of=ACCEPTED_RESTORE, at=environment.clock())


def test_what_two_people_accept_opens_the_gate(restored):
    """And `recon verify` finds nothing in it."""
    with restored.environment() as environment:
        assert "it is a backup that was restored" in closed(environment)
        before = verify(environment, reading=UNREAD).problems
        assert any("is older than the archive" in one for one in before)
        assert accept(environment, "jo", "kim") == [None, 0]
        assert closed(environment) == ""
        problems = verify(environment, reading=UNREAD).problems
    assert [one for one in problems if "accepted" in one or "older than" in one] == []


def test_a_word_about_one_restore_is_good_for_no_other(restored):
    """Where more was lost meanwhile, the second person's word is a first one about that."""
    with restored.environment() as environment:
        assert accept(environment, "jo") == [None]
        noted_elsewhere(restored.folder / "reports")
        assert accept(environment, "kim") == [None]
        assert "it is a backup that was restored" in closed(environment)
        assert accept(environment, "jo") == [0]


def test_a_line_in_a_head_file_is_nobodys_word(restored):
    """Whoever has the night's login and files accepts nothing."""
    with restored.environment() as environment:
        forge(environment, restored.folder / "reports")
        assert "counts as accepted, but the desk endorsed it for nobody" in closed(environment)
        problems = verify(environment, reading=UNREAD).problems
    assert [one for one in problems if "counts as accepted" in one]


def test_true_words_about_one_loss_cover_no_other(restored):
    """The same words under a later loss close the gate: the head file has another link there."""
    reports = restored.folder / "reports"
    with restored.environment() as environment:
        accept(environment, "jo", "kim")
        with environment.store.reading() as connection:
            (told,) = [
                json.loads(row["data"])
                for row in connection.exec_driver_sql("SELECT * FROM history").mappings()
                if row["event"] == ACCEPTED_RESTORE
            ]
        noted_elsewhere(reports)
        forge(environment, reports, lost=told["lost"], after=told["after"])
        assert "nobody accepted that it is lost" in closed(environment)

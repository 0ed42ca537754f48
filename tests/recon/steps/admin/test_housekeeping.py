import os
from datetime import timedelta

import pytest
from sqlalchemy import select

from recon.desk.endorsement import Kind
from recon.model.errors import UsageError
from recon.model.nights import Mode
from recon.model.terms import InstructionState
from recon.steps.admin import housekeeping as keeping
from recon.store.database import history
from recon.store.nights import runs
from recon.store.schema import batch, contradiction, instruction
from tests.recon.store.decided import said

DAY = timedelta(days=1)
AGES = """
[retention]
archive_days = 90
metrics_days = 7
logs_days = 7
excluded_days = 90
replies_days = 90
replaced_workbooks_days = 7

[retention.backups]
folder = "{}"
files = "recon-*.dump"
days = 7
keep = 3
"""


def written(path, *, at):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def found(merchant):
    with merchant.environment() as environment:
        return {one.kind: one for one in keeping.housekeeping(environment)[0]}


def deleted(merchant):
    with merchant.environment() as environment:
        return keeping.housekeeping(environment, by="Otto Ops")


def files_of(folder):
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if not one.is_dir()}


@pytest.fixture
def keeper(merchant):
    """A merchant with an archive, a log, backups and ages for everything."""
    config, folder = merchant.folder / "config", merchant.folder
    (config / "retention.toml").write_text(AGES.format(folder / "backups"))
    merchants = config / "merchants.toml"
    merchants.write_text(merchants.read_text() + f'archive = "{folder / "archive"}"\n')
    merchant.variables["RECON_LOG_FILE"] = str(folder / "log" / "night.log")
    (folder / "log").mkdir()
    return merchant


def test_only_what_is_old_and_may_go_is_deleted(keeper):
    folder, now = keeper.folder, keeper.now
    old, young = now.replace(year=2025), now
    gone = {
        *("archive/ab/old.csv", "reports/metrics/r1.json", "log/night.log.1"),
        *("reports/spill/b.answer.json.excluded", "backups/recon-1.dump"),
    }
    stays = {
        *("archive/ab/.old.csv.part", "reports/spill/b.answer.json", "log/night.log"),
        *("log/other.log.1", "reports/history-head.jsonl", "reports/workbook.xlsx"),
        *("backups/recon-2.dump", "backups/recon-3.dump", "backups/keys.txt"),
        *("inbox/orders.csv", "outside/secret"),
    }
    for name in gone | stays:
        written(folder / name, at=old)
    for name in ("archive/ab/young.csv", "reports/metrics/r2.json", "backups/recon-4.dump"):
        written(folder / name, at=young)
    (folder / "archive" / "link").symlink_to(folder / "outside")
    (folder / "reports" / "metrics" / "link.json").symlink_to(folder / "outside" / "secret")
    before = files_of(folder)
    shown = {kind: one.count for kind, one in found(keeper).items()}
    untouched = files_of(folder) - before
    (_, stayed) = deleted(keeper)

    assert set(shown.values()) == {0, 1}
    assert (sum(shown.values()), untouched, stayed) == (len(gone), set(), ())
    assert before - files_of(folder) == gone
    with keeper.environment() as environment, environment.store.reading() as connection:
        (event,) = history.links_of(connection, ["backups"], entity="retention")
        assert history.verify(connection)[1] == ""
    told = event.data
    assert (told["by"], told["count"], told["names"]) == ("Otto Ops", 1, ["recon-1.dump"])


def test_nobody_deletes_without_a_name(keeper):
    with keeper.environment() as environment, pytest.raises(UsageError, match="--as"):
        keeping.housekeeping(environment, by=" ")


def test_without_ages_nothing_is_looked_at(merchant):
    """What nobody named is kept."""
    assert found(merchant) == {}


@pytest.fixture
def settled(keeper):
    """A night that captured a payment and ran again, its first workbook beside it; long ago."""
    payment = keeper.payments("authorised")[0]
    keeper.drop("o.csv", keeper.order(payment, status="paid", action="capture"))
    keeper.night()
    keeper.night()
    first = written(keeper.folder / "reports" / "first.xlsx", at=keeper.now)
    with keeper.environment() as environment, environment.store.writing() as connection:
        run_id = runs.finished(connection)[0].run_id
        runs.note_result(connection, run_id, values={"workbook": str(first)})
    keeper.wait(hours=24 * 91)
    return keeper


def decided(merchant, state):
    with merchant.environment() as environment, environment.store.writing() as connection:
        connection.execute(instruction.update().values(state=state.value))


def found_where(merchant, change):
    with merchant.environment() as environment, environment.store.writing() as connection:
        connection.execute(change)
    return found(merchant)[keeping.REPLIES].count


def case_of(merchant):
    with merchant.environment() as environment, environment.store.reading() as connection:
        row = connection.execute(select(instruction)).one()
    return contradiction.insert().values(
        instruction_id=row.instruction_id,
        merchant_id=row.merchant_id,
        account_id=row.account_id,
        transaction_id=row.transaction_id,
        believed="confirmed",
        reason="refused",
        noted_at=merchant.now,
        verdict="",
    )


def test_a_reply_goes_when_its_money_is_decided_and_its_hash_stays(settled):
    """A doubt, a batch at work and an open case keep what the gateway said."""
    decided(settled, InstructionState.IN_DOUBT)
    in_doubt = found(settled)[keeping.REPLIES].count
    decided(settled, InstructionState.CONFIRMED)
    in_work = found_where(settled, batch.update().values(state="replied"))
    settled_again = found_where(settled, batch.update().values(state="closed"))
    in_a_case = found_where(settled, case_of(settled))
    closed_case = found_where(settled, contradiction.update().values(verdict="applied"))
    young = found_where(settled, batch.update().values(closed_at=settled.now - 89 * DAY))
    old = found_where(settled, batch.update().values(closed_at=settled.now - 91 * DAY))
    told = found(settled)[keeping.REPLIES]
    deleted(settled)
    with settled.environment() as environment, environment.store.reading() as connection:
        (row,) = connection.execute(select(batch)).all()

    assert (in_doubt, in_work, settled_again, in_a_case, closed_case) == (0, 0, 1, 0, 1)
    assert (young, old, told.count, told.size_bytes > 100) == (0, 1, 1, True)
    assert (row.reply, len(row.reply_sha256), row.state) == (None, 64, "closed")


def test_a_dry_run_never_lets_the_workbook_of_a_live_one_go(settled):
    """What was really sent stands in the live run's workbook alone; the dry one's may go."""
    newest = written(settled.folder / "reports" / "newest.xlsx", at=settled.now)
    with settled.environment() as environment, environment.store.writing() as connection:
        run_id = runs.finished(connection)[-1].run_id
        runs.note_result(connection, run_id, values={"workbook": str(newest)})
    settled.night(mode=Mode.DRY_RUN)
    settled.wait(hours=24 * 91)

    going = [one.name for one in found(settled)["replaced workbooks"].files]
    assert ("first.xlsx" in going, newest.name in going, len(going)) == (True, False, 2)


def test_a_workbook_that_lies_elsewhere_is_nobodys_to_delete(settled):
    """Only what stands in a declared reports folder goes, whatever path a run has noted."""
    elsewhere = written(settled.folder / "elsewhere" / "first.xlsx", at=settled.now)
    settled.wait(hours=24 * 91)
    with settled.environment() as environment, environment.store.writing() as connection:
        first = runs.finished(connection)[0]
        runs.note_result(connection, first.run_id, values={"workbook": str(elsewhere)})

    assert found(settled)["replaced workbooks"].count == 0


def test_a_workbook_goes_when_it_was_replaced_and_never_signed(settled):
    """A name under it keeps it for good, as the newest of a night is kept."""
    unsigned = found(settled)["replaced workbooks"].files
    with settled.environment() as environment, environment.store.writing() as connection:
        first = runs.finished(connection)[0]
        says = {"role": "reviewer", "workbook_sha256": "0"}
        about = (Kind.SIGN_OFF, first.run_id, "Anna")
        said(connection, *about, at=environment.clock(), says=says)
    deleted(settled)

    assert [one.name for one in unsigned] == ["first.xlsx"]
    assert found(settled)["replaced workbooks"].count == 0
    assert unsigned[0].is_file()
    assert len(list((settled.folder / "reports").glob("*.xlsx"))) == 2

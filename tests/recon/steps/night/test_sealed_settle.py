import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import find_sealed, sealed_step, step_problems
from recon.archive.storage import LocalStorage
from recon.config.rules import Rules
from recon.model.errors import ArchiveError, NightHeldError, OutputError, UsageError
from recon.model.nights import FINISH, NIGHT, PLANS, Mode
from recon.model.terms import Verdict
from recon.steps.night import whole_night as night
from recon.steps.night.report import Workbooks
from recon.steps.runtime.night_folder import DECISIONS, STEPS, links
from recon.store.database import history
from recon.store.nights import runs
from tests.recon.resting import resting
from tests.recon.steps.conftest import (
    archive_of,
    capture,
    checked,
    run_folder,
)


def events_of_night(merchant):
    """The newest run and the whole history, oldest link first."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        (newest,) = runs.newest_of_accounts(connection)
        entities = {"run": [newest.run_id], "batch": _batches(connection)}
        events = [
            one
            for entity, ids in entities.items()
            for one in history.links_of(connection, ids, entity=entity)
        ]
        return newest, sorted(events, key=lambda one: one.sequence)


def _batches(connection):
    found = connection.exec_driver_sql(
        "SELECT DISTINCT entity_id FROM history WHERE entity = 'batch'"
    )
    return [row[0] for row in found]


@pytest.mark.parametrize("mode", [Mode.LIVE, Mode.DRY_RUN])
def test_what_a_night_read_is_bound_before_the_first_claim_and_all_of_it_by_its_end(mode, merchant):
    """The links stand in the order of the night, and each binds a folder that is whole."""
    capture(merchant)
    merchant.night(mode=mode)

    run, events = events_of_night(merchant)
    names = [event.data["step"] if event.event == "sealed" else event.event for event in events]
    wanted = [
        "started",
        "answers-1",
        "inputs",
        "compared",
        "results",
        "proof",
        "reported",
        "finished",
    ]
    assert [name for name in names if name in wanted] == wanted
    assert (names.index("inputs") < names.index("claimed")) if mode is Mode.LIVE else True
    assert ("claimed" in names) is (mode is Mode.LIVE)
    storage = archive_of(merchant)
    with merchant.environment() as environment, environment.store.reading() as connection:
        bound = links(connection, run.run_id)
    for link in bound:
        night = link.folder.rpartition("/")[0]
        sealed = find_sealed(storage, night=night, step=link.step, sha256=link.sha256)
        assert step_problems(storage, sealed) == []
        assert sealed.manifest.about.run_id == run.run_id
    assert sealed.manifest.about.after == {
        link.step: link.sha256 for link in bound if link.step in STEPS[:3]
    }


CARD = "4111111111111111"


def entries(folder):
    storage_root = next(each for each in folder.parents if each.name == "archive")
    storage, night_name = LocalStorage(storage_root), str(folder.relative_to(storage_root))
    found = {}
    for step in ("ledger", "inputs", "compared", "results", "proof"):
        sealed = sealed_step(storage, folder=f"{night_name}/{step}")
        assert step_problems(storage, sealed) == []
        found |= {f"{step}/{entry.name}": entry for entry in sealed.manifest.files}
    return found


def test_a_night_is_all_its_files_with_workbook_rules_and_decisions(merchant):
    capture(merchant)
    merchant.night()
    folder = run_folder(merchant)
    found = entries(folder)

    of_banks = {"inputs/statements", "inputs/bank", "inputs/payouts", "results/counted"}
    of_banks |= {"results/paid", "results/received", "results/explained", "results/banked"}
    wanted = {each.path for each in SCHEMAS.values()} - {f"{each}.parquet" for each in of_banks}
    elsewhere = {f"inputs/{name}.parquet" for name in ("answers", "ledger", "opening")}
    elsewhere |= {
        "inputs/tariffs.parquet",
        "inputs/volumes.parquet",
    }  # where something asks for them
    assert wanted - elsewhere <= set(found)
    later = {"compared/answers.parquet", "compared/opening.parquet", "results/steps.parquet"}
    assert {*later, "ledger/ledger.parquet"} <= set(found)
    decisions = [
        json.loads(line)
        for line in gzip.decompress((folder / "proof" / DECISIONS).read_bytes()).splitlines()
    ]
    assert [(each["decision"], each["approved_by"]) for each in decisions[-1:]] == [
        ("approval", "rule: order file")
    ]
    rules = Rules.of(json.loads((folder / "proof" / "rules.json").read_text()), source="rules.json")
    with merchant.environment() as environment:
        assert rules.digest == environment.settings.rules.digest
    (workbook,) = (merchant.folder / "reports").glob("*.xlsx")
    assert (folder / "proof" / "workbook.xlsx").read_bytes() == workbook.read_bytes()


def test_an_archive_that_is_gone_after_money_loses_nothing_and_moves_nothing_twice(merchant):
    """The sentence says what is kept and what to run; then the night ends with a whole folder."""
    capture(merchant)
    root = Path(archive_of(merchant).shown)

    def lose(summary):
        if summary.step == "query again":
            root.rename(root.with_name("elsewhere"))
            root.write_text("no folder")

    with (
        merchant.environment() as environment,
        pytest.raises(
            ArchiveError, match=r"answers .* kept .*recon nightly --only finish --merchant"
        ),
    ):
        merchant.run(environment, progress=lose)
    assert len(merchant.effects()) == 1

    root.unlink()
    root.with_name("elsewhere").rename(root)
    with merchant.environment() as environment:
        run_id = merchant.run(environment, progress=lambda _: None, plan=FINISH).run_id
    assert len(merchant.effects()) == 1
    assert run_folder(merchant).name == run_id
    assert checked(merchant, "2026-11-20").problems == ()


COMMAND = "from recon.cli import main; raise SystemExit(main())"
KILLED_AT = [
    ("archived the entries:1", "nightly"),
    ("archived a manifest:2", "nightly"),
    ("archived a manifest:4", "nightly --only finish"),
]
"""The ledger, before it is bound; while `inputs` is written, before it is; then of `results`,
before it and `proof` are."""


@pytest.mark.process
@pytest.mark.parametrize(("point", "again"), KILLED_AT)
def test_a_night_killed_while_it_is_sealed_ends_whole(point, again, merchant):
    capture(merchant)
    account = ["--merchant", "100042", "--account", "100042001", "--business-date", "2026-11-20"]

    def played(command, **variables):
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *command.split(), *account],
            env={**os.environ, **merchant.variables, **variables},
            capture_output=True,
            check=False,
        ).returncode

    assert played("nightly", RECON_CRASH_AT=point) == -signal.SIGKILL
    assert len(merchant.effects()) == (again != "nightly")
    killed = run_folder(merchant)

    assert played(again) in {0, 3, 4}

    assert len(merchant.effects()) == 1
    assert checked(merchant, "2026-11-20").problems == ()
    assert (run_folder(merchant) == killed) is (again != "nightly")
    assert entries(run_folder(merchant))


def test_no_card_number_and_no_secret_is_in_any_file_of_a_night(merchant):
    """What a file brought where it does not belong is masked before it is kept for years."""
    payment = merchant.payments("captured")[0]
    merchant.drop(
        "orders.csv",
        merchant.order(payment),
        merchant.order(payment, order_no=CARD),
        merchant.order(payment, order_no="W-2", amount=CARD, action_reason=f"card {CARD}"),
    )
    assert merchant.night(mode=Mode.DRY_RUN) is not Verdict.RECONCILED

    folder = run_folder(merchant)
    for path, content in resting(folder):
        assert CARD.encode() not in content, path
        for name in ("RECON_SIGN_KEY", "RECON_DATABASE_URL"):
            assert f'"{merchant.variables[name]}"'.encode() not in content, path


def test_a_part_holds_the_account_and_says_so(merchant):
    """A night that starts meanwhile ends at once and hears which part is at work."""
    with (
        merchant.environment() as first,
        night.hold(merchant.request, environment=first, plan=PLANS["settle"]),
        pytest.raises(NightHeldError, match=r"2026-11-20 \(settle alone\)"),
    ):
        merchant.night()


def test_a_part_never_counts_as_the_night(merchant):
    with merchant.environment() as environment:
        end = merchant.run(environment, plan=PLANS["settle"])
        with environment.store.reading() as connection:
            finished = runs.finished(connection)

        ran = [
            merchant.run(environment, plan=PLANS[only], progress=lambda _: None)
            for only in ("ingest", "query")
        ]

    assert [one.step for one in merchant.told] == ["query", "settle", "query again"]
    assert (end.part, end.status, end.mode, finished) == ("settle", "part", Mode.LIVE, [])
    assert {run.mode for run in ran} == {Mode.DRY_RUN}, "what sends nothing is never live"


@pytest.mark.parametrize("plan", [NIGHT, PLANS["query"]], ids=["night", "query"])
@pytest.mark.parametrize("stops", [False, True])
def test_what_was_taken_over_does_not_end_well(merchant, plan, *, stops):
    """A process that slept through a takeover says so; what stopped it before is what it tells."""

    def held():
        with night.hold(merchant.request, environment=environment, plan=plan) as run_id:
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


def finished(merchant):
    merchant.told = []
    with merchant.environment() as environment:
        return merchant.run(environment, plan=FINISH).run_id


def stopped_at_its_report(merchant):
    """A night that captured one payment and could not write its workbook."""

    def full(*_):
        raise OSError(28, "No space left on device")

    payment = merchant.payments("authorised")[0]
    merchant.drop("o.csv", merchant.order(payment, status="paid", action="capture"))
    with pytest.raises(OutputError, match=r"No space left.*make room on its disk"):
        merchant.night(workbooks=Workbooks(write=full, totals=full))


def test_a_stopped_night_ends_without_asking_or_sending(merchant):
    """The gateway is away: the same run compares what it had read, reports, and counts; once."""
    with pytest.raises(UsageError, match="never ran live"):
        finished(merchant)
    stopped_at_its_report(merchant)
    merchant.variables["RECON_GATEWAY_BASE_URL"] = "http://127.0.0.1:9"
    run_id = finished(merchant)
    steps = [one.step for one in merchant.told]
    with merchant.environment() as environment:
        again = night.is_stopped(merchant.request, environment=environment)
        with environment.store.reading() as connection:
            (end,) = runs.finished(connection)
            verdict = runs.get(connection, run_id).verdict

    with pytest.raises(UsageError, match="is finished"):
        finished(merchant)
    assert (end.run_id, again) == (run_id, False)
    assert steps == ["reconcile", "report"]
    assert verdict == Verdict.RECONCILED
    assert len(list((merchant.folder / "reports").glob("*.xlsx"))) == 1
    assert len(merchant.effects()) == 1


def test_a_night_that_has_to_ask_is_started_again(merchant):
    """One that stopped at its first query has no answers to compare."""
    merchant.drop("o.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.variables["RECON_SIGN_KEY"] = "wrong"
    with pytest.raises(Exception, match="sign key"):
        merchant.night()

    with pytest.raises(UsageError, match="before the gateway was asked again"):
        finished(merchant)


def test_answers_from_before_something_else_are_too_old(merchant):
    """Another run of the account since: the whole night is started again."""
    stopped_at_its_report(merchant)
    with merchant.environment() as environment:
        merchant.run(environment, plan=PLANS["settle"])

    with pytest.raises(UsageError, match="came after it"):
        finished(merchant)

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import FileEntry, sealed_step, step_problems
from recon.archive.storage import LocalStorage
from recon.config.rules import Rules
from recon.model.errors import ArchiveError
from recon.model.nights import Mode, StepSummary
from recon.model.words import Verdict
from recon.steps.ground.night_folder import DECISIONS
from recon.steps.night import whole_night as night
from recon.steps.night.whole_night import finish
from tests.recon.resting import resting
from tests.recon.steps.care.test_verify_folder import checked, run_folder
from tests.recon.steps.conftest import Merchant, plain_workbooks
from tests.recon.steps.night.test_sealed_settle import archive_of, capture

CARD = "4111111111111111"


def entries(folder: Path) -> dict[str, FileEntry]:
    """Every file of every step of a run's folder, by its name below that folder."""
    storage_root = next(each for each in folder.parents if each.name == "archive")
    storage, night_name = LocalStorage(storage_root), str(folder.relative_to(storage_root))
    found = {}
    for step in ("books", "inputs", "compared", "results", "proof"):
        sealed = sealed_step(storage, folder=f"{night_name}/{step}")
        assert sealed is not None
        assert step_problems(storage, sealed) == []
        found |= {f"{step}/{entry.name}": entry for entry in sealed.manifest.files}
    return found


def test_a_night_is_all_its_files_with_workbook_rules_and_decisions(merchant: Merchant) -> None:
    """Whoever has the folder has what was read, what came of it, by which rules and whose word."""
    capture(merchant)
    merchant.night()
    folder = run_folder(merchant)
    found = entries(folder)

    of_banks = {"inputs/statements", "inputs/bank", "inputs/payouts", "results/counted"}
    of_banks |= {"results/paid", "results/received", "results/explained", "results/banked"}
    wanted = {each.path for each in SCHEMAS.values()} - {f"{each}.parquet" for each in of_banks}
    elsewhere = {"inputs/answers.parquet", "inputs/ledger.parquet"}
    elsewhere |= {
        "inputs/tariffs.parquet",
        "inputs/volumes.parquet",
    }  # where something asks for them
    assert wanted - elsewhere <= set(found)
    assert {"compared/answers.parquet", "books/ledger.parquet"} <= set(found)
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


def test_an_archive_that_is_gone_after_money_loses_nothing_and_moves_nothing_twice(
    merchant: Merchant,
) -> None:
    """The sentence says what is kept and what to run; then the night ends with a whole folder."""
    capture(merchant)
    root = Path(archive_of(merchant).shown)

    def lose(summary: StepSummary) -> None:
        if summary.step == "query again":
            root.rename(root.with_name("elsewhere"))
            root.write_text("no folder")

    with (
        merchant.environment() as environment,
        pytest.raises(
            ArchiveError, match=r"answers .* kept .*recon nightly --only finish --merchant"
        ),
    ):
        night.run(
            merchant.request,
            environment=environment,
            workbooks=plain_workbooks(),
            progress=lose,
        )
    assert len(merchant.effects()) == 1

    root.unlink()
    root.with_name("elsewhere").rename(root)
    with merchant.environment() as environment:
        run_id = finish(
            merchant.request,
            environment=environment,
            workbooks=plain_workbooks(),
            progress=lambda _: None,
        )
    assert len(merchant.effects()) == 1
    assert run_folder(merchant).name == run_id
    assert checked(merchant).problems == ()


NIGHT = "from recon.cli import main; raise SystemExit(main())"
KILLED_AT = [
    ("archived the books:1", "nightly"),
    ("archived a manifest:2", "nightly"),
    ("archived a manifest:4", "nightly --only finish"),
]
"""The books, before they are bound; while `inputs` is written, before it is; then of `results`,
before it and `proof` are."""


@pytest.mark.process
@pytest.mark.parametrize(("point", "again"), KILLED_AT)
def test_a_night_killed_while_it_is_sealed_ends_whole(
    point: str, again: str, merchant: Merchant
) -> None:
    """A step without its link counts for nothing before money, and is taken over after it."""
    capture(merchant)
    account = ["--merchant", "100042", "--account", "100042001", "--business-date", "2026-11-20"]

    def played(command: str, **variables: str) -> int:
        return subprocess.run(
            [sys.executable, "-c", NIGHT, *command.split(), *account],
            env={**os.environ, **merchant.variables, **variables},
            capture_output=True,
            check=False,
        ).returncode

    assert played("nightly", RECON_CRASH_AT=point) == -signal.SIGKILL
    assert len(merchant.effects()) == (again != "nightly")
    killed = run_folder(merchant)

    assert played(again) in {0, 3, 4}

    assert len(merchant.effects()) == 1
    assert checked(merchant).problems == ()
    assert (run_folder(merchant) == killed) is (again != "nightly")
    assert entries(run_folder(merchant))


def test_no_card_number_and_no_secret_is_in_any_file_of_a_night(merchant: Merchant) -> None:
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

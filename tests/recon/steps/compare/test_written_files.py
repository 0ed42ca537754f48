"""What is handed to another process of a night, and what of its files is refused there."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recon.archive.schemas import ANSWERS
from recon.config.night_archive import ArchiveSettings
from recon.model.errors import ArchiveBrokenError
from recon.model.nights import Mode
from recon.model.words import Verdict
from recon.steps.compare import reconcile as reconcile_step
from recon.steps.compare.handed_night import HandedNight, opened_night
from recon.steps.compare.kept_sources import sources_of_night
from recon.steps.compare.sealed_inputs import Tables
from recon.steps.ground.night_folder import INPUTS
from recon.store.nights.runs import Run
from tests.planted import Planted, planted
from tests.recon.steps.compare.written_night import written
from tests.recon.steps.conftest import Merchant
from tests.recon.steps.night.test_sealed_settle import capture


@pytest.fixture(scope="module")
def files() -> Planted:
    """Few orders, some of them broken."""
    return planted(size=60, broken=12, seed=5, settled=False)


def read(part: HandedNight) -> None:
    """Read all of it, as another process does."""
    sources_of_night(opened_night(part, variables={}))


def test_files_that_say_something_else_than_was_compared_are_not_proven(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that was given and not written is missed."""
    capture(merchant)
    begin = reconcile_step.begin_compared

    def without_the_first(run: Run, *, tables: Tables, **named: Any) -> Any:
        def lost() -> Iterator[tuple[str, pa.Table]]:
            for name, table in tables():
                yield name, table.slice(1) if name == ANSWERS else table

        return begin(run, tables=lost, **named)

    monkeypatch.setattr(reconcile_step, "begin_compared", without_the_first)
    assert merchant.night(mode=Mode.DRY_RUN) is Verdict.NOT_PROVEN
    failed = {total.id for total in merchant.result().control_totals if not total.passed}
    assert "T3" in failed


def test_a_file_that_is_not_as_it_was_written_is_named(tmp_path: Path, files: Planted) -> None:
    """Nothing is compared of it."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    file = tmp_path / "nights" / "R" / INPUTS / "orders.parquet"
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1])

    with pytest.raises(ArchiveBrokenError, match=r"inputs/orders\.parquet has \d+ bytes"):
        read(part)


def test_a_step_that_was_written_anew_meanwhile_is_named(tmp_path: Path, files: Planted) -> None:
    """Its manifest is not the one that the part was handed out with."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    ((folder, _), compared) = part.steps

    with pytest.raises(ArchiveBrokenError, match=r"nights/R/inputs .*is not what the night wrote"):
        read(replace(part, steps=((folder, "0" * 64), compared)))


def test_another_process_is_told_no_secret(tmp_path: Path, files: Planted) -> None:
    """A place, rules and hashes: what travels to a worker has no row and no key."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    archive = ArchiveSettings(path="s3://books/n", access_key_env="ID", secret_key_env="SECRET")

    told = pickle.dumps(replace(part, archive=archive))

    assert b"SECRET" in told
    assert files.sources.orders["order_no"].iloc[0].encode() not in told

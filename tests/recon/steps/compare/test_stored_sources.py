"""What is read again of a night as it was sealed, here and in another process."""

import pickle
from dataclasses import replace

import pytest

from recon.archive.schemas import ANSWERS
from recon.config.night_archive import ArchiveSettings
from recon.model.errors import ArchiveBrokenError
from recon.model.nights import Mode
from recon.model.terms import DOUBTFUL_STATES, Verdict
from recon.steps.compare import sealed_inputs
from recon.steps.compare.stored_sources import (
    opened_night,
    sources_of_night,
    stored_sources,
)
from recon.steps.night import whole_night as night
from recon.steps.runtime.night_folder import INPUTS
from recon.store.nights import runs
from tests.injected import planted
from tests.recon.steps.compare.written_night import newest, written
from tests.recon.steps.conftest import capture


@pytest.fixture(scope="module")
def files():
    """Few orders, some of them broken."""
    return planted(size=60, broken=12, seed=5, settled=False)


def read(part):
    """Read all of it, as another process does."""
    sources_of_night(opened_night(part, variables={}))


def test_files_that_say_something_else_than_was_compared_are_not_proven(merchant, monkeypatch):
    """An answer that was given and not written is missed."""
    capture(merchant)
    changed = sealed_inputs._changed

    def without_the_first(*given, **named):
        tables = changed(*given, **named)
        return {**tables, ANSWERS: tables[ANSWERS].slice(1)}

    monkeypatch.setattr(sealed_inputs, "_changed", without_the_first)
    assert merchant.night(mode=Mode.DRY_RUN) is Verdict.NOT_PROVEN
    failed = {total.id for total in merchant.result().control_totals if not total.passed}
    assert "T3" in failed


def test_a_file_that_is_not_as_it_was_written_is_named(tmp_path, files):
    """Nothing is compared of it."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    file = tmp_path / "nights" / "R" / INPUTS / "orders.parquet"
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1])

    with pytest.raises(ArchiveBrokenError, match=r"inputs/orders\.parquet has \d+ bytes"):
        read(part)


def test_a_step_that_was_written_anew_meanwhile_is_named(tmp_path, files):
    """Its manifest is not the one that the part was handed out with."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    ((folder, _), compared) = part.steps

    with pytest.raises(ArchiveBrokenError, match=r"nights/R/inputs .*is not what the night wrote"):
        read(replace(part, steps=((folder, "0" * 64), compared)))


def test_another_process_is_told_no_secret(tmp_path, files):
    """A place, rules and hashes: what travels to a worker has no row and no key."""
    part = written(tmp_path, sources=files.sources, rules=files.rules)
    archive = ArchiveSettings(path="s3://books/n", access_key_env="ID", secret_key_env="SECRET")

    told = pickle.dumps(replace(part, archive=archive))

    assert b"SECRET" in told
    assert files.sources.orders["order_no"].iloc[0].encode() not in told


def test_a_doubt_keeps_when_answers_first_showed_it(merchant):
    """Its grace runs from there, however many nights show it again; nothing else keeps it."""
    paid = next(one for one in merchant.payments("authorised") if one.currency == "EUR")
    part = {"status": "paid", "action": "capture", "action_amount": "1.00"}
    merchant.drop("orders.csv", merchant.order(paid, **part))
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    shown = []
    for day in ("2026-11-20", "2026-11-21", "2026-11-22"):
        merchant.night(date=day)
        merchant.fault()
        merchant.wait(hours=24)
        run = newest(merchant)
        with merchant.environment() as environment, environment.store.reading() as connection:
            kept = stored_sources(connection, run, environment=environment)
        shown.append(kept[0].instructions.iloc[0])

    assert [one["state"] in DOUBTFUL_STATES for one in shown] == [True] * 3
    assert shown[0]["outcome_at"] > shown[0]["sent_at"]
    assert {one["outcome_at"] for one in shown} == {shown[0]["outcome_at"]}


def test_of_a_run_that_sealed_nothing_there_is_nothing(merchant):
    """Whoever asks then reads the tables, or says that it cannot be rebuilt."""
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
        environment.store.reading() as connection,
    ):
        run = runs.get(connection, run_id)
        assert stored_sources(connection, run, environment=environment) is None

"""Each night is proven in SQL, over its own folder, before its verdict is kept."""

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.model.terms import Verdict
from recon.proof import totals_in_sql
from recon.proof.totals_in_sql import in_file
from recon.steps.admin.verify import verify_night
from recon.steps.compare.sheets_proven import FOREIGN
from recon.steps.night.report import Workbooks
from recon.store.nights import results
from reports.workbook_io import workbooks
from tests.recon.steps.conftest import (
    ACCOUNT,
    MERCHANT,
    capture,
    run_folder,
)


def totals_of(merchant, run_id):
    """The control totals of a run by number and name; of several under one name one that fails."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        totals = sorted(results.load_totals(connection, run_id), key=lambda one: not one.passed)
    return {(one.id, one.name): one for one in totals}


def test_a_night_is_proven_in_sql(merchant, tmp_path):
    """All totals hold, `recon verify` asks again, and a stranger with DuckDB reads PROVEN."""
    capture(merchant)
    merchant.night()
    folder = run_folder(merchant)
    totals = totals_of(merchant, folder.name)
    assert [key for key, one in totals.items() if not one.passed] == []
    assert len(totals) > 20
    assert sum(number == "T13" for number, _ in totals) > len(results.SECTIONS)
    with merchant.environment() as environment:
        assert verify_night(environment, name=folder.name).problems == ()
    alone = shutil.copytree(folder, tmp_path / "as it was handed over")
    assert verdict_by_hand(alone) == ([], "PROVEN")
    waiting = alone / "results" / "pending.parquet"
    rows = pq.read_table(waiting)
    pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), waiting)
    lines, verdict = verdict_by_hand(alone)
    assert verdict == "NOT PROVEN"
    assert ("T13", "sheet = database, pending") in {line[:2] for line in lines}


def test_sheets_that_a_wrong_statement_finds_wrong_are_not_proven(merchant, monkeypatch):
    """SQL that says another figure than the sheets is no proof, whichever of them is right."""
    read = totals_in_sql._text

    def text(name):
        return read(name).replace("'break', currency, 1,", "'break', currency, 2,")

    monkeypatch.setattr(totals_in_sql, "_text", text)
    capture(merchant)
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0], amount="1.00"))

    assert merchant.night() is Verdict.NOT_PROVEN
    failed = {
        key for key, one in totals_of(merchant, run_folder(merchant).name).items() if not one.passed
    }
    assert failed == {("T13", "sheet = database, break")}


@pytest.fixture
def long_night(merchant):
    """A merchant of whose matches a sheet takes one row, and the night has more."""
    with (merchant.folder / "config" / "merchants.toml").open("a") as table:
        table.write("workbook = { matched_rows_max = 1, matched_rows_shown = 1 }\n")
    paid = merchant.payments("captured")[:3]
    merchant.drop("orders.csv", *map(merchant.order, paid))
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        for number, one in enumerate(paid):
            sale = f"{one.order_no},capture,{one.currency},{one.amount},2026-11-19T10:00:00Z"
            ledger.write(f"E{number},{MERCHANT},{ACCOUNT},{sale}\n")
    return merchant


def test_the_file_that_a_long_sheet_names_is_proven(long_night, tmp_path):
    """Its rows by both engines, its hash by the manifest; a stranger reads PROVEN, too."""
    assert long_night.night(workbooks=workbooks()) is not Verdict.NOT_PROVEN
    folder = run_folder(long_night)
    whole = folder / "results" / "matches.parquet"
    digest = hashlib.sha256(whole.read_bytes()).hexdigest()
    total = totals_of(long_night, folder.name)[
        "T13", f"sheet = database, {in_file('match', sha256=digest)}"
    ]

    assert (total.left, total.right) == (pq.read_metadata(whole).num_rows,) * 2
    assert total.left > 1
    assert sorted(path.suffix for path in (long_night.folder / "reports").glob("recon*")) == [
        ".xlsx"
    ]
    alone = shutil.copytree(folder, tmp_path / "as it was handed over")
    assert verdict_by_hand(alone) == ([], "PROVEN")


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"rows": 4711}])
def test_a_file_that_the_workbook_names_wrongly_is_not_proven(long_night, wrong):
    """Another hash or number of rows on Assurance than the night sealed."""
    honest = workbooks()

    def write(figures, path):
        files = {
            section: replace(file, **wrong) if section == "match" else file
            for section, file in figures.list_files.items()
        }
        return honest.write(replace(figures, list_files=files), path)

    lying = Workbooks(write=write, totals=honest.totals)

    assert long_night.night(workbooks=lying) is Verdict.NOT_PROVEN
    failed = [
        name
        for (number, name), one in totals_of(long_night, run_folder(long_night).name).items()
        if number == "T13" and not one.passed
    ]
    assert failed
    assert all("match in the file with SHA-256" in name or FOREIGN in name for name in failed)


@pytest.mark.parametrize("name", ["rows.sql", "T05_legs.sql", "T13_sheets.sql"])
def test_a_night_whose_proof_died_after_money_is_not_proven_until_it_is_run_again(
    merchant, killed_at, name
):
    """What was sent stays sent, once; the failed total says what to do, and that is enough."""
    killed = killed_at(totals_in_sql._text(name).partition("\n")[0])
    capture(merchant)

    assert merchant.night() is Verdict.NOT_PROVEN
    assert len(killed) == 1
    assert [row["operation"] for row in merchant.effects()] == ["capture"]
    (failed,) = [
        one for one in totals_of(merchant, run_folder(merchant).name).values() if not one.passed
    ]
    assert failed.id == "T14"
    assert f"{name}: the process that asks DuckDB ended (SIGKILL); what was sent" in failed.name

    assert merchant.night() is not Verdict.NOT_PROVEN
    assert [row["operation"] for row in merchant.effects()] == ["capture"]


def verdict_by_hand(folder):
    """What somebody reads who has the folder and DuckDB, and nothing of ours."""
    script = (folder / "proof" / "verify.sql").read_text(encoding="utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with duckdb.connect(":memory:") as stranger:
            told = [
                found.fetchall()
                for statement in stranger.extract_statements(script)
                if (found := stranger.execute(statement))
                and statement.type == duckdb.StatementType.SELECT
            ]
    finally:
        os.chdir(before)
    lines, verdicts = told
    return lines, verdicts[0][-1]


def test_a_night_of_which_a_total_fails_is_not_proven(merchant, monkeypatch):
    """One side of one total that is another figure, and the verdict says so by its name."""
    read = totals_in_sql._text

    def text(name):
        found = read(name)
        if name != "T04_items.sql":
            return found
        return f'SELECT * REPLACE ("left" + 1 AS "left") FROM (\n{found.strip()[:-1]}\n)'  # noqa: S608

    monkeypatch.setattr(totals_in_sql, "_text", text)
    capture(merchant)
    merchant.night()
    folder = run_folder(merchant)
    failed = {key for key, one in totals_of(merchant, folder.name).items() if not one.passed}
    name = "orders: in scope = matched + pending + broken + unverified"
    assert ("T4", name) in failed
    assert merchant.result(folder.name).verdict is Verdict.NOT_PROVEN

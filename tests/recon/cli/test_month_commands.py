"""`recon close`: what is said, what is written, and how each ends.

Closed by two people, reopened, and stated after a close: `tests/scenarios/month`.
"""

import csv
import json
from datetime import UTC, date, datetime

import pytest
from openpyxl import load_workbook

from recon import cli
from recon.model.nights import Mode, NightRequest
from recon.steps.night import whole_night as night
from recon.steps.runtime import environment
from tests.recon.steps.approvals.test_sign_off import PEOPLE
from tests.recon.steps.conftest import (
    ACCOUNT,
    BUSINESS_DATE,
    MERCHANT,
    begun,
    begun_once,
    capture,
    database_url,
    merchant,
    plain_workbooks,
    profile,
)

__all__ = ["begun", "begun_once", "database_url", "merchant", "profile"]
"""A merchant on loopback, as the steps' tests have it."""
pytestmark = pytest.mark.xdist_group("a live night of the command line")

THE_DAY_AFTER = datetime(2026, 11, 21, 6, tzinfo=UTC)
AFTER_MONDAY = datetime(2026, 11, 24, 6, tzinfo=UTC)
MONDAY = "2026-11-23"
OTHER = "100042002"
"""A second account of the merchant at the gateway."""


def one_capture(merchant):
    """A live night, which every test here begins with."""
    capture(merchant)
    merchant.night()


@pytest.fixture
def played(begun, monkeypatch):
    """A live night, its settings in the environment, and commands that are given the day after.

    By the clock of the machine, nights would be missing as soon as a business day has gone by.
    """
    merchant = begun(one_capture)
    monkeypatch.setattr(environment, "system_clock", lambda: THE_DAY_AFTER)
    for name, value in merchant.variables.items():
        monkeypatch.setenv(name, value)
    return merchant


@pytest.mark.usefixtures("played")
def test_a_month_is_told_and_written(tmp_path, capsys):
    out, named = tmp_path / "out", ["--account", f"{MERCHANT}/{ACCOUNT}"]
    out.mkdir()

    assert cli.main(["close", "2026-11", "--out", str(out)]) == 4
    told = capsys.readouterr().out
    assert cli.main(["close", "2026-11", "--json", *named, "--out", str(out)]) == 4
    (document,) = (each["statement"] for each in json.loads(capsys.readouterr().out))

    assert f"Close of {MERCHANT}/{ACCOUNT} for 2026-11: NOT READY" in told
    assert "Nights: 1 of 1 stand." in told
    assert "The gateway owes so far" in told
    assert "equations hold." in told
    name = f"close-{MERCHANT}-{ACCOUNT}-2026-11"
    assert sorted(path.name for path in out.iterdir()) == [name, f"{name}.xlsx"]
    script = (out / name / "statement.sql").read_text()
    assert script.startswith("CREATE OR REPLACE TEMP TABLE days")
    assert document["proven"] is True
    assert {row["id"] for row in document["proof"]} >= {"P3"}
    assert all(row["holds"] for row in document["proof"])


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["november"], "is not a month such as 2026-11"),
        (["2026-11", "--account", "9"], "no declared account is"),
        (["2026-11", "--account", "9/9"], "no declared account is 9/9; declared"),
        (["2027-02"], "no live night of"),
        (["2026-11", "--take-back"], "--take-back is of one of them"),
        (["2026-11", "--sign", "reviewer", "--reopen", "late file"], "a month is signed"),
    ],
)
def test_what_cannot_be_stated_is_said(words, said, capsys):
    assert cli.main(["close", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_night_that_is_not_proven_ends_with_four(played, tmp_path, capsys):
    played.as_owner("UPDATE run SET verdict = 'NOT PROVEN'")

    assert cli.main(["close", "2026-11", "--out", str(tmp_path)]) == 4
    assert "2026-11-20: the night is NOT PROVEN" in capsys.readouterr().err


def test_a_month_that_is_not_over_is_written_and_cannot_be_signed(played, tmp_path, capsys):
    declared = played.folder / "config" / "merchants.toml"
    (inbox := played.folder / "other").mkdir()
    declared.write_text(
        f'{declared.read_text()}\n[accounts."{MERCHANT}/{OTHER}"]\nname = "Southwind"\n'
        f'inbox = "{inbox}"\nreports = "{played.folder / "reports"}"\nsettle_seconds = 0\n'
    )
    request = NightRequest(MERCHANT, OTHER, date.fromisoformat(BUSINESS_DATE), Mode.LIVE)
    with played.environment() as opened:
        night.run(request, environment=opened, workbooks=plain_workbooks(), progress=_nothing)
    out = tmp_path / "out"
    out.mkdir()

    assert cli.main(["close", "2026-11", "--out", str(out)]) == 4

    told = capsys.readouterr()
    page = f"months-{MERCHANT}-2026-11.xlsx"
    assert f"Close of {MERCHANT}/{ACCOUNT} for 2026-11: NOT READY" in told.out
    assert f"All accounts of {MERCHANT}: {out}" in told.out
    assert "Blocked: " in told.err
    assert "Next: recon close 2026-11 again, once the night of 2026-11-30 ran" in told.err
    names = [f"close-{MERCHANT}-{account}-2026-11" for account in (ACCOUNT, OTHER)]
    assert {path.name for path in out.iterdir()} == {
        *(page, *names),
        *(f"{name}.xlsx" for name in names),
    }
    close = load_workbook(out / f"{names[0]}.xlsx", data_only=True)
    assert close.sheetnames[0] == "Close"
    assert close["Close"]["A3"].value == "NOT READY"
    rows = load_workbook(out / page, data_only=True)["Accounts"].iter_rows(
        min_row=7, values_only=True
    )
    assert (ACCOUNT, "NOT READY") in {row[:2] for row in rows}
    own = ["--merchant", MERCHANT, "--account", ACCOUNT]
    assert cli.main(["close", "2026-11", *own, "--sign", "reviewer", "--as", "dan"]) == 2
    assert "so nobody was asked and nothing was signed" in capsys.readouterr().err


def _nothing(summary):
    del summary


def test_a_night_that_is_run_again_asks_for_those_after_it_and_counts_all_once(
    played, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(environment, "system_clock", lambda: AFTER_MONDAY)
    played.wait(hours=72)
    played.night(date=MONDAY)
    assert cli.main(["close", "2026-11", "--out", str(tmp_path)]) == 4
    before = facts_in(tmp_path)
    late = played.payments("captured")[0]
    played.drop("late.csv", played.order(late))
    assert late.order_no not in {row["order_no"] for row in before}

    played.night(date=BUSINESS_DATE)
    capsys.readouterr()
    assert cli.main(["close", "2026-11", "--out", str(tmp_path)]) == 4

    chain = "P1 nights that carry on from another than the one before"
    assert f"Blocked: {chain}, by count: 1 and 0" in capsys.readouterr().err

    played.night(date=MONDAY)
    assert cli.main(["close", "2026-11", "--out", str(tmp_path)]) == 4

    mended, after = capsys.readouterr().err, facts_in(tmp_path)
    assert chain not in mended
    (row,) = (row for row in after if row["order_no"] == late.order_no)
    assert (row["kind"], row["reported_on"]) == ("capture", BUSINESS_DATE)
    assert [row for row in after if row["order_no"] != late.order_no] == before


def facts_in(folder):
    """The movements that a statement wrote, the newest of its files."""
    path = folder / f"close-{MERCHANT}-{ACCOUNT}-2026-11" / "facts.csv"
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def test_two_people_close_a_month_by_the_command_line(played, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(environment, "system_clock", played.clock)
    (played.folder / "config" / "approvers.toml").write_text(PEOPLE)
    played.wait(hours=10 * 24)
    played.night(date="2026-11-30", skip="the cluster was down")
    close = ["close", "2026-11", "--out", str(tmp_path)]

    for words in (("reviewer", "--as", "dan"), ("approver", "--as", "anna")):
        assert cli.main([*close, "--sign", *words]) == 0

    told = capsys.readouterr().out
    assert "To sign: 2026-11 of" in told
    assert "Signed as reviewer: the approver must sign the same until" in told
    assert f"Close of {MERCHANT}/{ACCOUNT} for 2026-11: CLOSED on" in told
    path = tmp_path / f"close-{MERCHANT}-{ACCOUNT}-2026-11-closed.xlsx"
    assert load_workbook(path, data_only=True)["Close"]["A3"].value == "CLOSED"
    assert cli.main([*close, "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["would_differ"]) == ("CLOSED", [])
    assert cli.main(close) == 0
    stated = capsys.readouterr().out
    assert "The gateway owes at the close of 2026-11-30" in stated
    assert "recon close 2026-11 --reopen WHY" in stated
    export = ["journals", "--out", str(tmp_path / "books"), "--period", "2026-11"]
    assert cli.main([*export, "--format", "hledger"]) == 0
    assert "Nothing to hand out: 0 journals of 2026-11 left before." in capsys.readouterr().out
    assert cli.main([*export, "--format", "qif"]) == 2
    assert "--format is one of csv, datev" in capsys.readouterr().err
    assert cli.main([*export, "2026-11-30"]) == 2

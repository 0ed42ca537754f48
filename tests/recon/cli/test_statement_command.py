import csv
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from openpyxl import load_workbook

from recon import cli
from recon.model.nights import Mode, NightRequest, StepSummary
from recon.steps.ground import environment
from recon.steps.night import whole_night as night
from tests.recon.steps.conftest import (
    ACCOUNT,
    BUSINESS_DATE,
    MERCHANT,
    Merchant,
    Play,
    begun,
    begun_once,
    database_url,
    merchant,
    plain_workbooks,
    profile,
)
from tests.recon.steps.night.test_sealed_settle import capture

__all__ = ["begun", "begun_once", "database_url", "merchant", "profile"]
"""A merchant on loopback, as the steps' tests have it."""
A_LIVE_NIGHT = "a live night of the command line"
pytestmark = pytest.mark.xdist_group(A_LIVE_NIGHT)


THE_DAY_AFTER = datetime(2026, 11, 21, 6, tzinfo=UTC)


def one_capture(merchant: Merchant) -> None:
    """A live night, which every test here begins with."""
    capture(merchant)
    merchant.night()


@pytest.fixture
def played(begun: Callable[[Play], Merchant], monkeypatch: pytest.MonkeyPatch) -> Merchant:
    """A live night, its settings in the environment, and commands that are given the day after.

    By the clock of the machine, nights would be missing as soon as a business day has gone by.
    """
    merchant = begun(one_capture)
    monkeypatch.setattr(environment, "system_clock", lambda: THE_DAY_AFTER)
    for name, value in merchant.variables.items():
        monkeypatch.setenv(name, value)
    return merchant


@pytest.mark.usefixtures("played")
def test_a_month_is_told_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Console, workbook and files; asked again it writes no second workbook."""
    out = tmp_path / "out"
    out.mkdir()

    codes = [cli.main(["statement", "2026-11", "--out", str(out)]) for _ in range(2)]

    told = capsys.readouterr().out
    assert codes == [0, 0], told
    assert f"Statement of {MERCHANT}/{ACCOUNT} for 2026-11" in told
    assert "The gateway owes" in told
    assert "equations hold." in told
    name = f"statement-{MERCHANT}-{ACCOUNT}-2026-11"
    assert sorted(path.name for path in out.iterdir()) == [name, f"{name}.xlsx"]
    assert (
        (out / name / "statement.sql").read_text().startswith("CREATE OR REPLACE TEMP TABLE days")
    )


@pytest.mark.usefixtures("played")
def test_programs_get_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints every account's figures and proof, and nothing else; by its whole name, too."""
    named = ["--account", f"{MERCHANT}/{ACCOUNT}"]
    code = cli.main(["statement", "2026-11", "--json", *named, "--out", str(tmp_path)])

    (document,) = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["proven"] is True
    assert {row["id"] for row in document["proof"]} >= {"P3"}
    assert all(row["holds"] for row in document["proof"])


OTHER = "100042002"
"""A second account of the merchant at the gateway."""


def test_accounts_that_share_a_clearing_account_stand_on_one_page(
    played: Merchant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked for both, statement and close write it beside their workbooks, and say where."""
    declared = played.folder / "config" / "merchants.toml"
    inbox = played.folder / "other"
    inbox.mkdir()
    declared.write_text(
        f'{declared.read_text()}\n[accounts."{MERCHANT}/{OTHER}"]\nname = "Southwind"\n'
        f'inbox = "{inbox}"\nreports = "{played.folder / "reports"}"\nsettle_seconds = 0\n'
    )
    request = NightRequest(MERCHANT, OTHER, date.fromisoformat(BUSINESS_DATE), Mode.LIVE)
    with played.environment() as opened:
        night.run(request, environment=opened, workbooks=plain_workbooks(), progress=_nothing)

    codes = [cli.main([name, "2026-11", "--out", str(tmp_path)]) for name in ("statement", "close")]

    said = capsys.readouterr().out
    page = tmp_path / f"months-{MERCHANT}-2026-11.xlsx"
    assert codes == [0, 4], said
    assert said.count(f"All accounts of {MERCHANT}: {tmp_path}") == 2
    sheet = load_workbook(page, data_only=True)["Accounts"]
    stands = {(row[0], row[1]) for row in sheet.iter_rows(min_row=7, values_only=True) if row[1]}
    assert (ACCOUNT, "PROVEN") in stands


def _nothing(summary: StepSummary) -> None:
    """Steps are of no interest here."""
    del summary


def test_a_night_that_is_not_proven_ends_with_four(
    played: Merchant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures are shown, the night is named."""
    played.as_owner("UPDATE run SET verdict = 'NOT PROVEN'")

    code = cli.main(["statement", "2026-11", "--out", str(tmp_path)])

    assert code == 4
    assert "2026-11-20: the night is NOT PROVEN" in capsys.readouterr().err


AFTER_MONDAY = datetime(2026, 11, 24, 6, tzinfo=UTC)
MONDAY = "2026-11-23"


def test_a_night_that_is_run_again_asks_for_those_after_it_and_counts_all_once(
    played: Merchant,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Until then the chain does not hold and nothing is closed."""
    monkeypatch.setattr(environment, "system_clock", lambda: AFTER_MONDAY)
    played.wait(hours=72)
    played.night(date=MONDAY)
    assert cli.main(["statement", "2026-11", "--out", str(tmp_path)]) == 0
    before = facts_in(tmp_path)
    late = played.payments("captured")[0]
    played.drop("late.csv", played.order(late))
    assert late.order_no not in {row["order_no"] for row in before}

    played.night(date=BUSINESS_DATE)
    capsys.readouterr()
    codes = [cli.main([name, "2026-11", "--out", str(tmp_path)]) for name in ("statement", "close")]

    broken = capsys.readouterr().err
    chain = "P1 nights that carry on from another than the one before"
    assert codes == [4, 4]
    assert f"Blocked: {chain}, by count: 1 and 0" in broken

    played.night(date=MONDAY)
    codes = [cli.main([name, "2026-11", "--out", str(tmp_path)]) for name in ("statement", "close")]

    mended, after = capsys.readouterr().err, facts_in(tmp_path)
    assert codes[0] == 0, mended
    assert chain not in mended
    (row,) = (row for row in after if row["order_no"] == late.order_no)
    assert (row["kind"], row["told_on"]) == ("capture", BUSINESS_DATE)
    assert [row for row in after if row["order_no"] != late.order_no] == before


def facts_in(folder: Path) -> list[dict[str, str]]:
    """The movements that a statement wrote."""
    path = folder / f"statement-{MERCHANT}-{ACCOUNT}-2026-11" / "facts.csv"
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["november"], "is not a month such as 2026-11"),
        (["2026-11", "--account", "9"], "no declared account is"),
        (["2026-11", "--account", "9/9"], "no declared account is 9/9; declared"),
        (["2027-02"], "no live night of"),
    ],
)
def test_what_cannot_be_stated_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A word that is no month, an account nobody declared, a month of no night: exit 2, by name."""
    assert cli.main(["statement", *words]) == 2
    assert said in capsys.readouterr().err

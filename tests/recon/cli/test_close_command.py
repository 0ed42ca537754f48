import json
from pathlib import Path

import openpyxl
import pytest

from recon import cli
from tests.recon.cli.test_statement_command import (
    A_LIVE_NIGHT,
    begun,
    begun_once,
    database_url,
    merchant,
    played,
    profile,
)
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, Merchant
from tests.recon.steps.people.test_sign_off import PEOPLE

__all__ = ["begun", "begun_once", "database_url", "merchant", "played", "profile"]
"""A live night, and its settings in the environment."""
pytestmark = pytest.mark.xdist_group(A_LIVE_NIGHT)


@pytest.fixture
def by_its_clock(played: Merchant, monkeypatch: pytest.MonkeyPatch) -> Merchant:
    """The command line at the merchant's own time."""
    monkeypatch.setattr("recon.steps.ground.environment.system_clock", played.clock)
    return played


def hands_out_its_journals(out: Path, *, capsys: pytest.CaptureFixture[str]) -> None:
    """The closed month does, in a format that there is; nobody means a night and a month."""
    export = ["journals", "--out", str(out)]
    month = ["--period", "2026-11"]
    assert cli.main([*export, *month, "--format", "hledger"]) == 0
    assert "Nothing to hand out: 0 journals of 2026-11 left before." in capsys.readouterr().out
    assert cli.main([*export, *month, "--format", "qif"]) == 2
    assert "--format is one of csv, datev" in capsys.readouterr().err
    assert cli.main([*export, *month, "2026-11-30"]) == 2
    assert cli.main([*export, "2026-11-30", "--format", "xero"]) == 2
    capsys.readouterr()


@pytest.mark.usefixtures("by_its_clock")
def test_a_month_that_is_not_over_ends_with_four_and_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict and what blocks it are said with where to go; workbook and files are written."""
    out = tmp_path / "out"
    out.mkdir()

    code = cli.main(["close", "2026-11", "--out", str(out)])

    told = capsys.readouterr()
    assert code == 4
    assert f"Close of {MERCHANT}/{ACCOUNT} for 2026-11: NOT READY" in told.out
    assert "Blocked: " in told.err
    assert "Next: recon close 2026-11 again, once the night of 2026-11-30 ran" in told.err
    name = f"close-{MERCHANT}-{ACCOUNT}-2026-11"
    assert sorted(path.name for path in out.iterdir()) == [name, f"{name}.xlsx"]
    book = openpyxl.load_workbook(out / f"{name}.xlsx", data_only=True)
    assert book.sheetnames[0] == "Close"
    assert book["Close"]["A3"].value == "NOT READY"
    assert cli.main(["close", "2026-11", "--sign", "reviewer", "--as", "dan"]) == 2
    assert "so nobody was asked and nothing was signed" in capsys.readouterr().err


def test_a_month_that_is_over_ends_with_what_its_open_items_say(
    by_its_clock: Merchant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ready is 0, with open items it is 3; --json is one document and nothing else."""
    by_its_clock.wait(hours=10 * 24)
    by_its_clock.night(date="2026-11-30", skip="the cluster was down")

    code = cli.main(["close", "2026-11", "--json", "--out", str(tmp_path)])

    (document,) = json.loads(capsys.readouterr().out)
    assert document["blockers"] == []
    assert code == {"READY": 0, "READY WITH OPEN ITEMS": 3}[document["verdict"]]
    assert document["statement"]["proven"] is True


def test_two_people_close_a_month_by_the_command_line(
    by_its_clock: Merchant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is signed is said; the second name closes it, and the sealed workbook has both."""
    merchant = by_its_clock
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    merchant.wait(hours=10 * 24)
    merchant.night(date="2026-11-30", skip="the cluster was down")
    sign = ["close", "2026-11", "--out", str(tmp_path), "--sign"]

    codes = [
        cli.main([*sign, *words])
        for words in (
            ("reviewer", "--as", "dan"),
            ("approver", "--as", "anna"),
        )
    ]

    told = capsys.readouterr()
    assert codes == [0, 0], told
    assert "To sign: 2026-11 of" in told.out
    assert "Signed as reviewer: the approver must sign the same until" in told.out
    assert f"Close of {MERCHANT}/{ACCOUNT} for 2026-11: CLOSED on" in told.out
    path = tmp_path / f"close-{MERCHANT}-{ACCOUNT}-2026-11-closed.xlsx"
    book = openpyxl.load_workbook(path, data_only=True)
    assert book["Close"]["A3"].value == "CLOSED"
    assert cli.main(["close", "2026-11", "--json", "--out", str(tmp_path)]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["would_differ"]) == ("CLOSED", [])
    assert cli.main(["statement", "2026-11"]) == 0
    stated = capsys.readouterr().out
    assert f"Statement of {MERCHANT}/{ACCOUNT} for 2026-11, CLOSED on" in stated
    assert "The gateway owes at the close of 2026-11-30" in stated
    assert "Would be different today: nothing" in stated
    hands_out_its_journals(tmp_path / "books", capsys=capsys)
    assert cli.main(["reopen", "2026-11"]) == 0
    assert "CLOSED on" in capsys.readouterr().out

from pathlib import Path

import pytest

from recon import cli

ACCOUNT = '[accounts."100042/1"]\ninbox = "/i"\nreports = "/r"\n'
SCHEDULE = 'schedule = { cron = "30 2 * * *", zone = "Europe/London" }\n'


def test_the_project_file_is_written_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Written it agrees; after a change of the merchants `--check` names what differs, with 1."""
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    (tmp_path / "merchants.toml").write_text(ACCOUNT)
    out = ["--out", str(tmp_path / "prefect.yaml")]

    assert cli.main(["prefect", "deployments", "--check", *out]) == 2
    assert cli.main(["prefect", "deployments", *out]) == 0
    assert cli.main(["prefect", "deployments", "--check", *out]) == 0
    (tmp_path / "merchants.toml").write_text(ACCOUNT + SCHEDULE)
    capsys.readouterr()
    assert cli.main(["prefect", "deployments", "--check", *out]) == 1
    assert capsys.readouterr().out == "100042-1 differs in schedules\n"

import json
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
    assert capsys.readouterr().out == "100042-1 differs in description, schedules, tags\n"


def test_the_pools_template_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No key by which a run could bring a program, and the command that lays the file down."""
    path = tmp_path / "pool.json"
    assert cli.main(["prefect", "pool", "--out", str(path)]) == 0
    template = json.loads(path.read_text())
    assert template["job_configuration"] == {"stream_output": True}
    assert template["variables"]["properties"] == {}
    assert template["variables"]["additionalProperties"] is False
    assert f"--base-job-template {path}" in capsys.readouterr().out

import json

import yaml

from flows.__main__ import app

ACCOUNT = '[accounts."100042/1"]\ninbox = "/i"\nreports = "/r"\n'


def test_the_files_for_prefect_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    (tmp_path / "merchants.toml").write_text(ACCOUNT)

    app(["files", "--out", str(tmp_path)], standalone_mode=False)

    project = yaml.safe_load((tmp_path / "prefect.yaml").read_text())
    assert project["deployments"][0]["name"] == "100042-1"
    template = json.loads((tmp_path / "pool.json").read_text())
    assert template["job_configuration"] == {"stream_output": True}
    assert template["variables"]["properties"] == {}
    assert template["variables"]["additionalProperties"] is False
    assert f"--base-job-template {tmp_path / 'pool.json'}" in capsys.readouterr().out

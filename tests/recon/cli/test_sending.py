from pathlib import Path

import pytest

from recon import cli


@pytest.fixture
def database(tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty database and the variables that every command needs."""
    monkeypatch.setenv("RECON_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("RECON_SIGN_KEY", "sandbox")
    config = tmp_path / "config"
    config.mkdir()
    (config / "approvers.toml").write_text(
        '[approvers.bob]\nname = "Bob Lee"\n[approvers.cleo]\nname = "Cleo Ott"\n'
    )
    monkeypatch.setenv("RECON_CONFIG_DIR", str(config))


@pytest.mark.usefixtures("database")
def test_stopped_sending_is_told_by_status_until_it_is_allowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One command stops all money, status names who and why, two people allow it again."""
    assert cli.main(["stop-sending", "--as", "Ann", "--reason", "odd orders"]) == 0
    cli.main(["status"])
    stopped = capsys.readouterr().out
    assert cli.main(["allow-sending", "--as", "bob", "--reason", "looked at them"]) == 0
    cli.main(["status"])
    noted = capsys.readouterr().out
    assert cli.main(["allow-sending", "--as", "cleo", "--reason", "looked at them"]) == 0
    capsys.readouterr()
    cli.main(["status"])

    assert "Sending was stopped by Ann" in stopped
    assert "odd orders" in stopped
    assert "A second person must say the same" in noted
    assert "Sending was stopped by Ann" in noted
    assert "stopped" not in capsys.readouterr().out


@pytest.mark.usefixtures("database")
def test_allowing_what_is_not_stopped_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing changes, and the exit code says so."""
    assert cli.main(["allow-sending", "--as", "bob", "--reason", "?"]) == 2
    assert "not stopped" in capsys.readouterr().err

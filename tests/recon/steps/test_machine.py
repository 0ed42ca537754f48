from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recon.errors import ReconError
from recon.steps import machine, night


def _settings(merchant: Any) -> Any:
    with merchant.environment() as environment:
        return environment.settings


def test_a_clock_that_was_set_back_is_told(merchant: Any) -> None:
    """A run that begins in our future means that our clock is wrong."""
    settings = _settings(merchant)
    now = merchant.now
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment),
    ):
        pass

    assert "UTC" in machine.clock_told(settings, now=merchant.now)
    with pytest.raises(ReconError, match="set this machine's clock"):
        machine.clock_told(settings, now=now - timedelta(hours=1))


def test_a_full_disk_is_told_with_what_a_night_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too little room fails the line; enough says how much."""
    assert "GB free" in machine.room_told(tmp_path)
    monkeypatch.setattr(machine, "DISK_FREE_MIN_BYTES", 2**62)
    with pytest.raises(ReconError, match="a night needs"):
        machine.room_told(tmp_path)


def test_configuration_that_others_can_change_is_told_with_the_command(merchant: Any) -> None:
    """Who can write merchants.toml can say where files and reports are."""
    path = merchant.folder / "config" / "merchants.toml"
    settings = _settings(merchant)
    assert "others change nothing" in machine.permissions_told(settings, variables={})
    path.chmod(0o666)

    with pytest.raises(ReconError, match=rf"chmod o-w {path}"):
        machine.permissions_told(settings, variables={})


def test_a_database_that_others_can_read_is_told(merchant: Any) -> None:
    """It counts where they can reach its folder at all."""
    path = merchant.sqlite_path
    settings = _settings(merchant)
    path.chmod(0o644)
    path.parent.chmod(0o755)

    with pytest.raises(ReconError, match=rf"chmod o-rwx {path}"):
        machine.permissions_told(settings, variables={})
    path.parent.chmod(0o700)
    assert "others change nothing" in machine.permissions_told(settings, variables={})


def test_the_folder_of_the_database_is_the_one_looked_at(merchant: Any) -> None:
    """Its disk is the one that a night fills."""
    folder = machine.database_folder(_settings(merchant))

    assert folder == merchant.sqlite_path.parent

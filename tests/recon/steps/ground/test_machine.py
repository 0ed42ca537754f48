from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recon.model.errors import ReconError
from recon.steps.ground import machine
from recon.steps.night import whole_night as night


def test_a_clock_that_was_set_back_is_told(merchant: Any) -> None:
    """A run that begins in our future means that our clock is wrong."""
    now = merchant.now
    with merchant.environment() as environment:
        with night.hold(merchant.request, environment=environment):
            pass
        told = partial(machine.clock_told, environment.store, zone="UTC")

        assert "UTC" in told(now=merchant.now)
        with pytest.raises(ReconError, match="set this machine's clock"):
            told(now=now - timedelta(hours=1))


def test_a_full_disk_is_told_with_what_a_night_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too little room fails the line; enough says how much."""
    assert "GiB free" in machine.room_told(tmp_path)
    monkeypatch.setattr(machine, "DISK_FREE_MIN_BYTES", 2**62)
    with pytest.raises(ReconError, match="a night needs"):
        machine.room_told(tmp_path)


def permissions(merchant: Any) -> str:
    """What the doctor says of who else may change or read what decides."""
    with merchant.environment() as environment:
        return machine.permissions_told(
            environment.store, config_dir=environment.settings.config_dir, variables={}
        )


def test_configuration_that_others_can_change_is_told_with_the_command(merchant: Any) -> None:
    """Who can write merchants.toml can say where files and reports are."""
    path = merchant.folder / "config" / "merchants.toml"
    assert "others change nothing" in permissions(merchant)
    path.chmod(0o666)

    with pytest.raises(ReconError, match=rf"chmod o-w {path}"):
        permissions(merchant)


def test_a_database_that_others_can_read_is_told(merchant: Any) -> None:
    """It counts where they can reach its folder at all."""
    path = merchant.sqlite_path
    path.chmod(0o644)
    path.parent.chmod(0o755)

    with pytest.raises(ReconError, match=rf"chmod o-rwx {path}"):
        permissions(merchant)
    path.parent.chmod(0o700)
    assert "others change nothing" in permissions(merchant)

"""The doctor's line about the desk."""

import socket
from pathlib import Path
from typing import Any

import pytest

from recon.config.settings import load_settings
from recon.desk.key_files import make_keys
from recon.model.errors import ConfigurationError
from recon.steps.care.settings_told import desk_told

LIVE = {"RECON_GATEWAY_BASE_URL": "https://gateway.example"}
PEOPLE = '[approvers.jo]\nname = "Jo Ahn"\ncode_secret_env = "CODE_JO"\n'


@pytest.fixture
def keyed(tmp_path: Path) -> dict[str, str]:
    """Variables of a desk."""
    make_keys(tmp_path / "desk.key", public=tmp_path / "desk.pub")
    return {
        "RECON_DESK_PUBLIC_KEY_FILE": str(tmp_path / "desk.pub"),
        "RECON_DESK_KEY_FILE": str(tmp_path / "desk.key"),
    }


def told(merchant: Any, **variables: str) -> str:
    """What the doctor says with some more variables."""
    whole = merchant.variables | variables
    return desk_told(load_settings(whole), variables=whole)


def test_the_sandbox_says_that_its_key_is_everybodys(merchant: Any) -> None:
    """A demo is told as what it is."""
    assert "which everybody knows" in told(merchant)


def test_without_a_desk_a_live_installation_is_not_well(merchant: Any) -> None:
    """What waits for people would wait for ever."""
    with pytest.raises(ConfigurationError, match="recon desk init"):
        told(merchant, **LIVE)


def test_a_key_in_the_same_process_is_told(merchant: Any, keyed: dict[str, str]) -> None:
    """It works, and it is no barrier against this login."""
    assert "held by this very process" in told(merchant, **LIVE, **keyed)


def test_a_desk_that_is_away_is_told(merchant: Any, keyed: dict[str, str], tmp_path: Path) -> None:
    """People would hear it when they speak; the operator hears it before."""
    path = str(tmp_path / "none.sock")
    with pytest.raises(ConfigurationError, match="no desk listens"):
        told(merchant, **LIVE, **keyed, RECON_DESK_SOCKET=path)


@pytest.mark.parametrize("beside", ["CODE_JO", "RECON_DESK_KEY_FILE", ""])
def test_what_the_desk_alone_should_have_is_named(
    merchant: Any, keyed: dict[str, str], tmp_path: Path, beside: str
) -> None:
    """A night that can read the secrets or the key could speak for people."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    path = tmp_path / "desk.sock"
    variables = LIVE | {
        "RECON_DESK_PUBLIC_KEY_FILE": keyed["RECON_DESK_PUBLIC_KEY_FILE"],
        "RECON_DESK_SOCKET": str(path),
    }
    if beside:
        variables[beside] = keyed.get(beside, "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        if beside:
            with pytest.raises(ConfigurationError, match="the desk alone should have"):
                told(merchant, **variables)
        else:
            assert f"people are heard at {path}" in told(merchant, **variables)

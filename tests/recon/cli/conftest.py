"""A demo of few orders, played once for all who look at what it came to."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

DEMO_OF_60 = "demo of 60"
"""The group of its tests."""


def effects(port: int) -> list[dict[str, str]]:
    """The truth so far, from a sandbox's ledger of effects."""
    answer = httpx.get(f"http://127.0.0.1:{port}/_sandbox/effects", trust_env=False)
    return [json.loads(line) for line in answer.text.splitlines()]


class PlayedDemo(NamedTuple):
    """The folder of a demo and what it said, last its code and whether Prefect was imported."""

    folder: Path
    out: str


@pytest.fixture(scope="session")
def demo_of_60(tmp_path_factory: pytest.TempPathFactory) -> PlayedDemo:
    """`recon demo` of 60 orders as a process of its own, in a shell of another installation."""
    folder = tmp_path_factory.mktemp("demo") / "d"
    code = (
        "import sys; from recon.cli import main; "
        f"code = main(['demo', '--dir', {str(folder)!r}, '--orders', '60']); "
        "print(code, 'prefect' in sys.modules)"
    )
    foreign = {"RECON_SIGNER": "/nowhere/socket", "RECON_DATABASE_URL": "sqlite:////nowhere/x"}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **foreign},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return PlayedDemo(folder, ended.stdout)

"""What operators copy into systemd and cron is what these take."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
UNITS = DOCS.parent / "config" / "examples" / "systemd"
CRON = re.compile(r"^```\n\d+ \d+ \* \* \* recon (.*)\n```", re.MULTILINE)


def faults_of(units, *, folder):
    """What systemd finds wrong with them, where /opt/recon is a program that is there."""
    for name, text in units.items():
        (folder / name).write_text(text.replace("/opt/recon/bin/recon", sys.executable))
    checked = subprocess.run(
        ["systemd-analyze", "verify", *(folder / name for name in units)],
        capture_output=True,
        text=True,
        check=False,
    )
    return checked.stdout + checked.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_takes_every_unit_that_ships(tmp_path):
    units = {path.name: path.read_text("utf-8") for path in sorted(UNITS.iterdir())}
    assert [*units] == [
        "recon-desk.service",
        "recon-nightly@.service",
        "recon-nightly@.timer",
        "recon-signer.service",
    ]
    assert faults_of(units, folder=tmp_path) == ""

    broken = {
        name: text.replace("OnCalendar=*", "OnCalendar=every ") for name, text in units.items()
    }
    assert "calendar spec" in faults_of(broken, folder=tmp_path)


def test_the_line_for_cron_runs_in_the_shell_of_cron(tmp_path):
    (line,) = CRON.findall((DOCS / "OPERATIONS.md").read_text("utf-8"))
    (tmp_path / "env").write_text("RECON_MERCHANT=100042\nRECON_SIGN_KEY='a $b'\n")
    shown = tmp_path / "recon"
    shown.write_text('#!/bin/sh\numask\necho "$RECON_MERCHANT|$RECON_SIGN_KEY|$@"\n')
    shown.chmod(0o755)
    line = line.replace("/etc/recon/env", f"{tmp_path}/env")
    line = line.replace("/opt/recon/bin/recon", str(shown))
    assert "%" not in line  # cron ends a command there
    ran = subprocess.run(
        ["/bin/sh", "-c", line],
        env={"HOME": "/", "LOGNAME": "recon", "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "0007\n100042|a $b|nightly --live --account 100042001\n"

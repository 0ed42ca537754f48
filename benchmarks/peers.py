"""Contenders of a benchmark, peers in an environment of their own, each run a fresh process."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def peak_mib() -> float:
    """The most memory this program held; the figure of getrusage is its parent's, if larger."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def peer_command(
    packages: Sequence[str], *, imports: Sequence[str], seconds_max: int
) -> list[str] | None:
    """How to start Python with the packages, None where they cannot be fetched."""
    uv = Path(sys.executable).with_name("uv")
    isolated = [str(uv), "run", "--quiet", "--no-project", "--isolated", "--python"]
    command = [*isolated, sys.executable]
    for package in packages:
        command += ["--with", package]
    try:
        subprocess.run(  # noqa: S603 - uv beside our own Python
            [*command, "python", "-c", f"import {', '.join(imports)}"],
            check=True,
            capture_output=True,
            timeout=seconds_max,
        )
    except (OSError, subprocess.SubprocessError):
        print(f"{' and '.join(imports)} cannot be fetched here: recon's figures stand alone")
        return None
    return [*command, "python"]


def figures_of(
    command: Sequence[str], script: Path, *words: str, seconds_max: int
) -> dict[str, float] | None:
    """What one run of a script of contenders printed last, as JSON; None when it failed."""
    ran = subprocess.run(  # noqa: S603 - our own script
        [*command, str(script), *words],
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    if ran.returncode:
        print(f"{words[0]}: {ran.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return figures

"""Peers of a benchmark, fetched into an environment of their own."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


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

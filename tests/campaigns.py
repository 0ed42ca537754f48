"""Starts one campaign of `campaigns.toml`, or tells which there are; `make campaign NAME=...`."""

import os
import sys
import tomllib
from pathlib import Path

CAMPAIGNS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def main() -> None:
    """Become pytest with what the campaign wants."""
    campaign = CAMPAIGNS.get(name := "".join(sys.argv[1:]))
    if campaign is None:
        known = "\n".join(f"  {each:<29} {it['says']}" for each, it in CAMPAIGNS.items())
        sys.exit(f"there is no campaign {name!r}; make campaign NAME=...\n{known}")
    os.environ.update(campaign["variables"] | os.environ)
    command = [sys.executable, "-m", "pytest", *campaign["pytest"].split()]
    os.execv(sys.executable, command)  # noqa: S606 - this very Python


if __name__ == "__main__":
    main()

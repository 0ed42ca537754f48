"""`make scenario NAME=area/name`: plays one and leaves its folder, to be looked at."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from recon.cli.output import echo
from recon.store.database.migrate import upgrade
from tests.scenarios.runner.folder import scenario_of
from tests.scenarios.runner.gateway import PlayedGateway
from tests.scenarios.runner.play import play

FOLDER = Path(__file__).parent
LEFT = FOLDER.parents[1] / "out" / "scenarios"


def main() -> int:
    """Play each; 0 where all came to what they must."""
    options = argparse.ArgumentParser(description="Plays scenarios and leaves what they wrote.")
    options.add_argument("names", nargs="+", metavar="AREA/NAME")
    return max(_played(FOLDER / name) for name in options.parse_args().names)


def _played(path: Path) -> int:
    scenario = scenario_of(path)
    left = LEFT / scenario.name
    shutil.rmtree(left, ignore_errors=True)
    gateway = PlayedGateway(scenario.profile)
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name) / "recon.sqlite"
        upgrade(f"sqlite:///{empty}")
        try:
            played = play(scenario, folder=left, gateway=gateway, empty=empty)
        finally:
            gateway.stop()
    (left / "seen.toml").write_text("\n".join(played.seen) + "\n", encoding="utf-8")
    right = not played.differences and not played.known
    echo(f"{scenario.name}: {scenario.rule}" if right else str(played))
    for reason in played.known:
        echo(f"Known to be wrong yet: {reason}")
    echo(f"Workbook and files: {left}; what was seen, as an expect.toml: {left / 'seen.toml'}")
    return int(bool(played.differences))


if __name__ == "__main__":
    sys.exit(main())

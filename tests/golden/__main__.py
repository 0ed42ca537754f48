"""`make golden` compares what must not change by itself; `make golden-freeze` writes it anew."""

import argparse
import sys
import time

from recon.cli.output import echo
from tests.golden.figures import FROZEN, differences, freeze, frozen, told
from tests.golden.plays import PLAYS, Played, of_play, play_all


def main() -> int:
    """Compare, or with --freeze write; 0 where nothing differs."""
    options = argparse.ArgumentParser(description="What must not change by itself.")
    options.add_argument("--freeze", action="store_true", help="write the figures anew")
    options.add_argument("plays", nargs="*", metavar="PLAY", help=f"one of {', '.join(PLAYS)}")
    asked = options.parse_args()
    if unknown := sorted(set(asked.plays) - set(PLAYS)):
        options.error(f"no such play: {', '.join(unknown)} (there are: {', '.join(PLAYS)})")
    names = [name for name in PLAYS if name in (asked.plays or PLAYS)]
    started = time.monotonic()
    before = frozen()
    played = play_all(names)
    merged: Played = {}
    for name in PLAYS:
        merged |= played[name] if name in played else of_play(name, before)
    found = differences(before, merged)
    if asked.freeze:
        freeze(merged)
        echo(f"{len(found)} figures are frozen anew in {FROZEN.name}; look at its diff.")
        return 0
    seconds = time.monotonic() - started
    echo(told(found) if found else f"Nothing differs: {len(names)} plays in {seconds:.0f} s.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

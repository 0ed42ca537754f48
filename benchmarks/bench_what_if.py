"""What it costs to judge past nights again under candidate rules (`recon what-if`).

Run by `make bench-what-if`. Nights of the real command against a sandbox of its own, one after the
other; then the question, in a process of its own, whose CPU alone is shown.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from bench_journal import PLACE, sandbox
from bench_night import ENDINGS, prepared

from recon.steps.ground.environment import system_clock

NIGHTS, ORDERS = 30, 20_000
GOAL_SECONDS = 180.0
"""Of CPU, for NIGHTS nights of ORDERS payments."""
RULES = '[tolerance.EUR]\nabsolute_minor_units = 5\n[payment_status]\n4000 = "paid"\n'
"""One payment in nine is judged otherwise: what was refunded in part is due to be refunded."""
START = "from recon.cli import main; raise SystemExit(main())"


def command(*words: str) -> list[str]:
    """A command of ours in a process of its own."""
    return [sys.executable, "-c", START, *words]


def played(words: list[str], environment: dict[str, str], *, codes: set[int]) -> str:
    """What a command said."""
    ran = subprocess.run(  # noqa: S603 - our own
        words, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode not in codes:
        sys.exit(f"{words[3:]} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    return ran.stdout


def cpu() -> float:
    """CPU seconds of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Play the nights, ask once, print the CPU of the question."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nights", type=int, default=NIGHTS)
    options.add_argument("--orders", type=int, default=ORDERS)
    asked = options.parse_args()
    today = system_clock().date()
    days = [str(today - timedelta(days=back)) for back in range(asked.nights, 0, -1)]
    account = ["--merchant", PLACE["merchant_id"], "--account", PLACE["account_id"]]
    with sandbox(asked.orders) as base_url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = prepared(folder, base_url)
        for day in days:
            opening = ["--opening"] if day == days[0] else []
            began = time.perf_counter()
            night = command("nightly", *opening, *account, "--business-date", day)
            played(night, environment, codes=ENDINGS)
            print(f"night of {day}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
        candidate = folder / "candidate" / "rules.toml"
        candidate.parent.mkdir()
        candidate.write_text(RULES)
        words = ["what-if", str(candidate), "--from", days[0], "--to", days[-1], *account]
        before = cpu()
        print(played(command(*words), environment, codes={0})[-600:])
        taken = cpu() - before
    whole = taken / asked.nights * NIGHTS
    print(
        f"{asked.nights} nights of {asked.orders:,} payments: {taken:.1f} CPU s, "
        f"{taken / asked.nights:.1f} a night; {NIGHTS} nights {whole:.0f} (at most {GOAL_SECONDS})"
    )


if __name__ == "__main__":
    main()

"""What a killed night costs: killed at half of its captures and started again, beside half a night.

Run by `make bench-recovery`. Whole nights of the real command against a sandbox in a process of its
own that answers after 50 ms: one that nobody disturbs, and one that SIGKILL ends after half of its
batches and that is then started again. Both begin with an empty database.
"""

import csv
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from pathlib import Path

from bench_journal import (
    ANSWER_SECONDS,
    CAPTURES,
    INBOX,
    ROUNDS,
    authorised,
    night_command,
    post,
    sandbox,
    variables,
)

from recon.model.money import format_minor_units, parse_minor_units
from recon.settlement.instruction import ROWS_PER_BATCH_MAX
from recon.steps.ground import stages

HALF = CAPTURES // ROWS_PER_BATCH_MAX // 2
ENDINGS = {0, 3, 4}
"""Exit codes of a night that came to its end, whatever it found."""
HEADER = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("refund_amount", "action", "action_amount", "action_reason", "request_id"),
)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a night took that came to its end."""

    seconds: float
    settling: float
    """Of these, the step that moves the money."""

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s (settle {self.settling:.2f} s)"


def main() -> None:
    """Print every round, and the ratios of what is left after the kill to half a night."""
    whole: list[Taken] = []
    again: list[Taken] = []
    with sandbox() as base_url:
        for _ in range(ROUNDS):
            whole.append(one_night(base_url))
            again.append(one_night(base_url, kill_after=HALF))
            print(f"whole: {whole[-1]}, after the kill: {again[-1]}", flush=True)
    for what, of in (("night", attrgetter("seconds")), ("settle", attrgetter("settling"))):
        ratio = 2 * statistics.median(map(of, again)) / statistics.median(map(of, whole))
        print(f"{what} after the kill, beside half of a whole one: {ratio:.2f}")


def one_night(base_url: str, *, kill_after: int = 0) -> Taken:
    """The start that came to its end."""
    post(base_url, "reset", {})
    rule = {"operation": "capture", "kind": "delay", "seconds": ANSWER_SECONDS}
    post(base_url, "faults", {"rules": [rule]})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = os.environ | variables(folder, base_url)
        drop(folder / INBOX / "orders.csv", authorised(base_url))
        if kill_after:
            killed = start(environment | {"RECON_CRASH_AT": f"after record:{kill_after}"})
            expect(killed, {-signal.SIGKILL})
            expect(reached(base_url), {kill_after * ROWS_PER_BATCH_MAX})
        began = time.perf_counter()
        expect(start(environment), ENDINGS)
        seconds = time.perf_counter() - began
        expect(reached(base_url), {CAPTURES})
        return Taken(seconds, settling(folder))


def settling(folder: Path) -> float:
    """Seconds of the step that moves money, in the newest run."""
    newest = max((folder / stages.FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    document = json.loads(newest.read_text())
    return sum(stage["seconds"] for stage in document["stages"] if stage["stage"] == "settle")


def reached(base_url: str) -> int:
    """Captures that took effect at the sandbox."""
    with urllib.request.urlopen(f"{base_url}/_sandbox/effects") as reply:  # noqa: S310 - loopback
        rows = [json.loads(line) for line in reply.read().splitlines()]
    return sum((row["origin"], row["operation"]) == ("api", "capture") for row in rows)


def drop(path: Path, orders: list[dict[str, str]]) -> None:
    """The file that asks for a capture of every order."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=HEADER, restval="", extrasaction="ignore")
        writer.writeheader()
        for order in orders:
            paid_at = datetime.fromisoformat(order["transaction_date"][:8])
            writer.writerow(
                order
                | {
                    "amount": format_in_file(order),
                    "status": "authorised",
                    "ordered_at": f"{paid_at:%Y-%m-%dT22:00:00Z}",
                    "action": "capture",
                }
            )


def format_in_file(order: dict[str, str]) -> str:
    """The amount with exactly the decimals of its currency."""
    minor = parse_minor_units(order["amount"], currency=order["currency"])
    return format_minor_units(minor, currency=order["currency"])


def start(environment: dict[str, str]) -> int:
    """The exit code of one night."""
    return subprocess.run(  # noqa: S603 - our own
        night_command(),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode


def expect(count: int, wanted: set[int]) -> None:
    """End the measurement when it is not what it says."""
    if count not in wanted:
        sys.exit(f"expected {wanted}, found {count}")


if __name__ == "__main__":
    main()

"""What one more small order file costs when many came before it, and one that stays in the inbox.

Run by `make bench-files`. One inbox of many files of few orders each, read in one go; CPU of this
process for storing each, by eighths of the files: a cost that follows what came before would rise
from line to line. Reading them, in a process of its own, is not in it.
"""

import argparse
import csv
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench_journal import INBOX, PLACE, sandbox, variables
from bench_recovery import HEADER

from recon.model.nights import Mode, NightRequest
from recon.steps.files import ingest
from recon.steps.ground.environment import environment_of, system_clock
from recon.store.nights import runs

FILES, ORDERS = 800, 20
PARTS = 8
SANDBOX_ORDERS = 10


def write_files(inbox: Path, *, files: int) -> None:
    """Files of ORDERS each, no order twice."""
    now = system_clock().isoformat()
    for number in range(files):
        with (inbox / f"orders-{number:05d}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=HEADER, restval="")
            writer.writeheader()
            for order in range(ORDERS):
                cells = {"order_no": f"N{number:05d}-{order:03d}", "currency": "EUR"}
                cells |= {"amount": "10.00", "status": "paid", "ordered_at": now}
                writer.writerow(cells | PLACE)


def stored(folder: Path, base_url: str, *, files: int) -> tuple[list[float], float]:
    """CPU seconds of storing each file, and of meeting all of them once more."""
    given = variables(folder, base_url)
    write_files(folder / INBOX, files=files)
    taken: list[float] = []
    whole = ingest._ingest_orders  # noqa: SLF001 - what is measured of a step

    def measured(*args: Any, **options: Any) -> Any:
        began = time.process_time()
        answer = whole(*args, **options)
        taken.append(time.process_time() - began)
        return answer

    ingest._ingest_orders = measured  # noqa: SLF001 - see above
    with environment_of(given, clock=system_clock) as environment:
        now = environment.clock()
        date = (now - timedelta(days=1)).date()
        request = NightRequest(
            PLACE["merchant_id"], PLACE["account_id"], date, Mode.LIVE, opening=True
        )
        with environment.store.writing() as connection:
            runs.start(connection, request, run_id="r1", as_of=now, now=now)
        ingest.ingest("r1", environment=environment)
        began = time.process_time()
        ingest.ingest("r1", environment=environment)
        again = time.process_time() - began
    return taken, again


def main() -> None:
    """Each eighth of the files."""
    options = argparse.ArgumentParser(description="What one more order file costs.")
    options.add_argument("--files", type=int, default=FILES)
    given = options.parse_args()
    with sandbox(SANDBOX_ORDERS) as base_url, tempfile.TemporaryDirectory() as name:
        taken, again = stored(Path(name), base_url, files=given.files)
    size = max(1, len(taken) // PARTS)
    print(f"{'files that came before':<30}{'CPU ms a file':>14}{'beside the first':>18}")
    first = statistics.median(taken[:size])
    for start in range(0, len(taken), size):
        middle = statistics.median(taken[start : start + size])
        print(f"{start:<30,}{1000 * middle:>14.1f}{middle / first:>18.2f}", flush=True)
    each = again / len(taken)
    print(f"{'known, met again':<30}{1000 * each:>14.1f}{each / first:>18.2f}")


if __name__ == "__main__":
    main()

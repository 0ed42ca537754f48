"""One query of many orders in a process of its own: `WHO PARTITIONS FOLDER BASE_URL`, as JSON.

The sandbox and the workers are up before the clock starts.
"""

import json
import random
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import psutil
from bench_journal import PLACE, variables

from recon.config.cluster import ClusterSettings
from recon.steps.ground.environment import environment_of, system_clock
from recon.steps.night.query_shards import KEYS_PER_SHARD_MAX, Asked, asked_in_shards
from recon.workers.dask_workers import DaskWorkers, workers_of

ROUNDS = 4
"""So often each order is asked about."""
ACCOUNT = (PLACE["merchant_id"], PLACE["account_id"])


def children() -> list[psutil.Process]:
    """The workers' processes."""
    return psutil.Process().children(recursive=True)


def seconds_of(processes: list[psutil.Process]) -> float:
    """CPU seconds of processes so far."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def keys_of(base_url: str) -> list[str]:
    """Order numbers of the account, as the sandbox has them."""
    with urllib.request.urlopen(f"{base_url}/_sandbox/effects") as reply:  # noqa: S310 - loopback
        rows = [json.loads(line) for line in reply]
    ours = [row["order_no"] for row in rows if row["account_id"] == ACCOUNT[1]]
    return list(dict.fromkeys(ours)) * ROUNDS


def main() -> None:
    """One run."""
    who, partitions, folder, base_url = sys.argv[1:]
    keys, served = keys_of(base_url), variables(Path(folder), base_url)
    address = "local" if who == "dask" else ""
    settings = ClusterSettings(partitions=int(partitions), address=address, connect_seconds=300)
    with (
        environment_of(served, clock=system_clock, randomness=random.Random(1)) as environment,
        workers_of(settings, variables=served) as workers,
    ):
        asked_by = replace(environment, workers=workers)

        def ask(wanted: list[str]) -> list[Asked]:
            return list(asked_in_shards(wanted, account=ACCOUNT, environment=asked_by))

        # Workers have loaded what they need before the clock starts.
        ask(keys[: 2 * KEYS_PER_SHARD_MAX] if isinstance(workers, DaskWorkers) else keys[:1])
        others = children()
        wall, cpu, theirs = time.perf_counter(), time.process_time(), seconds_of(others)
        answers = ask(keys)
        figures = {
            "keys": len(keys),
            "answered": sum(len(answer.answers.observations) for answer in answers),
            "cpu": time.process_time() - cpu,
            "cpu_of_workers": seconds_of(others) - theirs,
            "wall": time.perf_counter() - wall,
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

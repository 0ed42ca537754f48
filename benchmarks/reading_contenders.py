"""One reading of an order file in a process of its own: `WHO PATH` prints its figures as JSON.

The workers are up before the clock starts. `sha256` is of all rows in their order.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
from peers import peak_mib

from recon.config.cluster import ClusterSettings
from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files.kinds.spooled_file import spooled_file
from recon.workers.dask_workers import DaskWorkers, workers_of


def main() -> None:
    """One run."""
    who, path = sys.argv[1], Path(sys.argv[2])
    address = "local" if who == "dask" else ""
    settings = ClusterSettings(address=address, connect_seconds=300)
    with workers_of(settings, variables={}) as workers:
        if isinstance(workers, DaskWorkers):
            list(workers.each(_warm, range(8)))
        others = psutil.Process().children(recursive=True)
        wall, cpu, theirs = time.perf_counter(), time.process_time(), _seconds_of(others)
        how = {"layout": STANDARD, "keep": True, "workers": workers}
        with spooled_file(path, rules=Rules(), **how) as read:
            figures = {
                "cpu": time.process_time() - cpu,
                "cpu_of_workers": _seconds_of(others) - theirs,
                "wall": time.perf_counter() - wall,
                "peak_mib": peak_mib(),
            }
            digest = hashlib.sha256(repr(read.rejects).encode())
            for part in read.parts():
                digest.update(pd.util.hash_pandas_object(part.orders).to_numpy().tobytes())
    print(json.dumps(figures | {"sha256": digest.hexdigest()}))


def _warm(_: int) -> int:
    import recon.files.kinds.typed_parts

    return len(recon.files.kinds.typed_parts.BAD_ROWS)


def _seconds_of(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


if __name__ == "__main__":
    main()

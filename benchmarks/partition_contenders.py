"""One reconciliation in a process of its own: `WHO PARTITIONS FOLDER` prints its figures as JSON.

The tables are in memory and the workers are up before the clock starts.
"""

import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
from peers import peak_mib

from recon.config.cluster import ClusterSettings
from recon.config.rules import Rules
from recon.matching.frames.sources import Sources
from recon.proof.engine import reconcile
from recon.workers.dask_workers import DaskWorkers, workers_of
from tests.planted import RULES
from tests.planted.planted_files import AS_OF

MIB = 1024 * 1024


class Weighed:
    """Workers, with the size of the largest part that they were handed."""

    def __init__(self, workers: Any) -> None:
        self.partitions, self.elsewhere = workers.partitions, workers.elsewhere
        self.largest = 0
        self._workers = workers

    def each(self, work: Any, items: Any) -> Any:
        """As the workers."""
        return self._workers.each(work, map(self._weighed, items))

    def _weighed(self, item: Any) -> Any:
        if self.elsewhere:
            buffers: list[pickle.PickleBuffer] = []
            body = len(pickle.dumps(item, protocol=5, buffer_callback=buffers.append))
            size = body + sum(len(buffer.raw()) for buffer in buffers)
            self.largest = max(self.largest, size)
        return item


def children() -> list[psutil.Process]:
    """The workers' processes."""
    return psutil.Process().children(recursive=True)


def seconds_of(processes: list[psutil.Process]) -> float:
    """CPU seconds of processes so far."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def main() -> None:
    """One run."""
    who, partitions, folder = sys.argv[1:]
    names = ("orders", "gateway", "ledger", "instructions")
    frames = {name: pd.read_parquet(Path(folder) / f"{name}.parquet") for name in names}
    sources, rules = Sources(**frames), Rules.of(RULES, source="bench")
    address = "local" if who == "dask" else ""
    settings = ClusterSettings(partitions=int(partitions), address=address, connect_seconds=300)
    with workers_of(settings, variables={}) as workers:
        if isinstance(workers, DaskWorkers):
            list(workers.each(_warm, range(8)))
        weighed, others = Weighed(workers), children()
        wall, cpu, theirs = time.perf_counter(), time.process_time(), seconds_of(others)
        result = reconcile(sources, rules=rules, as_of=AS_OF, workers=weighed)
        digest = result.digest
        figures = {
            "cpu": time.process_time() - cpu,
            "cpu_of_workers": seconds_of(others) - theirs,
            "wall": time.perf_counter() - wall,
            "peak_mib": peak_mib(),
            "peak_of_a_worker_mib": max((_peak(process.pid) for process in others), default=0.0),
            "largest_part_mib": weighed.largest / MIB,
            "digest": digest,
        }
    print(json.dumps(figures))


def _warm(_: int) -> int:
    import recon.matching.exact.partitioned

    return len(recon.matching.exact.partitioned.NEEDED)


def _peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()

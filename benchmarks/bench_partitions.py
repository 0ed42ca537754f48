"""What partitions and a Dask cluster cost and give: reconciliation, and the gateway's query.

Run by `make bench-partitions`. Frames in, digest out; each run in a fresh process, the cluster two
workers of this machine. Judge by CPU seconds and peaks, not by the wall: on a machine whose cores
are shared the wall measures the neighbours. All runs of a size must come to the same digest.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from bench_journal import sandbox
from peers import figures_of

from recon.sandbox.planted import planted

SHARE_BROKEN = 100
"""One order in so many carries a break."""
SCRIPT = Path(__file__).with_name("partition_contenders.py")
ASKING = Path(__file__).with_name("query_contenders.py")
SECONDS_MAX = 3_600
RUNS = (("here", 1), ("here", 4), ("dask", 4), ("dask", 16))
"""Who does the parts, and how many there are."""


def write_tables(folder: Path, *, size: int) -> None:
    """The planted orders as Parquet files."""
    sources = planted(size=size, broken=size // SHARE_BROKEN, settled=False).sources
    for name in ("orders", "gateway", "ledger", "instructions"):
        getattr(sources, name).to_parquet(folder / f"{name}.parquet")


def compare(size: int) -> None:
    """Print every run's figures for so many orders."""
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), size=size)
        print(f"\n{size:,} orders, {size // SHARE_BROKEN:,} breaks; one fresh process each")
        heads = ("CPU s", "of workers", "wall s", "peak MiB", "a worker's", "largest part")
        print(f"{'parts':<10}" + "".join(f"{head:>14}" for head in heads))
        digests = set()
        for who, partitions in RUNS:
            told = figures_of(
                [sys.executable], SCRIPT, who, str(partitions), folder, seconds_max=SECONDS_MAX
            )
            if told is None:
                continue
            digests.add(told.pop("digest"))
            print(
                f"{who + ' ' + str(partitions):<10}"
                + "".join(f"{one:>14.1f}" for one in told.values())
            )
        if len(digests) != 1:
            sys.exit(f"{size:,} orders came to {len(digests)} digests")
        print("one digest")


def query() -> None:
    """Print what asking a sandbox of its own costs, by one process and by two workers."""
    print("\nthe gateway's query, its pace unbounded")
    heads = ("orders", "answers", "CPU s", "of workers", "wall s")
    print(f"{'parts':<10}" + "".join(f"{head:>14}" for head in heads))
    with sandbox() as base_url:
        for who, partitions in (("here", 1), ("dask", 2)):
            with tempfile.TemporaryDirectory() as folder:
                words = (who, str(partitions), folder, base_url)
                told = figures_of([sys.executable], ASKING, *words, seconds_max=SECONDS_MAX)
            if told is not None:
                cells = "".join(f"{one:>14.1f}" for one in told.values())
                print(f"{who + ' ' + str(partitions):<10}{cells}")


def main() -> None:
    """Every size in turn, then the query."""
    options = argparse.ArgumentParser(description="Partitions and a cluster beside one process.")
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 5_000_000])
    for size in options.parse_args().sizes:
        compare(size)
    query()


if __name__ == "__main__":
    main()

"""What partitions and a Dask cluster cost and give: reading, reconciliation, the gateway's query.

Run by `make bench-partitions`. Bytes in, rows out; frames in, digest out; each run in a fresh
process, the cluster two workers of this machine. Judge by CPU seconds and peaks, not by the wall:
on a machine whose cores are shared the wall measures the neighbours. All runs of a size must come
to the same digest.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from bench_ingest import write_csv
from bench_journal import sandbox
from peers import figures_of

from tests.planted import planted

SHARE_BROKEN = 100
"""One order in so many carries a break."""
SCRIPT = Path(__file__).with_name("partition_contenders.py")
READING = Path(__file__).with_name("reading_contenders.py")
READ_ROWS = 1_000_000
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
            figures = figures_of(
                [sys.executable], SCRIPT, who, str(partitions), folder, seconds_max=SECONDS_MAX
            )
            if figures is None:
                continue
            digests.add(figures.pop("digest"))
            print(
                f"{who + ' ' + str(partitions):<10}"
                + "".join(f"{figure:>14.1f}" for figure in figures.values())
            )
        if len(digests) != 1:
            sys.exit(f"{size:,} orders came to {len(digests)} digests")
        print("one digest")


def reading() -> None:
    """Print what reading a CSV file of a million orders costs, here and by two workers."""
    print(f"\na CSV file of {READ_ROWS:,} orders, one bad row in 833")
    heads = ("CPU s", "of workers", "wall s", "peak MiB")
    print(f"{'parts':<10}" + "".join(f"{head:>14}" for head in heads))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.csv"
        write_csv(path, rows=READ_ROWS)
        read = set()
        for who in ("here", "dask"):
            figures = figures_of([sys.executable], READING, who, str(path), seconds_max=SECONDS_MAX)
            if figures is not None:
                read.add(figures.pop("sha256"))
                print(f"{who:<10}" + "".join(f"{figure:>14.1f}" for figure in figures.values()))
    if len(read) != 1:
        sys.exit(f"the file was read in {len(read)} ways")


def query() -> None:
    """Print what asking a sandbox of its own costs, by one process and by two workers."""
    print("\nthe gateway's query, its pace unbounded")
    heads = ("orders", "answers", "CPU s", "of workers", "wall s")
    print(f"{'parts':<10}" + "".join(f"{head:>14}" for head in heads))
    with sandbox() as base_url:
        for who, partitions in (("here", 1), ("dask", 2)):
            with tempfile.TemporaryDirectory() as folder:
                words = (who, str(partitions), folder, base_url)
                figures = figures_of([sys.executable], ASKING, *words, seconds_max=SECONDS_MAX)
            if figures is not None:
                cells = "".join(f"{figure:>14.1f}" for figure in figures.values())
                print(f"{who + ' ' + str(partitions):<10}{cells}")


def main() -> None:
    """Every size in turn, then a file, then the query."""
    options = argparse.ArgumentParser(description="Partitions and a cluster beside one process.")
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 5_000_000])
    for size in options.parse_args().sizes:
        compare(size)
    reading()
    query()


if __name__ == "__main__":
    main()

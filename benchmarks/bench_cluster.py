"""What a Dask cluster costs and gives: the gateway's query, by one process and by two workers.

Run by `make bench-cluster`. Each run in a fresh process, against one sandbox. Judge by CPU seconds,
not by the wall: on a machine whose cores are shared the wall measures the neighbours.
"""

import sys
import tempfile
from pathlib import Path

from bench_journal import sandbox
from peers import figures_of

ASKING = Path(__file__).with_name("query_contenders.py")
SECONDS_MAX = 3_600
RUNS = (("here", 1), ("dask", 2))
"""Who asks, and in how many parts at once."""


def main() -> None:
    """Print what asking a sandbox costs, its pace unbounded."""
    heads = ("orders", "answers", "CPU s", "of workers", "wall s")
    print(f"{'parts':<10}" + "".join(f"{head:>14}" for head in heads))
    with sandbox() as base_url:
        for who, partitions in RUNS:
            with tempfile.TemporaryDirectory() as folder:
                words = (who, str(partitions), folder, base_url)
                figures = figures_of([sys.executable], ASKING, *words, seconds_max=SECONDS_MAX)
            if figures is not None:
                cells = "".join(f"{figure:>14.1f}" for figure in figures.values())
                print(f"{who + ' ' + str(partitions):<10}{cells}")


if __name__ == "__main__":
    main()

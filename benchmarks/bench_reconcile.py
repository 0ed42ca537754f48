"""What the reconciliation costs beside its peers, on the same planted orders.

`make bench NAME=reconcile`. First frames in, breaks out, beside DuckDB's SQL and datacompy; then
CSV files in, beside these two and fastrecon. Each run in a fresh process, rounds interleaved, so
that other work on the machine hits all alike. Judge by the ratios of CPU. The peers are no
dependencies of recon: uv fetches them into an environment of their own, and without them the
figures of recon stand alone.
"""

import argparse
import statistics
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from peers import figures_of, peer_command
from reconcile_files import write_files

from tests.injected import RULES, planted

FRAMES = Path(__file__).with_name("reconcile_contenders.py")
FILES = Path(__file__).with_name("file_contenders.py")
PEERS = ("duckdb", "datacompy", "fastrecon", "pandas", "pyarrow")
OF_FRAMES = ("ours", "duckdb", "datacompy")
OF_FILES = ("ours", "command", "duckdb", "written", "datacompy", "fastrecon")
OWN = frozenset({"ours", "command"})
SECONDS_MAX = 1_200
SHARE_BROKEN = 100
"""One order in so many carries a break."""

Figures = dict[str, float]


def write_sources(folder: Path, *, script: Path, size: int) -> None:
    """The planted orders as Parquet, or as CSV files, that every contender reads."""
    sources = planted(size=size, broken=size // SHARE_BROKEN, settled=False).sources
    if script == FILES:
        write_files(sources, rules=RULES, folder=folder)
        return
    for name in ("orders", "gateway", "ledger", "instructions"):
        getattr(sources, name).to_parquet(folder / f"{name}.parquet")


def compare(
    script: Path, *, size: int, repeats: int, commands: dict[str, list[str]]
) -> dict[str, float]:
    """Print every contender's figures for so many orders; the median CPU of each is given back."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sources(folder, script=script, size=size)
        rounds: dict[str, list[Figures]] = {name: [] for name in commands}
        for _ in range(repeats):
            for contender, command in commands.items():
                figures = figures_of(
                    command, script, contender, str(folder), seconds_max=SECONDS_MAX
                )
                if figures:
                    rounds[contender].append(figures)
    anchor = median(rounds.get("duckdb", []), "cpu")
    what = "CSV files" if script == FILES else "frames"
    print(
        f"\n{size:,} orders in {what}, {size // SHARE_BROKEN:,} breaks; "
        f"median of {repeats} fresh processes"
    )
    print(
        f"{'contender':<12}{'CPU s':>8}{'wall s':>8}{'peak MiB':>10}{'breaks':>9}{'/ DuckDB':>14}"
    )
    for contender, runs in rounds.items():
        if runs:
            cpu = median(runs, "cpu")
            ratio = f"{cpu / anchor:.2f}" if anchor else "-"
            cells = f"{cpu:>8.2f}{median(runs, 'wall'):>8.2f}{median(runs, 'peak_mib'):>10.0f}"
            print(f"{contender:<12}{cells}{runs[-1]['breaks']:>9,}{ratio:>14}", flush=True)
    return {contender: median(runs, "cpu") for contender, runs in rounds.items()}


def notify_growth(sizes: list[int], *, cpu: list[float]) -> None:
    """How far our CPU grows from size to size, 1 where it is linear."""
    steps = zip(pairwise(sizes), pairwise(cpu), strict=True)
    for (small, large), (before, after) in steps:
        if before:
            growth = after / before * small / large
            print(f"ours, {small:,} -> {large:,} orders: {growth:.2f}x linear")


def median(runs: list[Figures], name: str) -> float:
    """The median of one figure, 0 without runs."""
    return statistics.median(run[name] for run in runs) if runs else 0.0


def main() -> None:
    """Every size in turn."""
    options = argparse.ArgumentParser(description="The reconciliation beside its peers.")
    options.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_000_000])
    options.add_argument("--file-sizes", type=int, nargs="*", default=[1_000_000])
    options.add_argument("--repeats", type=int, default=3, help="fresh processes of each")
    given = options.parse_args()
    peers = peer_command(PEERS, imports=PEERS[:3], seconds_max=SECONDS_MAX)
    commands = {
        name: [sys.executable] if name in OWN else peers or []
        for name in OF_FILES
        if peers or name in OWN
    }
    of_frames = {name: command for name, command in commands.items() if name in OF_FRAMES}
    compared = [
        compare(FRAMES, size=size, repeats=given.repeats, commands=of_frames)
        for size in given.sizes
    ]
    notify_growth(given.sizes, cpu=[line["ours"] for line in compared])
    for size in given.file_sizes:
        compare(FILES, size=size, repeats=given.repeats, commands=commands)


if __name__ == "__main__":
    main()

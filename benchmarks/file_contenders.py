"""One reconciliation of CSV files in a process of its own: `NAME FOLDER` prints CPU, peak, breaks.

The clock starts before the first byte is read, when all modules are loaded. recon reads and checks
every cell of four files, classifies every break and computes all control totals; `command` is
`recon reconcile` from its start to its end, with all its processes, every result file and the
workbook. DuckDB reads three files with the types of their columns and runs the SQL of
reconcile_contenders; `written` is DuckDB with its matches and its breaks written as CSV. datacompy
and fastrecon compare orders and gateway only.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from reconcile_contenders import SQL, THREADS, Run, run_once

KEYS = ["merchant_id", "account_id", "order_no"]
COMPARED = [*KEYS, "currency", "amount"]


def ours(folder: Path) -> Run:
    """recon: read, checked, classified; nothing written."""
    from recon.config.settings import load_rules
    from recon.matching.frames.sources import Sources
    from recon.model.terms import SourceKind
    from recon.proof.engine import reconcile
    from tests.injected.injected_files import AS_OF
    from tests.recon.files.whole_read import read_table

    def compared() -> int:
        rules = load_rules(config_dir=None, rules_file=folder / "rules.toml")
        kinds = ("orders", "gateway", "ledger", "instructions")
        tables = {
            kind: read_table(folder / f"{kind}.csv", kind=SourceKind(kind), rules=rules)
            for kind in kinds
        }
        sources = Sources(
            **{kind: table.frame for kind, table in tables.items()},
            rejects=tuple(reject for table in tables.values() for reject in table.rejects),
            files=tuple(table.source_file for table in tables.values()),
        )
        return len(reconcile(sources, rules=rules, as_of=AS_OF).breaks)

    return compared


def command(folder: Path) -> Run:
    """`recon reconcile` as a person types it."""
    out = folder / "out"
    files = ("orders", "gateway", "ledger", "instructions")
    words = [word for name in files for word in (f"--{name}", str(folder / f"{name}.csv"))]
    words += ["--rules", str(folder / "rules.toml"), "--as-of", "2026-11-20", "--out", str(out)]
    recon = str(Path(sys.executable).with_name("recon"))

    def compared() -> int:
        subprocess.run([recon, "reconcile", *words], stdout=subprocess.DEVNULL, check=False)  # noqa: S603 - our own command, which ends with 3 for breaks
        return len((out / "breaks.csv").read_text("utf-8").splitlines()) - 1

    return compared


def duckdb(folder: Path) -> Run:
    """DuckDB: three files with typed columns, the same join, its breaks fetched."""
    return lambda: len(_tables(folder).execute(SQL).fetchall())


def written(folder: Path) -> Run:
    """The same, with its matches and its breaks written as CSV."""
    queries = {"matches": SQL.replace("WHERE NOT (", "WHERE ("), "breaks": SQL}

    def compared() -> int:
        database = _tables(folder)
        for name, query in queries.items():
            database.execute(f"COPY ({query}) TO '{folder / name}.csv' (HEADER)")
        return len((folder / "breaks.csv").read_text("utf-8").splitlines()) - 1

    return compared


def _tables(folder: Path) -> Any:
    """A database of the three files."""
    import duckdb

    database = duckdb.connect(config={"threads": THREADS})
    amounts = {
        "orders": ("amount", "expected_captured_amount", "refund_amount"),
        "gateway": ("amount", "authorised_amount", "captured_amount", "refunded_amount"),
        "ledger": ("amount", "transaction_amount"),
    }
    for name, columns in amounts.items():
        with (folder / f"{name}.csv").open(encoding="utf-8") as file:
            header = next(file).strip().split(",")
        types = dict.fromkeys(header, "VARCHAR")
        types |= dict.fromkeys(columns, "DECIMAL(18,2)")
        types |= {column: "TIMESTAMPTZ" for column in header if column.endswith(("_at", "date"))}
        listing = ", ".join(f"'{column}': '{kind}'" for column, kind in types.items())
        path = folder / f"{name}.csv"
        database.execute(
            f"CREATE TABLE {name} AS SELECT * FROM "  # noqa: S608 - our own names
            f"read_csv('{path}', header = true, columns = {{{listing}}})"
        )
    return database


def datacompy(folder: Path) -> Run:
    """datacompy: orders beside gateway, read by pandas as text and exact amounts."""
    import datacompy
    import pandas as pd

    def compared() -> int:
        left, right = (
            pd.read_csv(folder / f"{name}.csv", usecols=COMPARED, dtype=str)
            for name in ("orders", "gateway")
        )
        make = getattr(datacompy, "PandasCompare", None) or datacompy.Compare
        comparison = make(left, right, join_columns=KEYS)
        differing = len(comparison.all_mismatch()) if len(comparison.intersect_rows) else 0
        return differing + len(comparison.df1_unq_rows) + len(comparison.df2_unq_rows)

    return compared


def fastrecon(folder: Path) -> Run:
    """fastrecon: orders beside gateway by their keys."""
    from fastrecon import CsvFile, compare

    def compared() -> int:
        left, right = (CsvFile(str(folder / f"{name}.csv")) for name in ("orders", "gateway"))
        differences = compare(left, right, keys=KEYS, columns=["currency", "amount"])
        names = ("missing_in_left", "missing_in_right", "changed_rows")
        return sum(int(getattr(differences, name)) for name in names)

    return compared


CONTENDERS = {run.__name__: run for run in (ours, command, duckdb, written, datacompy, fastrecon)}

if __name__ == "__main__":
    run_once(CONTENDERS[sys.argv[1]](Path(sys.argv[2])))

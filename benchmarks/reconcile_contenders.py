"""One reconciliation in a process of its own: `NAME FOLDER` prints CPU seconds, peak and breaks.

Each contender has its tables in memory before the clock starts. recon builds sets, classifies every
break under its codes and computes all control totals; DuckDB's SQL joins the three sides and names
breaks by presence and amount only; datacompy compares orders and gateway, and knows no ledger.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from peers import peak_mib

Run = Callable[[], int]
THREADS = 2

SQL = """
WITH o AS (SELECT merchant_id, account_id, order_no, sum(CASE WHEN status = 'paid' THEN amount
        ELSE 0 END) AS net, any_value(status) AS status, count(*) AS n
        FROM orders GROUP BY ALL),
     g AS (SELECT merchant_id, account_id, order_no, sum(CASE WHEN payment_status = '3000'
        THEN coalesce(captured_amount, amount)
        WHEN payment_status = '4100' AND refunded_amount IS NOT NULL THEN amount - refunded_amount
        ELSE 0 END) AS net, any_value(payment_status) AS status,
        count(*) AS n FROM gateway GROUP BY ALL),
     l AS (SELECT merchant_id, account_id, order_no, sum(CASE entry_type WHEN 'capture'
        THEN coalesce(transaction_amount, amount) WHEN 'refund' THEN -amount WHEN 'chargeback'
        THEN -amount ELSE 0 END) AS net, count(*) AS n FROM ledger WHERE entry_type <> 'payout'
        GROUP BY ALL)
SELECT *, CASE WHEN gs IS NULL AND ln IS NULL THEN 'MISSING_AT_GATEWAY'
        WHEN gs IS NULL AND os IS NULL THEN 'LEDGER_ONLY'
        WHEN gs IS NULL THEN 'BOOKED_NOT_AT_GATEWAY'
        WHEN os IS NULL THEN 'MISSING_IN_ORDERS' WHEN orows > 1 THEN 'DUPLICATE_ORDER_ROW'
        WHEN grows > 1 AND gn > onet THEN 'DUPLICATE_PAYMENT' WHEN gn > onet THEN 'AMOUNT_OVER'
        WHEN gn < onet THEN 'AMOUNT_UNDER' WHEN ln IS NULL THEN 'MISSING_IN_LEDGER'
        WHEN lrows > 1 THEN 'DUPLICATE_LEDGER_POSTING' WHEN gn <> ln THEN 'LEDGER_AMOUNT_MISMATCH'
        ELSE 'STATUS_CONFLICT' END AS code
FROM (SELECT merchant_id, account_id, order_no, o.net AS onet, o.status AS os, o.n AS orows,
        g.net AS gn, g.status AS gs, g.n AS grows, l.net AS ln, l.n AS lrows
      FROM o FULL JOIN g USING (merchant_id, account_id, order_no)
      FULL JOIN l USING (merchant_id, account_id, order_no))
WHERE NOT (os = 'paid' AND gs = '3000' AND orows = 1 AND grows = 1 AND onet = gn AND gn IS NOT
        DISTINCT FROM ln)
"""


def ours(folder: Path) -> Run:
    """recon: three sides and instructions, every code, every control total."""
    import pandas as pd

    from recon.config.rules import Rules
    from recon.matching.frames.sources import Sources
    from recon.proof.engine import reconcile
    from tests.injected import RULES
    from tests.injected.injected_files import AS_OF

    names = ("orders", "gateway", "ledger", "instructions")
    frames = {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}
    sources = Sources(**frames)
    rules = Rules.of(RULES, source="bench")
    return lambda: len(reconcile(sources, rules=rules, as_of=AS_OF).breaks)


def duckdb(folder: Path) -> Run:
    """DuckDB: the same three sides in SQL."""
    import duckdb

    database = duckdb.connect(config={"threads": THREADS})
    for name in ("orders", "gateway", "ledger"):
        path = folder / f"{name}.parquet"
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{path}')")  # noqa: S608
    return lambda: len(database.execute(SQL).fetchall())


def datacompy(folder: Path) -> Run:
    """datacompy: orders beside gateway, two sides only."""
    import datacompy
    import pandas as pd

    names = ["merchant_id", "account_id", "order_no", "currency", "amount"]
    left, right = (
        pd.read_parquet(folder / f"{name}.parquet")[names] for name in ("orders", "gateway")
    )

    def compared() -> int:
        make = getattr(datacompy, "PandasCompare", None) or datacompy.Compare
        comparison = make(left, right, join_columns=names[:3])
        differing = len(comparison.all_mismatch()) if len(comparison.intersect_rows) else 0
        return differing + len(comparison.df1_unq_rows) + len(comparison.df2_unq_rows)

    return compared


def run_once(run: Run) -> None:
    """Run a contender once and print its figures."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    breaks = run()
    figures = {
        "cpu": _cpu_seconds() - cpu,
        "wall": time.perf_counter() - wall,
        "peak_mib": max(peak_mib(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        "breaks": breaks,
    }
    print(json.dumps(figures))


def _cpu_seconds() -> float:
    """Of this process, and of those that it started and that ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


if __name__ == "__main__":
    name, table_path = sys.argv[1:]
    run_once({"ours": ours, "duckdb": duckdb, "datacompy": datacompy}[name](Path(table_path)))

"""What a year of nights takes on the disk, and whether each of them can be rebuilt.

Run by `make bench-year` (YEAR_NIGHTS, YEAR_ORDERS a day; small without them, a tenth of a large
merchant is 365 and 2000). Each business date brings an order file of its own and more books; the
window of a night is 30 business dates. Bytes of a night grow with the orders of its window, so the
slope of that is what a larger merchant's are computed from.
"""

import argparse
import csv
import math
import os
import sqlite3
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
from bench_journal import INBOX, PLACE, sandbox, variables
from bench_night import (
    BOOKED,
    ENDINGS,
    HEADER,
    LEDGER_HEADER,
    STATUS,
    bytes_of_tables,
    lines_of,
    units_of,
)

from recon import cli
from recon.config.night_archive import BESIDE
from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.steps.compare.rebuild import rebuild_night
from recon.steps.ground.environment import CLOCK_VARIABLE, environment_of, system_clock
from recon.store.nights import runs

NIGHTS, ORDERS_A_DAY = 45, 300
WINDOW_NIGHTS, WINDOW_DAYS = 30, 42
FIRST = date(2026, 1, 5)
NIGHT_AFTER = timedelta(hours=2)
ALLOWANCE = 1.5
"""Payments of the sandbox for each order: others failed, or are another account's."""
FULL_ORDERS, FULL_NIGHTS = 20_000, 365
GB = 10**9


@dataclass(frozen=True, slots=True)
class Played:
    """One night on the disk."""

    day: date
    window: int
    """Orders of its window."""
    folder: int
    """Bytes of its folder, without the workbook."""
    workbook: int
    lasting: int
    """Bytes of the rows of order files and of the tables, of all nights so far."""
    cpu: float


def days() -> Iterator[date]:
    """Business dates in their order."""
    calendar, day = BusinessCalendar.of(), FIRST
    while True:
        if calendar.is_business_day(day):
            yield day
        day += timedelta(days=1)


def write_day(
    folder: Path,
    day: date,
    *,
    payments: Sequence[dict[str, str]],
    effects: dict[str, list[dict[str, str]]],
) -> None:
    """The order file of a day, and what the books have of its orders."""
    refunded: Counter[str] = Counter()
    with (folder / "ledger.csv").open("a", newline="") as file:
        books = csv.DictWriter(file, fieldnames=LEDGER_HEADER, restval="", extrasaction="ignore")
        if not file.tell():
            books.writeheader()
        for payment in payments:
            for number, effect in enumerate(effects[payment["transaction_id"]]):
                units = units_of(effect)
                if effect["operation"] == "refund":
                    refunded[payment["transaction_id"]] += units
                if effect["operation"] in BOOKED:
                    books.writerow(
                        effect
                        | {
                            "entry_id": f"{payment['transaction_id']}-{number}",
                            "entry_type": effect["operation"],
                            "amount": format_minor_units(units, currency=effect["currency"]),
                            "booked_at": f"{day}T12:00:00Z",
                        }
                    )
    with (folder / INBOX / f"orders-{day}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=HEADER, restval="", extrasaction="ignore")
        writer.writeheader()
        for payment in payments:
            cells = {
                "amount": format_minor_units(units_of(payment), currency=payment["currency"]),
                "status": STATUS.get(payment["state"], payment["state"]),
                "ordered_at": f"{day}T10:00:00Z",
            }
            if payment["state"] == "partially_refunded":
                part = refunded[payment["transaction_id"]]
                cells["refund_amount"] = format_minor_units(part, currency=payment["currency"])
            writer.writerow(payment | cells)


def play(day: date, *, is_first: bool) -> None:
    """One live night of the real command, on its own morning."""
    night = BusinessCalendar.of().closes_at(day) + NIGHT_AFTER
    shift = math.ceil((night - system_clock()).total_seconds())
    account = ["--merchant", PLACE["merchant_id"], "--account", PLACE["account_id"]]
    words = ["nightly", *(["--opening"] if is_first else []), *account, "--business-date", str(day)]
    said = StringIO()
    with patch.dict(os.environ, {CLOCK_VARIABLE: str(shift)}), redirect_stdout(said):
        code = cli.main(words)
    if code not in ENDINGS:
        sys.exit(f"the night of {day} ended with {code}: {said.getvalue()[-2000:]}")


def bytes_of(folder: Path, day: date) -> tuple[int, int]:
    """Bytes of a night's folder without its workbook, and of that."""
    sizes: Counter[bool] = Counter()
    for path in (folder / BESIDE / "nights").glob(f"*/*/{day}/**/*"):
        if path.is_file():
            sizes[path.suffix == ".xlsx"] += path.stat().st_size
    return sizes[False], sizes[True]


def lasting(folder: Path) -> int:
    """Bytes of what is kept once for all nights."""
    facts = (folder / BESIDE / "facts").rglob("*.parquet")
    with closing(sqlite3.connect(next(folder.glob("*.sqlite")))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(path.stat().st_size for path in facts) + bytes_of_tables(folder).total()


def year(folder: Path, base_url: str, *, nights: int, orders: int) -> list[Played]:
    """Play the nights, each with the orders of its day."""
    effects: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for effect in lines_of(base_url, "effects"):
        effects[effect["transaction_id"]].append(effect)
    payments = [
        payment
        for payment in lines_of(base_url, "payments")
        if any(each["operation"][:9] == "authorise" for each in effects[payment["transaction_id"]])
    ]
    if len(payments) < nights * orders:
        sys.exit(f"the sandbox has {len(payments)} payments for {nights} days of {orders}")
    merchants, rules = folder / "merchants.toml", folder / "rules.toml"
    merchants.write_text(
        f'{merchants.read_text()}ledger = {{ path = "{folder / "ledger.csv"}" }}\n'
    )
    rules.write_text(
        f"{rules.read_text()}\n[window]\norders_days = {WINDOW_DAYS}\nledger_days = {WINDOW_DAYS}\n"
    )
    played = []
    for number, day in zip(range(nights), days(), strict=False):
        today = payments[number * orders : (number + 1) * orders]
        write_day(folder, day, payments=today, effects=effects)
        began = time.process_time()
        play(day, is_first=number == 0)
        window = min(number + 1, WINDOW_NIGHTS) * orders
        cpu = time.process_time() - began
        played.append(Played(day, window, *bytes_of(folder, day), lasting(folder), cpu))
        print(f"{played[-1]}", file=sys.stderr, flush=True)
    return played


def rebuilt() -> tuple[int, int]:
    """How many nights there are, and how many came to the same digest again."""
    with environment_of(os.environ, clock=system_clock) as environment:
        with environment.store.reading() as connection:
            names = [run.run_id for run in runs.finished(connection)]
        same = [rebuild_night(name, out=None, environment=environment).same for name in names]
    return len(names), sum(same)


def tell(played: Sequence[Played], *, orders: int) -> None:
    """What the nights took, and what a merchant of the full size takes by that."""
    windows = np.array([each.window for each in played])
    slope, fixed = np.polyfit(windows, np.array([each.folder for each in played]), 1)
    books, book = np.polyfit(windows, np.array([each.workbook for each in played]), 1)
    half = len(played) // 2
    grown = played[-1].lasting - played[half - 1].lasting
    new_order = grown / (orders * (len(played) - half))
    print(f"\n{len(played)} nights of {orders} new orders, window {played[-1].window} orders")
    print(f"- CPU of the last night: {played[-1].cpu:.1f} s")
    print(f"- bytes a night: {fixed:,.0f} and {slope:.1f} for each order of its window")
    print(f"- its workbook: {book:,.0f} and {books:.1f} for each order of its window")
    print(
        f"- rows of order files and tables: {new_order:.1f} bytes a new order, in the second half"
    )
    window = FULL_ORDERS * WINDOW_NIGHTS
    a_night = fixed + slope * window
    new = FULL_ORDERS * new_order
    print(
        f"computed for {FULL_NIGHTS} nights of {FULL_ORDERS:,} new orders, window {window:,}: "
        f"{FULL_NIGHTS * (a_night + new) / GB:.1f} GB "
        f"(with workbooks {FULL_NIGHTS * (a_night + new + book + books * window) / GB:.1f})"
    )


def main() -> None:
    """Play, measure, rebuild."""
    options = argparse.ArgumentParser(description="Bytes of a year of nights.")
    options.add_argument("--nights", type=int, default=NIGHTS)
    options.add_argument("--orders", type=int, default=ORDERS_A_DAY)
    asked = options.parse_args()
    wanted = math.ceil(asked.nights * asked.orders * ALLOWANCE)
    with sandbox(wanted) as base_url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with patch.dict(os.environ, variables(folder, base_url)):
            played = year(folder, base_url, nights=asked.nights, orders=asked.orders)
            tell(played, orders=asked.orders)
            every, same = rebuilt()
    print(f"rebuilt with the same digest: {same} of {every}")
    if same < every:
        sys.exit("a night was rebuilt with another digest")


if __name__ == "__main__":
    main()

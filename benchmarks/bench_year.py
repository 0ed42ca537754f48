"""What a year of nights takes on the disk, and whether each of them can be rebuilt.

`make bench NAME=year` (--nights, --orders a day; small without them, a tenth of a large
merchant is 2000). The payments are of the thirty days before the first night, as the gateway dates
them. The first night brings the orders of a window but for those that the later ones bring, each
the orders of one day; the last has a whole window, 30 days. So nothing has to be played until a
window is full, and what a night takes for each order that it asks about is that of any night.
"""

import argparse
import csv
import math
import os
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from time import process_time
from unittest.mock import patch

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
from played_merchant import INBOX, PLACE, sandbox, variables

from recon import cli
from recon.config.night_archive import DEFAULT_FOLDER
from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.sandbox.options import DEMO_BUSINESS_DATE
from recon.steps.compare.rebuild import rebuild_night
from recon.steps.runtime.environment import CLOCK_VARIABLE, environment_of, system_clock

NIGHTS, ORDERS_A_DAY = 9, 300
NIGHTS_MAX = 11
"""Later ones no longer have all payments in their window."""
WINDOW_NIGHTS, WINDOW_DAYS, AGED_DATES = 30, 42, 2
"""Orders of so many dates are asked about, and of two more that come of age (90 and 180 days)."""
NIGHT_AFTER = timedelta(hours=2)
ALLOWANCE = 1.05
"""Payments of the sandbox for each order: the others failed. Nearly all of them are taken, for the
first are of other states than the last."""
FULL_ORDERS, FULL_NIGHTS = 20_000, 365
GB = 10**9
Rows = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Day:
    """What a night brings."""

    orders: Rows
    booked: Rows


@dataclass(frozen=True, slots=True)
class Played:
    """One night on the disk."""

    day: date
    asked: int
    """Orders that it asked about."""
    rows: int
    """Bytes of its tables."""
    documents: int
    """Bytes of its manifests, statements and rules, which are the same at any size."""
    workbook: int
    lasting: int
    """Bytes of the rows of order files and of the tables, of all nights so far."""
    cpu: float
    is_same: bool
    """Whether it was rebuilt with the same digest."""


def business_days(since: date) -> Iterator[date]:
    """Business dates in their order."""
    calendar, day = BusinessCalendar.of(), since
    while True:
        if calendar.is_business_day(day):
            yield day
        day += timedelta(days=1)


def brought(payments: Sequence[dict[str, str]], *, effects: Mapping[str, Rows]) -> Day:
    """Rows of an order file, and what the ledger has of its orders."""
    refunded: Counter[str] = Counter()
    dated: dict[str, str] = {}
    booked: Rows = []
    for payment in payments:
        for effect in effects[payment["transaction_id"]]:
            units = units_of(effect)
            if effect["operation"].startswith("authorise"):
                dated[payment["transaction_id"]] = effect["committed_at"]
            if effect["operation"] == "refund":
                refunded[payment["transaction_id"]] += units
            if effect["operation"] in BOOKED:
                cells = {
                    "entry_type": effect["operation"],
                    "amount": format_minor_units(units, currency=effect["currency"]),
                    "booked_at": effect["committed_at"],
                }
                booked.append(effect | cells)
    return Day([_order(each, dated=dated, refunded=refunded) for each in payments], booked)


def _order(
    payment: dict[str, str], *, dated: Mapping[str, str], refunded: Mapping[str, int]
) -> dict[str, str]:
    cells = {
        "amount": format_minor_units(units_of(payment), currency=payment["currency"]),
        "status": STATUS.get(payment["state"], payment["state"]),
        "ordered_at": dated[payment["transaction_id"]],
    }
    if payment["state"] == "partially_refunded":
        part = refunded[payment["transaction_id"]]
        cells["refund_amount"] = format_minor_units(part, currency=payment["currency"])
    return payment | cells


def write_rows(path: Path, rows: Iterable[dict[str, str]], *, header: Sequence[str]) -> None:
    """A CSV file of these columns."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=header, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


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


def bytes_of(folder: Path, day: date) -> Counter[str]:
    """Bytes of a night's folder by the ending of its files."""
    sizes: Counter[str] = Counter()
    for path in (folder / DEFAULT_FOLDER / "nights").glob(f"*/*/{day}/**/*"):
        if path.is_file():
            sizes[path.suffix] += path.stat().st_size
    return sizes


def lasting(folder: Path) -> int:
    """Bytes of what is kept once for all nights."""
    facts = (folder / DEFAULT_FOLDER / "facts").rglob("*.parquet")
    with closing(sqlite3.connect(next(folder.glob("*.sqlite")))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(path.stat().st_size for path in facts) + bytes_of_tables(folder).total()


def year(folder: Path, base_url: str, *, nights: int, orders: int) -> Iterator[Played]:
    """Play the nights, each with the orders of its day, and rebuild each."""
    arriving = arrivals(base_url, nights=nights, orders=orders)
    merchants, rules = folder / "merchants.toml", folder / "rules.toml"
    merchants.write_text(
        f'{merchants.read_text()}ledger = {{ path = "{folder / "ledger.csv"}" }}\n'
    )
    rules.write_text(
        f"{rules.read_text()}\n[window]\norders_days = {WINDOW_DAYS}\nledger_days = {WINDOW_DAYS}\n"
    )
    booked: Rows = []
    asked = 0
    for night, day in zip(business_days(DEMO_BUSINESS_DATE), arriving, strict=False):
        write_rows(folder / INBOX / f"orders-{night}.csv", day.orders, header=HEADER)
        booked += day.booked
        write_rows(folder / "ledger.csv", booked, header=LEDGER_HEADER)
        began = process_time()
        play(night, is_first=not asked)
        cpu = process_time() - began
        asked += len(day.orders)
        sizes = bytes_of(folder, night)
        rows, workbook = sizes.pop(".parquet"), sizes.pop(".xlsx")
        size = (asked, rows, sizes.total(), workbook, lasting(folder))
        yield Played(night, *size, cpu, is_rebuilt(night))


def arrivals(base_url: str, *, nights: int, orders: int) -> list[Day]:
    """What each night brings: the payments of each day are dealt to all of them."""
    effects: defaultdict[str, Rows] = defaultdict(list)
    for number, effect in enumerate(lines_of(base_url, "effects")):
        effects[effect["transaction_id"]].append(effect | {"entry_id": f"E{number}"})
    payments = [
        payment
        for payment in lines_of(base_url, "payments")
        if any(each["operation"][:9] == "authorise" for each in effects[payment["transaction_id"]])
    ][: WINDOW_NIGHTS * orders]
    if len(payments) < WINDOW_NIGHTS * orders:
        sys.exit(f"the sandbox has {len(payments)} payments for {WINDOW_NIGHTS} days of {orders}")
    later = [payments[night::WINDOW_NIGHTS] for night in range(1, nights)]
    first = [each for at, each in enumerate(payments) if not 0 < at % WINDOW_NIGHTS < nights]
    return [brought(some, effects=effects) for some in (first, *later)]


def is_rebuilt(day: date) -> bool:
    """Whether a night comes to the same digest again, from its folder."""
    with environment_of(os.environ, clock=system_clock) as environment:
        return rebuild_night(str(day), out=None, environment=environment).same


def report(played: Sequence[Played], *, orders: int) -> None:
    """What the nights took, and what a merchant of the full size takes by that."""
    later, last = played[1:], played[-1]
    size = last.rows + last.documents
    new_order = (last.lasting - played[0].lasting) / (orders * len(later))
    print(f"\n{len(later)} nights of {orders} new orders, {last.asked:,} asked about in the last")
    print(f"- CPU of the last night: {last.cpu:.1f} s")
    print(f"- its bytes: {size:,}, {size / last.asked:.1f} for each of these orders")
    print(f"- its workbook: {last.workbook:,}")
    print(f"- rows of order files and tables: {new_order:.1f} bytes a new order")
    for dates in (WINDOW_NIGHTS, WINDOW_NIGHTS + AGED_DATES):
        # As many times as much: what is the same at any size counts as often, too.
        a_night = size / last.asked * dates * FULL_ORDERS + FULL_ORDERS * new_order
        print(
            f"computed for {FULL_NIGHTS} nights of {FULL_ORDERS:,} new orders that ask about "
            f"{dates} dates: {FULL_NIGHTS * a_night / GB:.1f} GB without workbooks"
        )


def main() -> None:
    """Play, rebuild, measure."""
    options = argparse.ArgumentParser(description="Bytes of a year of nights.")
    options.add_argument("--nights", type=int, default=NIGHTS)
    options.add_argument("--orders", type=int, default=ORDERS_A_DAY)
    given = options.parse_args()
    if not 1 < given.nights <= NIGHTS_MAX:
        options.error(f"play 2 to {NIGHTS_MAX} nights")
    played = []
    with (
        sandbox(math.ceil(WINDOW_NIGHTS * given.orders * ALLOWANCE)) as base_url,
        tempfile.TemporaryDirectory() as name,
        patch.dict(os.environ, variables(Path(name), base_url)),
    ):
        for night in year(Path(name), base_url, nights=given.nights, orders=given.orders):
            print(night, file=sys.stderr, flush=True)
            played.append(night)
    report(played, orders=given.orders)
    same = sum(night.is_same for night in played)
    print(f"rebuilt with the same digest: {same} of {len(played)}")
    if same < len(played):
        sys.exit("a night was rebuilt with another digest")


if __name__ == "__main__":
    main()

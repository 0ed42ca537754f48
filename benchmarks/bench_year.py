"""What a year of nights takes on the disk, and whether each of them can be rebuilt.

Run by `make bench-year` (YEAR_NIGHTS, YEAR_ORDERS a day; small without them, a tenth of a large
merchant is 2000). The first night brings the order files of a whole window, 30 business dates, and
of the dates that come of age behind it; each later night one more file. So every night has the
window of any night of a year, the books are those of its window, and what it takes is what each
night of a year takes: nothing has to be played until a window is full.
"""

import argparse
import csv
import math
import os
import sqlite3
import statistics
import sys
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from io import StringIO
from itertools import chain, islice, takewhile
from pathlib import Path
from time import process_time
from unittest.mock import patch

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
from recon.steps.ground.window import LOOK_BACK_DAYS

NIGHTS, ORDERS_A_DAY = 15, 300
WINDOW_NIGHTS, WINDOW_DAYS = 30, 42
FIRST = date(2026, 3, 2)
NIGHT_AFTER = timedelta(hours=2)
ORDERED_AT, BOOKED_AT = time(10, tzinfo=UTC), time(12, tzinfo=UTC)
ALLOWANCE = 1.5
"""Payments of the sandbox for each order: others failed, or are another account's."""
FULL_ORDERS, FULL_NIGHTS = 20_000, 365
GB = 10**9
Rows = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Day:
    """What a business date brings."""

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


def looked_at(nights: Sequence[date]) -> dict[date, list[date]]:
    """Night -> the business dates whose orders it asks about: its window, and those of an age."""
    calendar = BusinessCalendar.of()
    oldest = nights[0] - timedelta(days=LOOK_BACK_DAYS[-1] + 7)
    known = [*takewhile(lambda day: day <= nights[-1], business_days(oldest))]
    asked: dict[date, list[date]] = {}
    before = calendar.closes_at(nights[0]) - timedelta(days=1)
    for night in nights:
        as_of = calendar.closes_at(night)
        spans = [(as_of - timedelta(days=WINDOW_DAYS), as_of)]
        spans += [(before - timedelta(age), as_of - timedelta(age)) for age in LOOK_BACK_DAYS]
        asked[night] = [
            day
            for day in known
            if any(since < datetime.combine(day, ORDERED_AT) <= until for since, until in spans)
        ]
        before = as_of
    return asked


def day_of(day: date, *, payments: Sequence[dict[str, str]], effects: Mapping[str, Rows]) -> Day:
    """The rows of the order file of a date, and what the books have of its orders."""
    refunded: Counter[str] = Counter()
    booked: Rows = []
    for payment in payments:
        for effect in effects[payment["transaction_id"]]:
            units = units_of(effect)
            if effect["operation"] == "refund":
                refunded[payment["transaction_id"]] += units
            if effect["operation"] in BOOKED:
                cells = {
                    "entry_type": effect["operation"],
                    "amount": format_minor_units(units, currency=effect["currency"]),
                    "booked_at": datetime.combine(day, BOOKED_AT).isoformat(),
                }
                booked.append(effect | cells)
    return Day([_order(each, day=day, refunded=refunded) for each in payments], booked)


def _order(payment: dict[str, str], *, day: date, refunded: Mapping[str, int]) -> dict[str, str]:
    cells = {
        "amount": format_minor_units(units_of(payment), currency=payment["currency"]),
        "status": STATUS.get(payment["state"], payment["state"]),
        "ordered_at": datetime.combine(day, ORDERED_AT).isoformat(),
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
    for path in (folder / BESIDE / "nights").glob(f"*/*/{day}/**/*"):
        if path.is_file():
            sizes[path.suffix] += path.stat().st_size
    return sizes


def lasting(folder: Path) -> int:
    """Bytes of what is kept once for all nights."""
    facts = (folder / BESIDE / "facts").rglob("*.parquet")
    with closing(sqlite3.connect(next(folder.glob("*.sqlite")))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(path.stat().st_size for path in facts) + bytes_of_tables(folder).total()


def year(folder: Path, base_url: str, *, nights: int, orders: int) -> Iterator[Played]:
    """Play the nights, each with the orders of its day, and rebuild each."""
    asked = looked_at([*islice(business_days(FIRST), nights)])
    days = sorted({day for of_night in asked.values() for day in of_night})
    by_day = arriving(base_url, days, orders=orders)
    merchants, rules = folder / "merchants.toml", folder / "rules.toml"
    merchants.write_text(
        f'{merchants.read_text()}ledger = {{ path = "{folder / "ledger.csv"}" }}\n'
    )
    rules.write_text(
        f"{rules.read_text()}\n[window]\norders_days = {WINDOW_DAYS}\nledger_days = {WINDOW_DAYS}\n"
    )
    waiting = deque(days)
    for number, (night, of_night) in enumerate(asked.items()):
        while waiting and waiting[0] <= night:
            day = waiting.popleft()
            path = folder / INBOX / f"orders-{day}.csv"
            write_rows(path, by_day[day].orders, header=HEADER)
        booked = chain.from_iterable(by_day[day].booked for day in of_night)
        write_rows(folder / "ledger.csv", booked, header=LEDGER_HEADER)
        began = process_time()
        play(night, is_first=number == 0)
        cpu = process_time() - began
        sizes = bytes_of(folder, night)
        rows, workbook = sizes.pop(".parquet"), sizes.pop(".xlsx")
        size = (orders * len(of_night), rows, sizes.total(), workbook, lasting(folder))
        yield Played(night, *size, cpu, is_rebuilt(night))


def arriving(base_url: str, days: Sequence[date], *, orders: int) -> dict[date, Day]:
    """What each of these dates brings."""
    effects: defaultdict[str, Rows] = defaultdict(list)
    for number, effect in enumerate(lines_of(base_url, "effects")):
        effects[effect["transaction_id"]].append(effect | {"entry_id": f"E{number}"})
    payments = [
        payment
        for payment in lines_of(base_url, "payments")
        if any(each["operation"][:9] == "authorise" for each in effects[payment["transaction_id"]])
    ]
    if len(payments) < len(days) * orders:
        sys.exit(f"the sandbox has {len(payments)} payments for {len(days)} days of {orders}")
    return {
        day: day_of(day, payments=payments[at * orders : (at + 1) * orders], effects=effects)
        for at, day in enumerate(days)
    }


def is_rebuilt(day: date) -> bool:
    """Whether a night comes to the same digest again, from its folder."""
    with environment_of(os.environ, clock=system_clock) as environment:
        return rebuild_night(str(day), out=None, environment=environment).same


def tell(played: Sequence[Played], *, orders: int) -> None:
    """What the nights took, and what a merchant of the full size takes by that."""
    steady = played[1:]
    rows, documents, workbook, asked, cpu = (
        statistics.mean(getattr(each, name) for each in steady)
        for name in ("rows", "documents", "workbook", "asked", "cpu")
    )
    new_order = (played[-1].lasting - played[0].lasting) / (orders * len(steady))
    print(f"\n{len(steady)} nights of {orders} new orders, {asked:,.0f} orders asked about")
    print(f"- CPU of a night: {cpu:.1f} s")
    print(f"- bytes a night: {rows / asked:.1f} for each order asked about, {documents:,.0f} more")
    print(f"- its workbook: {workbook / asked:.1f} for each order asked about")
    print(f"- rows of order files and tables: {new_order:.1f} bytes a new order")
    times = FULL_ORDERS / orders
    whole = FULL_NIGHTS * (times * rows + documents + FULL_ORDERS * new_order)
    books = FULL_NIGHTS * times * workbook
    print(
        f"computed for {FULL_NIGHTS} nights of {FULL_ORDERS:,} new orders, "
        f"{times * asked:,.0f} asked about: {whole / GB:.1f} GB "
        f"(with workbooks {(whole + books) / GB:.1f})"
    )


def main() -> None:
    """Play, rebuild, measure."""
    options = argparse.ArgumentParser(description="Bytes of a year of nights.")
    options.add_argument("--nights", type=int, default=NIGHTS)
    options.add_argument("--orders", type=int, default=ORDERS_A_DAY)
    given = options.parse_args()
    asked = looked_at([*islice(business_days(FIRST), given.nights)])
    days = len({day for of_night in asked.values() for day in of_night})
    played = []
    with (
        sandbox(math.ceil(days * given.orders * ALLOWANCE)) as base_url,
        tempfile.TemporaryDirectory() as name,
        patch.dict(os.environ, variables(Path(name), base_url)),
    ):
        for night in year(Path(name), base_url, nights=given.nights, orders=given.orders):
            print(night, file=sys.stderr, flush=True)
            played.append(night)
    tell(played, orders=given.orders)
    same = sum(night.is_same for night in played)
    print(f"rebuilt with the same digest: {same} of {len(played)}")
    if same < len(played):
        sys.exit("a night was rebuilt with another digest")


if __name__ == "__main__":
    main()

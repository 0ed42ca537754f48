"""What every stage of a night costs: files, questions, money, comparison, workbook.

`make bench NAME=night` (--orders, a million without it). A whole night of the real command
against a sandbox in a process of its own: one order file of all payments, captures asked for of one
in twenty, a ledger file of all that happened; then the close of its month. The figures are those
that every night writes; read the CPU, which other work on the machine hardly changes.
"""

import argparse
import csv
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from played_merchant import (
    INBOX,
    PLACE,
    command,
    last_closed_date,
    night_command,
    sandbox,
    variables,
)

from recon.config.night_archive import DEFAULT_FOLDER
from recon.model.money import format_minor_units, parse_minor_units
from recon.steps.runtime import night_end

ORDERS = 1_000_000
CAPTURED_ONE_IN = 20
ENDINGS = {0, 3, 4}
"""Exit codes of a night that came to its end, whatever it found."""
STATUS = {"chargeback": "paid", "in_review": "pending", "expired": "authorised"}
"""A gateway's state -> the order's, where they differ."""
HEADER = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("transaction_id", "refund_amount", "action", "request_id"),
)
LEDGER_HEADER = (
    *("entry_id", "merchant_id", "account_id", "order_no", "entry_type", "currency", "amount"),
    *("booked_at", "transaction_id"),
)
BOOKED = {"capture", "refund", "chargeback"}
LARGEST_DISPLAYED = 15
"""Tables and files, each with its bytes an order."""
WINDOW = "[window]\norders_days = 60\nledger_days = 60\n"


def lines_of(base_url: str, what: str) -> Iterator[dict[str, str]]:
    """Everything of one kind that the sandbox knows of the account."""
    with urllib.request.urlopen(f"{base_url}/_sandbox/{what}") as reply:  # noqa: S310 - loopback
        for line in reply:
            row = json.loads(line)
            if row["account_id"] == PLACE["account_id"]:
                yield row


def write_ledger(path: Path, base_url: str) -> tuple[dict[str, str], Counter[str]]:
    """The ledger; when each payment was authorised, and the minor units refunded of each."""
    authorised: dict[str, str] = {}
    refunded: Counter[str] = Counter()
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=LEDGER_HEADER, extrasaction="ignore")
        writer.writeheader()
        for number, effect in enumerate(lines_of(base_url, "effects")):
            if effect["operation"].startswith("authorise"):
                authorised[effect["transaction_id"]] = effect["committed_at"]
            if effect["operation"] == "refund":
                refunded[effect["transaction_id"]] += units_of(effect)
            if effect["operation"] in BOOKED:
                writer.writerow(
                    effect
                    | {
                        "entry_id": f"E{number}",
                        "entry_type": effect["operation"],
                        "amount": format_minor_units(units_of(effect), currency=effect["currency"]),
                        "booked_at": effect["committed_at"],
                    }
                )
    return authorised, refunded


def units_of(row: dict[str, str]) -> int:
    """The amount of a line of the sandbox."""
    return parse_minor_units(row["amount"], currency=row["currency"])


def write_orders(path: Path, base_url: str, *, ledger: Path) -> None:
    """The shop's file of every payment, with some captures."""
    authorised, refunded = write_ledger(ledger, base_url)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=HEADER, restval="", extrasaction="ignore")
        writer.writeheader()
        for number, payment in enumerate(lines_of(base_url, "payments")):
            cells: dict[str, Any] = {
                "amount": format_minor_units(units_of(payment), currency=payment["currency"]),
                "status": STATUS.get(payment["state"], payment["state"]),
                "ordered_at": authorised.get(payment["transaction_id"], ""),
            }
            if not cells["ordered_at"]:
                continue  # a payment that failed: the shop has no order of it
            if payment["state"] == "partially_refunded":
                part = refunded[payment["transaction_id"]]
                cells["refund_amount"] = format_minor_units(part, currency=payment["currency"])
            if payment["state"] == "authorised" and number % CAPTURED_ONE_IN == 0:
                cells |= {"action": "capture", "request_id": f"C{number}"}
            writer.writerow(payment | cells)


def prepared(folder: Path, base_url: str) -> dict[str, str]:
    """A merchant with files and a ledger of every payment; the variables of its nights."""
    environment = os.environ | variables(folder, base_url)
    ledger = folder / "ledger.csv"
    merchants, rules = folder / "merchants.toml", folder / "rules.toml"
    merchants.write_text(
        f'{merchants.read_text()}archive = "{folder / "kept"}"\nledger = {{ path = "{ledger}" }}\n'
    )
    rules.write_text(f"{rules.read_text()}\n{WINDOW}")
    write_orders(folder / INBOX / "orders.csv", base_url, ledger=ledger)
    return environment


def one_night(folder: Path, base_url: str) -> dict[str, Any]:
    """The figures that the night wrote, and its whole CPU."""
    environment = prepared(folder, base_url)
    cpu_seconds = played(night_command(), environment=environment)
    (metrics,) = (folder / night_end.FOLDER).glob("*.json")
    kept = {"tables": bytes_of_tables(folder), "files": bytes_of_files(folder)}
    month = last_closed_date()[: len("2026-11")]
    close_seconds = played(command("close", month), environment=environment)
    cpu = {"cpu_seconds": cpu_seconds, "close_seconds": close_seconds}
    return json.loads(metrics.read_text()) | kept | cpu


def played(arguments: list[str], *, environment: dict[str, str]) -> float:
    """The CPU of a command with all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(  # noqa: S603 - our own
        arguments, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode not in ENDINGS:
        sys.exit(f"{arguments[-1]} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    print(ran.stdout.strip()[-1500:], file=sys.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def bytes_of_tables(folder: Path) -> Counter[str]:
    """Bytes of every table of the database, its indexes with it."""
    (path,) = folder.glob("*.sqlite")
    of_pages = (
        "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m USING (name)"
        " GROUP BY 1"
    )
    with closing(sqlite3.connect(path)) as database:
        return Counter(dict(database.execute(of_pages).fetchall()))


def bytes_of_files(folder: Path) -> Counter[str]:
    """Bytes of every file of the night's folder, by its name below it."""
    sizes: Counter[str] = Counter()
    for path in (folder / DEFAULT_FOLDER / "nights").rglob("*"):
        if path.is_file():
            sizes["/".join(path.parts[-2:])] += path.stat().st_size
    return sizes


def report(figures: dict[str, Any], *, orders: int) -> None:
    """A table in Markdown: CPU of every stage and its share of the night."""
    whole = figures["cpu_seconds"]
    measured = [*figures["stages"]]
    rest = whole - sum(stage["cpu_seconds"] for stage in measured)
    print(f"\nA night of {orders:,} payments: {whole:.1f} s of CPU\n")
    print("| stage | CPU s | share | peak MiB | wall s |\n|---|---|---|---|---|")
    for stage in measured:
        cpu = stage["cpu_seconds"]
        peak = stage["peak_rss_bytes"] / 2**20
        print(
            f"| {stage['stage']} | {cpu:.1f} | {cpu / whole:.0%} | {peak:,.0f} "
            f"| {stage['seconds']:.0f} |"
        )
    print(f"| start, end and between | {rest:.1f} | {rest / whole:.0%} | | |")
    close = figures["close_seconds"]
    print(f"| the close of its month | {close:.1f} | {close / whole:.0%} | | |")
    for what in ("tables", "files"):
        sizes: Counter[str] = figures[what]
        print(f"\nBytes an order in {what}: {sizes.total() / orders:.0f}\n")
        for name, size in sizes.most_common(LARGEST_DISPLAYED):
            print(f"- {name}: {size / orders:.1f}")


def main() -> None:
    """One night, and where its CPU went."""
    options = argparse.ArgumentParser(description="CPU of every stage of a night.")
    options.add_argument("--orders", type=int, default=ORDERS)
    orders = options.parse_args().orders
    with sandbox(orders) as base_url, tempfile.TemporaryDirectory() as name:
        report(one_night(Path(name), base_url), orders=orders)


if __name__ == "__main__":
    main()

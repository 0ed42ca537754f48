"""What comparing few orders costs, whatever they are: the fixed part of the engine and of a night.

`make bench NAME=engine`. One order that agrees in every leg, and one of each break that the
planted data know; a whole night of three captures, in this process after a first one, against a
sandbox in a process of its own; and 200,000 orders, which the fixed part must not be paid for by.
CPU of this process, the median of several runs; calls are those that cProfile counts of one run.
"""

import argparse
import cProfile
import csv
import gc
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from played_merchant import INBOX, PLACE, authorised, post, sandbox, variables

from recon.config.rules import Rules
from recon.matching.frames.sources import Sources
from recon.model.money import format_minor_units, parse_minor_units
from recon.model.nights import Mode, NightRequest
from recon.model.uptime import collect_seldom
from recon.proof.engine import reconcile
from recon.steps.night import whole_night as night
from recon.steps.runtime.environment import environment_of, system_clock
from reports.workbook_io import workbooks
from tests.injected import RULES, planted
from tests.injected.injected_files import AS_OF

FEW, MANY = 1, 200_000
SHARE_BROKEN = 100
NIGHT_ORDERS = 3
SANDBOX_ORDERS = 300
HEADER = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("refund_amount", "action", "action_amount", "action_reason", "request_id"),
)
REPEATS = 9
REPEATS_OF_MANY = 3
REPEATS_OF_NIGHTS = 5


def report(what: str, run: Callable[[], object], *, repeats: int, calls: bool = True) -> None:
    """Print the median CPU of some runs after a first one, and the calls of one more."""
    run()
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        taken.append(time.process_time() - began)
    counted = ""
    if calls:
        profile = cProfile.Profile()
        profile.runcall(run)
        counted = f"{pstats.Stats(profile).total_calls:>12,}"  # type: ignore[attr-defined] # stubs
    print(f"{what:<58}{statistics.median(taken):>8.3f}{min(taken):>8.3f}{counted}", flush=True)


def compared(sources: Sources, *, rules: Rules) -> None:
    """A reconciliation with all of its frames, and its digest."""
    result = reconcile(sources, rules=rules, as_of=AS_OF)
    _ = (result.matches, result.digest)


def write_orders(path: Path, base_url: str, *, skip: int) -> None:
    """An order file that captures three authorised payments."""
    rows = authorised(base_url)[skip : skip + NIGHT_ORDERS]
    now = system_clock().isoformat()
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=HEADER, restval="")
        writer.writeheader()
        for row in rows:
            units = parse_minor_units(row["amount"], currency=row["currency"])
            amount = format_minor_units(units, currency=row["currency"])
            cells = {name: row[name] for name in ("order_no", "currency")} | PLACE
            cells |= {"amount": amount, "status": "paid", "ordered_at": now, "action": "capture"}
            writer.writerow(cells)


def one_night(base_url: str) -> float:
    """The CPU of a night of three orders with an empty database, its workbook among it."""
    post(base_url, "reset", {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = variables(folder, base_url)
        write_orders(folder / INBOX / "orders.csv", base_url, skip=0)
        date = (system_clock() - timedelta(days=1)).date()
        request = NightRequest(
            PLACE["merchant_id"], PLACE["account_id"], date, Mode.LIVE, opening=True
        )
        gc.collect()  # the garbage of the night before is not this one's
        began = time.process_time()
        with environment_of(given, clock=system_clock) as environment:
            night.run(
                request, environment=environment, workbooks=workbooks(), progress=lambda _: None
            )
        return time.process_time() - began


def main() -> None:
    """The engine, then the night, then many orders."""
    options = argparse.ArgumentParser(description="The fixed cost of the engine and of a night.")
    options.add_argument("--many", type=int, default=MANY)
    given = options.parse_args()
    collect_seldom()  # as every command does
    rules = Rules.of(RULES, source="planted")
    print(f"{'CPU s':<58}{'median':>8}{'least':>8}{'calls':>12}")
    agreeing = planted(size=FEW, broken=0, settled=True).sources
    report("one order, all of it", lambda: compared(agreeing, rules=rules), repeats=REPEATS)
    broken = planted(size=SHARE_BROKEN, broken=SHARE_BROKEN, settled=True).sources
    sentence = f"{len(broken.orders)} orders with a break each"
    report(sentence, lambda: compared(broken, rules=rules), repeats=REPEATS)
    with sandbox(SANDBOX_ORDERS) as base_url:
        one_night(base_url)
        nights = [one_night(base_url) for _ in range(REPEATS_OF_NIGHTS)]
    middle, least = statistics.median(nights), min(nights)
    print(f"{f'a night of {NIGHT_ORDERS} orders':<58}{middle:>8.3f}{least:>8.3f}", flush=True)
    many = planted(size=given.many, broken=given.many // SHARE_BROKEN, settled=False).sources
    sentence = f"{given.many:,} orders, one in {SHARE_BROKEN} with a break"
    report(sentence, lambda: compared(many, rules=rules), repeats=REPEATS_OF_MANY, calls=False)


if __name__ == "__main__":
    main()

"""What it costs to state and prove a month, beside what happened in it.

Run by `make bench-month`. The sealed files of a month are written from a truth that was made
beforehand; a process of its own reads and proves them, in pandas and in SQL.
"""

import argparse
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import date
from pathlib import Path

from recon.model.business_date import BusinessCalendar
from recon.period.business_month import BusinessMonth
from recon.period.month_statement import MOVED, MonthFrame, statement_of
from recon.period.statement_in_sql import proven_by_sql
from tests.recon.period.month_folders import due_of, nights_of
from tests.recon.period.month_truth import PLACE, MonthTruth
from tests.recon.period.test_truth_of_months import NAMES

ORDERS_A_DAY = 1_500
SEED = 7
FIRST = date(2026, 11, 1)
KIB = 1024


def state(path: Path) -> None:
    """State and prove a month; CPU seconds of both engines and the peak of memory, in a line."""
    nights, due, zone, hour = pickle.loads(path.read_bytes())  # noqa: S301 - written below
    calendar = BusinessCalendar.of(timezone=zone, cut_off=f"{hour}:00")
    frame = MonthFrame(
        month=BusinessMonth.named(f"{FIRST:%Y-%m}"),
        account=PLACE,
        calendar=calendar,
        due=due,
        names=NAMES,
    )
    start = time.process_time()
    statement = statement_of(frame, nights=nights)
    stated = time.process_time()
    proven = proven_by_sql(statement, nights=nights, frame=frame)
    end = time.process_time()
    if not all(each.holds for each in proven.equations) or proven.unproven_figures:
        sys.exit("the month is not proven: this says nothing of its cost")
    moved = sum(figure.count for figure in proven.figures if figure.at == MOVED)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB
    sys.stdout.write(
        f"{moved} movements of {len(nights)} nights: pandas {stated - start:.1f} CPU s, "
        f"SQL {end - stated:.1f} CPU s, {peak:.0f} MiB\n"
    )


def write(folder: Path, *, orders: int) -> Path:
    """The nights of a month in a folder, and the file that says which they are."""
    month = folder / "month.pickle"
    if month.exists():
        return month
    truth = MonthTruth(FIRST, SEED, per_day=orders)
    nights, played = nights_of(truth, folder), truth.calendar
    # Without the truth: what happened is no part of what a statement holds.
    known = (nights, due_of(truth, nights), played.zone, played.hour)
    month.write_bytes(pickle.dumps(known))
    return month


def main() -> None:
    """Write a month, then state it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=ORDERS_A_DAY)
    parser.add_argument("--month", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder in which the month stays")
    asked = parser.parse_args()
    if asked.month:
        state(asked.month)
        return
    with ExitStack() as stack:
        folder = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        month = write(folder, orders=asked.orders)
        command = [sys.executable, __file__, "--month", str(month)]
        subprocess.run(command, check=True)  # noqa: S603 - our own


if __name__ == "__main__":
    main()

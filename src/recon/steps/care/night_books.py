"""The journals of a night, handed out before their month is closed or after.

A night dates all that it proposes with its own day. What moved in the month before is that month's:
two people sign on which day it is booked, by what is known then, late files with it; and nothing
here knows whether the books of that month still take an entry. So a night keeps back what may be of
the last month that ended, until its close hands it out with its day; or a person says that it is to
be booked on the night's.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from recon.matching.breaks.result import Reconciliation
from recon.model.nights import Mode
from recon.period.business_month import BusinessMonth
from recon.period.month_statement import PERMANENT
from recon.steps.care.month_books import sealed_lines, sums_by_journal
from recon.steps.compare.journals import Handed, export_journals
from recon.steps.ground.environment import Environment
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth

OF_FEES = "FEE_"
"""How codes of breaks begin whose journals a close leaves on their own day: fees are accrued."""


def export_of_night(
    run_id: str,
    *,
    out: Path,
    environment: Environment,
    again: Sequence[str] = (),
    is_of_night: bool = False,
) -> Handed:
    """Write the journals of a night that are of no earlier month, and remember that they left.

    Args:
        run_id: the newest run of a night.
        out: folder of the file.
        environment: what the step works with.
        again: journals whose file was lost, by their ids.
        is_of_night: book all on the night's own day, whatever month it is of.

    Raises:
        UsageError: see `export_journals`.
        OutputError: the file cannot be written; nothing was handed out.
        ArchiveError: a sealed folder is gone, changed, or cannot be reached.
    """

    def waits(run: Run, result: Reconciliation) -> Mapping[str, str]:
        return {} if is_of_night else dict(_of_month(run, result, environment=environment))

    return export_journals(run_id, out=out, environment=environment, again=again, waits=waits)


def _of_month(
    run: Run, result: Reconciliation, *, environment: Environment
) -> Iterator[tuple[str, str]]:
    """Journals that are of the month before the night's, and what hands them out."""
    month = BusinessMonth.named(f"{run.business_date:%Y-%m}").month_before
    account = (run.merchant_id, run.account_id)
    with environment.store.reading() as connection:
        closed = closed_months.state_of(connection, account, month=month.name).closed
        nights = runs.last_finished(connection, merchant_id=account[0], account_id=account[1])
    is_played = any(
        month.first <= day <= month.last and night.mode is Mode.LIVE
        for day, night in nights.items()
    )
    by_period = f"`recon journals export --period {month.name}`"
    if closed is not None:
        for name in _sealed(closed, result=result, month=month, environment=environment):
            yield name, f"two people signed it with its day in {month.name}: {by_period}"
    elif is_played:
        age = environment.settings.rules.business_calendar.business_days_between(
            month.last, end=run.business_date
        )
        for name in _may_be_of(result, age=age, last=month.last.isoformat()):
            why = (
                f"it may be of {month.name}, which nobody closed: the close hands it out with its "
                f"day ({by_period}), --day-of-night books it on {run.business_date}"
            )
            yield name, why


def _may_be_of(result: Reconciliation, *, age: int, last: str) -> list[str]:
    """Journals of breaks as old as a month's last day, or shown by then.

    Days off after it share its age: what is of them waits as well, and keeps its day at the close.
    """
    breaks = result.breaks
    is_old = breaks["age_days"].fillna(0).ge(age) | breaks["first_seen"].astype("str").le(last)
    old = breaks.loc[is_old & ~breaks["code"].astype("str").str.startswith(OF_FEES), "break_id"]
    return _names(result.journals[result.journals["break_id"].isin(old)])


def _sealed(
    closed: ClosedMonth, *, result: Reconciliation, month: BusinessMonth, environment: Environment
) -> list[str]:
    """Journals that the night proposes as the close has them, on a day of the month in part."""
    lines = [
        line for line in sealed_lines(closed, environment=environment) if line.kind == PERMANENT
    ]
    dated = {line.journal_id for line in lines if line.day <= month.last}
    then, now = sums_by_journal(lines), sums_by_journal(result.journals)
    return sorted(name for name in dated if now.get(name) == then[name])


def _names(journals: pd.DataFrame) -> list[str]:
    return sorted({*journals["journal_id"].astype("str")})

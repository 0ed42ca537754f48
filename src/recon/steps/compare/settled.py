"""What a night compares of its settlement files, and which days they prove.

A payment is unsettled only where files tell of the day by which it had to be settled. A file that
was expected and is not there, or could not be read, ends that proof at the day before it: what was
due later waits, however long, and is never a break.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta

import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.sources import SettledDays
from recon.steps.files.never_read import WHOLE_FILE
from recon.steps.ground.window import ledger_start
from recon.store import Connection
from recon.store.nights import settlement_rows
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settled_lines import AskedFor, NightLines, volumes_of


def settled_since(run: Run, *, rules: Rules) -> str:
    """The first day whose lines a night compares; older ones only of payments it asks about."""
    return ledger_start(run, rules=rules).date().isoformat()


def settled_days(connection: Connection, run: Run, *, until: int) -> SettledDays | None:
    """Which days the files prove; None where none has ever told of the account."""
    first, last = settlement_rows.days_told(connection, run, until=until)
    if not first:
        return None
    missing = settlement_rows.missing(connection, run, whole_file=WHOLE_FILE, until=until)
    waits_for = ""
    if missing:
        business_date, waits_for = missing[0]
        last = min(last, (business_date - timedelta(days=1)).isoformat())
    return SettledDays(first, last, waits_for)


def lines_of_night(
    connection: Connection,
    run: Run,
    *,
    asked: AskedFor,
    until: int,
    rules: Rules,
    storages: StorageOf,
) -> NightLines:
    """Which lines a night compares, as of the last file that counts.

    Raises:
        ArchiveError: they cannot be read.
    """
    return NightLines.of(
        connection,
        run,
        since=settled_since(run, rules=rules),
        asked=replace(asked, by_payment=rules.ledger.fees_per == "payment"),
        storages=storages,
        until=until,
    )


def month_volumes(
    connection: Connection, lines: NightLines, *, days: Iterable[str], until: int
) -> pd.DataFrame:
    """What the months came to that price the lines of some days."""
    run, storages = lines.run, lines.storages
    first = min(days, default=run.business_date.isoformat())
    oldest = date.fromisoformat(first).replace(day=1)
    since = (oldest - timedelta(days=1)).replace(day=1)
    return volumes_of(connection, run, since=since.isoformat(), storages=storages, until=until)

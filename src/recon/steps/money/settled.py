"""What a night compares of its settlement files, and which days they prove.

A payment is unsettled only where files tell of the day by which it had to be settled. A file that
was expected and is not there, or could not be read, ends that proof at the day before it: what was
due later waits, however long, and is never a break.
"""

from datetime import date, timedelta

import pandas as pd

from recon.config.fee_contract import FeeContract
from recon.config.rules import Rules
from recon.matching.frames.coding import is_word
from recon.matching.frames.sources import SettledDays
from recon.matching.sides.contract_lines import PRICED
from recon.steps.files.never_read import WHOLE_FILE
from recon.steps.ground.window import ledger_start
from recon.store import Connection
from recon.store.nights import settlement_rows, settlement_volumes
from recon.store.nights.runs import Run


def settled_since(run: Run, *, rules: Rules) -> str:
    """The first day whose lines a night compares; older ones only of payments it asks about."""
    return ledger_start(run, rules=rules).date().isoformat()


def settled(
    connection: Connection,
    run: Run,
    *,
    asked: "pd.Series[str]",
    gateway: pd.DataFrame,
    until: int,
    rules: Rules,
) -> tuple[pd.DataFrame, SettledDays] | tuple[None, None]:
    """SETTLEMENT_COLUMNS and the days they prove, as of the last file that counts.

    Nothing where no file has ever told of the account.
    """
    first, last = settlement_rows.days_told(connection, run, until=until)
    if not first:
        return None, None
    since = settled_since(run, rules=rules)
    lines = settlement_rows.lines_of(
        connection,
        run,
        since=since,
        asked=settlement_rows.AskedFor({*asked}, {*gateway["transaction_id"]}),
        by_payment=rules.ledger.fees_per == "payment",
        until=until,
    )
    missing = settlement_rows.missing(connection, run, whole_file=WHOLE_FILE, until=until)
    waits_for = ""
    if missing:
        business_date, waits_for = missing[0]
        last = min(last, (business_date - timedelta(days=1)).isoformat())
    batches = settlement_rows.batches_of(connection, run, since=since, until=until)
    return lines, SettledDays(first, last, batches, waits_for)


def month_volumes(
    connection: Connection,
    run: Run,
    *,
    lines: pd.DataFrame | None,
    until: int,
    contract: FeeContract | None,
) -> pd.DataFrame | None:
    """What the months that price these lines came to; None where no contract asks for it."""
    if lines is None or contract is None or not contract.asks_months:
        return None
    days = lines["settled_on"][is_word(lines["entry_type"], *PRICED)]
    first = min(days, default=run.business_date.isoformat())
    oldest = date.fromisoformat(first).replace(day=1)
    since = (oldest - timedelta(days=1)).replace(day=1)
    return settlement_volumes.volumes_of(connection, run, since=since.isoformat(), until=until)

"""Ledger entries that are no longer there: deleted, where the books should have reversed them.

The entries of the newest earlier night whose books were read whole are looked for in tonight's, as
far back as tonight's books reach. The night that first lacks one tells it, on page one and beside
its order; the month takes it back (`recon statement`).
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.fingerprints import are_among, numbers_of
from recon.matching.frames.names import is_among
from recon.matching.frames.sources import VANISHED_COLUMNS, frame_of
from recon.model.errors import NightLetGoError
from recon.model.money import format_minor_units
from recon.privacy.shown_text import scrubbed
from recon.proof.night_tables import frame_of_table
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_answers import asked_keys
from recon.steps.ground.kept_books import entry_batches
from recon.steps.ground.window import ledger_start
from recon.store import Connection
from recon.store.nights import break_rows, ledger_rows, runs
from recon.store.nights.answer_parts import OWN_PHASES
from recon.store.nights.runs import Run

EARLIER_NIGHTS_MAX = 31
"""How many nights without whole books may lie between tonight's and those that are looked into."""
TOLD_MAX = 3
"""So many entries are named on page one; of more, how many there are."""


def vanished_entries(
    connection: Connection, run: Run, *, before: Run, rules: Rules, environment: Environment
) -> pd.DataFrame:
    """VANISHED_COLUMNS of the entries that an earlier night read and this one has no more.

    None where a row of tonight's books was refused, which may be one of them, or where the earlier
    night was let go.

    Args:
        connection: the store.
        run: this night.
        before: the night that it carries forward.
        rules: the window of the ledger.
        environment: where the archive is.

    Raises:
        ArchiveError: the books of one of both cannot be read.
    """
    gone = [frame_of((), columns=VANISHED_COLUMNS)]
    earlier = _newest_whole(connection, before)
    if earlier is None or not ledger_rows.is_read_whole(connection, run.run_id):
        return gone[0]
    read = partial(_entries, run=run, environment=environment)
    names = ("entry_id", "reverses_entry_id")
    here = [numbers_of(frame[name]) for frame in read(connection, run, names) for name in names]
    known = np.sort(np.concatenate([np.zeros(0, np.uint64), *here]))
    since = ledger_start(run, rules=rules)
    asked: list[str] | None = None
    try:
        for frame in read(connection, earlier, (*VANISHED_COLUMNS, "booked_at")):
            rows = frame[~are_among(numbers_of(frame["entry_id"]), known)]
            is_old = rows["booked_at"].lt(since)
            if is_old.any():
                if asked is None:
                    keys = asked_keys(connection, run, phases=OWN_PHASES, environment=environment)
                    asked = keys.to_pylist()
                rows = rows[~is_old | is_among(rows["order_no"], asked)]
            gone.append(rows[[*VANISHED_COLUMNS]])
    except NightLetGoError:
        return gone[0]
    # Of two contents under one number neither counted.
    every = pd.concat(gone, ignore_index=True).drop_duplicates()
    return every.drop_duplicates("entry_id", keep=False, ignore_index=True)


def vanished_told(entries: pd.DataFrame) -> list[str]:
    """A sentence for page one where entries are no longer there (VANISHED_COLUMNS)."""
    if entries.empty:
        return []
    named = [
        f"{scrubbed(row['entry_id'])} ({scrubbed(row['order_no']) or 'no order'}, "
        f"{format_minor_units(row['amount'], currency=row['currency'])} {row['currency']})"
        for row in entries.sort_values("entry_id").head(TOLD_MAX).to_dict("records")
    ]
    more = f" and {len(entries) - TOLD_MAX:,} more" if len(entries) > TOLD_MAX else ""
    sentence = (
        "Ledger entries that an earlier night counted are no longer there, and nothing reverses "
        f"them: {', '.join(named)}{more}. Book a reversal where an entry was wrong; what is "
        "deleted is taken back in the month by tonight's date."
    )
    return [sentence]


def _newest_whole(connection: Connection, before: Run) -> Run | None:
    """The newest night from `before` back whose books were read whole."""
    for number, run_id in enumerate(break_rows.nights_before(connection, before)):
        if number < EARLIER_NIGHTS_MAX and ledger_rows.is_read_whole(connection, run_id):
            return runs.get(connection, run_id)
    return None


def _entries(
    connection: Connection,
    night: Run,
    columns: Sequence[str],
    *,
    run: Run,
    environment: Environment,
) -> Iterator[pd.DataFrame]:
    """Entries of the account in the books of a night, some at a time."""
    named = ("merchant_id", "account_id")
    columns = [*{**dict.fromkeys(named), **dict.fromkeys(columns)}]
    for table in entry_batches(connection, night, columns=columns, environment=environment):
        frame = frame_of_table(table)
        yield frame[frame[named[0]].eq(run.merchant_id) & frame[named[1]].eq(run.account_id)]

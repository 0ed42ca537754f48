"""The orders that a night compares, from the file that it sealed before money moved.

A million orders are read out of the database once a night. Once more they are read only where a
file came since, or where other keys were asked for.
"""

import pandas as pd
import pyarrow as pa

from recon.archive.rows_file import read_rows
from recon.archive.step_folder import Sealed, whole_file
from recon.archive.storage import reachable
from recon.matching.frames.sources import ORDER_COLUMNS
from recon.model.errors import ArchiveBrokenError
from recon.proof.night_tables import frame_of_table
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import INPUTS
from recon.steps.ground.sealed_night import UNREAD, SealedNight, sealed_night
from recon.store import Connection
from recon.store.nights.runs import Run


def sealed_orders(
    connection: Connection,
    run: Run,
    *,
    until: int,
    asked: "pd.Series[str]",
    environment: Environment,
) -> pd.DataFrame | None:
    """ORDER_COLUMNS by key; None where not these lie there.

    Args:
        connection: the store.
        run: whose orders they are.
        until: the last file that counts.
        asked: what the run asked for, sorted.
        environment: where the archive is.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    try:
        night = sealed_night(connection, run, environment=environment)
        inputs = night.steps.get(INPUTS)
        if inputs is None or inputs.manifest.about.last_file != until:
            return None
        universe, orders = (
            _own(_table(night, inputs, name=name), run=run) for name in ("universe", "orders")
        )
    except ArchiveBrokenError:
        # What is not as it was sealed is nobody's: the database is asked, and the proof says so.
        return None
    if not asked.reset_index(drop=True).equals(universe["order_no"]):
        return None
    return orders[[*ORDER_COLUMNS]]


def _own(table: pa.Table, *, run: Run) -> pd.DataFrame:
    """Without the rows of the merchant's other accounts, which join a comparison by themselves."""
    rows = frame_of_table(table)
    return rows[rows["account_id"].eq(run.account_id)].reset_index(drop=True)


def _table(night: SealedNight, inputs: Sealed, *, name: str) -> pa.Table:
    """A table that the inputs hold themselves, whatever was compared in its place."""
    file = f"{name}.parquet"
    with reachable(night.storage, doing=UNREAD):
        content = whole_file(night.storage, inputs, name=file)
    return read_rows(content, name=file)

"""Settlement files as a night keeps them: planned, then stored in one turn."""

from collections.abc import Sequence

import pandas as pd

from recon.matching.frames.sources import LoadCounts
from recon.model.words import Reject, SourceFile
from recon.store.database.engine import Store
from recon.store.nights import settlement_plan, settlement_rows
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from tests.recon.store.kept_files import AT


def keep_lines(
    store: Store,
    run: Run,
    lines: pd.DataFrame,
    *,
    source: SourceFile,
    storages: StorageOf,
    rejects: Sequence[Reject] = (),
) -> LoadCounts:
    """Keep one version of a file with these lines (SETTLEMENT_COLUMNS)."""
    with store.writing() as connection:
        planned = settlement_plan.plan(
            connection, run, lines=lines, source=source, storages=storages
        )
        return settlement_rows.save_file(connection, run, planned=planned, rejects=rejects, at=AT)

"""Order files as a night keeps them: planned, then stored in one turn."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from recon.archive.local_storage import LocalStorage
from recon.matching.frames.sources import LoadCounts
from recon.model.words import Reject, SourceFile
from recon.store.database.engine import Store
from recon.store.nights import order_plan, order_rows
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


def archive_of(folder: LocalStorage) -> StorageOf:
    """One archive for every account."""
    return lambda _: folder


def keep(
    store: Store,
    run: Run,
    *frames: pd.DataFrame,
    source: SourceFile,
    storages: StorageOf,
    rejects: Sequence[Reject] = (),
) -> LoadCounts:
    """Keep one version of a file, its rows in these parts; none of them asks for anything."""

    def parts() -> list[tuple[pd.DataFrame, pd.DataFrame]]:
        return [(frame, frame.iloc[:0]) for frame in frames]

    with store.writing() as connection:
        planned = order_plan.plan(connection, run, source=source, parts=parts, storages=storages)
        return order_rows.save_file(
            connection, run, planned=planned, parts=parts, rejects=rejects, at=AT
        )

"""Order files as a night keeps them: written, then stored in one turn."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from recon.archive.schemas import ORDER_FACTS, SETTLED_FACTS
from recon.archive.storage import LocalStorage
from recon.model.terms import Reject, SourceFile
from recon.store.database.engine import Store
from recon.store.nights import facts_rows, order_rows
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import Run

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


def archive_of(folder: LocalStorage) -> StorageOf:
    return lambda _: folder


def sender_of(run: Run, name: str) -> str:
    """Of a file that speaks for itself."""
    return f"{run.merchant_id}/{run.account_id}/{name}"


def save(
    store: Store,
    run: Run,
    *frames: pd.DataFrame,
    source: SourceFile,
    storages: StorageOf,
    rejects: Sequence[Reject] = (),
) -> None:
    sender = sender_of(run, source.name)

    def parts() -> list[tuple[pd.DataFrame, pd.DataFrame]]:
        return [(frame, frame.iloc[:0]) for frame in frames]

    storage = storages(run.account)
    facts = facts_rows.written(run.business_date, frames, schema=ORDER_FACTS, storage=storage)
    facts = facts and facts.by(sender)
    with store.writing() as connection:
        order_rows.save_file(
            connection, run, source=source, facts=facts, parts=parts, rejects=rejects, at=AT
        )


def keep_lines(
    store: Store,
    run: Run,
    lines: pd.DataFrame,
    *,
    source: SourceFile,
    storages: StorageOf,
    rejects: Sequence[Reject] = (),
) -> None:
    storage = storages(run.account)
    facts = facts_rows.written(run.business_date, [lines], schema=SETTLED_FACTS, storage=storage)
    with store.writing() as connection:
        order_rows.save_file(connection, run, source=source, facts=facts, rejects=rejects, at=AT)

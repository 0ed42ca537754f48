"""Settlement files as a night keeps them: written, then stored in one turn."""

from collections.abc import Sequence

import pandas as pd

from recon.model.words import Reject, SourceFile
from recon.store.database.engine import Store
from recon.store.nights import settlement_rows
from recon.store.nights.facts_rows import StorageOf
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
) -> None:
    storage = storages(run.account)
    settled = settlement_rows.written(lines, run=run, storage=storage)
    with store.writing() as connection:
        settlement_rows.save_file(
            connection, run, source=source, settled=settled, rejects=rejects, at=AT
        )

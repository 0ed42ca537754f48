"""After a file was stored: the keys of many files of an inbox lie in few."""

from recon.model.words import SourceKind
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store.database.engine import Turn
from recon.store.nights import facts_keys
from recon.store.nights.runs import Run

MERGES_MAX = 10
"""So often keys are merged after one file; the next one goes on."""


def merge_keys(run: Run, *, kind: SourceKind, environment: Environment) -> None:
    """Merge what there is to merge of one kind of the account's files.

    Raises:
        ArchiveError: the archive cannot be written, or a file of keys cannot be read.
        OutputError: there is no room to lay the keys aside.
    """
    inbox, store = (run.merchant_id, run.account_id), environment.store
    for _ in range(MERGES_MAX):
        with store.reading() as connection:
            merged = facts_keys.merge(
                connection, inbox, kind=kind, storages=storages_of(environment)
            )
        if merged is None:
            return
        environment.crash_point("merged the keys")
        with store.writing(turn=Turn.ORDERS) as connection:
            facts_keys.save(connection, merged, at=environment.clock())

"""The words of a result as the history binds them, against what the database says now.

Its verdict, exposure and scope of assurance stand in no file of the night's folder.
"""

import hashlib
from collections.abc import Iterator

from sqlalchemy import Connection, select

from recon.store.nights.bound_runs import ENTITY, RECONCILED, data_of
from recon.store.schema import history, result_summary

BOUND_BY = "summary_sha256"
"""What an event `reconciled` calls the hash."""


def hash_of(document: str) -> str:
    """The SHA-256 of a summary as it is stored."""
    return hashlib.sha256(document.encode()).hexdigest()


def changed_summaries(connection: Connection, *, run_id: str = "") -> Iterator[str]:
    """Every result, or that of one run, whose words are not those that were bound, in words."""
    wanted = (history.c.entity == ENTITY, history.c.event == RECONCILED)
    events = select(history.c.entity_id, history.c.data).where(*wanted)
    kept = select(result_summary.c.run_id, result_summary.c.document)
    if run_id:
        events = events.where(history.c.entity_id == run_id)
        kept = kept.where(result_summary.c.run_id == run_id)
    bound = {
        str(event.entity_id): data_of(event.data).get(BOUND_BY, "")
        for event in connection.execute(events.order_by(history.c.sequence))
    }
    stored = {str(row.run_id): str(row.document) for row in connection.execute(kept)}
    for name, sha256 in sorted(bound.items()):
        document = stored.get(name)
        if document is None or hash_of(document) != sha256:
            now = "is gone" if document is None else "says something else than that night"
            yield (
                f"run {name}: what the database keeps of its result (verdict, rows, money at risk, "
                f"scope) {now}; it was changed past the code"
            )

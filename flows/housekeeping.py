"""Flow `housekeeping`: show or delete what is older than retention.toml allows."""

import os
from typing import Annotated, Any

from prefect.artifacts import create_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field

from flows.night_date import refuse_schedule
from flows.outcome import as_flow
from recon.config.retention import NightSchedule, RetentionFile
from recon.config.settings import config_dir_of, load_file
from tasks.night_tasks import echo, opened_environment

PersonName = Annotated[str, Field(max_length=100)]


def _schedule() -> NightSchedule | None:
    config_dir = config_dir_of(os.environ)
    return load_file("retention", RetentionFile, config_dir=config_dir).retention.schedule


@as_flow("housekeeping", named="housekeeping, delete: {delete}")
def housekeeping(*, delete: bool = False, name: PersonName = "") -> State[Any]:
    """Show what is older than retention.toml keeps; delete it where that is asked for.

    The journal, the history, breaks, totals, manifests, signed workbooks and a night's newest are
    never deleted.

    Args:
        delete: False only shows what would go.
        name: Who deletes; kept in the history. Needed for deleting.
    """
    refuse_schedule("delete", "name", declared=_schedule)
    with opened_environment() as environment:
        from recon.steps.admin import housekeeping as keeping

        expired, stayed = keeping.housekeeping(environment, by=name if delete else None)
        for kind in expired:
            echo(f"{'Deleted: ' if delete and kind.count else ''}{kind}")
            for note in kind.notes:
                echo(note)
        rows = [
            {
                "kind": kind.kind,
                "kept for days": kind.days,
                "older": kind.count,
                "bytes": kind.size_bytes,
            }
            for kind in expired
        ]
        count = sum(kind.count for kind in expired)
        sentence = (
            f"{count} {'deleted' if delete else 'older than they are kept; nothing was deleted'}"
        )
        create_table_artifact(table=rows, key="housekeeping", description=sentence)
        if stayed:
            return Failed(name="SOME STAYED", message="; ".join(stayed[:10]))
        return Completed(name="DELETED" if delete else "SHOWN", message=f"{sentence}.")

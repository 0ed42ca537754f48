"""How long deletable data is kept, as declared in `retention.toml`.

Nothing expires unless a key says so. The journal, the history and its notes, totals, manifests,
signed workbooks and the latest workbook of a run have no key: they are never deleted.
"""

from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    Field,
    StringConstraints,
    model_validator,
)

from recon.config.declared import DeclaredTable, ZoneText

DAYS_MAX = 36_500
WEEK = Annotated[int, Field(ge=7, le=DAYS_MAX)]
QUARTER_DAYS = 90
"""Data that a gateway, bank or auditor may still request is kept for at least a quarter."""
QUARTER = Annotated[int, Field(ge=QUARTER_DAYS, le=DAYS_MAX)]


CRON_FIELD = r"[0-9A-Za-z*/,-]{1,40}"


class NightSchedule(DeclaredTable):
    """When Prefect starts the nights of an account, or housekeeping: a cron line and its zone."""

    cron: Annotated[str, StringConstraints(pattern=rf"^{CRON_FIELD}( {CRON_FIELD}){{4}}$")]
    """Minute, hour, day, month, weekday: `30 2 * * *`."""
    zone: ZoneText
    """`Europe/London`; business dates of scheduled nights are of this zone."""


class Backups(DeclaredTable):
    """Where copies of the database lie, and which of them are too old."""

    folder: Path
    files: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{3,}\*[A-Za-z0-9._*-]*$")]
    """Which names, with *; it begins with letters, so that it never means everything."""
    days: WEEK
    keep: Annotated[int, Field(ge=3, le=10_000)] = 7
    """The newest stay, however old: without backups for a while none is lost."""


class Retention(DeclaredTable):
    """Days that something is kept; None keeps it for good."""

    archive_days: QUARTER | None = None
    statements_days: QUARTER | None = None
    metrics_days: WEEK | None = None
    logs_days: WEEK | None = None
    excluded_days: QUARTER | None = None
    replies_days: QUARTER | None = None
    replaced_workbooks_days: WEEK | None = None
    nights_days: QUARTER | None = None
    """Of the folder of a night; its month must be closed, and more (`admin/housekeeping.py`)."""
    backups: Backups | None = None
    schedule: NightSchedule | None = None
    """When Prefect looks; None: only people do."""
    schedule_deletes: bool = False
    """Whether what is too old then goes, or is only shown."""

    @model_validator(mode="after")
    def _deletes_by_a_schedule(self) -> Self:
        if self.schedule_deletes and self.schedule is None:
            msg = "schedule_deletes needs a schedule"
            raise ValueError(msg)
        return self


class RetentionFile(DeclaredTable):
    """All of retention.toml."""

    retention: Retention = Field(default_factory=Retention)

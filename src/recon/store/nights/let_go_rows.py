"""Nights whose folder was let go under retention, as the history has them.

There is no table beside it: the link that lets a folder go is written before its first file goes,
and another one once all of them are gone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, select

from recon.store.database.history import Event, append
from recon.store.schema import history

ENTITY = "retention"
LET_GO = "lets a night go"
GONE = "let a night go"
"""Every file of it that goes is gone."""


@dataclass(frozen=True, slots=True)
class LetGo:
    """What went of the folder of one run."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: date
    by: str
    at: datetime
    files: int
    size_bytes: int
    list_sha256: str
    """Over the names and sizes of what went."""

    def __str__(self) -> str:
        return (
            f"run {self.run_id} of {self.business_date}: the folder of this night was let go on "
            f"{self.at:%Y-%m-%d} by {self.by} under retention; its totals and manifests are kept"
        )


def let_go_of(connection: Connection, run_id: str) -> LetGo | None:
    """How the folder of a run was let go; None while it is kept."""
    row = connection.execute(
        select(history.c.at, history.c.data)
        .where(history.c.entity_id == run_id)
        .where(history.c.entity == ENTITY, history.c.event == LET_GO)
        .order_by(history.c.sequence)
        .limit(1)
    ).one_or_none()
    return None if row is None else _let_go(run_id, at=row.at, data=json.loads(row.data))


def all_let_go(connection: Connection) -> list[LetGo]:
    """Every folder that was let go, oldest link first."""
    rows = connection.execute(
        select(history.c.entity_id, history.c.at, history.c.data)
        .where(history.c.entity == ENTITY, history.c.event == LET_GO)
        .order_by(history.c.sequence)
    ).tuples()
    return [_let_go(run_id, at=at, data=json.loads(data)) for run_id, at, data in rows]


def half_gone(connection: Connection) -> list[LetGo]:
    """Those of which files may still lie there: whoever let them go was ended."""
    gone = set(
        connection.execute(
            select(history.c.entity_id).where(history.c.entity == ENTITY, history.c.event == GONE)
        ).scalars()
    )
    return [each for each in all_let_go(connection) if each.run_id not in gone]


def note_let_go(connection: Connection, going: LetGo, *, details: Mapping[str, Any]) -> None:
    """Say that a folder goes, before its first file does."""
    listed = {
        "merchant_id": going.merchant_id,
        "account_id": going.account_id,
        "business_date": going.business_date.isoformat(),
        "by": going.by,
        "count": going.files,
        "bytes": going.size_bytes,
        "list_sha256": going.list_sha256,
        **details,
    }
    append(connection, [Event(ENTITY, going.run_id, LET_GO, listed)], at=going.at)


def note_gone(connection: Connection, run_id: str, *, at: datetime) -> None:
    """Say that nothing of it is left but what is kept."""
    append(connection, [Event(ENTITY, run_id, GONE, {})], at=at)


def _let_go(run_id: str, *, at: datetime, data: Mapping[str, Any]) -> LetGo:
    return LetGo(
        run_id,
        data["merchant_id"],
        data["account_id"],
        date.fromisoformat(data["business_date"]),
        data["by"],
        at,
        data["count"],
        data["bytes"],
        data["list_sha256"],
    )

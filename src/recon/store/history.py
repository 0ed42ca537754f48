"""The history: append-only events, each hash over the one before.

`append` must run inside the transaction whose change it records, so that an event exists exactly
when its change does. Triggers refuse UPDATE and DELETE; `verify` finds what got past them.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, insert, select, text

from recon.store.schema import history

GENESIS = "0" * 64
VERIFY_ROWS_MAX = 50_000_000
LOCK_KEY = 7_260_001
"""PostgreSQL advisory lock under which the chain grows, one writer at a time."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to an instruction, a batch or a run."""

    entity: str
    entity_id: str
    event: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Head:
    """The newest link: its number and hash. Printed in each report and kept beside it."""

    sequence: int
    hash: str


def append(connection: Connection, events: Sequence[Event], *, at: datetime) -> Head:
    """Add events to the chain within the caller's transaction; returns the new head."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK_KEY})
    last = head(connection)
    rows = []
    for event in events:
        row = _row(event, at=at, last=last)
        rows.append(row)
        last = Head(last.sequence + 1, str(row["hash"]))
    if rows:
        connection.execute(insert(history), rows)
    return last


def head(connection: Connection) -> Head:
    """The newest link, or the genesis of an empty chain."""
    found = connection.execute(
        select(history.c.sequence, history.c.hash).order_by(history.c.sequence.desc()).limit(1)
    ).one_or_none()
    return Head(0, GENESIS) if found is None else Head(found.sequence, found.hash)


def verify(connection: Connection) -> tuple[Head, str]:
    """Walk the chain: the head that closes, and the first problem in words ("" when none)."""
    last = Head(0, GENESIS)
    for row in connection.execute(select(history).order_by(history.c.sequence)).mappings():
        event = Event(row["entity"], row["entity_id"], row["event"], json.loads(row["data"]))
        expected = _row(event, at=row["at"], last=last)
        if row["sequence"] != expected["sequence"]:
            return last, f"history {expected['sequence']} is missing (next is {row['sequence']})"
        if row["hash"] != expected["hash"] or row["previous_hash"] != last.hash:
            return last, (
                f"history {row['sequence']} ({row['entity']} {row['entity_id']}, {row['event']}) "
                "does not close with the one before it: it or its predecessor was changed"
            )
        last = Head(row["sequence"], row["hash"])
    return last, ""


def of_entity(connection: Connection, entity_id: str) -> Iterable[Mapping[str, object]]:
    """All events of one entity, oldest first."""
    found = connection.execute(
        select(history).where(history.c.entity_id == entity_id).order_by(history.c.sequence)
    )
    return [dict(row) for row in found.mappings()]


def _row(event: Event, *, at: datetime, last: Head) -> dict[str, object]:
    data = json.dumps(event.data, sort_keys=True, separators=(",", ":"), default=str)
    sequence = last.sequence + 1
    instant = at.astimezone(UTC).isoformat(timespec="microseconds")
    link = "\x1f".join(
        (last.hash, str(sequence), instant, event.entity, event.entity_id, event.event, data)
    )
    return {
        "sequence": sequence,
        "at": at,
        "entity": event.entity,
        "entity_id": event.entity_id,
        "event": event.event,
        "data": data,
        "previous_hash": last.hash,
        "hash": hashlib.sha256(link.encode()).hexdigest(),
    }

"""The history: append-only events, each hash over the one before.

`append` must run inside the transaction whose change it records, so that an event exists exactly
when its change does. Triggers refuse UPDATE and DELETE; `verify` finds what got past them.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, bindparam, insert, or_, select

from recon.privacy.own_files import replace_result
from recon.store.schema import batch, history, run
from recon.store.schema.columns import in_account, values_of

GENESIS = "0" * 64
CLAIMED = "claimed"
"""Event of a batch that was about to leave."""
REPORTED = "reported"
"""Event of a run whose workbook was written."""
LINKS_AT_ONCE = 5_000
"""Links that are held in memory while the chain is walked."""

_NEWEST = select(history.c.sequence, history.c.hash).order_by(history.c.sequence.desc()).limit(1)
_APPEND = insert(history)
_LINKS = (
    select(history)
    .where(history.c.sequence > bindparam("after"))
    .order_by(history.c.sequence)
    .execution_options(yield_per=LINKS_AT_ONCE)
)
_OF_ENTITY = (
    select(history).where(history.c.entity_id == bindparam("wanted")).order_by(history.c.sequence)
)
_HASHES = select(history.c.sequence, history.c.hash).where(
    history.c.sequence.in_(bindparam("wanted", expanding=True))
)
_OWN_BATCH = (
    select(batch.c.batch_id)
    .where(
        *in_account(batch),
    )
    .scalar_subquery()
)
_OWN_RUN = (
    select(run.c.run_id)
    .where(
        *in_account(run),
    )
    .scalar_subquery()
)
_KNOWN_BATCH = select(batch.c.batch_id).scalar_subquery()
_LAST_NOTED = (
    select(history.c.entity, history.c.at)
    .where(
        or_(
            and_(
                history.c.entity == "batch",
                history.c.event == CLAIMED,
                # One that was removed past the journal may have been this account's.
                or_(history.c.entity_id.in_(_OWN_BATCH), history.c.entity_id.not_in(_KNOWN_BATCH)),
            ),
            and_(
                history.c.entity == "run",
                history.c.event == REPORTED,
                history.c.entity_id.in_(_OWN_RUN),
            ),
        )
    )
    .order_by(history.c.sequence.desc())
    .limit(1)
)
_GROWN = "the chain has grown"
"""Where a connection keeps what its transaction added."""
FREE = {
    "instruction": frozenset(
        {"planned", "approved", "in_flight", "in_doubt", "confirmed", "rejected"}
    ),
    "batch": None,
    "doubt clock": None,
    "actions": None,
    "facts": None,
    "run": frozenset({"started", "resumed"}),
    "rules": None,
}
"""Events by entity (None: all of it) that restrict nothing, or that the sender notes by itself:
a database that forgot them plans, asks or sweeps again. Every other event restricts."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to an instruction, a batch, a run or a file's actions."""

    entity: str
    entity_id: str
    event: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Head:
    """The newest link: its number and hash. Printed in each report and kept beside it."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Grown:
    """What one transaction added to the chain so far."""

    head: Head
    what: str
    """The newest event that restricts, in words."""
    at: datetime
    restricts: bool


def append(connection: Connection, events: Sequence[Event], *, at: datetime) -> Head:
    """Add events to the chain within the caller's transaction; returns the new head.

    The caller's turn (`Store.writing`) makes the chain grow by one writer at a time.
    """
    last = head(connection)
    rows = []
    for event in events:
        row = _row(event, at=at, last=last)
        rows.append(row)
        last = Head(last.sequence + 1, str(row["hash"]))
    if rows:
        connection.execute(_APPEND, rows)
        _note_grown(connection, events, head=last, at=at)
    return last


def _note_grown(
    connection: Connection, events: Sequence[Event], *, head: Head, at: datetime
) -> None:
    before = grown(connection)
    what = next((f"{event.entity} {event.event}" for event in events if restricts(event)), "")
    grown_by = before.what if before and not what else what
    connection.info[_GROWN] = Grown(head, grown_by, at, restricts=bool(grown_by))


def restricts(event: Event) -> bool:
    """Whether a database that forgot this event might let money move that must not."""
    if event.entity not in FREE:
        return True
    free = FREE[event.entity]
    return free is not None and event.event not in free


def grown(connection: Connection) -> Grown | None:
    """What the transaction of this connection added; None when nothing."""
    notes = connection.info.get(_GROWN)
    return notes if isinstance(notes, Grown) else None


def begin(connection: Connection) -> None:
    """A new transaction of a connection that served others before."""
    connection.info.pop(_GROWN, None)


def head(connection: Connection) -> Head:
    """The newest link, or the genesis of an empty chain."""
    row = connection.execute(_NEWEST).one_or_none()
    return Head(0, GENESIS) if row is None else Head(row.sequence, row.hash)


def first_hash(connection: Connection) -> str:
    """The hash of the first link, which no two databases share; "" of an empty chain."""
    return hashes_of(connection, [1]).get(1, "")


def hashes_of(connection: Connection, sequences: Sequence[int]) -> dict[int, str]:
    """The hashes of some links by their number; what the chain does not have is not among them."""
    rows = connection.execute(_HASHES, {"wanted": sorted(set(sequences))}).tuples()
    return {0: GENESIS, **dict(rows.all())}


def has_link(connection: Connection, claimed: Head) -> bool:
    """Whether the chain has this very link; what has no hash is none."""
    hashes = hashes_of(connection, [claimed.sequence]).get(claimed.sequence, "")
    return claimed.hash != "" and hashes == claimed.hash


def last_noted(connection: Connection, account: tuple[str, str]) -> tuple[str, datetime] | None:
    """Since when a merchant's account must have a head file: its newest claim or reported night.

    Returns the entity (batch or run) and the instant; None when neither ever was.
    """
    of_account = values_of(*account)
    row = connection.execute(_LAST_NOTED, of_account).one_or_none()
    return None if row is None else (row.entity, row.at)


def verify(connection: Connection, *, after: Head | None = None) -> tuple[Head, str]:
    """Walk the chain: the head that closes, and the first problem in words ("" when none).

    `after` is a link up to which it was found closed before; None walks the whole chain.
    """
    last = after or Head(0, GENESIS)
    with connection.execute(_LINKS, {"after": last.sequence}) as links:
        for row in links.mappings():
            expected = _expected(row, last=last)
            if row["sequence"] != expected["sequence"]:
                return (
                    last,
                    f"history {expected['sequence']} is missing (next is {row['sequence']})",
                )
            if row["hash"] != expected["hash"] or row["previous_hash"] != last.hash:
                return last, _broken(row)
            last = Head(row["sequence"], row["hash"])
    return last, ""


def _broken(row: Mapping[Any, Any]) -> str:
    link = f"{row['sequence']} ({row['entity']} {row['entity_id']}, {row['event']})"
    return (
        f"history {link} does not close with the one before it: it or its predecessor was changed"
    )


def of_entity(connection: Connection, entity_id: str) -> Iterable[Mapping[str, object]]:
    """All events of one entity, oldest first."""
    rows = connection.execute(_OF_ENTITY, {"wanted": entity_id})
    return [dict(row) for row in rows.mappings()]


def links_between(connection: Connection, first: int, *, last: int) -> Iterable[dict[str, object]]:
    """Neighbouring links by number, from one to another, each with its instant as hashed."""
    query = select(history).where(history.c.sequence.between(first, last))
    rows = connection.execute(
        query.order_by(history.c.sequence).execution_options(yield_per=LINKS_AT_ONCE)
    )
    for row in rows.mappings():
        yield {**row, "at": instant_text(row["at"])}


def instant_text(at: datetime) -> str:
    """An instant as a link hashes it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _expected(row: Mapping[Any, Any], *, last: Head) -> dict[str, object]:
    """The row as it would have been appended after `last`, from its own stored text."""
    event = Event(row["entity"], row["entity_id"], row["event"], {})
    return _linked(event, data=row["data"], at=row["at"], last=last)


def _row(event: Event, *, at: datetime, last: Head) -> dict[str, object]:
    data = _CANONICAL.encode(event.data)
    return _linked(event, data=data, at=at, last=last)


def _linked(event: Event, *, data: str, at: datetime, last: Head) -> dict[str, object]:
    sequence = last.sequence + 1
    instant = instant_text(at)
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


FILE_NAME = "history-verified.json"
FILE_BYTES_MAX = 1_000
NOTHING = Head(0, GENESIS)


def verified(folder: Path) -> Head:
    """The newest link up to which the chain was found closed; the genesis when none is known."""
    try:
        document = json.loads((folder / FILE_NAME).read_bytes()[:FILE_BYTES_MAX])
        return Head(int(document["sequence"]), str(document["hash"]))
    except (OSError, ValueError, KeyError, TypeError):
        return NOTHING


def keep_verified(folder: Path, head: Head) -> None:
    """Note that the chain closes up to here; where that fails, the next night walks more."""
    document = json.dumps({"sequence": head.sequence, "hash": head.hash})
    with suppress(OSError):
        replace_result(folder / FILE_NAME, document)

"""The history: an append-only chain of events, each hashed together with its predecessor's hash.

`append` must run in the transaction whose change it records, so that an event exists exactly when
its change does. Triggers refuse UPDATE and DELETE; `verify` detects changes that bypass them.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, and_, func, insert, or_, select

from recon.model.errors import HistoryBrokenError
from recon.model.nights import Account
from recon.privacy.own_files import replace_result
from recon.store.schema import batch, history, run
from recon.store.schema.columns import among, in_account

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value", bound="DataclassInstance")
GENESIS = "0" * 64
CLAIMED = "claimed"
"""Event of a batch that is about to be sent."""
REPORTED = "reported"
"""Event of a run whose workbook was written."""
LINKS_AT_ONCE = 5_000
"""Number of links held in memory while the chain is walked."""

_NEWEST = select(history.c.sequence, history.c.hash).order_by(history.c.sequence.desc()).limit(1)
_GROWN = "the chain has grown"
"""Key in `Connection.info` under which `append` notes what the transaction added."""
FREE = {
    "instruction": frozenset(
        {"planned", "approved", "in_flight", "in_doubt", "confirmed", "rejected"}
    ),
    "batch": None,
    "doubt clock": None,
    "refund search": None,
    "actions": None,
    "facts": None,
    "run": frozenset({"started", "resumed", "would send"}),
    "rules": None,
}
"""Events by entity (None: all of them) that restrict no money, or that the sender notes by itself:
a database that lost them only plans, queries or sweeps again. All other events restrict."""
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an instruction, a batch, a run or another entity."""

    entity: str
    entity_id: str
    event: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Head:
    """Number and hash of the newest link, printed in each report and stored next to it."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One event as stored in the chain."""

    sequence: int
    at: datetime
    entity: str
    entity_id: str
    event: str
    text: str
    """The event's data as JSON."""

    @property
    def data(self) -> dict[str, Any]:
        """The event's data.

        Raises:
            HistoryBrokenError: The link is malformed, so it was not written by this program.
        """
        try:
            document = json.loads(self.text)
        except ValueError as error:
            raise self._malformed() from error
        if not isinstance(document, dict):
            raise self._malformed()
        return document

    def value(self, kind: type[Value], **more: object) -> Value:
        """Return the event's data and time as a dataclass; `more` are additional fields.

        Raises:
            HistoryBrokenError: As `data`, or fields are missing or have another type.
        """
        try:
            return value_of(kind, {"at": self.at, **self.data, **more})
        except ValidationError as error:
            raise self._malformed() from error

    def _malformed(self) -> HistoryBrokenError:
        return HistoryBrokenError(
            f"history {self.sequence} ({self.entity} {self.entity_id}, {self.event}) is malformed: "
            "it was written past the journal"
        )


@cache
def _shape(kind: type[Value]) -> TypeAdapter[Value]:
    return TypeAdapter(kind)


def document_of(value: Value, *left_out: str, kind: type[Value] | None = None) -> dict[str, Any]:
    """Return a dataclass instance as JSON data without some fields; `kind` may be its base."""
    document: dict[str, Any] = _shape(kind or type(value)).dump_python(
        value, mode="json", exclude={*left_out}
    )
    return document


def value_of(kind: type[Value], document: Mapping[str, Any]) -> Value:
    """Return the dataclass instance of a `document_of`; unknown keys are ignored."""
    value: Value = _shape(kind).validate_python(document)
    return value


@dataclass(frozen=True, slots=True)
class Grown:
    """What the current transaction has added to the chain so far."""

    head: Head
    what: str
    """The first restricting event of the newest append that had one, as text; "" for none."""
    at: datetime


def append(connection: Connection, events: Sequence[Event], *, at: datetime) -> Head:
    """Append events to the chain within the caller's transaction and return the new head.

    The caller must hold the write lock (`Store.writing`): only one writer extends the chain.
    """
    last = head(connection)
    rows = []
    for event in events:
        rows.append(_linked(event, data=_CANONICAL.encode(event.data), at=at, last=last))
        last = Head(last.sequence + 1, str(rows[-1]["hash"]))
    if rows:
        connection.execute(insert(history), rows)
        before = grown(connection)
        restricting = (f"{event.entity} {event.event}" for event in events if restricts(event))
        what = next(restricting, before.what if before else "")
        connection.info[_GROWN] = Grown(last, what, at)
    return last


def restricts(event: Event) -> bool:
    """Return whether losing this event could let a database send money that must not move."""
    if event.entity not in FREE:
        return True
    free = FREE[event.entity]
    return free is not None and event.event not in free


def grown(connection: Connection) -> Grown | None:
    """Return what the transaction of this connection has added; None if nothing."""
    notes = connection.info.get(_GROWN)
    return notes if isinstance(notes, Grown) else None


def begin(connection: Connection) -> None:
    """Forget what earlier transactions of a pooled connection added."""
    connection.info.pop(_GROWN, None)


def head(connection: Connection) -> Head:
    """Return the newest link, or the genesis of an empty chain."""
    row = connection.execute(_NEWEST).one_or_none()
    return Head(0, GENESIS) if row is None else Head(row.sequence, row.hash)


def first_hash(connection: Connection) -> str:
    """Return the hash of the first link, which identifies the database; "" for an empty chain."""
    return hashes_of(connection, [1]).get(1, "")


def hashes_of(connection: Connection, sequences: Sequence[int]) -> dict[int, str]:
    """Return the hashes of links by number, with the genesis; missing links are left out."""
    chosen = history.c.sequence.in_(sorted(set(sequences)))
    rows = connection.execute(select(history.c.sequence, history.c.hash).where(chosen)).tuples()
    return {0: GENESIS, **dict(rows.all())}


def has_link(connection: Connection, claimed: Head) -> bool:
    """Return whether the chain contains this link; one without a hash never counts."""
    hashes = hashes_of(connection, [claimed.sequence]).get(claimed.sequence, "")
    return claimed.hash != "" and hashes == claimed.hash


def last_noted(connection: Connection, account: Account) -> tuple[str, datetime] | None:
    """Return since when an account must have a head file: its newest claim or reported night.

    Returns the entity (batch or run) and the instant; None if neither ever happened.
    """
    own_batch = select(batch.c.batch_id).where(*in_account(batch, account))
    own_run = select(run.c.run_id).where(*in_account(run, account))
    # A batch deleted by bypassing the code may have been this account's.
    known = history.c.entity_id.in_(select(batch.c.batch_id))
    claimed = and_(history.c.entity == "batch", history.c.event == CLAIMED)
    reported = and_(history.c.entity == "run", history.c.event == REPORTED)
    row = connection.execute(
        select(history.c.entity, history.c.at)
        .where(
            or_(
                and_(claimed, or_(history.c.entity_id.in_(own_batch), ~known)),
                and_(reported, history.c.entity_id.in_(own_run)),
            )
        )
        .order_by(history.c.sequence.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else (row.entity, row.at)


def verify(connection: Connection, *, after: Head | None = None) -> tuple[Head, str]:
    """Verify the chain; return the last valid link and the first problem as text ("" for none).

    `after` is a link up to which it was verified before; None walks the whole chain.
    """
    last = after or Head(0, GENESIS)
    query = select(history).where(history.c.sequence > last.sequence).order_by(history.c.sequence)
    with connection.execute(query.execution_options(yield_per=LINKS_AT_ONCE)) as links:
        for row in links:
            event = Event(row.entity, row.entity_id, row.event, {})
            # Recomputed from the stored text, as `append` would have written it.
            expected = _linked(event, data=row.data, at=row.at, last=last)
            if row.sequence != last.sequence + 1:
                return last, f"history {last.sequence + 1} is missing (next is {row.sequence})"
            if row.hash != expected["hash"] or row.previous_hash != last.hash:
                link = f"{row.sequence} ({row.entity} {row.entity_id}, {row.event})"
                return last, (
                    f"history {link} does not close with the one before it: it or its predecessor "
                    "was changed"
                )
            last = Head(row.sequence, row.hash)
    return last, ""


def links_of(
    connection: Connection,
    entity_ids: Collection[str] | None = None,
    *,
    entity: str,
    event: str = "",
    after: int = 0,
) -> list[ChainLink]:
    """Return the links of one kind of entity, oldest first.

    Args:
        connection: Of the database.
        entity_ids: Only links of these entities, any number; None for all.
        entity: The kind of entity, by which the index finds them.
        event: Only links with this event; "" for all.
        after: Only links with a larger number.
    """
    names = ("sequence", "at", "entity", "entity_id", "event", "data")
    # The newest few are found by their numbers: the index of entities has all of their kind.
    by_number = entity_ids is None and after > 0
    kind = func.coalesce(history.c.entity, "") if by_number else history.c.entity
    which = [kind == entity, history.c.sequence > after]
    if entity_ids is not None:
        which.append(among(connection, history.c.entity_id, entity_ids))
    if event:
        which.append(history.c.event == event)
    query = select(*(history.c[name] for name in names)).where(*which)
    return [ChainLink(*row) for row in connection.execute(query.order_by(history.c.sequence))]


def found(problems: Iterable[str]) -> Iterator[str]:
    """Yield problems; a malformed link ends the search and is yielded as the last problem."""
    try:
        yield from problems
    except HistoryBrokenError as error:
        yield str(error)


def links_between(connection: Connection, first: int, *, last: int) -> Iterable[dict[str, object]]:
    """Yield the links from number `first` to `last`, their instants as text as hashed."""
    query = select(history).where(history.c.sequence.between(first, last))
    rows = connection.execute(
        query.order_by(history.c.sequence).execution_options(yield_per=LINKS_AT_ONCE)
    )
    for row in rows.mappings():
        yield {**row, "at": instant_text(row["at"])}


def instant_text(at: datetime) -> str:
    """Return an instant as text as links hash it, the same for the same instant in any zone.

    >>> instant_text(datetime.fromisoformat("2026-11-20T09:30:00+01:00"))
    '2026-11-20T08:30:00.000000+00:00'
    """
    return at.astimezone(UTC).isoformat(timespec="microseconds")


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
    """Return the link up to which the chain was last verified; the genesis if unknown."""
    try:
        document = json.loads((folder / FILE_NAME).read_bytes()[:FILE_BYTES_MAX])
        return Head(int(document["sequence"]), str(document["hash"]))
    except (OSError, ValueError, KeyError, TypeError):
        return NOTHING


def save_verified(folder: Path, head: Head) -> None:
    """Save the link up to which the chain is verified; on failure the next night walks more."""
    document = json.dumps({"sequence": head.sequence, "hash": head.hash})
    with suppress(OSError):
        replace_result(folder / FILE_NAME, document)

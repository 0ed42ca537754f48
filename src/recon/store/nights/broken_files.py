"""Contents of files that broke their reader, by their hash: kept in the history, never tried again.

What counts is the content: under another name, in another inbox or the next night it is the same
file. Somebody may say that it is to be tried once more (`recon file again`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from recon.store.database.history import Event, append, of_entity
from recon.store.nights.file_words import Counts, FileWord
from recon.store.schema import history

ENTITY = "file content"
SET_ASIDE, AGAIN, MET = "set aside", "read again", "met again"
_ALL = (
    select(history.c.entity_id, history.c.event, history.c.data)
    .where(history.c.entity == ENTITY)
    .order_by(history.c.sequence)
)


@dataclass(frozen=True, slots=True)
class SetAside:
    """Why a content is not read, and under which names it was met."""

    why: str
    names: frozenset[tuple[str, str, str]]
    """Merchant, account, name."""


def set_aside_content(connection: Connection, sha256: str, *, counts: Counts) -> SetAside | None:
    """What is known of a content that nobody is to try; None when it may be read.

    `counts` says of a word that it may be whether somebody said it at the desk.
    """
    events = [event for event in of_entity(connection, sha256) if event["entity"] == ENTITY]
    pairs = ((str(event["event"]), str(event["data"])) for event in events)
    return _folded(pairs, sha256=sha256, counts=counts)


def set_aside(
    connection: Connection,
    sha256: str,
    *,
    why: str,
    name: tuple[str, str, str],
    at: datetime,
) -> None:
    """Let nobody try this content again; why is a sentence about it."""
    details = {"why": why, "name": list(name)}
    append(connection, [Event(ENTITY, sha256, SET_ASIDE, details)], at=at)


def note_met(
    connection: Connection, sha256: str, *, name: tuple[str, str, str], at: datetime
) -> None:
    """The same content lies under another name."""
    append(connection, [Event(ENTITY, sha256, MET, {"name": list(name)})], at=at)


def contents_of(connection: Connection, name: tuple[str, str, str]) -> tuple[str, ...]:
    """Every content that was met under a name and is set aside."""
    names: dict[str, list[tuple[str, str]]] = {}
    for sha256, event, data in connection.execute(_ALL):
        names.setdefault(str(sha256), []).append((str(event), str(data)))
    folded = {
        sha256: _folded(iter(events), sha256=sha256, counts=lambda _: True)
        for sha256, events in names.items()
    }
    return tuple(
        sha256
        for sha256, content in folded.items()
        if content is not None and name in content.names
    )


def let_read_again(
    connection: Connection,
    contents: Iterable[str],
    *,
    name: tuple[str, str, str],
    by: str,
    reason: str,
    at: datetime,
) -> list[FileWord]:
    """Let contents that were set aside be tried once more; the words to be signed."""
    details = {"by": by, "reason": reason, "name": list(name)}
    words = []
    for sha256 in contents:
        events = of_entity(connection, sha256)
        turn = sum((event["entity"], event["event"]) == (ENTITY, SET_ASIDE) for event in events)
        words.append(_word(sha256, details, turn=turn))
        append(connection, [Event(ENTITY, sha256, AGAIN, details)], at=at)
    return words


def _word(sha256: str, data: Mapping[str, Any], *, turn: int) -> FileWord:
    merchant_id, account_id, name = map(str, data["name"])
    return FileWord(
        *(ENTITY, sha256, AGAIN, str(data["by"]), str(data["reason"])),
        *(sha256, f"{merchant_id}/{account_id}", name),
        turn=turn,
    )


def _folded(events: Iterator[tuple[str, str]], *, sha256: str, counts: Counts) -> SetAside | None:
    """What some events of one content come to, oldest first."""
    now: SetAside | None = None
    turn = 0
    for event, data in events:
        document = json.loads(data)
        merchant_id, account_id, file_name = map(str, document["name"])
        name = (merchant_id, account_id, file_name)
        if event == AGAIN:
            now = None if counts(_word(sha256, document, turn=turn)) else now
        elif event == SET_ASIDE:
            turn += 1
            now = SetAside(str(document["why"]), frozenset([name]))
        elif now is not None:
            now = SetAside(now.why, now.names | {name})
    return now

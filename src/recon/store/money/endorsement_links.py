"""The links that the history has of people's words: who takes a word away leaves its link."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from recon.store.schema import history

ENTITY, WORDS, SAID = "endorsement", "words", "said"
"""Entity, its one id, and the event of each word."""
_AFTER = (
    select(history.c.sequence, history.c.data)
    .where(
        history.c.entity_id == WORDS,
        history.c.entity == ENTITY,
        history.c.sequence > bindparam("after"),
    )
    .order_by(history.c.sequence)
)
_NEWEST = (
    select(history.c.data)
    .where(history.c.entity_id == WORDS, history.c.entity == ENTITY)
    .order_by(history.c.sequence.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class SaidLink:
    """What one link says of a word."""

    link: int
    """Its number in the history."""
    number: int
    """Of the word."""
    key: str
    """Id of the key that signed it."""
    sha256: str
    """Of its signature."""


def said_after(connection: Connection, link: int) -> Iterator[SaidLink]:
    """The words that were said after a link, oldest first."""
    for row in connection.execute(_AFTER, {"after": link}):
        data = json.loads(row.data)
        yield SaidLink(row.sequence, int(data["number"]), str(data["key"]), str(data["sha256"]))


def newest_said(connection: Connection) -> int:
    """The number of the newest word that the history knows; 0 before the first."""
    value = connection.execute(_NEWEST).scalar_one_or_none()
    return int(json.loads(value)["number"]) if value else 0

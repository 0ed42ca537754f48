"""What people said of the files of an account: to be read again, or let go; kept in the history."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from recon.model.words import SourceFile, SourceKind
from recon.store.database.history import Event, append, of_entity
from recon.store.nights import order_rows, runs
from recon.store.nights.runs import Run
from recon.store.schema import order_file, reject

ENTITY = "file"
FILES_LOOKED_AT_MAX = 1_000
"""Of earlier nights, to know how large a sender's files usually are."""
AGAIN, DISMISSED = "read again", "dismissed"


@dataclass(frozen=True, slots=True)
class Word:
    """What somebody said of one version of a file."""

    said: str
    by: str
    reason: str
    at: datetime
    identity: str
    """Of a dismissed file: what told that version from others."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The newest version of a file of an account."""

    file_id: int
    run_id: str
    business_date: str
    version: int
    source: SourceFile
    read_at: datetime
    refused: str
    """Why nothing of it could be read; "" where it was read."""
    word: Word | None


def newest_files(
    connection: Connection, *, merchant_id: str, account_id: str, whole_file: str
) -> list[KnownFile]:
    """The newest version of each file of an account, by name.

    `whole_file` is the column of the reject that stands for a file that could not be read.
    """
    of_account = (order_file.c.merchant_id == merchant_id, order_file.c.account_id == account_id)
    newest = select(func.max(order_file.c.file_id)).where(*of_account).group_by(order_file.c.name)
    rows = connection.execute(
        select(order_file).where(order_file.c.file_id.in_(newest)).order_by(order_file.c.name)
    ).mappings()
    return [_known(connection, row, whole_file=whole_file) for row in rows]


def rows_before(connection: Connection, run: Run) -> list[tuple[str, int]]:
    """Name and rows of the order files of earlier nights, newest night first, newest version."""
    files = connection.execute(
        select(order_file.c.business_date, order_file.c.name, order_file.c.rows_read)
        .where(
            order_file.c.merchant_id == run.merchant_id,
            order_file.c.account_id == run.account_id,
            order_file.c.kind == SourceKind.ORDERS.value,
            order_file.c.business_date < run.business_date,
            *order_rows.counting(run),
        )
        .order_by(order_file.c.business_date.desc(), order_file.c.file_id)
        .limit(FILES_LOOKED_AT_MAX)
    )
    newest = {(row.business_date, row.name): row.rows_read for row in files}
    return [(name, rows) for (_, name), rows in newest.items()]


def word_on(connection: Connection, file_id: int) -> Word | None:
    """The last word on one version of a file; None where nobody said one."""
    events = [
        event for event in of_entity(connection, _entity(file_id)) if event["entity"] == ENTITY
    ]
    if not events:
        return None
    last = events[-1]
    document = json.loads(str(last["data"]))
    at = last["at"]
    assert isinstance(at, datetime)  # noqa: S101 - the type of the column
    return Word(
        str(last["event"]), document["by"], document["reason"], at, document.get("identity", "")
    )


def dismissed(connection: Connection, run: Run, *, name: str) -> str:
    """What told the version of a file from others that somebody let go; "" when nobody did.

    Whatever came after it under that name counts again.
    """
    newest = connection.execute(
        select(func.max(order_file.c.file_id)).where(
            order_file.c.merchant_id == run.merchant_id,
            order_file.c.account_id == run.account_id,
            order_file.c.name == name,
        )
    ).scalar()
    word = word_on(connection, newest) if newest else None
    return word.identity if word and word.said == DISMISSED else ""


def known_file(connection: Connection, run: Run, *, name: str, sha256: str) -> SourceFile | None:
    """As `order_rows.known_file`, unless somebody said that this version is to be read again."""
    known = order_rows.known_file(connection, run, name=name, sha256=sha256)
    if known is None:
        return None
    newest = connection.execute(
        select(func.max(order_file.c.file_id)).where(
            order_file.c.merchant_id == run.merchant_id,
            order_file.c.account_id == run.account_id,
            order_file.c.name == known.name,
        )
    ).scalar()
    word = word_on(connection, newest) if newest else None
    return None if word and word.said == AGAIN else known


def say_again(
    connection: Connection, known_file: KnownFile, *, by: str, reason: str, at: datetime
) -> None:
    """Let the next night that meets this content read it once more."""
    _say(connection, known_file.file_id, word=AGAIN, details={"by": by, "reason": reason}, at=at)


def dismiss(
    connection: Connection,
    known_file: KnownFile,
    *,
    nothing: SourceFile,
    details: Mapping[str, str],
    at: datetime,
) -> None:
    """Put a version without rows in place of one that could not be read, with the word on it."""
    run = runs.get(connection, known_file.run_id)
    file_id = order_rows.insert_file(connection, run, source=nothing, at=at)
    identity = {"identity": known_file.source.sha256, "name": known_file.source.name}
    _say(connection, file_id, word=DISMISSED, details={**details, **identity}, at=at)


def _say(
    connection: Connection, file_id: int, *, word: str, details: Mapping[str, str], at: datetime
) -> None:
    append(connection, [Event(ENTITY, _entity(file_id), word, dict(details))], at=at)


def _entity(file_id: int) -> str:
    return f"{ENTITY}-{file_id}"


def _known(connection: Connection, row: Mapping[Any, Any], *, whole_file: str) -> KnownFile:
    refused = connection.execute(
        select(reject.c.reason).where(
            reject.c.file_id == row["file_id"], reject.c.column == whole_file
        )
    ).scalar()
    names = tuple(name for name in SourceFile.__dataclass_fields__ if name != "kind")
    source = SourceFile(kind=SourceKind(row["kind"]), **{name: row[name] for name in names})
    return KnownFile(
        row["file_id"],
        row["run_id"],
        row["business_date"],
        row["version"],
        source,
        row["read_at"],
        refused or "",
        word_on(connection, row["file_id"]),
    )

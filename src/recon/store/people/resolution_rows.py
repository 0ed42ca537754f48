"""Answers to breaks in the database: append-only, versioned per break, with their history."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select

from recon.model.nights import Account
from recon.model.resolutions import WRITE_OFF, BreakAnswer, Import, StoredAnswer
from recon.store.database.bulk_rows import add_rows, read
from recon.store.database.history import Event, append
from recon.store.database.record import ANSWER, event_of, record
from recon.store.schema import answer_file, break_answer
from recon.store.schema.columns import in_account


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """One answer to be stored."""

    account: Account
    break_id: str
    version: int
    answer: BreakAnswer
    waits: bool
    sheet_row: int
    scope: str
    """One of SCOPES."""
    currency: str
    exposure: int | None
    """Minor units at risk, as the answered workbook showed them."""


def stored_answers(connection: Connection, account: Account) -> dict[str, StoredAnswer]:
    """The latest answer to every break of an account, by break id."""
    rows = connection.execute(
        select(break_answer)
        .where(*in_account(break_answer, account))
        .order_by(break_answer.c.break_id, break_answer.c.version)
    ).mappings()
    return {row["break_id"]: _saved(row) for row in rows}


def save(
    connection: Connection, answers: Sequence[NewAnswer], *, brought: Import, at: datetime
) -> None:
    """Store answers with their events; a version that already exists violates the table's key."""
    common = {"given_by": brought.by, "given_at": at, "run_id": brought.run_id}
    names = ("break_id", "version", "waits", "sheet_row", "scope", "currency", "exposure")
    rows = [
        {
            **{name: getattr(new, name) for name in names},
            **common,
            "merchant_id": new.account[0],
            "account_id": new.account[1],
            "resolution": new.answer.resolution,
            "owner": new.answer.owner,
            "comment": new.answer.comment,
            "resolved_on": new.answer.resolved_on.isoformat() if new.answer.resolved_on else "",
            "file_sha256": brought.sha256,
        }
        for new in answers
    ]
    add_rows(connection, break_answer, rows)
    connection.execute(
        insert(answer_file).values(
            file_sha256=brought.sha256,
            name=brought.name[:255],
            run_id=brought.run_id,
            given_by=brought.by,
            imported_at=at,
            taken=len(brought.taken),
            refused=len(brought.refusals),
        )
    )
    events = [event_of(ANSWER, row, event="answered", details={"by": brought.by}) for row in rows]
    imported = {"name": brought.name, "by": brought.by, "taken": len(answers)}
    append(connection, [*events, Event("workbook", brought.sha256, "imported", imported)], at=at)


def imported_before(connection: Connection, sha256: str) -> bool:
    """Whether a file with this content was imported."""
    own = select(answer_file).where(answer_file.c.file_sha256 == sha256)
    return connection.execute(own).first() is not None


def agreed_write_offs(connection: Connection, account: Account) -> dict[str, tuple[str, int]]:
    """Write-offs of an account that two people agreed to: break id -> currency and minor units.

    The money is the exposure that the answered workbook showed.
    """
    mine = *in_account(break_answer, account), break_answer.c.agreed_by != ""
    return dict(_written_off(connection, *mine))


def all_agreed_write_offs(connection: Connection) -> list[tuple[str, tuple[str, int]]]:
    """Break, currency and minor units of every write-off that two people agreed to."""
    return sorted(_written_off(connection, break_answer.c.agreed_by != ""))


def write_offs_of_file(connection: Connection, file_sha256: str) -> dict[str, int]:
    """Currency -> minor units that one returned workbook would write off in total."""
    sums = Counter[str]()
    for currency, exposure in written_off_by_file(connection, file_sha256).values():
        sums[currency] += exposure
    return dict(sorted(sums.items()))


def written_off_by_file(connection: Connection, file_sha256: str) -> dict[str, tuple[str, int]]:
    """Break id -> currency and minor units of each write-off of one returned workbook."""
    return dict(_written_off(connection, break_answer.c.file_sha256 == file_sha256))


def _written_off(
    connection: Connection, *which: ColumnElement[bool]
) -> list[tuple[str, tuple[str, int]]]:
    """Break, currency and minor units of write-offs with a stored exposure, by version."""
    table = break_answer.c
    saved = table.resolution == WRITE_OFF, table.exposure.is_not(None)
    query = select(table.break_id, table.currency, table.exposure).where(*saved, *which)
    rows = connection.execute(query.order_by(table.version))
    return [(row.break_id, (row.currency, row.exposure)) for row in rows]


def importers(connection: Connection, run_id: str, *, since: datetime) -> list[str]:
    """Names of those who imported answers for a run after an instant."""
    rows = connection.execute(
        select(answer_file.c.given_by)
        .where(answer_file.c.run_id == run_id, answer_file.c.taken > 0)
        .where(answer_file.c.imported_at > since)
        .distinct()
    )
    return sorted(rows.scalars())


@dataclass(frozen=True, slots=True)
class WaitingWriteOff:
    """A write-off that waits for a second person."""

    answer_id: int
    break_id: str
    run_id: str
    merchant_id: str
    account_id: str
    given_by: str
    given_at: datetime
    currency: str
    exposure: int | None
    """Minor units that it gives up, as the answered workbook showed them; None if not stored."""
    file_sha256: str
    """Digest of the workbook that contained it."""


def waiting_write_offs(connection: Connection) -> list[WaitingWriteOff]:
    """Write-offs that wait for a second person, oldest first."""
    table = break_answer.c
    return read(connection, WaitingWriteOff, break_answer, table.waits, order=[table.given_at])


def agree(connection: Connection, answer_id: int, *, by: str, at: datetime) -> bool:
    """Record a second person's agreement to a write-off; False when it no longer waits."""
    own = select(break_answer.c.break_id, break_answer.c.version, break_answer.c.waits)
    row = connection.execute(own.where(break_answer.c.answer_id == answer_id)).mappings().first()
    if row is None or not row["waits"]:
        return False
    values, by_whom = {"waits": False, "agreed_by": by, "agreed_at": at}, {"by": by}
    agreeing: dict[str, Any] = {"event": "write-off agreed", "at": at, "details": by_whom}
    return record(connection, ANSWER, values, of={"answer_id": answer_id, **row}, **agreeing)


def _saved(row: Any) -> StoredAnswer:
    day = row["resolved_on"]
    return StoredAnswer(
        answer=BreakAnswer(
            resolution=row["resolution"],
            owner=row["owner"],
            comment=row["comment"],
            resolved_on=date.fromisoformat(day) if day else None,
        ),
        version=row["version"],
        by=row["given_by"],
        waits=row["waits"],
        scope=row["scope"],
        at=row["given_at"],
    )

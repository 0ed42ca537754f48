"""Answers to breaks in the database: append-only, versioned per break, with their history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from recon.model.resolutions import WRITE_OFF, BreakAnswer, Import, KeptAnswer
from recon.store.database.history import Event, append
from recon.store.database.record import ANSWER, event_of, record
from recon.store.schema import answer_file, break_answer

AccountKey = tuple[str, str]
"""Merchant and account."""


_WRITTEN_OFF = select(
    break_answer.c.break_id, break_answer.c.currency, break_answer.c.exposure
).where(break_answer.c.resolution == WRITE_OFF, break_answer.c.exposure.is_not(None))


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """One answer to be stored."""

    account: AccountKey
    break_id: str
    version: int
    answer: BreakAnswer
    waits: bool
    sheet_row: int
    covers_cause: bool
    currency: str
    exposure: int | None
    """Minor units at risk, as the answered workbook showed them."""


def kept_answers(connection: Connection, account: AccountKey) -> dict[str, KeptAnswer]:
    """The newest answer to every break of an account, by break id."""
    merchant_id, account_id = account
    rows = connection.execute(
        select(break_answer)
        .where(break_answer.c.merchant_id == merchant_id, break_answer.c.account_id == account_id)
        .order_by(break_answer.c.break_id, break_answer.c.version)
    ).mappings()
    return {row["break_id"]: _kept(row) for row in rows}


def save(
    connection: Connection, answers: Sequence[NewAnswer], *, brought: Import, at: datetime
) -> None:
    """Store answers with their events; a version that somebody else took raises on its key."""
    rows = [
        {
            "merchant_id": answer.account[0],
            "account_id": answer.account[1],
            "break_id": answer.break_id,
            "version": answer.version,
            "resolution": answer.answer.resolution,
            "owner": answer.answer.owner,
            "comment": answer.answer.comment,
            "resolved_on": answer.answer.resolved_on.isoformat()
            if answer.answer.resolved_on
            else "",
            "given_by": brought.by,
            "given_at": at,
            "waits": answer.waits,
            "run_id": brought.run_id,
            "file_sha256": brought.sha256,
            "sheet_row": answer.sheet_row,
            "covers_cause": answer.covers_cause,
            "currency": answer.currency,
            "exposure": answer.exposure,
        }
        for answer in answers
    ]
    if rows:
        connection.execute(insert(break_answer), rows)
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
    """Whether a file of this content was taken in."""
    count = connection.execute(
        select(func.count()).where(answer_file.c.file_sha256 == sha256)
    ).scalar_one()
    return bool(count)


def agreed_write_offs(
    connection: Connection, account: tuple[str, str]
) -> dict[str, tuple[str, int]]:
    """What two people agreed to write off of an account: break id -> currency and minor units.

    The money is the exposure that the answered workbook showed.
    """
    rows = connection.execute(
        _WRITTEN_OFF.where(
            break_answer.c.merchant_id == account[0],
            break_answer.c.account_id == account[1],
            break_answer.c.agreed_by != "",
        ).order_by(break_answer.c.version)
    )
    return {row.break_id: (row.currency, row.exposure) for row in rows}


def all_agreed_write_offs(connection: Connection) -> list[tuple[str, tuple[str, int]]]:
    """Break, currency and minor units of every write-off that two people agreed to."""
    rows = connection.execute(_WRITTEN_OFF.where(break_answer.c.agreed_by != ""))
    return sorted((row.break_id, (row.currency, row.exposure)) for row in rows)


def write_off_of(connection: Connection, answer_id: int) -> tuple[str, int] | None:
    """Currency and minor units that an answer would write off; None when its break is not kept."""
    row = connection.execute(
        _WRITTEN_OFF.where(break_answer.c.answer_id == answer_id)
    ).one_or_none()
    return None if row is None else (row.currency, row.exposure)


def write_offs_of_file(connection: Connection, file_sha256: str) -> dict[str, int]:
    """Currency -> minor units of all that one returned workbook would write off."""
    sums: dict[str, int] = {}
    query = _WRITTEN_OFF.where(break_answer.c.file_sha256 == file_sha256)
    for row in connection.execute(query):
        sums[row.currency] = sums.get(row.currency, 0) + row.exposure
    return dict(sorted(sums.items()))


def written_off_by_file(connection: Connection, file_sha256: str) -> dict[str, tuple[str, int]]:
    """Break id -> currency and minor units of each write-off of one returned workbook."""
    query = _WRITTEN_OFF.where(break_answer.c.file_sha256 == file_sha256)
    return {row.break_id: (row.currency, row.exposure) for row in connection.execute(query)}


def importers(connection: Connection, run_id: str, *, since: datetime) -> list[str]:
    """Who brought answers into a run's night after an instant, as they were named."""
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
    file_sha256: str
    """Of the workbook that it came with."""


_WAITING = (
    select(*(break_answer.c[name] for name in WaitingWriteOff.__dataclass_fields__))
    .where(break_answer.c.waits)
    .order_by(break_answer.c.given_at)
)


def waiting_write_offs(connection: Connection) -> list[WaitingWriteOff]:
    """Write-offs that wait for a second person, oldest first."""
    return [WaitingWriteOff(*row) for row in connection.execute(_WAITING)]


def agree(connection: Connection, answer_id: int, *, by: str, at: datetime) -> bool:
    """A second person agrees to a write-off; False when it no longer waits."""
    own = select(break_answer.c.break_id, break_answer.c.version, break_answer.c.waits)
    row = connection.execute(own.where(break_answer.c.answer_id == answer_id)).mappings().first()
    if row is None or not row["waits"]:
        return False
    values, by_whom = {"waits": False, "agreed_by": by, "agreed_at": at}, {"by": by}
    agreeing: dict[str, Any] = {"event": "write-off agreed", "at": at, "details": by_whom}
    return record(connection, ANSWER, values, of={"answer_id": answer_id, **row}, **agreeing)


def _kept(row: Any) -> KeptAnswer:
    day = row["resolved_on"]
    return KeptAnswer(
        answer=BreakAnswer(
            resolution=row["resolution"],
            owner=row["owner"],
            comment=row["comment"],
            resolved_on=date.fromisoformat(day) if day else None,
        ),
        version=row["version"],
        by=row["given_by"],
        waits=row["waits"],
    )

"""Journals in the database: which were handed out, and which the books show."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, update

from recon.matching.frames.sources import Exported
from recon.model.words import SourceFile, SourceKind
from recon.store.database.history import Event, append
from recon.store.nights.runs import Run
from recon.store.schema import exported_journal, history, reject, run, run_source
from recon.store.schema.columns import OfAccount, account_values, in_account

_SOURCE = select(run_source).where(
    run_source.c.run_id == bindparam("of_run"), run_source.c.kind == SourceKind.LEDGER.value
)

_REFUSED = (
    select(reject)
    .where(
        reject.c.run_id == bindparam("of_run"),
        reject.c.kind == SourceKind.LEDGER.value,
        reject.c.file_id.is_(None),
    )
    .order_by(reject.c.reject_id)
)


_REFUSED_SUMS = (
    select(reject.c.entry_type, reject.c.currency, func.sum(reject.c.amount))
    .where(
        reject.c.run_id == bindparam("of_run"),
        reject.c.kind == SourceKind.LEDGER.value,
        reject.c.file_id.is_(None),
        reject.c.currency != "",
    )
    .group_by(reject.c.entry_type, reject.c.currency)
)
_NEWEST_READER = (
    select(run_source.c.run_id)
    .join(run, run.c.run_id == run_source.c.run_id)
    .where(run_source.c.kind == SourceKind.LEDGER.value, *in_account(run))
    .order_by(run.c.started_at.desc())
    .limit(1)
)
_NAMES = tuple(name for name in SourceFile.__dataclass_fields__ if name != "kind")


def save(connection: Connection, run_id: str, *, source: SourceFile) -> None:
    """Note what a run read its books from, in place of an earlier attempt's."""
    connection.execute(delete(run_source).where(run_source.c.run_id == run_id))
    connection.execute(
        delete(reject).where(reject.c.run_id == run_id, reject.c.kind == source.kind.value)
    )
    cells = {name: getattr(source, name) for name in _NAMES}
    connection.execute(insert(run_source).values(run_id=run_id, kind=source.kind.value, **cells))


def source_of(connection: Connection, run_id: str) -> SourceFile | None:
    """What a run read its books from; None when it read none."""
    row = connection.execute(_SOURCE, {"of_run": run_id}).mappings().one_or_none()
    if row is None:
        return None
    return SourceFile(kind=SourceKind.LEDGER, **{name: row[name] for name in _NAMES})


def unread(connection: Connection, run_id: str, *, whole_file: str) -> str:
    """Why a run has no books to compare: they could not be read, or no row was accepted; "" else.

    `whole_file` is the column of the reject that stands for books that could not be read.
    """
    refused = connection.execute(_REFUSED, {"of_run": run_id}).mappings().all()
    whole = next((reject for reject in refused if reject["column"] == whole_file), None)
    if whole is not None:
        return f"{whole['source']} could not be read: {whole['reason']}"
    source = connection.execute(_SOURCE, {"of_run": run_id}).mappings().one_or_none()
    if not refused or source is None or source["rows_accepted"]:
        return ""
    first = refused[0]
    return (
        f"of {source['name']} every row was refused ({source['rows_rejected']}), the first in line "
        f"{first['line']}, {first['column']}: {first['reason']}"
    )


def is_read_whole(connection: Connection, run_id: str) -> bool:
    """Whether a run read books of which no row was refused."""
    refused = connection.execute(_REFUSED, {"of_run": run_id}).first()
    return refused is None and source_of(connection, run_id) is not None


def rejected_sums(connection: Connection, run_id: str) -> dict[tuple[str, str], int]:
    """(entry type, currency) -> minor units of refused entries, added up by the database.

    Those count of which all of that could be read.
    """
    rows = connection.execute(_REFUSED_SUMS, {"of_run": run_id})
    return {(kind, currency): int(total) for kind, currency, total in rows}


def newest_reader(connection: Connection, owner: OfAccount) -> str | None:
    """The newest run of an account that read its books."""
    return connection.execute(_NEWEST_READER, account_values(owner)).scalar()


OWN_FORMAT = "csv"
"""As what a night hands its journals out."""


def exported(connection: Connection, run: Run) -> tuple[Exported, ...]:
    """Every journal of the account that was handed out, as other runs than this one know it."""
    table = exported_journal
    rows = connection.execute(
        select(table)
        .where(table.c.merchant_id == run.merchant_id, table.c.account_id == run.account_id)
        .order_by(table.c.journal_id)
    ).mappings()
    return tuple(
        Exported(
            row["break_id"],
            row["currency"],
            row["version"],
            booked=row["booked_in"] not in {"", run.run_id},
        )
        for row in rows
    )


def note_booked(connection: Connection, run: Run, *, shown: Iterable[Exported]) -> None:
    """The run's ledger shows these; what an earlier pass of the run noted is judged anew."""
    table = exported_journal
    connection.execute(update(table).where(table.c.booked_in == run.run_id).values(booked_in=""))
    for journal in shown:
        connection.execute(
            update(table)
            .where(
                table.c.merchant_id == run.merchant_id,
                table.c.account_id == run.account_id,
                table.c.break_id == journal.break_id,
                table.c.currency == journal.currency,
                table.c.version == journal.version,
            )
            .values(booked_in=run.run_id)
        )


def states(connection: Connection, journal_ids: Iterable[str]) -> dict[str, str]:
    """Id -> `exported` or `booked` of those that were handed out."""
    table = exported_journal
    wanted = set(journal_ids)
    rows = connection.execute(select(table.c.journal_id, table.c.booked_in)).all()
    return {
        row.journal_id: "booked" if row.booked_in else "exported"
        for row in rows
        if row.journal_id in wanted
    }


@dataclass(frozen=True, slots=True)
class Out:
    """A journal that was handed out."""

    journal_id: str
    merchant_id: str
    account_id: str
    break_id: str
    currency: str
    run_id: str
    """Whose proposal it was."""
    exported_at: datetime


def not_seen_in_the_books(connection: Connection) -> list[Out]:
    """Journals of all accounts that were handed out and that no night's ledger shows yet."""
    table = exported_journal
    rows = connection.execute(
        select(table)
        .where(table.c.booked_in == "")
        .order_by(table.c.exported_at, table.c.journal_id)
    ).mappings()
    return [_out(row) for row in rows]


def handed_out(connection: Connection, journal_ids: Iterable[str]) -> dict[str, Out]:
    """Those of these journals that were handed out, by id."""
    wanted = set(journal_ids)
    rows = connection.execute(select(exported_journal)).mappings()
    return {row["journal_id"]: _out(row) for row in rows if row["journal_id"] in wanted}


def _out(row: RowMapping) -> Out:
    return Out(**{name: row[name] for name in Out.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class LeftAs:
    """As what a journal was handed out last."""

    format: str = OWN_FORMAT
    days: tuple[str, ...] = ()
    """On which its file books it."""


def left_as(connection: Connection, journal_ids: Iterable[str]) -> dict[str, LeftAs]:
    """Id -> as what it was handed out last."""
    rows = connection.execute(
        select(history.c.entity_id, history.c.data)
        .where(history.c.entity == "journal", history.c.entity_id.in_([*journal_ids]))
        .order_by(history.c.sequence)
    ).tuples()
    known = ((name, json.loads(data)) for name, data in rows)
    return {name: LeftAs(data["format"], tuple(data["days"])) for name, data in known}


def note_again(
    connection: Connection,
    run: Run,
    *,
    days: Mapping[str, Sequence[str]],
    at: datetime,
    written_as: str = OWN_FORMAT,
) -> None:
    """These were handed out once more, by name; `days`: id -> days on which its file books it."""
    details = {"run": run.run_id, "format": written_as}
    append(
        connection,
        [
            Event("journal", journal_id, "exported again", {**details, "days": [*own]})
            for journal_id, own in days.items()
        ],
        at=at,
    )


def note_exported(
    connection: Connection,
    run: Run,
    *,
    journals: Iterable[tuple[str, str, str]],
    days: Mapping[str, Sequence[str]],
    at: datetime,
    written_as: str = OWN_FORMAT,
) -> None:
    """Keep that these (journal_id, break_id, currency) were handed out, with their event.

    `days`: id -> days on which its file books it.

    The caller has looked in the same transaction that none of them was.
    """
    rows: list[dict[str, Any]] = [
        {
            "journal_id": journal_id,
            "merchant_id": run.merchant_id,
            "account_id": run.account_id,
            "break_id": break_id,
            "currency": currency,
            "version": int(journal_id.rsplit("-", 1)[1]),
            "run_id": run.run_id,
            "exported_at": at,
        }
        for journal_id, break_id, currency in journals
    ]
    connection.execute(insert(exported_journal), rows)
    details = {"run": run.run_id, "format": written_as}
    events = [
        Event("journal", name, "exported", {**details, "days": [*days[name]]})
        for name in (row["journal_id"] for row in rows)
    ]
    append(connection, events, at=at)

"""Correction journals in the database: which were exported, and which the ledger shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from recon.matching.frames.sources import Exported
from recon.model.terms import Reject, SourceFile, SourceKind
from recon.store.database.bulk_rows import read, replace_rows
from recon.store.database.history import Event, append, links_of
from recon.store.nights import order_rows
from recon.store.nights.runs import Run
from recon.store.schema import exported_journal, reject, run, run_source
from recon.store.schema.columns import Owner, in_account

_OF_LEDGER = run_source.c.kind == SourceKind.LEDGER
_REFUSED = (reject.c.kind == SourceKind.LEDGER, reject.c.file_id.is_(None))
_NAMES = tuple(name for name in SourceFile.__dataclass_fields__ if name != "kind")


def save(connection: Connection, run_id: str, *, source: SourceFile) -> None:
    """Store from what a run read its ledger, replacing an earlier attempt."""
    of_kind = reject.c.kind == source.kind
    connection.execute(delete(reject).where(reject.c.run_id == run_id, of_kind))
    replace_rows(connection, run_source, run_id, [asdict(source)])


def source_of(connection: Connection, run_id: str) -> SourceFile | None:
    """Return from what a run read its ledger; None if it read none."""
    columns = (run_source.c[name] for name in _NAMES)
    own = select(*columns).where(run_source.c.run_id == run_id, _OF_LEDGER)
    row = connection.execute(own).mappings().one_or_none()
    return None if row is None else SourceFile(kind=SourceKind.LEDGER, **row)


def unread(connection: Connection, run_id: str, *, whole_file: str) -> str:
    """Return why a run has no ledger to compare (unreadable, or no row accepted); "" if it has.

    `whole_file` is the reject column that marks a ledger that could not be read.
    """
    rejected = _refused(connection, run_id)
    whole = next((each for each in rejected if each.column == whole_file), None)
    if whole is not None:
        return f"{whole.source} could not be read: {whole.reason}"
    source = source_of(connection, run_id)
    if not rejected or source is None or source.rows_accepted:
        return ""
    first = rejected[0]
    return (
        f"of {source.name} every row was refused ({source.rows_rejected}), the first in line "
        f"{first.line}, {first.column}: {first.reason}"
    )


def _refused(connection: Connection, run_id: str) -> list[Reject]:
    return order_rows.rejects(connection, reject.c.run_id == run_id, *_REFUSED)


def is_read_whole(connection: Connection, run_id: str) -> bool:
    """Return whether a run read a ledger without any rejected row."""
    return not _refused(connection, run_id) and source_of(connection, run_id) is not None


def rejected_sums(connection: Connection, run_id: str) -> dict[tuple[str, str], int]:
    """Return minor units of rejected entries by entry type and currency, summed in SQL.

    Only entries are included of which all of that could be read.
    """
    by = (reject.c.entry_type, reject.c.currency)
    own = (reject.c.run_id == run_id, *_REFUSED, reject.c.currency != "")
    rows = connection.execute(select(*by, func.sum(reject.c.amount)).where(*own).group_by(*by))
    return {(kind, currency): int(total) for kind, currency, total in rows}


def newest_reader(connection: Connection, owner: Owner) -> str | None:
    """Return the newest run of an account that read its ledger; None if there is none."""
    return connection.scalar(
        select(run.c.run_id)
        .join(run_source, run_source.c.run_id == run.c.run_id)
        .where(_OF_LEDGER, *in_account(run, owner))
        .order_by(run.c.started_at.desc())
        .limit(1)
    )


OWN_FORMAT = "csv"
"""Format in which a night exports its journals."""


def exported(connection: Connection, run: Run) -> tuple[Exported, ...]:
    """Return all exported journals of the account, with whether another run's ledger has them."""
    table = exported_journal
    columns = (table.c[name] for name in ("break_id", "currency", "version", "booked_in"))
    own = select(*columns).where(*in_account(table, run)).order_by(table.c.journal_id)
    return tuple(
        Exported(break_id, currency, version, booked=booked_in not in {"", run.run_id})
        for break_id, currency, version, booked_in in connection.execute(own).tuples()
    )


def note_booked(connection: Connection, run: Run, *, booked: Iterable[Exported]) -> None:
    """Mark journals as booked in the run's ledger, replacing the marks of its earlier pass."""
    table = exported_journal
    connection.execute(update(table).where(table.c.booked_in == run.run_id).values(booked_in=""))
    for journal in booked:
        connection.execute(
            update(table)
            .where(
                *in_account(table, run),
                table.c.break_id == journal.break_id,
                table.c.currency == journal.currency,
                table.c.version == journal.version,
            )
            .values(booked_in=run.run_id)
        )


def states(connection: Connection, journal_ids: Iterable[str]) -> dict[str, str]:
    """Map the ids of exported journals to `exported` or, once a ledger shows them, `booked`."""
    out = {each.journal_id for each in not_seen_in_ledger(connection)}
    known = handed_out(connection, journal_ids)
    return {each: "exported" if each in out else "booked" for each in known}


@dataclass(frozen=True, slots=True)
class Out:
    """An exported journal."""

    journal_id: str
    merchant_id: str
    account_id: str
    break_id: str
    currency: str
    run_id: str
    """The run that proposed it."""
    exported_at: datetime


def not_seen_in_ledger(connection: Connection) -> list[Out]:
    """Return exported journals of all accounts that no night's ledger shows yet."""
    return _out(connection, exported_journal.c.booked_in == "")


def handed_out(connection: Connection, journal_ids: Iterable[str]) -> dict[str, Out]:
    """Return those of the given journals that were exported, by id."""
    ids = {*journal_ids}
    return {each.journal_id: each for each in _out(connection) if each.journal_id in ids}


def _out(connection: Connection, *which: ColumnElement[bool]) -> list[Out]:
    order = exported_journal.c.exported_at, exported_journal.c.journal_id
    return read(connection, Out, exported_journal, *which, order=order)


@dataclass(frozen=True, slots=True)
class LeftAs:
    """How a journal was last exported."""

    format: str = OWN_FORMAT
    days: tuple[str, ...] = ()
    """Days on which its file books it."""


def left_as(connection: Connection, journal_ids: Iterable[str]) -> dict[str, LeftAs]:
    """Return how each exported journal was last exported, by id."""
    links = links_of(connection, [*journal_ids], entity="journal")
    known = ((link.entity_id, link.data) for link in links)
    return {name: LeftAs(data["format"], tuple(data["days"])) for name, data in known}


def note_exported(
    connection: Connection,
    run: Run,
    *,
    journals: Iterable[tuple[str, str, str]],
    days: Mapping[str, Sequence[str]],
    at: datetime,
    written_as: str = OWN_FORMAT,
    is_again: bool = False,
) -> None:
    """Store that journals (journal_id, break_id, currency) were exported, with their events.

    The caller has checked in the same transaction that none was exported, or each exactly once.

    Args:
        connection: Of the transaction.
        run: The run that proposed them.
        journals: Each once.
        days: Journal id -> days on which its file books it.
        at: When.
        written_as: The format.
        is_again: Whether they were exported once more.
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
    if not is_again:
        connection.execute(insert(exported_journal), rows)
    event, details = ("exported again" if is_again else "exported"), {"run": run.run_id}
    events = [
        Event("journal", name, event, {**details, "format": written_as, "days": [*days[name]]})
        for name in (row["journal_id"] for row in rows)
    ]
    append(connection, events, at=at)

"""Which books a run read, what of them it refused; the entries lie in the night's folder."""

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from recon.model.words import SourceFile, SourceKind
from recon.store.schema import reject, run, run_source
from recon.store.schema.account_filter import OfAccount, account_values, in_account

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

"""The ledger as a run read it: kept, so that the night can be rebuilt and compared again."""

import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection, bindparam, case, delete, func, insert, select, union_all

from recon.matching.frames.sources import LEDGER_COLUMNS
from recon.model.words import REVERSAL_SUFFIX, EntryType, SourceFile, SourceKind
from recon.store.database.bulk_rows import arrow_rows, insert_rows, with_constant
from recon.store.database.frames import frame_of_select
from recon.store.nights.runs import Run
from recon.store.schema import ledger_entry, reject, run_source
from recon.store.schema import run as run_table

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


def save(connection: Connection, run_id: str, *, entries: pd.DataFrame, source: SourceFile) -> None:
    """Keep the extract of one run in place of an earlier attempt's."""
    connection.execute(delete(ledger_entry).where(ledger_entry.c.run_id == run_id))
    connection.execute(delete(run_source).where(run_source.c.run_id == run_id))
    connection.execute(
        delete(reject).where(reject.c.run_id == run_id, reject.c.kind == source.kind.value)
    )
    rows = arrow_rows(entries, names=tuple(LEDGER_COLUMNS))
    rows = with_constant(rows, name="run_id", value=run_id)
    rows = rows.append_column("position", pa.array(range(rows.num_rows), pa.int64()))
    insert_rows(connection, ledger_entry, rows)
    names = tuple(name for name in SourceFile.__dataclass_fields__ if name != "kind")
    cells = {name: getattr(source, name) for name in names}
    connection.execute(insert(run_source).values(run_id=run_id, kind=source.kind.value, **cells))


def load(connection: Connection, run_id: str) -> tuple[pd.DataFrame, SourceFile] | None:
    """The extract of a run (LEDGER_COLUMNS) and where it came from; None when none was read."""
    row = connection.execute(_SOURCE, {"of_run": run_id}).mappings().one_or_none()
    if row is None:
        return None
    names = tuple(name for name in SourceFile.__dataclass_fields__ if name != "kind")
    source = SourceFile(kind=SourceKind.LEDGER, **{name: row[name] for name in names})
    query = (
        select(*(ledger_entry.c[name] for name in LEDGER_COLUMNS))
        .where(ledger_entry.c.run_id == run_id)
        .order_by(ledger_entry.c.position)
    )
    return frame_of_select(connection, query, columns=LEDGER_COLUMNS), source


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


def sums_by_type(connection: Connection, run_id: str) -> dict[tuple[str, str], int]:
    """(entry type, currency) -> minor units of the whole file, added up by the database.

    Rejected entries count where all of that could be read of them.
    """
    entry, unread = ledger_entry.c, reject.c
    both = union_all(
        select(entry.entry_type, entry.currency, entry.amount).where(entry.run_id == run_id),
        select(unread.entry_type, unread.currency, unread.amount).where(
            unread.run_id == run_id,
            unread.kind == SourceKind.LEDGER.value,
            unread.file_id.is_(None),
            unread.currency != "",
        ),
    ).subquery()
    rows = connection.execute(
        select(both.c.entry_type, both.c.currency, func.sum(both.c.amount)).group_by(
            both.c.entry_type, both.c.currency
        )
    )
    return {(kind, currency): int(total) for kind, currency, total in rows}


def charged_back(connection: Connection, run: Run) -> dict[tuple[str, str, str], int]:
    """Order, transaction ("" where none is booked) and currency -> minor units charged back.

    By the newest extract of the account that any run read; reversals count against it.
    """
    newest = (
        select(run_source.c.run_id)
        .join(run_table, run_table.c.run_id == run_source.c.run_id)
        .where(
            run_source.c.kind == SourceKind.LEDGER.value,
            run_table.c.merchant_id == run.merchant_id,
            run_table.c.account_id == run.account_id,
        )
        .order_by(run_table.c.started_at.desc())
        .limit(1)
    )
    entry = ledger_entry.c
    kind = EntryType.CHARGEBACK.value
    amount = func.coalesce(entry.transaction_amount, entry.amount)
    currency = case(
        (entry.transaction_amount.is_not(None), entry.transaction_currency), else_=entry.currency
    )
    rows = connection.execute(
        select(
            entry.order_no,
            entry.transaction_id,
            currency.label("in_currency"),
            func.sum(case((entry.entry_type == kind, amount), else_=-amount)).label("total"),
        )
        .where(
            entry.run_id == newest.scalar_subquery(),
            entry.merchant_id == run.merchant_id,
            entry.account_id == run.account_id,
            entry.entry_type.in_((kind, kind + REVERSAL_SUFFIX)),
        )
        .group_by(entry.order_no, entry.transaction_id, currency)
    )
    return {(row.order_no, row.transaction_id, row.in_currency): int(row.total) for row in rows}

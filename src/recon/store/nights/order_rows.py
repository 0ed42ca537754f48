"""Order files in the database: each arrived content, with its rows in an archived facts file.

Which rows are current is not decided here, but from all that arrived (`stored_orders`).
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from itertools import groupby
from typing import Any

import pandas as pd
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    bindparam,
    cast,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
)

from recon.matching.frames.sources import LoadCounts
from recon.model.terms import Quarantined, Reject, SourceFile, SourceKind
from recon.store.database.bulk_rows import add_rows, rows_of
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import LINKS_AT_ONCE, ChainLink, Event, append
from recon.store.database.record import PAST, Attested, cells_of, data_of, folded
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import Written
from recon.store.nights.runs import OF_DAYS, Run, counting
from recon.store.schema import history, order_action, order_file, reject, reject_end
from recon.store.schema.columns import ID_CHARACTERS, REASON_CHARACTERS, Owner, in_account

DELIVERED, DISMISSED = "delivered", "dismissed"
"""How a rejected row is resolved: its order arrived again, or a person dismissed it."""
FILES_LOOKED_AT_MAX = 1_000
"""Maximum number of files read to estimate the usual size of a sender's files."""
LATEST = 2**31 - 1
"""Upper bound for file and end numbers, for queries of the current state."""
Waiting = Mapping[str, Collection[tuple[int, str, str]]]
"""Order number -> reject id with the merchant and account that must match ("": any)."""

_NEVER_ENDED = ~exists().where(
    reject_end.c.reject_id == reject.c.reject_id, reject_end.c.end_id <= bindparam("last_end")
)
_OF_ORDERS = and_(
    reject.c.kind == SourceKind.ORDERS,
    reject.c.line > 0,  # a file refused as a whole names no order
    reject.c.merchant_id.in_(["", order_file.c.merchant_id]),
    reject.c.file_id <= bindparam("last_file"),
)
_NEWER = order_file.alias("newer_version")
_OF_LINES = and_(
    reject.c.kind == SourceKind.SETTLEMENT,
    reject.c.line > 0,
    reject.c.order_no != "",
    reject.c.merchant_id == order_file.c.merchant_id,
    reject.c.file_id <= bindparam("last_file"),
    ~exists().where(
        *(_NEWER.c[name] == order_file.c[name] for name in ("merchant_id", "account_id", "name")),
        _NEWER.c.file_id > reject.c.file_id,
        _NEWER.c.file_id <= bindparam("last_file"),
    ),
)


def outstanding(
    connection: Connection, run: Run, *, last_file: int = LATEST, last_end: int = LATEST
) -> tuple[Quarantined, ...]:
    """Return the unresolved rejected rows that concern orders of the account, oldest first.

    Args:
        connection: Of the database.
        run: A run of the account.
        last_file: The last file that counts.
        last_end: The last delivery or decision that counts.
    """
    of_account = (order_file.c.merchant_id == run.merchant_id) & or_(
        reject.c.account_id == run.account_id,
        # A row without an account may belong to any of the merchant's, if it names an order.
        (reject.c.account_id == "") & (reject.c.order_no != ""),
        (reject.c.account_id == "") & (order_file.c.account_id == run.account_id),
    )
    values = {"last_file": last_file, "last_end": last_end}
    rows = connection.execute(_current(of_account & or_(_OF_ORDERS, _OF_LINES)), values).mappings()
    return tuple(
        Quarantined(**{name: row[name] for name in Quarantined.__dataclass_fields__})
        for row in rows
    )


def _current(which: ColumnElement[bool]) -> Select[Any]:
    return (
        select(reject, order_file.c.merchant_id.label("merchant_of_inbox"))
        .join(order_file, order_file.c.file_id == reject.c.file_id)
        .where(which, _NEVER_ENDED)
        .order_by(reject.c.reject_id)
    )


def _waiting_for(connection: Connection, *, file_id: int) -> Waiting:
    """Return rejected rows of earlier files whose orders a file may deliver again.

    A row without a merchant matches any merchant if this file came to the same merchant's inbox;
    otherwise it belongs to the merchant of its own inbox.
    """
    this = select(order_file.c.merchant_id).where(order_file.c.file_id == file_id)
    merchant_id = connection.execute(this).scalar_one()
    values = {"last_file": file_id - 1, "last_end": LATEST}
    waiting: dict[str, list[tuple[int, str, str]]] = {}
    for row in connection.execute(_current(_OF_ORDERS & (reject.c.order_no != "")), values):
        is_any = row.merchant_id == "" and row.merchant_of_inbox == merchant_id
        identity = (row.reject_id, "" if is_any else row.merchant_of_inbox, row.account_id)
        waiting.setdefault(row.order_no, []).append(identity)
    return waiting


def _brought(waiting: Waiting, *, orders: pd.DataFrame) -> set[int]:
    """Return the waiting reject ids whose order is in a part of the file."""
    among = orders[orders["order_no"].isin([*waiting])]
    keys = zip(among["order_no"], among["merchant_id"], among["account_id"], strict=True)
    return {
        reject_id
        for order_no, merchant_id, account_id in keys
        for reject_id, merchant, account in waiting[order_no]
        if merchant in {"", merchant_id} and account in {"", account_id}
    }


def dismiss(connection: Connection, reject_id: int, *, by: str, why: str, at: datetime) -> None:
    """Store a person's decision that a rejected row no longer concerns any order."""
    values = {"reject_id": reject_id, "ended": DISMISSED, "file_id": None, "ended_at": at}
    connection.execute(
        insert(reject_end), {**values, "decided_by": by, "why": why[:REASON_CHARACTERS]}
    )


def last_end(connection: Connection) -> int:
    """Return the number of the newest delivery or decision; 0 if there is none."""
    return connection.execute(select(func.max(reject_end.c.end_id))).scalar() or 0


ACTIONS = Attested(
    table=order_action,
    entity="actions",
    key="file_id",
    free={
        "action_id": "a number that says only which row came first",
        "instruction_id": "WEAK: it hides what a file asked for, and moves nothing",
    },
)
"""All actions of a file share one event, which has a digest of their rows for each account."""
ARRIVED = "arrived"
OF_A_FILE = ("name", "kind", "sha256")
_PLACE = ("file_id", "merchant_id", "account_id")
_IN_ORDER = [order_action.c[name] for name in (*_PLACE, "action_id")]
_SOME = {"yield_per": LINKS_AT_ONCE}
_ENTITY_ID = literal(f"{ACTIONS.entity}-") + cast(order_action.c.file_id, String)
_WAITING = (
    select(
        order_action,
        *(order_file.c[name].label(f"file_{name}") for name in OF_A_FILE),
        history.c.data,
    )
    .join(order_file, order_file.c.file_id == order_action.c.file_id)
    # There is one link per file; a second would duplicate its rows, so the digests would differ.
    .outerjoin(history, and_(history.c.entity == ACTIONS.entity, history.c.entity_id == _ENTITY_ID))
    .where(order_action.c.instruction_id == "")
    .order_by(*_IN_ORDER)
    .execution_options(**_SOME)
)
_COUNTS = select(
    _ENTITY_ID.label("file"),
    *(order_action.c[name] for name in _PLACE),
    func.count().label("count"),
)
_COUNTS = _COUNTS.group_by(*(order_action.c[name] for name in _PLACE))
_LINKS = select(history.c.entity_id, history.c.data).where(history.c.entity == ACTIONS.entity)


def _bind_actions(
    connection: Connection, *, file_id: int, source: SourceFile, at: datetime
) -> None:
    """Record a file's actions, if any, in the history, in the transaction that stores them."""
    own = select(order_action).where(order_action.c.file_id == file_id).order_by(*_IN_ORDER)
    accounts = _digests(connection.execute(own, execution_options=_SOME).mappings())
    if accounts:
        # Files have a lock of their own, so movements of money do not wait; now both are needed.
        join_turn(connection, Turn.JOURNAL)
        attested = {name: str(getattr(source, name)) for name in OF_A_FILE} | {"accounts": accounts}
        file = f"{ACTIONS.entity}-{file_id}"
        append(connection, [Event(ACTIONS.entity, file, ARRIVED, attested)], at=at)


def changed_actions(connection: Connection, run: Run) -> Iterator[str]:
    """Yield a problem for each file of which the account's unplanned actions were changed."""
    waiting = _WAITING.where(*in_account(order_action, run))
    yield from _changed(connection.execute(waiting).mappings())


def all_changed_actions(connection: Connection) -> Iterator[str]:
    """Yield as `changed_actions` for every account, and files that lack actions, planned or not."""
    yield from _changed(connection.execute(_WAITING).mappings())
    counts = {
        (row["file"], _account(row)): row["count"] for row in connection.execute(_COUNTS).mappings()
    }
    for file, data in connection.execute(_LINKS).tuples():
        bound = data_of(data)
        for account, arrived in bound.get("accounts", {}).items():
            if (count := counts.get((file, account), 0)) != arrived["rows"]:
                has = f"its table has {count} of {arrived['rows']} rows"
                number = file.removeprefix(f"{ACTIONS.entity}-")
                yield _sentence(bound["name"], number, account=account, problem=has)


def _digests(rows: Iterable[Mapping[Any, Any]]) -> dict[str, Any]:
    """Return the number of rows and the digest of their content for each account of a file."""
    facts = {}
    for account, group in groupby(rows, key=_account):
        digest, count = hashlib.sha256(), 0
        for row in group:
            digest.update(json.dumps(folded([cells_of(ACTIONS, row)])).encode())
            count += 1
        facts[account] = {"rows": count, "digest": digest.hexdigest()}
    return facts


def _changed(rows: Iterable[Mapping[Any, Any]]) -> Iterator[str]:
    for file_id, group in groupby(rows, key=lambda row: row["file_id"]):
        waiting = list(group)
        for account, now in _digests(waiting).items():
            if problem := _problem(waiting[0], now=now, account=account):
                yield _sentence(waiting[0]["file_name"], file_id, account=account, problem=problem)


def _problem(first: Mapping[Any, Any], *, now: Mapping[str, Any], account: str) -> str:
    attested = data_of(first["data"])
    arrived = attested.get("accounts", {}).get(account)
    if arrived is None:
        return "the history has no event of them"
    if any(first[f"file_{name}"] != attested[name] for name in OF_A_FILE):
        return f"the file was {attested['name']} ({attested['kind']}, {attested['sha256'][:12]}…)"
    if now["rows"] != arrived["rows"]:
        return f"{arrived['rows']} arrived, {now['rows']} wait"
    return "" if now == arrived else "they do not say what arrived"


def _sentence(name: str, number: object, *, account: str, problem: str) -> str:
    return (
        f"the instructions of file {name} (number {number}) for account {account} are not what the "
        f"history bound: {problem}; {PAST}"
    )


def _account(row: Mapping[Any, Any]) -> str:
    return f"{row['merchant_id']}/{row['account_id']}"


Parts = Callable[[], Iterable[tuple[pd.DataFrame, pd.DataFrame]]]
"""Returns orders and actions of an order file in parts; may be called repeatedly."""


def known_file(connection: Connection, run: Run, *, name: str, sha256: str) -> SourceFile | None:
    """Return the account's current file with this content; None if the content is new.

    Content that returns after a newer version of the same name is a new version again. Under a new
    name it is known while it is the newest version of another name under which it was read itself.
    What a dry run of a night read is known to dry runs only.
    """
    newest = newest_files(run, order_file.c.kind.not_in(OF_DAYS), *counting(run))
    alike = or_(order_file.c.name == name, order_file.c.sha256 == sha256)
    query = select(order_file).where(order_file.c.file_id.in_(newest), alike)
    rows = connection.execute(query.order_by(order_file.c.file_id))
    files = [source_file(row) for row in rows.mappings()]
    named = next((file for file in files if file.name == name), None)
    if named is not None:
        return named if named.sha256 == sha256 else None
    return next(iter(files), None)


def is_copy(file: SourceFile) -> bool:
    """Return whether the file's content was known under another name when it arrived."""
    return 0 < file.rows_read == file.rows_skipped and not file.skipped_by


def save_copy(
    connection: Connection, run: Run, *, of: SourceFile, name: str, sender: str, at: datetime
) -> SourceFile:
    """Store that known content arrived under another name; its actions are not stored again.

    `sender` is that of its facts (see `StoredFacts`).
    """
    copy = replace(
        of,
        name=name,
        rows_accepted=0,
        rows_rejected=0,
        rows_skipped=of.rows_read,
        rows_unassigned=0,
        skipped_by="",
    )
    file_id = insert_file(connection, run, source=copy, at=at)
    known = connection.scalar(newest_files(run, order_file.c.name == of.name, *counting(run)))
    facts_rows.save_again(connection, known or 0, file_id=file_id, sender=sender, at=at)
    return copy


def save_file(
    connection: Connection,
    run: Run,
    *,
    source: SourceFile,
    rejects: Sequence[Reject],
    at: datetime,
    facts: Written | None = None,
    parts: Parts = tuple,
    actions: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Store one file completely.

    Args:
        connection: Of the transaction.
        run: The run that read it.
        source: The file that was read.
        rejects: Its rejected rows.
        at: When.
        facts: Its written facts file; None if it has no rows.
        parts: Orders and actions of an order file.
        actions: Of an instruction file; all accepted rows are new, planning detects repeats.
    """
    new = source.rows_accepted
    file_id = insert_file(connection, run, source=source, rejects=rejects, new=new, at=at)
    add_rows(connection, order_action, [{**action, "file_id": file_id} for action in actions])
    waiting = _waiting_for(connection, file_id=file_id)
    delivered = set[int]()
    for orders, requested in parts():
        rows = [
            {**{name: row[name] for name in _ACTION_COLUMNS}, "file_id": file_id}
            for row in rows_of(requested)
        ]
        add_rows(connection, order_action, rows)
        delivered |= _brought(waiting, orders=orders)
    end = {"ended": DELIVERED, "file_id": file_id, "ended_at": at}
    ends = [{"reject_id": each, **end} for each in sorted(delivered)]
    add_rows(connection, reject_end, ends)
    if facts is not None:
        facts_rows.save(connection, facts, file_id=file_id, at=at)
    _bind_actions(connection, file_id=file_id, source=source, at=at)


def files_of_night(
    connection: Connection, run: Run, *, until: int | None = None
) -> list[tuple[SourceFile, LoadCounts]]:
    """Return the newest version of each file first read for this business date, with counts."""
    query = select(order_file).where(*of_night(run, until=until))
    rows = connection.execute(query.order_by(order_file.c.name, order_file.c.version)).mappings()
    newest = {row["name"]: row for row in rows}
    return [
        (source_file(row), LoadCounts(row["rows_accepted"], row["rows_new"], row["rows_repeat"], 0))
        for row in newest.values()
    ]


def contents_ingested(connection: Connection) -> set[str]:
    """Return the SHA-256 of all files, of any kind, of which rows were accepted."""
    query = select(order_file.c.sha256).where(order_file.c.rows_accepted > 0)
    return {*connection.execute(query).scalars()}


def versions_until(
    connection: Connection, run: Run, *, until: int, whole_file: str
) -> list[tuple[SourceFile, date, bool]]:
    """Return all versions of order files up to a night, with business date and if refused whole.

    `whole_file` is the reject column that marks a file that could not be read.
    """
    rejected = select(reject.c.file_id).where(reject.c.column == whole_file)
    rows = connection.execute(
        select(order_file, order_file.c.file_id.in_(rejected).label("is_refused"))
        .where(
            *in_account(order_file, run),
            order_file.c.kind == SourceKind.ORDERS,
            order_file.c.business_date <= run.business_date,
            order_file.c.file_id <= until,
            *counting(run),
        )
        .order_by(order_file.c.file_id)
    )
    return [
        (source_file(row), row["business_date"], bool(row["is_refused"])) for row in rows.mappings()
    ]


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The newest version of a file of an account."""

    file_id: int
    run_id: str
    business_date: date
    version: int
    source: SourceFile
    read_at: datetime
    refused: str
    """Why it could not be read at all; "" if it was read."""
    decision: ChainLink | None = None
    """The newest event of people's decisions on it, with `by` and `reason`."""


def newest_versions(connection: Connection, owner: Owner, *, whole_file: str) -> list[KnownFile]:
    """Return the newest version of each file of an account, by name.

    `whole_file` is the reject column that marks a file that could not be read.
    """
    of_file = reject.c.file_id == order_file.c.file_id, reject.c.column == whole_file
    rejected = select(reject.c.reason).where(*of_file).limit(1).scalar_subquery()
    newest = order_file.c.file_id.in_(newest_files(owner))
    query = select(order_file, rejected.label("refused")).where(newest).order_by(order_file.c.name)
    names = ("file_id", "run_id", "business_date", "version", "read_at")
    return [
        KnownFile(
            **{name: row[name] for name in names},
            source=source_file(row),
            refused=row["refused"] or "",
        )
        for row in connection.execute(query).mappings()
    ]


def rows_before(connection: Connection, run: Run) -> list[tuple[str, int]]:
    """Return name and row count of earlier nights' order files, newest night and version first."""
    files = connection.execute(
        select(order_file.c.business_date, order_file.c.name, order_file.c.rows_read)
        .where(
            *in_account(order_file, run),
            order_file.c.kind == SourceKind.ORDERS,
            order_file.c.business_date < run.business_date,
            *counting(run),
        )
        .order_by(order_file.c.business_date.desc(), order_file.c.file_id)
        .limit(FILES_LOOKED_AT_MAX)
    )
    newest = {(row.business_date, row.name): row.rows_read for row in files}
    return [(name, rows) for (_, name), rows in newest.items()]


def rejects_of_night(connection: Connection, run: Run, *, until: int | None = None) -> list[Reject]:
    """Return rejected rows of the night's newest file versions, and of the run's ledger."""
    newest = newest_files(run, *of_night(run, until=until))
    of_run = reject.c.file_id.is_(None) & (reject.c.run_id == run.run_id)
    return rejects(connection, reject.c.file_id.in_(newest) | of_run)


def rejects(connection: Connection, *which: ColumnElement[bool]) -> list[Reject]:
    """Return rejected rows that match all conditions, in order of arrival."""
    names = tuple(name for name in Reject.__dataclass_fields__ if name != "batch_id")
    query = select(*(reject.c[name] for name in names)).where(*which).order_by(reject.c.reject_id)
    rows = connection.execute(query).mappings()
    return [Reject(**{**row, "kind": SourceKind(row["kind"])}) for row in rows]


def insert_rejects(
    connection: Connection, rejects: Iterable[Reject], *, run_id: str, file_id: int | None
) -> None:
    """Store rejected rows; texts are cut to the length of their columns."""
    longest = {"column": 100, "reason": REASON_CHARACTERS, "value": REASON_CHARACTERS}
    longest |= dict.fromkeys(("merchant_id", "account_id", "order_no", "batch_id"), ID_CHARACTERS)
    rows = []
    for item in rejects:
        cells = asdict(item)
        cut = {name: cells[name][:characters] for name, characters in longest.items()}
        rows.append({**cells, **cut, "run_id": run_id, "file_id": file_id})
    add_rows(connection, reject, rows)


def newest_files(
    owner: Owner, *which: ColumnElement[bool], until: int | None = None
) -> Select[tuple[int]]:
    """Select the newest version of each file name of an account, up to file `until` if given."""
    file = order_file.c
    query = select(func.max(file.file_id)).where(*in_account(order_file, owner), *which)
    query = query if until is None else query.where(file.file_id <= until)
    return query.group_by(file.name)


def of_night(run: Run, *, until: int | None) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for files first read for this business date."""
    read = () if until is None else (order_file.c.file_id <= until,)
    night = order_file.c.business_date == run.business_date
    return (*in_account(order_file, run), night, *counting(run), *read)


def insert_file(
    connection: Connection,
    run: Run,
    *,
    source: SourceFile,
    at: datetime,
    rejects: Sequence[Reject] = (),
    new: int = 0,
    repeat: int = 0,
) -> int:
    """Store the next version of a file with its rejected rows; return its number.

    Of its accepted rows `new` are stored now, and `repeat` were stored before.
    """
    known = *in_account(order_file, run), order_file.c.name == source.name
    newest = connection.scalar(select(func.max(order_file.c.version)).where(*known))
    inserted = connection.execute(
        insert(order_file)
        .values(
            **asdict(source),
            merchant_id=run.merchant_id,
            account_id=run.account_id,
            business_date=run.business_date,
            run_id=run.run_id,
            version=(newest or 0) + 1,
            rows_new=new,
            rows_repeat=repeat,
            read_at=at,
        )
        .returning(order_file.c.file_id)
    )
    file_id = int(inserted.scalar_one())
    insert_rejects(connection, rejects, run_id=run.run_id, file_id=file_id)
    return file_id


_ACTION_COLUMNS = (
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "currency",
    "amount",
    "action",
    "action_amount",
    "action_reason",
    "request_id",
    "line",
    "status",
    "expected_captured_amount",
    "refund_amount",
)


def source_file(row: Mapping[Any, Any]) -> SourceFile:
    """Convert a row of `order_file` to a SourceFile."""
    cells = {name: row[name] for name in SourceFile.__dataclass_fields__}
    return SourceFile(**{**cells, "kind": SourceKind(row["kind"])})

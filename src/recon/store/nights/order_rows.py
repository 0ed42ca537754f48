"""Order files in the database: every content that arrived, with its rows as a file of facts.

Nothing is decided here: which rows stand is looked up in all that arrived (`stored_orders`).
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
from recon.store.database.record import PAST, Bound, cells_of, data_of, folded
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import Written
from recon.store.nights.runs import OF_DAYS, Run, counting
from recon.store.schema import history, order_action, order_file, reject, reject_end
from recon.store.schema.columns import ID_CHARACTERS, REASON_CHARACTERS, Owner, in_account

DELIVERED, DISMISSED = "delivered", "dismissed"
"""How a rejected row stops standing for its order."""
FILES_LOOKED_AT_MAX = 1_000
"""Of earlier nights, to know how large a sender's files usually are."""
LATEST = 2**31 - 1
"""For a look at what stands now: no file and no end is newer."""
Waiting = Mapping[str, Collection[tuple[int, str, str]]]
"""Order number -> reject id, and the merchant and account that it must be of ("": any)."""

_NEVER_ENDED = ~exists().where(
    reject_end.c.reject_id == reject.c.reject_id,
    or_(
        reject_end.c.end_id <= bindparam("last_end"),
        # Who carried older databases over noted deliveries later than they were.
        (reject_end.c.ended == DELIVERED) & (reject_end.c.file_id <= bindparam("last_file")),
    ),
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
    """The rejected rows that stand for orders of the account, the oldest first.

    Args:
        connection: the store.
        run: of the account.
        last_file: the last file that counts.
        last_end: the last delivery or decision that counts.
    """
    of_account = (order_file.c.merchant_id == run.merchant_id) & or_(
        reject.c.account_id == run.account_id,
        # Without its account a row may be of any account of the merchant, if it names an order.
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
    """Rejected rows of earlier files that a file may bring again.

    A row that does not say its merchant may be of any that its own inbox brings rows of; else, and
    in the inbox of another merchant, it is of the merchant whose inbox it came to.
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
    """Those of which the order stands in a part of the file."""
    among = orders[orders["order_no"].isin([*waiting])]
    places = zip(among["order_no"], among["merchant_id"], among["account_id"], strict=True)
    return {
        reject_id
        for order_no, merchant_id, account_id in places
        for reject_id, merchant, account in waiting[order_no]
        if merchant in {"", merchant_id} and account in {"", account_id}
    }


def dismiss(connection: Connection, reject_id: int, *, by: str, why: str, at: datetime) -> None:
    """Keep that a person decided: the row stands for no order any more."""
    values = {"reject_id": reject_id, "ended": DISMISSED, "file_id": None, "ended_at": at}
    connection.execute(
        insert(reject_end), {**values, "said_by": by, "why": why[:REASON_CHARACTERS]}
    )


def last_end(connection: Connection) -> int:
    """The newest delivery or decision."""
    return connection.execute(select(func.max(reject_end.c.end_id))).scalar() or 0


ACTIONS = Bound(
    table=order_action,
    entity="actions",
    key="file_id",
    free={
        "action_id": "a number that says only which row came first",
        "instruction_id": "WEAK: it hides what a file asked for, and moves nothing",
    },
)
"""All actions of a file have one event, with a digest of their rows for each account."""
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
    # One link for each file; a second would double its rows, and they would not agree.
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
    """Bind a file's actions, in the transaction that stored them; nothing where it asks nothing."""
    own = select(order_action).where(order_action.c.file_id == file_id).order_by(*_IN_ORDER)
    accounts = _digests(connection.execute(own, execution_options=_SOME).mappings())
    if accounts:
        # Files have a turn of their own, so that nobody's money waits for them; this is its end.
        join_turn(connection, Turn.JOURNAL)
        bound = {name: str(getattr(source, name)) for name in OF_A_FILE} | {"accounts": accounts}
        file = f"{ACTIONS.entity}-{file_id}"
        append(connection, [Event(ACTIONS.entity, file, ARRIVED, bound)], at=at)


def changed_actions(connection: Connection, run: Run) -> Iterator[str]:
    """Files of which the account's waiting actions are not what arrived, in words."""
    waiting = _WAITING.where(*in_account(order_action, run))
    yield from _changed(connection.execute(waiting).mappings())


def all_changed_actions(connection: Connection) -> Iterator[str]:
    """As `changed_actions`, for every account; and files that lost actions, planned or not."""
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
    """Account -> how many rows a file has of it, and the digest of all that they say."""
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
    bound = data_of(first["data"])
    arrived = bound.get("accounts", {}).get(account)
    if arrived is None:
        return "the history never heard of them"
    if any(first[f"file_{name}"] != bound[name] for name in OF_A_FILE):
        return f"the file was {bound['name']} ({bound['kind']}, {bound['sha256'][:12]}…)"
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
"""Orders and actions of an order file, some rows at a time; as often as it is asked."""


def known_file(connection: Connection, run: Run, *, name: str, sha256: str) -> SourceFile | None:
    """The file of this account with this content, if that is what stands now.

    Content that came back after a newer version of the same name is a new version again; under a
    new name it is known while another name, which was read itself, has it as its newest version.
    What a dry run read is known to dry runs only: it binds nothing.
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
    """Whether its content was known under another name when it arrived."""
    return 0 < file.rows_read == file.rows_skipped and not file.skipped_by


def save_copy(
    connection: Connection, run: Run, *, of: SourceFile, name: str, sender: str, at: datetime
) -> SourceFile:
    """Note that known content arrived under another name: what it asks for counts once.

    `sender` as of its facts (`StoredFacts`).
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
    """Store one file whole.

    Args:
        connection: of the transaction.
        run: that read it.
        source: what was read.
        rejects: what of it could not be read.
        at: when.
        facts: its rows, which are written; None: it has none.
        parts: of an order file.
        actions: of an instruction file; every accepted row is new, planning knows repeats.
    """
    new = source.rows_accepted
    file_id = insert_file(connection, run, source=source, rejects=rejects, new=new, at=at)
    add_rows(connection, order_action, [{**action, "file_id": file_id} for action in actions])
    waiting = _waiting_for(connection, file_id=file_id)
    delivered = set[int]()
    for part, asked in parts():
        rows = [
            {**{name: row[name] for name in _ACTION_COLUMNS}, "file_id": file_id}
            for row in rows_of(asked)
        ]
        add_rows(connection, order_action, rows)
        delivered |= _brought(waiting, orders=part)
    end = {"ended": DELIVERED, "file_id": file_id, "ended_at": at}
    ends = [{"reject_id": each, **end} for each in sorted(delivered)]
    add_rows(connection, reject_end, ends)
    if facts is not None:
        facts_rows.save(connection, facts, file_id=file_id, at=at)
    _bind_actions(connection, file_id=file_id, source=source, at=at)


def files_of_night(
    connection: Connection, run: Run, *, until: int | None = None
) -> list[tuple[SourceFile, LoadCounts]]:
    """The files first read for this business date, newest version of each name."""
    query = select(order_file).where(*of_night(run, until=until))
    rows = connection.execute(query.order_by(order_file.c.name, order_file.c.version)).mappings()
    newest = {row["name"]: row for row in rows}
    return [
        (source_file(row), LoadCounts(row["rows_accepted"], row["rows_new"], row["rows_repeat"], 0))
        for row in newest.values()
    ]


def contents_taken(connection: Connection) -> set[str]:
    """SHA-256 of each file, of whatever kind, of which a night took rows."""
    query = select(order_file.c.sha256).where(order_file.c.rows_accepted > 0)
    return {*connection.execute(query).scalars()}


def versions_until(
    connection: Connection, run: Run, *, until: int, whole_file: str
) -> list[tuple[SourceFile, date, bool]]:
    """Every version of each order file up to a night, its night, and whether it was refused whole.

    `whole_file` is the column of the reject that stands for a file that could not be read.
    """
    refused = select(reject.c.file_id).where(reject.c.column == whole_file)
    rows = connection.execute(
        select(order_file, order_file.c.file_id.in_(refused).label("is_refused"))
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
    """Why nothing of it could be read; "" where it was read."""
    decision: ChainLink | None = None
    """The last event of what people said of it, with `by` and `reason`."""


def newest_versions(connection: Connection, owner: Owner, *, whole_file: str) -> list[KnownFile]:
    """The newest version of each file of an account, by name.

    `whole_file` is the column of the reject that stands for a file that could not be read.
    """
    of_file = reject.c.file_id == order_file.c.file_id, reject.c.column == whole_file
    refused = select(reject.c.reason).where(*of_file).limit(1).scalar_subquery()
    newest = order_file.c.file_id.in_(newest_files(owner))
    query = select(order_file, refused.label("refused")).where(newest).order_by(order_file.c.name)
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
    """Name and rows of the order files of earlier nights, newest night first, newest version."""
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
    """Rejected rows of the newest version of each file of this business date, and of the ledger."""
    newest = newest_files(run, *of_night(run, until=until))
    of_run = reject.c.file_id.is_(None) & (reject.c.run_id == run.run_id)
    return rejects(connection, reject.c.file_id.in_(newest) | of_run)


def rejects(connection: Connection, *which: ColumnElement[bool]) -> list[Reject]:
    """Rejected rows of some conditions, in the order in which they came."""
    names = tuple(name for name in Reject.__dataclass_fields__ if name != "batch_id")
    query = select(*(reject.c[name] for name in names)).where(*which).order_by(reject.c.reject_id)
    rows = connection.execute(query).mappings()
    return [Reject(**{**row, "kind": SourceKind(row["kind"])}) for row in rows]


def insert_rejects(
    connection: Connection, rejects: Iterable[Reject], *, run_id: str, file_id: int | None
) -> None:
    """Keep rows that could not be read; texts are cut to what the columns hold."""
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
    """The newest version of each name among an account's files up to one; None: among all."""
    file = order_file.c
    query = select(func.max(file.file_id)).where(*in_account(order_file, owner), *which)
    query = query if until is None else query.where(file.file_id <= until)
    return query.group_by(file.name)


def of_night(run: Run, *, until: int | None) -> tuple[ColumnElement[bool], ...]:
    """The files first read for this business date."""
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
    """Note the next version of a file, and what of it could not be read; its number.

    Of its accepted rows `new` are stored, and `repeat` were before.
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
    """A row of files as what was read."""
    cells = {name: row[name] for name in SourceFile.__dataclass_fields__}
    return SourceFile(**{**cells, "kind": SourceKind(row["kind"])})

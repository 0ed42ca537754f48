"""Which files of facts there are, as the database knows them and as the history binds them."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, String, and_, cast, func, insert, literal, or_, select

from recon.archive.facts_files import FactsFile
from recon.model.errors import HistoryBrokenError
from recon.model.words import SourceKind
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import Event, append
from recon.store.nights.runs import Run
from recon.store.nights.settled_sums import digests_beside
from recon.store.schema import history, order_facts, order_facts_account, order_file

ENTITY = "facts"
KEPT = "kept"
OWN = 0
"""In a file of what is gone: a row of the very file that says so."""
_SHA256 = ("rows_sha256", "keys_sha256", "gone_sha256")
Account = tuple[str, str]
"""Merchant and account."""


@dataclass(frozen=True, slots=True)
class OfAccountRows:
    """What a file has of one account."""

    merchant_id: str
    account_id: str
    row_count: int
    ordered_from: datetime
    """Of settlement lines the first day on which they were settled, of its midnight in UTC."""
    ordered_to: datetime


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """The files of facts of one order file, or of one settlement file."""

    folder: str
    rows_sha256: str
    keys_sha256: str
    gone_sha256: str
    size_bytes: int
    row_count: int
    gone_from: int
    gone_to: int
    file_id: int = 0
    """Given when its file is noted."""
    name: str = ""
    """Of the file that arrived."""
    inbox: Account = ("", "")
    """Whose file it is: its archive has them."""
    kind: SourceKind = SourceKind.ORDERS
    source_sha256: str = ""
    """Of the file that arrived."""
    run_id: str = ""
    """The run that read it."""

    @property
    def rows(self) -> FactsFile:
        """Its rows."""
        return FactsFile(self.folder, self.rows_sha256, 0)

    @property
    def keys(self) -> FactsFile:
        """Hashes of their keys."""
        return FactsFile(self.folder, self.keys_sha256, 0)

    @property
    def gone(self) -> FactsFile | None:
        """The rows that they take the place of."""
        return FactsFile(self.folder, self.gone_sha256, 0) if self.gone_sha256 else None

    @property
    def every(self) -> tuple[FactsFile, ...]:
        """All of its files."""
        return tuple(each for each in (self.rows, self.keys, self.gone) if each is not None)


_OWN_COLUMNS = ("folder", *_SHA256, "size_bytes", "row_count", "gone_from", "gone_to")
_OF_ACCOUNT = tuple(OfAccountRows.__dataclass_fields__)
_FACTS: Select[Any] = (
    select(
        order_facts,
        order_file.c.name,
        order_file.c.merchant_id,
        order_file.c.account_id,
        order_file.c.kind,
        order_file.c.sha256,
        order_file.c.run_id,
    )
    .join(order_file, order_file.c.file_id == order_facts.c.file_id)
    .order_by(order_facts.c.file_id)
)
_OF_ORDERS = order_file.c.kind == SourceKind.ORDERS.value
_LINK = and_(
    history.c.entity == ENTITY,
    history.c.entity_id == literal(f"{ENTITY}-") + cast(order_facts.c.file_id, String),
)
_BOUND_ROWS = (
    select(order_facts, history.c.data)
    .outerjoin(history, _LINK)
    .order_by(order_facts.c.file_id, history.c.sequence)
)
_LOST = (
    select(history.c.entity_id)
    .outerjoin(order_facts, _LINK)
    .where(history.c.entity == ENTITY, order_facts.c.file_id.is_(None))
    .order_by(history.c.sequence)
)


def save(
    connection: Connection,
    facts: StoredFacts,
    *,
    file_id: int,
    accounts: Sequence[OfAccountRows],
    at: datetime,
    beside: Mapping[str, str] | None = None,
) -> None:
    """Keep the files of a file that was noted, and bind them in the history.

    With the digests of what the database keeps `beside` them (see `digests_beside`).
    """
    values = {name: getattr(facts, name) for name in _OWN_COLUMNS}
    connection.execute(insert(order_facts).values(file_id=file_id, **values))
    rows = [{name: getattr(each, name) for name in _OF_ACCOUNT} for each in accounts]
    connection.execute(insert(order_facts_account), [{"file_id": file_id, **row} for row in rows])
    # Files have a turn of their own, so that nobody's money waits for them; this is its end.
    join_turn(connection, Turn.JOURNAL)
    bound = {**values, "accounts": _digest(rows), **(beside or {})}
    append(connection, [Event(ENTITY, f"{ENTITY}-{file_id}", KEPT, bound)], at=at)


def last_file(connection: Connection) -> int:
    """The newest order file with files of facts."""
    query = (
        select(func.max(order_facts.c.file_id))
        .join(order_file, order_file.c.file_id == order_facts.c.file_id)
        .where(_OF_ORDERS)
    )
    return connection.execute(query).scalar() or 0


def every(connection: Connection) -> list[StoredFacts]:
    """Those of all files, oldest first."""
    return _read(connection, _FACTS)


def of_account(
    connection: Connection,
    accounts: Collection[Account],
    *,
    spans: Sequence[tuple[datetime, datetime | None]],
    until: int | None = None,
    behind: int = 0,
) -> list[StoredFacts]:
    """Those with orders of the accounts that may be ordered in a span [from, to], oldest first.

    Args:
        connection: the store.
        accounts: merchant and account.
        spans: of instants; None: it has no end.
        until: the last order file that counts.
        behind: only of later order files than this.
    """
    if not spans:
        return []
    table = order_facts_account.c
    overlapping = (
        and_(table.ordered_to >= since, *([] if to is None else [table.ordered_from <= to]))
        for since, to in spans
    )
    having = _having(accounts).where(or_(*overlapping))
    query = _FACTS.where(
        _OF_ORDERS, order_facts.c.file_id.in_(having), order_facts.c.file_id > behind
    )
    if until is not None:
        query = query.where(order_facts.c.file_id <= until)
    return _read(connection, query)


def of_inbox(
    connection: Connection, inbox: Account, *, kind: SourceKind, but: Sequence[tuple[int, int]]
) -> list[StoredFacts]:
    """Those of the files of a kind of an account's inbox, oldest first, without some [from, to]."""
    merchant_id, account_id = inbox
    return _read(
        connection,
        _FACTS.where(
            order_file.c.merchant_id == merchant_id,
            order_file.c.account_id == account_id,
            order_file.c.kind == kind.value,
            *(~order_facts.c.file_id.between(first, last) for first, last in but),
        ),
    )


def inboxes_of(
    connection: Connection, accounts: Collection[Account], *, kind: SourceKind
) -> list[Account]:
    """Whose inboxes had files of a kind with rows of these accounts."""
    rows = connection.execute(
        select(order_file.c.merchant_id, order_file.c.account_id)
        .where(order_file.c.kind == kind.value, order_file.c.file_id.in_(_having(accounts)))
        .distinct()
    )
    return sorted((row.merchant_id, row.account_id) for row in rows)


def of_files(connection: Connection, file_ids: Collection[int]) -> list[StoredFacts]:
    """Those of some files, oldest first."""
    return _read(connection, _FACTS.where(order_facts.c.file_id.in_([*file_ids])))


def of_night(connection: Connection, run: Run) -> list[StoredFacts]:
    """Those of every version of the night's files."""
    return _read(
        connection,
        _FACTS.where(
            order_file.c.merchant_id == run.merchant_id,
            order_file.c.account_id == run.account_id,
            order_file.c.business_date == run.business_date,
        ),
    )


def taking_place(
    connection: Connection, files: Sequence[StoredFacts], *, until: int | None
) -> list[StoredFacts]:
    """Those that may say of rows of these files that they are gone."""
    if not files:
        return []
    first, last = files[0].file_id, files[-1].file_id
    query = _FACTS.where(
        order_facts.c.gone_sha256 != "",
        order_facts.c.file_id >= first,
        order_facts.c.gone_from <= last,
        or_(
            order_facts.c.gone_to >= first,
            and_(order_facts.c.gone_from == OWN, order_facts.c.file_id <= last),
        ),
    )
    if until is not None:
        query = query.where(order_facts.c.file_id <= until)
    return _read(connection, query)


def accounts_of(connection: Connection, file_ids: Collection[int]) -> set[Account]:
    """Accounts that rows of some order files name."""
    table = order_facts_account.c
    rows = connection.execute(
        select(table.merchant_id, table.account_id).where(table.file_id.in_([*file_ids])).distinct()
    )
    return {(row.merchant_id, row.account_id) for row in rows}


def changed(connection: Connection) -> Iterator[str]:
    """Files whose files of facts are not those that the history bound, in words."""
    known: set[int] = set()
    beside = digests_beside(connection)
    accounts: dict[int, list[Mapping[Any, Any]]] = {}
    for row in connection.execute(select(order_facts_account)).mappings():
        accounts.setdefault(row["file_id"], []).append(row)
    for row in connection.execute(_BOUND_ROWS).mappings():
        now = {name: row[name] for name in _OWN_COLUMNS}
        now["accounts"] = _digest(accounts.get(row["file_id"], ()))
        now |= beside.get(row["file_id"], {})
        if document(row["data"]) != now or row["file_id"] in known:
            yield _not_bound(row["file_id"])
        known.add(row["file_id"])
    strayed = (accounts.keys() | beside.keys()) - known
    yield from (_not_bound(file_id) for file_id in sorted(strayed))
    for entity_id in connection.execute(_LOST).scalars():
        number = entity_id.removeprefix(f"{ENTITY}-")
        yield f"the history knows rows of file {number}, its table does not: they were taken"


def _not_bound(file_id: int) -> str:
    return (
        f"the rows of file {file_id} are not those that the history bound: they were "
        "changed past the journal"
    )


def refuse_changed(connection: Connection) -> None:
    """Let nobody compare what files say that the history did not bind.

    Raises:
        HistoryBrokenError: naming the first file of which it is so.
    """
    if problem := next(changed(connection), ""):
        msg = f"the history does not hold: {problem}, so the night is not compared"
        raise HistoryBrokenError(msg)


def _digest(accounts: Iterable[Mapping[Any, Any]]) -> str:
    """A hash of what a file has of each account."""
    rows = sorted("\x1f".join(str(row[name]) for name in _OF_ACCOUNT) for row in accounts)
    return hashlib.sha256("\x1e".join(rows).encode()).hexdigest()


def document(text: str | None) -> Mapping[str, Any]:
    """What a link says; of one that was spoilt nothing, for the chain itself says so."""
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _having(accounts: Collection[Account]) -> Select[tuple[int]]:
    table = order_facts_account.c
    places = (
        and_(table.merchant_id == merchant_id, table.account_id == account_id)
        for merchant_id, account_id in sorted(accounts)
    )
    return select(table.file_id).where(or_(False, *places))


def _read(connection: Connection, query: Select[Any]) -> list[StoredFacts]:
    return [
        StoredFacts(
            **{name: row[name] for name in _OWN_COLUMNS},
            file_id=row["file_id"],
            name=row["name"],
            inbox=(row["merchant_id"], row["account_id"]),
            kind=SourceKind(row["kind"]),
            source_sha256=row["sha256"],
            run_id=row["run_id"],
        )
        for row in connection.execute(query).mappings()
    ]

"""What a file asked for, as the history binds it when it is read, until each row is planned.

All of a file's actions for one account become instructions in one transaction, or none does: until
then the table must have every one of them, as it arrived.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, String, and_, cast, func, literal, select

from recon.model.words import SourceFile
from recon.store.database.bound_tables import Bound
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import LINKS_AT_ONCE, Event, append
from recon.store.database.record import PAST, cells_of, data_of, folded
from recon.store.nights.runs import Run
from recon.store.schema import history, order_action, order_file
from recon.store.schema.account_filter import account_values, in_account

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
    .order_by(*(order_action.c[name] for name in (*_PLACE, "action_id")))
    .execution_options(yield_per=LINKS_AT_ONCE)
)
_COUNTS = select(
    _ENTITY_ID.label("file"),
    *(order_action.c[name] for name in _PLACE),
    func.count().label("count"),
)
_COUNTS = _COUNTS.group_by(*(order_action.c[name] for name in _PLACE))
_LINKS = select(history.c.entity_id, history.c.data).where(history.c.entity == ACTIONS.entity)


class Arriving:
    """The actions of one file while they are stored; `bind` notes them in the history."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Rows] = {}

    def take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Some of them, in the order in which they are stored."""
        for row in rows:
            self._accounts.setdefault(_account(row), _Rows()).add(row)

    def bind(
        self, connection: Connection, *, file_id: int, source: SourceFile, at: datetime
    ) -> None:
        """Bind them, in the transaction that stored them; nothing where the file asks nothing."""
        if not self._accounts:
            return
        # Files have a turn of their own, so that nobody's money waits for them; this is its end.
        join_turn(connection, Turn.JOURNAL)
        bound: dict[str, Any] = {name: str(getattr(source, name)) for name in OF_A_FILE}
        bound["accounts"] = {account: rows.facts for account, rows in self._accounts.items()}
        file = f"{ACTIONS.entity}-{file_id}"
        append(connection, [Event(ACTIONS.entity, file, ARRIVED, bound)], at=at)


def changed_actions(connection: Connection, run: Run) -> Iterator[str]:
    """Files of which the account's waiting actions are not what arrived, in words."""
    waiting = _WAITING.where(*in_account(order_action))
    yield from _changed(connection.execute(waiting, account_values(run)).mappings())


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


class _Rows:
    """How many rows, and the digest of all that they say."""

    def __init__(self, rows: Iterable[Mapping[Any, Any]] = ()) -> None:
        self._count, self._hash = 0, hashlib.sha256()
        for row in rows:
            self.add(row)

    def add(self, row: Mapping[Any, Any]) -> None:
        cells = folded([cells_of(ACTIONS, row)])
        self._hash.update(json.dumps(cells).encode())
        self._count += 1

    @property
    def facts(self) -> dict[str, object]:
        return {"rows": self._count, "digest": self._hash.hexdigest()}


def _changed(rows: Iterable[Mapping[Any, Any]]) -> Iterator[str]:
    for (file_id, account), group in groupby(rows, key=lambda r: (r["file_id"], _account(r))):
        waiting = list(group)
        if problem := _problem(waiting, account=account):
            name = waiting[0]["file_name"]
            yield _sentence(name, file_id, account=account, problem=problem)


def _problem(waiting: Sequence[Mapping[Any, Any]], *, account: str) -> str:
    first = waiting[0]
    bound = data_of(first["data"])
    arrived = bound.get("accounts", {}).get(account)
    if arrived is None:
        return "the history never heard of them"
    if any(first[f"file_{name}"] != bound[name] for name in OF_A_FILE):
        return f"the file was {bound['name']} ({bound['kind']}, {bound['sha256'][:12]}…)"
    now = _Rows(waiting).facts
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

"""What a file asked for, as the history binds it when it is read, until each row is planned.

All of a file's actions for one account become instructions in one transaction, or none does: until
then the table must have every one of them, as it arrived.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, String, and_, bindparam, cast, func, literal, select

from recon.model.words import SourceFile
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import LINKS_AT_ONCE, Event, append
from recon.store.nights.runs import Run
from recon.store.schema import history, order_action, order_file
from recon.store.schema.account_filter import account_values, in_account

ENTITY = "actions"
ARRIVED = "arrived"
OF_A_ROW = (
    *("line", "merchant_id", "account_id", "order_no", "transaction_id", "action", "currency"),
    *("amount", "action_amount", "action_reason", "request_id", "review_flag", "recurring_id"),
    *("contract_name", "payee", "payee_digest", "content_digest", "sealed"),
    *("status", "expected_captured_amount", "refund_amount"),
)
"""Columns of an action that planning reads; its instruction is what it becomes."""
OF_A_FILE = ("name", "kind", "sha256")
AMOUNTS = frozenset({"action_amount", "expected_captured_amount", "refund_amount"})
"""Columns that may be blank; every other one has a value."""

_WAITING = (
    select(
        order_action.c.file_id,
        *(order_action.c[name] for name in OF_A_ROW),
        *(order_file.c[name].label(f"file_{name}") for name in OF_A_FILE),
        history.c.data,
    )
    .join(order_file, order_file.c.file_id == order_action.c.file_id)
    .outerjoin(
        history,
        and_(
            history.c.entity == ENTITY,
            # One link for each file; a second would double its rows, and they would not agree.
            history.c.entity_id == literal(f"{ENTITY}-") + cast(order_action.c.file_id, String),
        ),
    )
    .where(order_action.c.instruction_id == "")
    .order_by(
        order_action.c.file_id,
        order_action.c.merchant_id,
        order_action.c.account_id,
        order_action.c.action_id,
    )
    .execution_options(yield_per=LINKS_AT_ONCE)
)
_WAITING_HERE = _WAITING.where(*in_account(order_action))
_COUNTS = select(
    order_action.c.merchant_id, order_action.c.account_id, func.count().label("rows")
).where(order_action.c.file_id == bindparam("wanted"))
_COUNTS = _COUNTS.group_by(order_action.c.merchant_id, order_action.c.account_id)
_LINKS = select(history.c.entity_id, history.c.data).where(history.c.entity == ENTITY)


class Arriving:
    """The actions of one file while they are stored; `bind` notes them in the history."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Rows] = {}

    def take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Some of them, in the order in which they are stored."""
        for row in rows:
            self._accounts.setdefault(_place(row), _Rows()).add(row)

    def bind(
        self, connection: Connection, *, file_id: int, source: SourceFile, at: datetime
    ) -> None:
        """Bind them, in the transaction that stored them; nothing where the file asks nothing."""
        if not self._accounts:
            return
        # Files have a turn of their own, so that nobody's money waits for them; this is its end.
        join_turn(connection, Turn.JOURNAL)
        file_facts = {name: str(getattr(source, name)) for name in OF_A_FILE}
        accounts = {account: rows.facts for account, rows in self._accounts.items()}
        event = Event(ENTITY, _entity(file_id), ARRIVED, {**file_facts, "accounts": accounts})
        append(connection, [event], at=at)


def changed_actions(connection: Connection, run: Run) -> Iterator[str]:
    """Files of which the account's waiting actions are not what arrived, in words."""
    yield from _changed(connection.execute(_WAITING_HERE, account_values(run)).mappings())


def all_changed_actions(connection: Connection) -> Iterator[str]:
    """As `changed_actions`, for every account; and files that lost actions, planned or not."""
    yield from _changed(connection.execute(_WAITING).mappings())
    for entity_id, data in connection.execute(_LINKS).tuples().all():
        file_id = int(entity_id.removeprefix(f"{ENTITY}-"))
        rows = connection.execute(_COUNTS, {"wanted": file_id}).mappings()
        counts = {_place(row): row["rows"] for row in rows}
        bound = json.loads(data)
        for account, bound_rows in bound["accounts"].items():
            if counts.get(account, 0) != bound_rows["rows"]:
                has = f"its table has {counts.get(account, 0)} of {bound_rows['rows']} rows"
                yield _sentence(bound["name"], file_id, where=account, problem=has)


class _Rows:
    """How many rows, and the digest of all that they say."""

    def __init__(self) -> None:
        self._count, self._hash = 0, hashlib.sha256()

    def add(self, row: Mapping[str, Any]) -> None:
        cells = [_cell(name, row.get(name)) for name in OF_A_ROW]
        self._hash.update(json.dumps(cells).encode())
        self._count += 1

    @property
    def facts(self) -> dict[str, object]:
        return {"rows": self._count, "digest": self._hash.hexdigest()}


def _changed(rows: Any) -> Iterator[str]:
    for (file_id, account), group in groupby(rows, key=lambda row: (row["file_id"], _place(row))):
        waiting = list(group)
        first = waiting[0]
        if problem := _problem(waiting, account=account):
            yield _sentence(first["file_name"], file_id, where=account, problem=problem)


def _problem(waiting: Sequence[Mapping[str, Any]], *, account: str) -> str:
    first = waiting[0]
    bound = json.loads(first["data"]) if first["data"] else {}
    arrived = bound.get("accounts", {}).get(account)
    if arrived is None:
        return "the history never heard of them"
    if any(first[f"file_{name}"] != bound[name] for name in OF_A_FILE):
        return f"the file was {bound['name']} ({bound['kind']}, {bound['sha256'][:12]}…)"
    rows = _Rows()
    for row in waiting:
        rows.add(row)
    if rows.facts["rows"] != arrived["rows"]:
        return f"{arrived['rows']} arrived, {rows.facts['rows']} wait"
    return "" if rows.facts == arrived else "they do not say what arrived"


def _sentence(name: str, file_id: int, *, where: str, problem: str) -> str:
    return (
        f"the instructions of file {name} (number {file_id}) for account {where} are not what the "
        f"history bound: {problem}: they were changed past the journal"
    )


def _cell(name: str, value: Any) -> str | int | None:
    if value is None:
        return None if name in AMOUNTS else ""
    return value if isinstance(value, int) else str(value)


def _place(row: Mapping[Any, Any]) -> str:
    return f"{row['merchant_id']}/{row['account_id']}"


def _entity(file_id: int) -> str:
    return f"{ENTITY}-{file_id}"

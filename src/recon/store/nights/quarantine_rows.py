"""Rows of orders that could not be read, until they are delivered or a person decides.

A rejected row says that an order exists and nothing more. Its night is over tomorrow; the order is
not: as long as nobody brought the row again, a payment of that order is no payment without order.
A settlement line that names its order stands until a newer version of its file comes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pandas as pd
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    exists,
    func,
    insert,
    or_,
    select,
)

from recon.model.words import Quarantined, SourceKind
from recon.store.nights.runs import Run
from recon.store.schema import order_file, reject, reject_end
from recon.store.schema.columns import REASON_CHARACTERS

DELIVERED, DISMISSED = "delivered", "dismissed"
"""How a rejected row stops standing for its order."""
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
    reject.c.kind == SourceKind.ORDERS.value,
    reject.c.line > 0,  # a file refused as a whole names no order
    reject.c.merchant_id.in_(["", order_file.c.merchant_id]),
    reject.c.file_id <= bindparam("last_file"),
)
_NEWER = order_file.alias("newer_version")
_OF_LINES = and_(
    reject.c.kind == SourceKind.SETTLEMENT.value,
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


@dataclass(slots=True)
class Arrived:
    """Which rejected rows one order file brings again, part by part."""

    waiting: Waiting
    delivered: set[int] = field(default_factory=set)

    def look(self, orders: pd.DataFrame) -> None:
        """Note those whose order stands in this part of the file."""
        if not self.waiting:
            return
        among = orders[orders["order_no"].isin([*self.waiting])]
        places = zip(among["order_no"], among["merchant_id"], among["account_id"], strict=True)
        for order_no, merchant_id, account_id in places:
            self.delivered |= {
                reject_id
                for reject_id, merchant, account in self.waiting[order_no]
                if merchant in {"", merchant_id} and account in {"", account_id}
            }


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
    rows = connection.execute(_standing(of_account & or_(_OF_ORDERS, _OF_LINES)), values).mappings()
    return tuple(_quarantined(row) for row in rows)


def _standing(which: ColumnElement[bool]) -> Select[Any]:
    return (
        select(reject, order_file.c.merchant_id.label("merchant_of_inbox"))
        .join(order_file, order_file.c.file_id == reject.c.file_id)
        .where(which, _NEVER_ENDED)
        .order_by(reject.c.reject_id)
    )


def _quarantined(row: Mapping[Any, Any]) -> Quarantined:
    names = ("reject_id", "merchant_id", "account_id", "order_no", "source", "line", "column")
    return Quarantined(**{name: row[name] for name in names}, reason=row["reason"])


def arriving(connection: Connection, *, file_id: int) -> Arrived:
    """For a file that was noted: what earlier files could not tell.

    A row that does not say its merchant may be of any that its own inbox brings rows of; else, and
    in the inbox of another merchant, it is of the merchant whose inbox it came to.
    """
    this = select(order_file.c.merchant_id).where(order_file.c.file_id == file_id)
    merchant_id = connection.execute(this).scalar_one()
    values = {"last_file": file_id - 1, "last_end": LATEST}
    waiting: dict[str, list[tuple[int, str, str]]] = {}
    for row in connection.execute(_standing(_OF_ORDERS & (reject.c.order_no != "")), values):
        is_any = row.merchant_id == "" and row.merchant_of_inbox == merchant_id
        identity = (row.reject_id, "" if is_any else row.merchant_of_inbox, row.account_id)
        waiting.setdefault(row.order_no, []).append(identity)
    return Arrived(waiting)


def note_delivered(
    connection: Connection, reject_ids: Iterable[int], *, file_id: int, at: datetime
) -> None:
    """Keep that a file brought the orders of these rows."""
    rows = [
        {"reject_id": reject_id, "ended": DELIVERED, "file_id": file_id, "ended_at": at}
        for reject_id in sorted(reject_ids)
    ]
    if rows:
        connection.execute(insert(reject_end), rows)


def dismiss(connection: Connection, reject_id: int, *, by: str, why: str, at: datetime) -> None:
    """Keep that a person decided: the row stands for no order any more."""
    values = {"reject_id": reject_id, "ended": DISMISSED, "file_id": None, "ended_at": at}
    connection.execute(
        insert(reject_end), {**values, "said_by": by, "why": why[:REASON_CHARACTERS]}
    )


def last_end(connection: Connection) -> int:
    """The newest delivery or decision."""
    return connection.execute(select(func.max(reject_end.c.end_id))).scalar() or 0

"""The history binds what files ask for until it is planned: what waits is bound as it is now."""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

from recon.store.database.history import Event, append

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

OF_A_ROW = (
    *("line", "merchant_id", "account_id", "order_no", "transaction_id", "action", "currency"),
    *("amount", "action_amount", "action_reason", "request_id", "review_flag", "recurring_id"),
    *("contract_name", "payee", "payee_digest", "content_digest", "sealed"),
)
OF_A_FILE = ("name", "kind", "sha256")
SAID = "arrived before the history bound what files ask for: bound as it was found at the upgrade"


def upgrade() -> None:
    connection = op.get_bind()
    events = [*_events(connection)]
    if events:
        append(connection, events, at=_now(connection))


def _events(connection: sa.Connection) -> Iterator[Event]:
    action = sa.table(
        "order_action", *map(sa.column, ("action_id", "file_id", "instruction_id", *OF_A_ROW))
    )
    file = sa.table("order_file", *map(sa.column, ("file_id", *OF_A_FILE)))
    waiting = (
        sa.select(action, *(file.c[name].label(f"file_{name}") for name in OF_A_FILE))
        .join(file, file.c.file_id == action.c.file_id)
        .where(action.c.instruction_id == "")
        .order_by(action.c.file_id, action.c.merchant_id, action.c.account_id, action.c.action_id)
    )
    found = connection.execute(waiting).mappings()
    for file_id, group in groupby(found, key=lambda row: row["file_id"]):
        rows = list(group)
        accounts = {
            f"{merchant_id}/{account_id}": _told(list(own))
            for (merchant_id, account_id), own in groupby(
                rows, key=lambda row: (row["merchant_id"], row["account_id"])
            )
        }
        file_told = {name: rows[0][f"file_{name}"] for name in OF_A_FILE}
        told = {**file_told, "accounts": accounts, "bound": SAID}
        yield Event("actions", f"actions-{file_id}", "arrived", told)


def _told(rows: list[Any]) -> dict[str, object]:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row[name] for name in OF_A_ROW]).encode())
    return {"rows": len(rows), "digest": digest.hexdigest()}


def _now(connection: sa.Connection) -> datetime:
    found: datetime = connection.execute(sa.select(sa.func.current_timestamp())).scalar_one()
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found

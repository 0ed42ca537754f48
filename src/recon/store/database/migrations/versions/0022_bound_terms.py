"""The history binds what each instruction sends: those planned before are bound as they are now."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from recon.store.database.history import Event, append

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

AT_ONCE = 5_000
"""Instructions that are held in memory."""
BOUND = (
    *("merchant_id", "account_id", "kind", "order_no", "transaction_id", "currency", "amount"),
    *("payment_amount", "reason", "request_id", "review_flag", "recurring_id", "contract_name"),
    *("gateway_request_id", "payee", "payee_digest", "again_for", "repeats", "sealed"),
)
AS_DIGEST = ("reason", "sealed")
SAID = "planned before the history bound what is sent: bound as it was found at the upgrade"


def upgrade() -> None:
    op.create_index("ix_history_entity_id", "history", ["entity_id", "sequence"])
    connection = op.get_bind()
    at = _now(connection)
    after = ""
    while rows := _next(connection, after=after):
        append(connection, [*_events(rows)], at=at)
        after = str(rows[-1]["instruction_id"])


def _next(connection: sa.Connection, *, after: str) -> list[Mapping[Any, Any]]:
    table = sa.table("instruction", *map(sa.column, ("instruction_id", "state", *BOUND)))
    query = (
        sa.select(table)
        .where(table.c.instruction_id > after)
        .order_by(table.c.instruction_id)
        .limit(AT_ONCE)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def _events(rows: list[Mapping[Any, Any]]) -> Iterator[Event]:
    for row in rows:
        terms = {
            name: _shown(name, row[name])
            for name in BOUND
            if row[name] and (name != "gateway_request_id" or row["kind"] == "payout")
        }
        yield Event(
            "instruction", row["instruction_id"], row["state"], {"terms": terms, "bound": SAID}
        )


def _shown(name: str, value: object) -> object:
    if name in AS_DIGEST:
        return hashlib.sha256(str(value).encode()).hexdigest()[:32]
    return value


def _now(connection: sa.Connection) -> datetime:
    found: datetime = connection.execute(sa.select(sa.func.current_timestamp())).scalar_one()
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found

"""Words of people bear the desk's signature; approvals without one are given again."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from recon.store.database.history import Event, append
from recon.store.schema.columns import Instant

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

HOLD = "it was approved before the desk endorsed what people agree to; approve it again"
BY_RULE = "rule: order file"
BY_HAND = "by hand: "


def upgrade() -> None:
    op.create_table(
        "endorsement",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        _text("kind", 20),
        _text("subject", 400),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("valid_until", Instant),
        sa.Column("document", sa.Text, nullable=False),
        _text("signature", 128),
        _text("key_id", 64),
    )
    op.create_index("ix_endorsement_kind_subject", "endorsement", ["kind", "subject"])
    op.add_column("wrong_code", _text("origin", 100))
    connection = op.get_bind()
    if connection.execute(sa.text("SELECT 1 FROM instruction LIMIT 1")).first() is not None:
        _ask_again(connection)


def _ask_again(connection: sa.Connection) -> None:
    """What people approved and no night has sent waits for two people once more."""
    table = sa.table(
        "instruction",
        *map(sa.column, ("instruction_id", "state", "hold", "approved_by", "approved_at")),
    )
    waiting = connection.execute(
        sa.select(table.c.instruction_id).where(
            table.c.state == "approved",
            table.c.approved_by != BY_RULE,
            table.c.approved_by.not_like(f"{BY_HAND}%"),
        )
    )
    ids = sorted(waiting.scalars())
    data = {"from": "approved", "hold": HOLD, "approved_by": "", "approved_at": "None"}
    for wanted in ids:
        connection.execute(
            sa.update(table)
            .where(table.c.instruction_id == wanted)
            .values(state="planned", hold=HOLD, approved_by="", approved_at=None)
        )
    events = [Event("instruction", wanted, "planned", data) for wanted in ids]
    # Up to this link people's words bear no signature.
    began = Event("desk", "desk", "introduced", {"asked again": len(ids)})
    append(connection, [*events, began], at=_now(connection))


def _text(name: str, length: int) -> sa.Column[Any]:
    return sa.Column(name, sa.String(length), nullable=False, server_default="")


def _now(connection: sa.Connection) -> datetime:
    found: datetime = connection.execute(sa.select(sa.func.current_timestamp())).scalar_one()
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found

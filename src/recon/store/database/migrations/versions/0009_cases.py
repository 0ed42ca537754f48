"""Captures planned a second time, and cases: what the gateway showed after the end."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def _text(name: str, length: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), server_default="", nullable=False)


def upgrade() -> None:
    op.add_column("instruction", _text("again_for", 64))
    op.create_table(
        "contradiction",
        sa.Column("instruction_id", sa.String(length=64), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        _text("transaction_id", 64),
        _text("believed", 24),
        _text("told", 400),
        sa.Column("noted_at", Instant(), nullable=False),
        _text("verdict", 12),
        sa.Column("closed_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("instruction_id", name=op.f("pk_contradiction")),
    )

"""Journals that were proposed, handed out and booked."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "exported_journal",
        sa.Column("journal_id", sa.String(length=64), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("break_id", sa.String(length=64), nullable=False),
        sa.Column("currency", sa.String(length=3), server_default="", nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("exported_at", Instant(), nullable=False),
        sa.Column("booked_in", sa.String(length=64), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("journal_id", name=op.f("pk_exported_journal")),
    )

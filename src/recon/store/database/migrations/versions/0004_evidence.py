"""Evidence about doubts beside the answers of the order query."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "doubt_clock",
        sa.Column("instruction_id", sa.String(length=64), nullable=False),
        sa.Column("boot_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("uptime_ms", sa.BigInteger(), nullable=False),
        sa.Column("noted_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("instruction_id", name=op.f("pk_doubt_clock")),
    )
    op.create_table(
        "refund_search",
        sa.Column("search_id", sa.Integer(), nullable=False),
        sa.Column("instruction_id", sa.String(length=64), nullable=False),
        sa.Column("refund_reference_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("queried_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("search_id", name=op.f("pk_refund_search")),
    )
    op.create_index("ix_refund_search_instruction", "refund_search", ["instruction_id"])

"""Every kind of instruction, the switch that stops sending, and what a dry run would send."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sending_switch",
        sa.Column("turn", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        sa.Column("turned_by", sa.String(length=100), server_default="", nullable=False),
        sa.Column("reason", sa.String(length=400), server_default="", nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("turn", name=op.f("pk_sending_switch")),
    )
    op.create_table(
        "dry_batch",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("rows", sa.Integer(), server_default="0", nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", "currency", name=op.f("pk_dry_batch")),
    )
    op.add_column(
        "order_file",
        sa.Column("kind", sa.String(length=20), server_default="orders", nullable=False),
    )
    lengths = (
        *(("review_flag", 20), ("recurring_id", 64), ("contract_name", 255)),
        *(("payee", 40), ("payee_digest", 64)),
    )
    own = {"order_action": ("content_digest", 64), "instruction": ("gateway_request_id", 64)}
    for table, last in own.items():
        for name, length in (*lengths, last):
            text = sa.Column(name, sa.String(length=length), server_default="", nullable=False)
            op.add_column(table, text)
        op.add_column(table, sa.Column("sealed", sa.Text(), server_default="", nullable=False))

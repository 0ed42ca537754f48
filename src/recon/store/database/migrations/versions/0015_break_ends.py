"""Which breaks stopped being open, on which night and how."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "break_end",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("break_id", sa.String(length=64), nullable=False),
        sa.Column("movement", sa.String(length=20), server_default="", nullable=False),
        sa.Column("first_seen", sa.String(length=10), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("run_id", "break_id", name=op.f("pk_break_end")),
    )

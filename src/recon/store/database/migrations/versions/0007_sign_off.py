"""Who signed which workbook."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sign_off",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=12), nullable=False),
        sa.Column("signed_by", sa.String(length=100), server_default="", nullable=False),
        sa.Column("authenticated", sa.Boolean(), nullable=False),
        sa.Column("signed_at", Instant(), nullable=False),
        sa.Column("workbook_sha256", sa.String(length=64), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("run_id", "role", name=op.f("pk_sign_off")),
    )

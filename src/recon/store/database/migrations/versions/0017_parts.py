"""Which part of a night a run was, when it was not a whole one."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "run",
        sa.Column("part", sa.String(length=10), server_default="", nullable=False),
    )

"""Which very process owns a run."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "run",
        sa.Column("owner_process", sa.String(length=120), server_default="", nullable=False),
    )

"""What a search for a refund showed beside its silence."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "refund_search",
        sa.Column("shown_beside", sa.String(length=64), server_default="", nullable=False),
    )

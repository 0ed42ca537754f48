"""What a person said of a night whose predecessor is missing."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "run",
        sa.Column("predecessor", sa.String(length=400), server_default="", nullable=False),
    )

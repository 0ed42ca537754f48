"""Rows of an order are compared by what they hold, not by a hash of it."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("order_row", "content_sha256")

"""Of which batch a settlement line is that could not be read, where its row says so."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("reject") as table:
        table.add_column(sa.Column("batch_id", sa.String(64), nullable=False, server_default=""))

"""Method, brand and region of a settlement line, which a fee contract may go by."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("settlement_line") as table:
        for name in ("method", "brand", "region"):
            table.add_column(sa.Column(name, sa.String(64), nullable=False, server_default=""))

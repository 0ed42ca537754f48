"""What the rejected rows of the books come to, as far as it can be read."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("reject") as table:
        table.add_column(sa.Column("entry_type", sa.String(40), nullable=False, server_default=""))
        table.add_column(sa.Column("currency", sa.String(3), nullable=False, server_default=""))
        table.add_column(sa.Column("amount", sa.BigInteger(), nullable=False, server_default="0"))

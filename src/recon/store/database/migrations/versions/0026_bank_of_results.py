"""What the bank says of a pay-out, beside what orders, gateway and books say."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("result_row") as table:
        table.add_column(sa.Column("bank_amount", sa.BigInteger(), nullable=True))
        table.add_column(sa.Column("effect_bank", sa.BigInteger(), nullable=True))

"""What people see beside a repeat; instructions by their payment; no count of equal rows."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("instruction", sa.Column("repeats", sa.Text(), server_default="", nullable=False))
    op.create_index(
        "ix_instruction_payment", "instruction", ["merchant_id", "account_id", "transaction_id"]
    )
    op.drop_column("order_action", "occurrence")

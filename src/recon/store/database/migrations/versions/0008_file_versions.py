"""The same content may come again as a newer version of a file."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("order_file") as table:
        table.drop_constraint(op.f("uq_order_file_merchant_id_account_id_sha256"), type_="unique")

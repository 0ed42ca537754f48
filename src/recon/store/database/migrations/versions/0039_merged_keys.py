"""Files that have the keys of many order files, so that who looks for an order opens few."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "merged_keys",
        sa.Column("last_file", sa.Integer(), nullable=False),
        sa.Column("first_file", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        *(
            sa.Column(name, sa.Integer(), nullable=False, server_default="0")
            for name in ("size_bytes", "row_count", "file_count")
        ),
        sa.ForeignKeyConstraint(
            ["last_file"], ["order_file.file_id"], name=op.f("fk_merged_keys_last_file")
        ),
        sa.PrimaryKeyConstraint("last_file", "first_file", name=op.f("pk_merged_keys")),
    )

"""Which files of facts hold the rows of order files.

`recon db upgrade` writes the files of each order file that has none before it goes on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "order_facts",
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("rows_sha256", sa.String(64), nullable=False),
        sa.Column("keys_sha256", sa.String(64), nullable=False),
        sa.Column("gone_sha256", sa.String(64), nullable=False, server_default=""),
        *(
            sa.Column(name, sa.Integer(), nullable=False, server_default="0")
            for name in ("size_bytes", "row_count", "gone_from", "gone_to")
        ),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_order_facts_file_id")
        ),
        sa.PrimaryKeyConstraint("file_id", name=op.f("pk_order_facts")),
    )
    op.create_table(
        "order_facts_account",
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("row_count", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("ordered_from", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ordered_to", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_order_facts_account_file_id")
        ),
        sa.PrimaryKeyConstraint(
            "file_id", "merchant_id", "account_id", name=op.f("pk_order_facts_account")
        ),
    )
    op.create_index(
        "ix_order_facts_account_ordered",
        "order_facts_account",
        ["merchant_id", "account_id", "ordered_to"],
    )
    # For whoever carries the rows over; they go with their table.
    op.create_index("ix_order_row_file", "order_row", ["file_id", "row_id"])
    op.create_index("ix_order_row_superseded", "order_row", ["superseded_in"])

"""What the lines of settlement files come to; the lines themselves lie in files of facts.

`recon db upgrade` writes the files of each settlement file that has none before it goes on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "settled_sum",
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        *(
            sa.Column(name, sa.String(64), nullable=False)
            for name in ("merchant_id", "account_id", "batch_id")
        ),
        sa.Column("settled_on", sa.String(10), nullable=False),
        sa.Column("entry_type", sa.String(30), nullable=False),
        *(
            sa.Column(name, sa.String(64), nullable=False, server_default="")
            for name in ("method", "brand", "region")
        ),
        sa.Column("currency", sa.String(3), nullable=False),
        *(
            sa.Column(name, sa.Integer(), nullable=False, server_default="0")
            for name in ("is_own", "line_count")
        ),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("gross", "fee", "net", "base")
        ),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_settled_sum_file_id")
        ),
        sa.PrimaryKeyConstraint("file_id", "position", name=op.f("pk_settled_sum")),
    )
    op.create_index("ix_settled_sum_batch", "settled_sum", ["batch_id"])

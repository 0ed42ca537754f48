"""How a rejected order row stopped standing for its order: delivered again, or dismissed."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reject_end",
        sa.Column("end_id", sa.Integer(), nullable=False),
        sa.Column("reject_id", sa.Integer(), nullable=False),
        sa.Column("ended", sa.String(length=20), server_default="", nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=True),
        sa.Column("said_by", sa.String(length=64), server_default="", nullable=False),
        sa.Column("why", sa.String(length=400), server_default="", nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_reject_end_file_id")
        ),
        sa.ForeignKeyConstraint(
            ["reject_id"], ["reject.reject_id"], name=op.f("fk_reject_end_reject_id")
        ),
        sa.PrimaryKeyConstraint("end_id", name=op.f("pk_reject_end")),
    )
    op.create_index("ix_reject_end_reject", "reject_end", ["reject_id"])

"""What people answered to breaks, and the workbooks that brought the answers."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def _text(name: str, length: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), server_default="", nullable=False)


def upgrade() -> None:
    op.create_table(
        "break_answer",
        sa.Column("answer_id", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("break_id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        _text("resolution", 40),
        _text("owner", 100),
        _text("comment", 500),
        _text("resolved_on", 10),
        _text("given_by", 100),
        sa.Column("given_at", Instant(), nullable=False),
        sa.Column("waits", sa.Boolean(), nullable=False),
        _text("agreed_by", 100),
        sa.Column("agreed_at", Instant(), nullable=True),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        _text("file_sha256", 64),
        sa.Column("sheet_row", sa.Integer(), nullable=False),
        sa.Column("covers_cause", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("answer_id", name=op.f("pk_break_answer")),
        sa.UniqueConstraint(
            "merchant_id",
            "account_id",
            "break_id",
            "version",
            name=op.f("uq_break_answer_merchant_id_account_id_break_id_version"),
        ),
    )
    op.create_table(
        "answer_file",
        sa.Column("file_sha256", sa.String(length=64), nullable=False),
        _text("name", 255),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        _text("given_by", 100),
        sa.Column("imported_at", Instant(), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.Column("refused", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("file_sha256", name=op.f("pk_answer_file")),
    )

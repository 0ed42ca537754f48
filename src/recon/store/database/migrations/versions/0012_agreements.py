"""Overrides that two people agree to."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def _text(name: str, length: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), server_default="", nullable=False)


def upgrade() -> None:
    op.create_table(
        "agreement",
        sa.Column("agreement_id", sa.Integer(), nullable=False),
        _text("what", 40),
        _text("subject", 64),
        _text("reason", 400),
        _text("state", 12),
        _text("first_by", 100),
        sa.Column("first_authenticated", sa.Boolean(), nullable=False),
        sa.Column("first_at", Instant(), nullable=False),
        sa.Column("valid_until", Instant(), nullable=False),
        _text("second_by", 100),
        sa.Column("second_authenticated", sa.Boolean(), nullable=False),
        sa.Column("second_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("agreement_id", name=op.f("pk_agreement")),
    )

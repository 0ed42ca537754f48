"""What people decided: approvals of lists, verdicts on doubts, releases, and used codes."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _text(name: str, length: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), server_default="", nullable=False)


def _id(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=64), nullable=False)


def _at(name: str, *, nullable: bool = False) -> sa.Column[sa.types.TypeEngine[object]]:
    return sa.Column(name, Instant(), nullable=nullable)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def upgrade() -> None:
    op.create_table(
        "approval",
        sa.Column("approval_id", sa.Integer(), nullable=False),
        _text("digest", 64),
        sa.Column("instruction_ids", sa.Text(), nullable=False),
        _text("state", 12),
        _text("first_by", 100),
        _flag("first_authenticated"),
        _at("first_at"),
        _at("valid_until"),
        _text("second_by", 100),
        _flag("second_authenticated"),
        _at("second_at", nullable=True),
        _text("why", 400),
        sa.PrimaryKeyConstraint("approval_id", name=op.f("pk_approval")),
    )
    op.create_table(
        "verdict",
        sa.Column("verdict_id", sa.Integer(), nullable=False),
        _id("instruction_id"),
        _text("verdict", 12),
        _text("evidence", 1000),
        _text("given_by", 100),
        _flag("authenticated"),
        _at("given_at"),
        _text("state", 12),
        sa.PrimaryKeyConstraint("verdict_id", name=op.f("pk_verdict")),
    )
    op.create_table(
        "release",
        _id("run_id"),
        _text("reason", 400),
        _text("first_by", 100),
        _flag("first_authenticated"),
        _at("first_at"),
        _text("second_by", 100),
        _flag("second_authenticated"),
        _at("second_at", nullable=True),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_release")),
    )
    op.create_table(
        "used_code",
        _id("person"),
        sa.Column("time_step", sa.BigInteger(), nullable=False),
        _at("used_at"),
        sa.PrimaryKeyConstraint("person", "time_step", name=op.f("pk_used_code")),
    )
    op.create_table(
        "wrong_code",
        sa.Column("wrong_id", sa.Integer(), nullable=False),
        _id("person"),
        _at("at"),
        sa.PrimaryKeyConstraint("wrong_id", name=op.f("pk_wrong_code")),
    )

"""What columns are made of: instants in UTC on every database, ids, texts and amounts."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Integer,
    MetaData,
    String,
    TypeDecorator,
)

ID_CHARACTERS = 64
NAME_CHARACTERS = 255
REASON_CHARACTERS = 400


class Instant(TypeDecorator[datetime]):
    """An instant with a zone, stored in UTC on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """UTC going in; SQLite keeps no zone."""
        if value is None:
            return None
        moved = value.astimezone(UTC)
        return moved.replace(tzinfo=None) if dialect.name == "sqlite" else moved

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - signature of TypeDecorator
        """UTC coming out."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def id_column(name: str, **options: Any) -> Column[str]:
    """An identifier; required."""
    return Column(name, String(ID_CHARACTERS), nullable=False, **options)


def text_column(name: str, length: int = NAME_CHARACTERS) -> Column[str]:
    """A text of bounded length, "" when not given."""
    return Column(name, String(length), nullable=False, server_default="")


def amount_column(name: str, *, nullable: bool = False) -> Column[int]:
    """Minor units."""
    return Column(name, BigInteger, nullable=nullable)


def count_column(name: str) -> Column[int]:
    """How many; 0 until known."""
    return Column(name, Integer, nullable=False, server_default="0")


def at_column(name: str, *, nullable: bool = True) -> Column[datetime]:
    """An instant."""
    return Column(name, Instant, nullable=nullable)


def account_columns() -> tuple[Column[str], Column[str]]:
    """Merchant and account, the first columns of almost every table."""
    return id_column("merchant_id"), id_column("account_id")

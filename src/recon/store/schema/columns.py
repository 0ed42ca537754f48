"""Column types and helpers: UTC instants, ISO dates, ids, texts, amounts, and account filters."""

import hashlib
import json
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Dialect,
    FromClause,
    Integer,
    MetaData,
    String,
    TypeDecorator,
    and_,
    any_,
    bindparam,
    func,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY

from recon.model.errors import StoreError
from recon.model.nights import Account


class OfAccount(Protocol):
    """Anything with the ids of an account, such as a run."""

    @property
    def merchant_id(self) -> str:
        """The merchant's id at the gateway."""

    @property
    def account_id(self) -> str:
        """The account's id at the gateway."""


Owner = OfAccount | Account
"""Identifies the account whose rows are meant."""


def account_of(owner: Owner) -> Account:
    """Return merchant and account id."""
    return owner if isinstance(owner, tuple) else (owner.merchant_id, owner.account_id)


def in_account(table: FromClause, owner: Owner) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the conditions that restrict a table to one account."""
    merchant_id, account_id = account_of(owner)
    return table.c.merchant_id == merchant_id, table.c.account_id == account_id


def in_accounts(table: FromClause, owners: Iterable[Owner]) -> ColumnElement[bool]:
    """Return the condition that restricts a table to some accounts; of none it matches nothing."""
    return or_(False, *(and_(*in_account(table, owner)) for owner in owners))


def among(
    connection: Connection, column: ColumnElement[Any], values: Iterable[str] | Iterable[int]
) -> ColumnElement[bool]:
    """Return the condition that a column has one of any number of values, as one parameter."""
    distinct = [*values]
    if connection.dialect.name == "sqlite":
        each = func.json_each(json.dumps(distinct)).table_valued("value")
        return column.in_(select(each.c.value))
    return column == any_(bindparam(None, distinct, type_=ARRAY(column.type)))


ID_CHARACTERS = 64


def id_of(*names: str) -> str:
    """Join names to one id; returns a hash if the result is longer than an id may be."""
    name = "/".join(names)
    return name if len(name) <= ID_CHARACTERS else hashlib.sha256(name.encode()).hexdigest()


NAME_CHARACTERS = 255
SENDER_CHARACTERS = 512
"""Length for merchant, account, and a file name or pattern."""
REASON_CHARACTERS = 400
LEFT_OUT = " […]"


class Instant(TypeDecorator[datetime]):
    """A time-zone aware instant, stored in UTC on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC; SQLite stores no time zone."""
        if value is None:
            return None
        moved = value.astimezone(UTC)
        return moved.replace(tzinfo=None) if dialect.name == "sqlite" else moved

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - signature of TypeDecorator
        """Return the instant in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class IsoDate(TypeDecorator[date]):
    """A date stored as its ISO text, which is readable and sorts correctly on every database."""

    impl = String(10)
    cache_ok = True

    def process_bind_param(self, value: date | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - signature of TypeDecorator
        """Convert to ISO text."""
        return None if value is None else value.isoformat()

    def process_result_value(self, value: str | None, dialect: Dialect) -> date | None:  # noqa: ARG002 - signature of TypeDecorator
        """Parse the date.

        Raises:
            StoreError: The text is not a date; it was written bypassing the code.
        """
        try:
            return None if value is None else date.fromisoformat(value)
        except ValueError as error:
            msg = (
                f"a business date in the database is {value!r}, which is no date: the row of a "
                "night or a file was changed past the code; nothing was done: restore a backup"
            )
            raise StoreError(msg) from error


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def id_column(name: str, **options: Any) -> Column[str]:
    """A required identifier."""
    return Column(name, String(ID_CHARACTERS), nullable=False, **options)


def text_column(name: str, length: int = NAME_CHARACTERS) -> Column[str]:
    """A text of limited length, "" if not given."""
    return Column(name, String(length), nullable=False, server_default="")


def text_columns(*names: str, length: int = NAME_CHARACTERS) -> Iterator[Column[str]]:
    """Several texts of one length."""
    yield from (text_column(name, length) for name in names)


def amount_column(name: str, *, nullable: bool = False) -> Column[int]:
    """An amount in minor units."""
    return Column(name, BigInteger, nullable=nullable)


def count_column(name: str) -> Column[int]:
    """A count, 0 until known."""
    return Column(name, Integer, nullable=False, server_default="0")


def count_columns(*names: str) -> Iterator[Column[int]]:
    """Several counts."""
    yield from map(count_column, names)


def file_columns() -> Iterator[Column[Any]]:
    """Columns of a file that was read: name, hash, size, and row counts."""
    yield from text_columns("name", "sha256")
    yield Column("size_bytes", BigInteger, nullable=False)
    yield from count_columns("rows_read", "rows_accepted", "rows_rejected", "rows_skipped")
    yield count_column("rows_unassigned")
    yield text_column("skipped_by", REASON_CHARACTERS)


def payee_columns() -> Iterator[Column[str]]:
    """Columns for the recipient of a payment, or the contract that ends."""
    yield text_column("review_flag", 20)
    yield text_column("recurring_id", ID_CHARACTERS)
    yield text_column("contract_name")
    yield text_column("payee", 80)  # masked for display
    yield text_column("payee_digest", 64)


def at_column(name: str, *, nullable: bool = True) -> Column[datetime]:
    """An instant."""
    return Column(name, Instant, nullable=nullable)


def at_columns(*names: str) -> Iterator[Column[datetime]]:
    """Several instants that may be missing."""
    yield from map(at_column, names)


def business_date_column() -> Column[date]:
    """The required business date of a night."""
    return Column("business_date", IsoDate, nullable=False)


def account_columns(**options: Any) -> tuple[Column[str], Column[str]]:
    """Merchant and account id, the first columns of almost every table."""
    return id_column("merchant_id", **options), id_column("account_id", **options)


def reason_that_fits(sentence: str) -> str:
    """Cut a reason to REASON_CHARACTERS at a word, never within a quoted command.

    >>> long = "x" * (REASON_CHARACTERS - 20) + " then run `recon verify NIGHT` now"
    >>> reason_that_fits(long).endswith("x then run […]")
    True
    """
    if len(sentence) <= REASON_CHARACTERS:
        return sentence
    shortened = textwrap.shorten(sentence, REASON_CHARACTERS, placeholder=LEFT_OUT)
    if shortened.count("`") % 2:
        shortened = shortened[: shortened.rindex("`")].rstrip() + LEFT_OUT
    return shortened

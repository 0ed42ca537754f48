"""What columns are made of: instants in UTC, dates as their ISO text, ids, texts and amounts."""

import hashlib
import json
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    Boolean,
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
    """What bears both numbers of an account, such as a run."""

    @property
    def merchant_id(self) -> str:
        """At the gateway."""

    @property
    def account_id(self) -> str:
        """At the gateway."""


Owner = OfAccount | Account
"""Whose rows are meant: what bears both numbers, or merchant and account."""


def account_of(owner: Owner) -> Account:
    """Merchant and account."""
    return owner if isinstance(owner, tuple) else (owner.merchant_id, owner.account_id)


def in_account(table: FromClause, owner: Owner) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The condition of a statement about one account."""
    merchant_id, account_id = account_of(owner)
    return table.c.merchant_id == merchant_id, table.c.account_id == account_id


def in_accounts(table: FromClause, owners: Iterable[Owner]) -> ColumnElement[bool]:
    """The condition of a statement about some accounts; of none it finds nothing."""
    return or_(False, *(and_(*in_account(table, owner)) for owner in owners))


def among(
    connection: Connection, column: ColumnElement[Any], values: Iterable[str] | Iterable[int]
) -> ColumnElement[bool]:
    """Whether a column has one of any number of values, given as one parameter."""
    wanted = [*values]
    if connection.dialect.name == "sqlite":
        each = func.json_each(json.dumps(wanted)).table_valued("value")
        return column.in_(select(each.c.value))
    return column == any_(bindparam(None, wanted, type_=ARRAY(column.type)))


ID_CHARACTERS = 64


def id_of(*names: str) -> str:
    """Some names as one id; the hash of what is longer than an id can be."""
    name = "/".join(names)
    return name if len(name) <= ID_CHARACTERS else hashlib.sha256(name.encode()).hexdigest()


NAME_CHARACTERS = 255
SENDER_CHARACTERS = 512
"""Merchant, account, and a name or a pattern of names."""
REASON_CHARACTERS = 400
LEFT_OUT = " […]"


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


class IsoDate(TypeDecorator[date]):
    """A date, stored on every database as its ISO text, which people read and which orders it."""

    impl = String(10)
    cache_ok = True

    def process_bind_param(self, value: date | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - signature of TypeDecorator
        """Its ISO text going in."""
        return None if value is None else value.isoformat()

    def process_result_value(self, value: str | None, dialect: Dialect) -> date | None:  # noqa: ARG002 - signature of TypeDecorator
        """A date coming out.

        Raises:
            StoreError: the text is no date; only somebody past the code writes one.
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
    """An identifier; required."""
    return Column(name, String(ID_CHARACTERS), nullable=False, **options)


def text_column(name: str, length: int = NAME_CHARACTERS) -> Column[str]:
    """A text of bounded length, "" when not given."""
    return Column(name, String(length), nullable=False, server_default="")


def text_columns(*names: str, length: int = NAME_CHARACTERS) -> Iterator[Column[str]]:
    """Several texts of one length."""
    yield from (text_column(name, length) for name in names)


def amount_column(name: str, *, nullable: bool = False) -> Column[int]:
    """Minor units."""
    return Column(name, BigInteger, nullable=nullable)


def count_column(name: str) -> Column[int]:
    """How many; 0 until known."""
    return Column(name, Integer, nullable=False, server_default="0")


def count_columns(*names: str) -> Iterator[Column[int]]:
    """Several counts."""
    yield from map(count_column, names)


def file_columns() -> Iterator[Column[Any]]:
    """What is known of a file that was read: name, hash, size, and what became of its rows."""
    yield from text_columns("name", "sha256")
    yield Column("size_bytes", BigInteger, nullable=False)
    yield from count_columns("rows_read", "rows_accepted", "rows_rejected", "rows_skipped")
    yield count_column("rows_unassigned")
    yield text_column("skipped_by", REASON_CHARACTERS)


def people_columns() -> Iterator[Column[Any]]:
    """Two people's words on one thing; the second name is "" while that person is missing."""
    for each in ("first", "second"):
        yield text_column(f"{each}_by", 100)
        yield Column(f"{each}_authenticated", Boolean, nullable=False)
        yield at_column(f"{each}_at", nullable=each == "second")


def payee_columns() -> Iterator[Column[str]]:
    """Whom a payment goes to, or which contract it ends."""
    yield text_column("review_flag", 20)
    yield text_column("recurring_id", ID_CHARACTERS)
    yield text_column("contract_name")
    yield text_column("payee", 80)  # as people may see it
    yield text_column("payee_digest", 64)


def at_column(name: str, *, nullable: bool = True) -> Column[datetime]:
    """An instant."""
    return Column(name, Instant, nullable=nullable)


def at_columns(*names: str) -> Iterator[Column[datetime]]:
    """Several instants that may be missing."""
    yield from map(at_column, names)


def business_date_column() -> Column[date]:
    """The business date of a night; required."""
    return Column("business_date", IsoDate, nullable=False)


def account_columns(**options: Any) -> tuple[Column[str], Column[str]]:
    """Merchant and account, the first columns of almost every table."""
    return id_column("merchant_id", **options), id_column("account_id", **options)


def reason_that_fits(sentence: str) -> str:
    """A reason of at most REASON_CHARACTERS: whole words, and no command of it cut in two.

    >>> long = "x" * (REASON_CHARACTERS - 20) + " then run `recon verify NIGHT` now"
    >>> reason_that_fits(long).endswith("x then run […]")
    True
    """
    if len(sentence) <= REASON_CHARACTERS:
        return sentence
    words = textwrap.shorten(sentence, REASON_CHARACTERS, placeholder=LEFT_OUT)
    if words.count("`") % 2:
        words = words[: words.rindex("`")].rstrip() + LEFT_OUT
    return words

"""A ledger in a SQL database, read in one read-only snapshot and checked by a second count and sum.

The rows are converted to JSON lines, with numbers as numbers, and read like such a file, so that
the archived copy of a query gives the same entries again.

Decimals are exact. SQLite has no decimals: a column declared NUMERIC yields floating point, which
is read as its shortest decimal text (as in spreadsheets), and integers count as amounts only in a
column with fractions, since alone they could be minor units. From other databases floating-point
columns are refused.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from recon.config.file_sources import LedgerSource
from recon.config.rules import Rules
from recon.files.formats.json_text import json_table
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import RawTable, checked_header, refuse
from recon.files.kinds.archive import private_content
from recon.files.kinds.layouts import layout_of_ledger, refuse_wrong_mapping
from recon.files.typing.mapped_columns import names_of, read_of
from recon.files.typing.table_schema import LEDGER
from recon.files.typing.typed_table import proven_table
from recon.matching.frames.sources import LEDGER_COLUMNS
from recon.model.errors import ConfigurationError, SourceUnreadableError
from recon.model.terms import Reject, SourceFile
from recon.privacy.displayed_text import redacted

CONNECT_SECONDS = 10
STATEMENT_MILLISECONDS = 600_000
ROWS_MAX = 5_000_000
"""Maximum number of rows of one query."""
THOUSANDTHS = 1_000
"""Thousandths per major unit; no currency has smaller units."""

_COLON = re.compile(r"(?<![:\\]):(?=[A-Za-z_])")
_SQLITE = "sqlite"
_POSTGRESQL = "postgresql"
_WRITTEN_BY_PEOPLE = frozenset({"postgresql", "postgres"})
"""Common schemes of PostgreSQL URLs, for which SQLAlchemy would load another driver or none."""
_OUR_DRIVER = "postgresql+psycopg"
_SUMMABLE = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,3}0*)?", re.ASCII)


class Ledger(NamedTuple):
    """Result of a ledger query."""

    entries: pd.DataFrame
    """The entries, in LEDGER_COLUMNS."""
    rejects: tuple[Reject, ...]
    source_file: SourceFile
    content: bytes
    """The same rows as JSON lines."""
    private: str
    """Why the content must not be archived, or ""."""


def read_ledger(
    source: LedgerSource,
    *,
    environment: Mapping[str, str],
    rules: Rules,
    rows_max: int | None = None,
) -> Ledger:
    """Run the query of a ledger and return its entries, rejects and counts.

    With `rows_max` only the first rows are read. Ledgers in files are read by `ledger_file`.

    Raises:
        ConfigurationError: the mapping names what no ledger has, or the address is not set.
        SourceUnreadableError: the database cannot be read, or columns are missing.
    """
    layout = layout_of_ledger(source)
    refuse_wrong_mapping(source)
    if source.url is not None:
        address = source.url.get_secret_value()
    elif not (address := environment.get(source.url_env, "").strip()):
        msg = f"the environment variable {source.url_env}, the ledger's address, is not set"
        raise ConfigurationError(msg)
    raw, content = extract(
        address,
        query=source.query,
        columns_read=read_of(LEDGER, layout=layout),
        amount=names_of(LEDGER, layout=layout).get("amount", ""),
        rows_max=rows_max,
    )
    zone = ZoneInfo(source.zone) if source.zone else None
    table = proven_table(Path(raw.name), raw, schema=LEDGER, rules=rules, layout=layout, zone=zone)
    private = private_content(replace(raw, header=tuple(raw.columns)))
    entries = table.frame[list(LEDGER_COLUMNS)]
    return Ledger(entries, table.rejects, table.source_file, content, private)


def extract(
    address: str,
    *,
    query: str,
    columns_read: frozenset[str],
    amount: str = "",
    rows_max: int | None = None,
) -> tuple[RawTable, bytes]:
    """Return the wanted columns of a query, and the JSON lines that they were read from.

    The rows are sorted, so that their order does not depend on the database. The database also
    computes the total of the column `amount`. With `rows_max` only the first rows are read, and
    nothing is counted or summed.

    Raises:
        ConfigurationError: the address is not a database URL.
        SourceUnreadableError: it cannot be read, count or sum differ, or a type is inexact.
    """
    url = _url(address)
    name, dialect = _name_of(url), url.get_backend_name()
    # As reports show it: without the database's folder on this machine.
    short = f"{url.host}/{url.database}" if url.host else Path(str(url.database)).name
    try:
        with _snapshot(url) as connection:
            header, rows = _fetch(connection, query, name=name, rows_max=rows_max)
            if rows_max is not None:
                return _as_file(
                    f"ledger {short}", header, rows, columns_read=columns_read, dialect=dialect
                )
            count = int(_result(connection, "count(*)", query))
            total = summed = None
            if amount in header:
                total = _thousandths(row[header.index(amount)] for row in rows)
            if total is not None:
                summed = _summed(connection, query, column=amount)
    except (SQLAlchemyError, OSError) as error:
        refuse(name, f"cannot be read: {_first_line(error, url=url)}; nothing was taken from it")
    if count != len(rows):
        refuse(name, f"gave {len(rows)} rows and counted {count}; it must not change meanwhile")
    if summed != total:
        refuse(name, f"gave amounts of {total} thousandths and sums them up to {summed}")
    return _as_file(f"ledger {short}", header, rows, columns_read=columns_read, dialect=dialect)


def _url(address: str) -> URL:
    """Parse the address and select an installed driver.

    Raises:
        ConfigurationError: not a URL, or its driver is not installed; the address is not quoted,
            because it may hold a password.
    """
    try:
        url = make_url(address)
        if url.drivername in _WRITTEN_BY_PEOPLE:
            url = url.set(drivername=_OUR_DRIVER)
        url.get_dialect().import_dbapi()
    except ImportError as error:
        msg = f"the ledger's database needs the Python package {error.name}, which is not installed"
        raise ConfigurationError(msg) from None
    except (SQLAlchemyError, ValueError):  # a port that is not a number is a ValueError
        msg = "the ledger's address is not a database URL such as postgresql://host/books"
        raise ConfigurationError(msg) from None
    return url


def _name_of(url: URL) -> str:
    database = f"{url.host}/{url.database}" if url.host else str(url.database)
    return f"ledger {url.get_backend_name()} {database}"


@contextmanager
def _snapshot(url: URL) -> Iterator[Connection]:
    """Open a connection with a consistent snapshot that cannot write."""
    dialect = url.get_backend_name()
    if dialect == _SQLITE and not Path(url.database or "").is_file():
        msg = f"{_name_of(url)} does not exist; nothing was read"
        raise SourceUnreadableError(msg)
    arguments: dict[str, Any] = {}
    if dialect == _POSTGRESQL:
        options = f"-c statement_timeout={STATEMENT_MILLISECONDS}"
        arguments = {"connect_timeout": CONNECT_SECONDS, "options": options}
    if dialect == _SQLITE:
        arguments = {"timeout": CONNECT_SECONDS}
    engine = create_engine(url, poolclass=NullPool, connect_args=arguments, hide_parameters=True)
    try:
        with engine.connect() as plain:
            connection = plain
            if dialect == _POSTGRESQL:
                connection = plain.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            if dialect == _SQLITE:
                connection.exec_driver_sql("PRAGMA query_only = ON")
                connection.exec_driver_sql("BEGIN")
            yield connection
            connection.rollback()
    finally:
        engine.dispose()


def _statement(query: str) -> Any:
    """Return the query as is; colons in it are escaped, as they never mark parameters."""
    return text(_COLON.sub(r"\\:", query))


def _summed(connection: Connection, query: str, *, column: str) -> int:
    """Let the database sum the amounts, in thousandths of a major unit."""
    named = connection.dialect.identifier_preparer.quote_identifier(column)
    exact = f"cast({named} as numeric(38, 3)) * {THOUSANDTHS}"
    if connection.dialect.name == _SQLITE:  # its numerics are floating point: summed as integers
        exact = f"cast(round({named} * {THOUSANDTHS}) as integer)"
    return int(_result(connection, f"coalesce(sum({exact}), 0)", query))


def _result(connection: Connection, what: str, query: str) -> Any:
    # The query is the merchant's own configuration; the line break ends a trailing comment.
    asking = f"select {what} from (\n{query.rstrip().removesuffix(';')}\n) as counted"  # noqa: S608 - the merchant's own query
    return connection.execute(_statement(asking)).scalar_one()


def _thousandths(cells: Iterable[Any]) -> int | None:
    """Sum the cells in thousandths; None if one is not an amount, which is rejected later."""
    total = 0
    for cell in cells:
        text = _text(cell)
        if text and _SUMMABLE.fullmatch(text) is None:
            return None
        total += int(Decimal(text or 0) * THOUSANDTHS)
    return total


def _fetch(
    connection: Connection, query: str, *, name: str, rows_max: int | None
) -> tuple[tuple[str, ...], list[Sequence[Any]]]:
    """Return names and rows of a query, only the first `rows_max` rows if that is given."""
    if rows_max is not None:
        connection = connection.execution_options(stream_results=True)
    fetched = connection.execute(_statement(query))
    header = checked_header(list(fetched.keys()), name=name)
    rows = [tuple(row) for row in fetched.fetchmany(rows_max or ROWS_MAX + 1)]
    fetched.close()
    if len(rows) > ROWS_MAX:
        refuse(name, f"gives more than {ROWS_MAX} rows; narrow the query")
    return header, list(rows)


def _as_file(
    name: str,
    header: tuple[str, ...],
    rows: list[Sequence[Any]],
    *,
    columns_read: frozenset[str],
    dialect: str,
) -> tuple[RawTable, bytes]:
    """Convert the rows to JSON lines, and return the table read from them and the bytes."""
    positions = [index for index, column in enumerate(header) if column in columns_read]
    names = [json.dumps(header[index], ensure_ascii=False) for index in positions]
    kinds = [{type(row[index]) for row in rows} for index in positions]
    for index, of in zip(positions, kinds, strict=True):
        if "." in header[index]:
            refuse(name, f"gives a column {header[index]!r}; name it without a point")
        _refuse_inexact(of, column=header[index], name=name, dialect=dialect)
    # Only beside fractions are integers surely in major units.
    exact = [{Decimal, float, int} if float in of else {Decimal} for of in kinds]
    lines = []
    texts_of_rows = (([_text(row[at]) for at in positions], row) for row in rows)
    for texts, row in sorted(texts_of_rows, key=itemgetter(0)):
        cells = []
        for own, cell, at, numbers in zip(names, texts, positions, exact, strict=True):
            # NaN and infinity are not JSON numbers: they stay text, and their cells are rejected.
            is_number = type(row[at]) in numbers and cell[-1:].isdigit()
            cells.append(f"{own}: {cell if is_number else json.dumps(cell, ensure_ascii=False)}")
        lines.append(f"{{{', '.join(cells)}}}\n")
    content = "".join(lines).encode()
    sha256 = hashlib.sha256(content).hexdigest()
    if rows and positions:
        raw = json_table(
            FileBytes(Path(name), content, sha256), columns_read=columns_read, rows_max=ROWS_MAX
        )
    else:
        nothing = {header[index]: pa.array([], pa.large_string()) for index in positions}
        raw = RawTable(name, header, nothing, np.zeros(0, dtype=np.int64))
    raw = replace(
        raw,
        name=name,
        header=header,
        lines=raw.lines + 1,  # line 1 of a table is its header, wherever that is
        bad_rows=tuple(replace(bad, line=bad.line + 1) for bad in raw.bad_rows),
        sha256=sha256,
        size_bytes=len(content),
    )
    return raw, content


def _refuse_inexact(kinds: set[type], *, column: str, name: str, dialect: str) -> None:
    words = {kind.__name__ for kind in kinds}
    if "float" in words and dialect != _SQLITE:
        refuse(name, f"gives binary fractions in column {column!r}; cast it to numeric or text")
    odd = sorted(words - {"str", "int", "float", "Decimal", "datetime", "date", "NoneType", "UUID"})
    if odd:
        refuse(name, f"gives {odd[0]} in column {column!r}; cast it to text, numeric or timestamp")


def _text(cell: Any) -> str:
    match cell:
        case None:
            return ""
        case str():
            return cell
        case datetime() | date():
            return cell.isoformat()
    number = cell if isinstance(cell, Decimal) else str(cell)
    if type(cell).__name__ in {"float", "Decimal"}:
        return format(Decimal(number), "f")
    return str(number)


def _first_line(error: Exception, *, url: URL) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    return redacted(line.replace(url.password, "***") if url.password else line)

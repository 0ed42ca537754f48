import sqlite3
from pathlib import Path

import pytest

from recon.model.errors import ConfigurationError
from recon.sandbox.book import Book


def test_a_transaction_is_all_or_nothing() -> None:
    """What fails half-way leaves nothing behind."""
    book = Book(None)
    with pytest.raises(sqlite3.OperationalError):  # noqa: PT012, SIM117 - the failure is the second
        with book.transaction():
            book.write_note("seed", value="1")
            book.execute("INSERT INTO nowhere VALUES (1)")
    assert book.note("seed") == ""
    with book.transaction():
        book.write_note("seed", value="2")
    assert book.note("seed") == "2"
    book.close()


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    """A database with tables of its own is left as it is."""
    path = tmp_path / "orders.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE orders (id)")
    other.commit()
    other.close()
    with pytest.raises(ConfigurationError, match="another program's database"):
        Book(path)

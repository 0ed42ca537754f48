"""The doctor reads rows of a merchant's own sources before it calls them well."""

import random
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from recon.steps.care.doctor import LEDGER_ROWS_MAX, Check, checks

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"
COLUMNS = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at"


def _found(merchant: Any, name: str) -> Check:
    told = checks(merchant.variables, clock=merchant.clock, randomness=random.Random(1))
    (check,) = [one for one in told if one.name.split()[0] == name]
    return check


def _books(merchant: Any, *, currency: str, rows: int) -> None:
    """A SQLite ledger of so many rows, declared for the account."""
    path = merchant.folder / "books.sqlite"
    entries = [
        (
            f"E{n:05}",
            "100042",
            "100042001",
            f"A-{n}",
            "capture",
            currency,
            "10.00",
            "2026-11-20T10:00:00Z",
        )
        for n in range(rows)
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"create table entry ({COLUMNS})")
        connection.executemany("insert into entry values (?,?,?,?,?,?,?,?)", entries)
    declared = merchant.folder / "config" / "merchants.toml"
    lines = [one for one in declared.read_text().splitlines() if not one.startswith("ledger")]
    query = f"select {COLUMNS} from entry"  # noqa: S608 - the test's own table
    lines.append(f'ledger = {{ url = "sqlite:///{path}", query = "{query}" }}')
    declared.write_text("\n".join(lines))


def test_ten_rows_of_a_ledgers_query_are_read(merchant: Any) -> None:
    """Enough to know that the columns and words fit, without counting a million rows."""
    _books(merchant, currency="EUR", rows=500)
    check = _found(merchant, "ledger")

    assert check.ok, check.sentence
    assert f"{LEDGER_ROWS_MAX} of {LEDGER_ROWS_MAX} rows read can be taken" in check.sentence


def test_a_ledger_whose_rows_would_be_refused_is_not_ok(merchant: Any) -> None:
    """The line says how many, and the column and reason of the first."""
    _books(merchant, currency="EURO", rows=3)
    check = _found(merchant, "ledger")

    assert not check.ok
    assert "0 of 3 rows read can be taken, 3 would be refused; the first in line " in check.sentence
    assert "currency: " in check.sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("order_no;amount\nA-1;10\n", "bad.csv"),
        (
            f"{HEADER}\n100042,100042001,A-1,EUR,12.5,paid,2026-11-20T10:00:00Z\n",
            "bad.csv: every row would be refused; the first in line 2, amount: ",
        ),
    ],
)
def test_an_inbox_file_that_a_night_would_refuse_is_not_ok(
    merchant: Any, content: str, words: str
) -> None:
    """A wrong header, or not one good row: told before the night, with the file's name."""
    merchant.drop("good.csv", merchant.order(merchant.payments("captured")[0]))
    (merchant.inbox / "bad.csv").write_text(content)
    check = _found(merchant, "inbox")

    assert not check.ok
    assert words in check.sentence
    assert "good.csv" not in check.sentence


def test_rows_of_good_files_are_counted(merchant: Any) -> None:
    """Some refused rows stop no night; the line counts them."""
    good = merchant.order(merchant.payments("captured")[0])
    merchant.drop("good.csv", good, good | {"order_no": "X-1", "amount": "12,5"})
    check = _found(merchant, "inbox")

    assert check.ok
    assert check.sentence.endswith("1 files: 1 rows can be taken, 1 would be refused")

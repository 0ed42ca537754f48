import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from recon.config.file_sources import LedgerSource
from recon.config.settings import AccountSettings
from recon.files.kinds.ledger_file import read_ledger
from recon.model.nights import Mode, NightRequest
from recon.proof.night_tables import frame_of_table
from recon.steps.files.keep_ledger import keep_ledger
from recon.steps.ground.kept_books import KeptBooks
from recon.store.nights import runs

COLUMNS = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at"
ROW = ("E-1", "100042", "100042001", "A-1", "capture", "EUR", "10.5", "2026-01-05T10:00:00Z")
CARD = "4111111111111111"


def kept(merchant: Any, ledger: LedgerSource, **settings: Any) -> tuple[str, Any]:
    """Read this ledger for a run; what is told, and the source that the run has."""
    with merchant.environment() as environment:
        place = AccountSettings(
            inbox=merchant.inbox,
            reports=merchant.folder,
            ledger=ledger,
            archive=merchant.folder / "kept",
            settle_seconds=settings.pop("settle_seconds", 0),
        )
        accounts = {"100042/100042001": place}
        changed = replace(
            environment,
            settings=environment.settings.model_copy(update={"accounts": accounts}),
            **settings,
        )
        now = merchant.clock()
        request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
        with environment.store.writing() as connection:
            runs.start(connection, request, run_id="r1", as_of=now, now=now)
            run = runs.get(connection, "r1")
        told = keep_ledger(run, environment=changed)
        with environment.store.reading() as connection:
            found = KeptBooks(connection, run, changed)
            source = found.source
            return told, source and (frame_of_table(found.entries()), source)


def books(merchant: Any, *rows: tuple[str, ...]) -> LedgerSource:
    """A SQLite ledger."""
    path = merchant.folder / "books.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"create table entry ({COLUMNS.replace('amount', 'amount numeric')})")
        connection.executemany("insert into entry values (?,?,?,?,?,?,?,?)", rows)
    return LedgerSource(url=f"sqlite:///{path}", query=f"select {COLUMNS} from entry")  # noqa: S608 - the test's own table


def csv_file(merchant: Any, *rows: tuple[str, ...]) -> LedgerSource:
    """A ledger file."""
    path = merchant.folder / "ledger.csv"
    path.write_text("".join(f"{line}\n" for line in (COLUMNS, *map(",".join, rows))))
    return LedgerSource(path=path)


def archived(merchant: Any) -> list[Path]:
    """What the archive holds."""
    return [path for path in (merchant.folder / "kept").rglob("*") if path.is_file()]


def test_what_a_query_gave_is_kept_by_its_hash_and_can_be_read_again(merchant: Any) -> None:
    """A year later the file of the archive gives the entries that the night compared."""
    told, (entries, source) = kept(merchant, books(merchant, ROW))
    (path,) = archived(merchant)
    assert told == ""
    assert path.name == f"{source.sha256}.jsonl"
    again = read_ledger(
        LedgerSource(path=path), environment={}, rules=merchant_rules(merchant)
    ).entries
    # An extract has no header, so its rows stand one line higher.
    places = ["source", "line"]
    assert again.drop(columns=places).equals(entries.drop(columns=places))


def merchant_rules(merchant: Any) -> Any:
    """The rules of its nights."""
    with merchant.environment() as environment:
        return environment.settings.rules


def test_a_ledger_file_is_kept_as_it_was(merchant: Any) -> None:
    """Byte for byte, under the hash that the night's sources name."""
    row = (*ROW[:6], "10.50", ROW[7])
    ledger = csv_file(merchant, row)
    _, (_, source) = kept(merchant, ledger)
    (path,) = archived(merchant)
    assert path.name == f"{source.sha256}.csv"
    assert path.read_bytes() == ledger.path.read_bytes()


@pytest.mark.parametrize("make", [books, csv_file])
def test_a_ledger_with_card_numbers_is_not_kept(merchant: Any, make: Any) -> None:
    """The night says so, with the column and never the number."""
    told, _ = kept(merchant, make(merchant, (CARD, *ROW[1:])))
    assert "it holds card numbers in column entry_id" in told
    assert CARD not in told
    assert archived(merchant) == []


def test_a_ledger_file_that_is_still_written_is_refused(merchant: Any) -> None:
    """Half of the books is worse than none."""
    ledger = csv_file(merchant, ROW)

    def keep_writing(_: Any) -> None:
        ledger.path.write_bytes(ledger.path.read_bytes() + b"\n")

    told, found = kept(merchant, ledger, settle_seconds=5, pause=keep_writing)

    assert "The ledger could not be read: " in told
    assert "ledger.csv is still being written" in told
    assert found is None

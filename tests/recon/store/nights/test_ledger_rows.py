from dataclasses import replace
from datetime import UTC, date, datetime

from recon.model.nights import Mode, NightRequest
from recon.model.words import Reject, SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import ledger_rows, order_rows, runs
from recon.store.nights.runs import Run

SOURCE = SourceFile(SourceKind.LEDGER, "ledger.csv", "abc", 10, 2, 2, 0, 0)
REFUSED = Reject(SourceKind.LEDGER, "ledger.csv", 3, "booked_at", "is no time", "x")
MONEY = {"entry_type": "fee", "currency": "EUR"}


def test_a_source_takes_the_place_of_an_earlier_attempts(store: Store, run: Run) -> None:
    """One row a run, and what the first attempt refused goes with it."""
    with store.writing() as connection:
        ledger_rows.save(connection, run.run_id, source=replace(SOURCE, sha256=""))
        order_rows.insert_rejects(connection, [REFUSED], run_id=run.run_id, file_id=None)
        ledger_rows.save(connection, run.run_id, source=SOURCE)
    with store.reading() as connection:
        kept = ledger_rows.source_of(connection, run.run_id)
        none = ledger_rows.source_of(connection, "other")
        why = ledger_rows.unread(connection, run.run_id, whole_file="(whole file)")

    assert (kept, none, why) == (SOURCE, None, "")


def test_refused_entries_count_where_their_money_was_read(store: Store, run: Run) -> None:
    """By type and currency, added up by the database; the others say no sum."""
    rejects = [replace(REFUSED, **MONEY, amount=amount) for amount in (-300, 50)]
    with store.writing() as connection:
        ledger_rows.save(connection, run.run_id, source=SOURCE)
        order_rows.insert_rejects(connection, [*rejects, REFUSED], run_id=run.run_id, file_id=None)
    with store.reading() as connection:
        sums = ledger_rows.rejected_sums(connection, run.run_id)

    assert sums == {("fee", "EUR"): -250}


def test_the_newest_reader_is_of_the_account(store: Store, run: Run) -> None:
    """A later run that read no books, and another account's, are passed over."""
    later = datetime(2031, 1, 1, tzinfo=UTC)
    with store.writing() as connection:
        none = ledger_rows.newest_reader(connection, run)
        ledger_rows.save(connection, run.run_id, source=SOURCE)
        for name, account_id in (("r8", run.account_id), ("r9", "other")):
            request = NightRequest(run.merchant_id, account_id, date(2031, 1, 1), Mode.LIVE)
            runs.start(connection, request, run_id=name, as_of=later, now=later)
        ledger_rows.save(connection, "r9", source=SOURCE)
        found = ledger_rows.newest_reader(connection, run)

    assert (none, found) == (None, run.run_id)

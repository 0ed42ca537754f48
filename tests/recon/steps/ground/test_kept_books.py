"""The books as a run read them, in its night's folder: whole, bound, and refused when changed."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recon.archive.step_folder import find_sealed
from recon.matching.frames.sources import LEDGER_COLUMNS, frame_of
from recon.model.errors import ArchiveBrokenError, ArchiveError
from recon.model.words import SourceFile, SourceKind
from recon.proof.books_bridge import sums_by_type
from recon.proof.night_tables import frame_of_table, table_of
from recon.steps.ground.kept_books import KeptBooks, sums_of_entries, write_books
from recon.steps.ground.night_folder import BOOKS, bind, links, storage_of
from recon.steps.night import whole_night as night
from recon.store.nights import journal_rows
from tests.recon.steps.conftest import Merchant, plain_workbooks
from tests.recon.steps.ground.test_kept_answers import Asking, archive_beside, begun

SOURCE = SourceFile(SourceKind.LEDGER, "ledger.csv", "abc", 10, 2, 2, 0, 0)
ACCOUNT = {"merchant_id": "100042", "account_id": "100042001"}


def entry(number: int, **changed: Any) -> dict[str, Any]:
    """One entry of the books."""
    return {
        **ACCOUNT,
        "entry_id": f"L-{number}",
        "order_no": f"A-{number}",
        "entry_type": "capture",
        "currency": "EUR",
        "amount": 500 + number,
        "booked_at": "2026-11-20T10:00:00.123456Z",
        "transaction_id": f"T-{number}",
        "source": "ledger.csv",
        "line": 1 + number,
        **changed,
    }


def keep(asking: Asking, entries: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Keep these books for the run, as the query does."""
    frame = frame_of(entries, columns=LEDGER_COLUMNS)
    entries = table_of(frame, name="ledger")
    sealed = write_books(asking.run, entries=entries, environment=asking.environment)
    with asking.environment.store.writing() as connection:
        journal_rows.save(connection, asking.run.run_id, source=SOURCE)
        bind(connection, asking.run, sealed=[sealed], environment=asking.environment)
    return frame


def told(asking: Asking, question: Callable[[KeptBooks], Any]) -> Any:
    """The answer to a question about the books as the run read them."""
    with asking.environment.store.reading() as connection:
        return question(KeptBooks(connection, asking.run, asking.environment))


def the_file(asking: Asking, merchant: Merchant) -> Path:
    """Where the books of the run lie."""
    (path,) = archive_beside(asking, merchant).glob(f"**/{asking.run.run_id}/books/ledger.parquet")
    return path


ODD = entry(1, entry_type="adjustment", amount=-500, transaction_amount=0, reference_no='a "b", c')


def test_books_come_back_whole_in_place_of_an_earlier_attempt(merchant: Merchant) -> None:
    """Entries of every account and age, blanks and signs; what was bound before stays beside it."""
    with begun(merchant) as asking:
        none = told(asking, attrgetter("source"))
        keep(asking, [entry(9)])
        frame = keep(asking, [ODD, entry(2), entry(3, account_id="100042002", amount=2**62)])
        source, entries = (told(asking, attrgetter("source")), told(asking, KeptBooks.entries))
        with asking.environment.store.reading() as connection:
            bound = [link for link in links(connection, asking.run.run_id) if link.step == BOOKS]
        storage = storage_of(asking.run, environment=asking.environment)
        folders = [
            find_sealed(
                storage, night=link.folder.rpartition("/")[0], step=BOOKS, sha256=link.sha256
            )
            for link in bound
        ]

    assert none is None
    assert source == SOURCE
    pd.testing.assert_frame_equal(frame_of_table(entries), frame)
    assert [each.folder.rpartition("/")[2] for each in folders if each] == [
        "books.aside-1",
        "books",
    ]


def test_the_money_of_books_is_added_up_by_arrow(merchant: Merchant) -> None:
    """By type and currency, as the plain frame comes to it."""
    with begun(merchant) as asking:
        frame = keep(asking, [ODD, entry(2), entry(3), entry(4, currency="GBP")])
        sums = sums_of_entries(told(asking, KeptBooks.entries))

    assert sums == sums_by_type(frame)
    assert sums["capture", "EUR"] == 1_005


BACK = {"entry_type": "chargeback"}


def test_what_was_charged_back_is_asked_of_the_runs_own_books(merchant: Merchant) -> None:
    """Reversals count against it, money in the payment's currency, other accounts not at all.

    A row taken away in the database hides none of it.
    """
    paid = {"transaction_currency": "USD", "transaction_amount": 700}
    with begun(merchant) as asking:
        keep(
            asking,
            [
                entry(1, **BACK, amount=500),
                entry(2, **BACK, order_no="A-1", transaction_id="T-1", amount=300),
                entry(3, order_no="A-1", transaction_id="T-1", entry_type="chargeback_reversal"),
                entry(4, **BACK, **paid),
                entry(5, **BACK, account_id="100042002"),
                entry(6),
            ],
        )
        asked = [told(asking, KeptBooks.charged_back)]
        merchant.as_owner("DELETE FROM run_source")
        asked.append(told(asking, KeptBooks.charged_back))

    assert asked == [{("A-1", "T-1", "EUR"): 297, ("A-4", "T-4", "USD"): 700}] * 2


def test_a_run_that_read_no_books_asks_the_newest_that_any_did(merchant: Merchant) -> None:
    """A chargeback that was booked once is not forgotten where the books cannot be read."""
    with begun(merchant) as asking:
        keep(asking, [entry(1, **BACK)])
    merchant.as_owner("UPDATE run SET status = 'finished'")
    with begun(merchant) as later:
        keep_of_others = told(later, KeptBooks.charged_back)

    assert keep_of_others == {("A-1", "T-1", "EUR"): 501}


@pytest.mark.parametrize("how", ["cut", "other", "gone", "unbound"])
def test_books_that_were_changed_are_refused(how: str, merchant: Merchant) -> None:
    """A byte less, another run's file, none at all, or a row that says books were read."""
    with begun(merchant) as asking:
        if how != "unbound":
            keep(asking, [entry(1)])
            path = the_file(asking, merchant)
        match how:
            case "cut":
                path.write_bytes(path.read_bytes()[:-1])
            case "other":
                path.write_bytes(path.read_bytes()[::-1])
            case "gone":
                path.unlink()
            case _:
                with asking.environment.store.writing() as connection:
                    journal_rows.save(connection, asking.run.run_id, source=SOURCE)
        with pytest.raises(ArchiveBrokenError, match=r"books/ledger\.parquet|binds no books"):
            told(asking, KeptBooks.entries)


def _begun_with_capture(merchant: Merchant) -> None:
    payment = merchant.payments("authorised")[0]
    asked = {"action": "capture", "action_amount": payment.amount, "request_id": "R1"}
    merchant.drop("orders.csv", merchant.order(payment, **asked))


def _walk(asking: Asking, *names: str) -> None:
    night.walk(
        names,
        asking.run.run_id,
        environment=asking.environment,
        workbooks=plain_workbooks(),
        progress=lambda _: None,
    )


def test_books_that_change_behind_the_query_send_nothing(merchant: Merchant) -> None:
    """The night stops before its first claim: a chargeback taken out of them lets nothing pass."""
    _begun_with_capture(merchant)
    with begun(merchant) as asking:
        _walk(asking, "ingest", "query")
        path = the_file(asking, merchant)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(ArchiveError, match=r"books/ledger\.parquet has \d+ bytes, and was"):
            _walk(asking, "settle")

    assert merchant.effects() == []


def test_an_archive_that_takes_no_books_stops_the_night(merchant: Merchant) -> None:
    """Nothing is asked and nothing is sent; the sentence says what to do."""
    _begun_with_capture(merchant)
    with begun(merchant) as asking:
        _walk(asking, "ingest")
        nights = archive_beside(asking, merchant) / "nights"
        nights.write_bytes(b"no folder")
        with pytest.raises(ArchiveError, match="so nothing was sent: make the archive writable"):
            _walk(asking, "query")

    assert merchant.effects() == []

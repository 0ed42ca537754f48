"""Statements of banks in the database: one reading counts, as of any file."""

from datetime import UTC, datetime

from recon.matching.frames.bank_sources import BANK_ENTRY_COLUMNS, BankSource, BankStatement
from recon.matching.frames.sources import frame_of
from recon.model.words import SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import bank_rows
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from tests.recon.store.nights import test_settlement_rows as settled

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
IBAN = "DE89370400440532013000"


def save(store: Store, run: Run, *texts: str, sha256: str = "s") -> None:
    """Store one statement of entries with these texts."""
    plain = {"statement": 0, "part": 0, "booked_on": "2026-11-20", "value_on": "2026-11-20"}
    plain |= {"currency": "EUR", "amount": 100, "status": "booked", "charges": 0}
    rows = [{**plain, "entry_no": f"{at}", "text": text} for at, text in enumerate(texts)]
    statement = BankStatement(
        *("bank/main/1.csv", sha256, IBAN, "1", "EUR", "2026-11-20", "2026-11-20")
    )
    name = bank_rows.name_of("main", "1.csv")
    size = len(rows)
    source = SourceFile(SourceKind.BANK, name, sha256, 9, size, size, 0, 0)
    with store.writing() as connection:
        bank_rows.save_file(
            connection,
            run,
            read=BankSource(frame_of(rows, columns=BANK_ENTRY_COLUMNS), (statement,)),
            source=source,
            bank="main",
            at=AT,
        )


def texts_of(store: Store, run: Run, *, until: int | None = None) -> list[str]:
    """Of all entries that count."""
    with store.reading() as connection:
        source = bank_rows.source_of(connection, run, banks=["main"], until=until)
    return [] if source is None else source.entries["text"].tolist()


def test_the_newest_reading_of_a_content_counts(store: Store, run: Run) -> None:
    """As of an earlier file it is what was known then."""
    save(store, run, "A")
    save(store, run, "A", "B")
    assert texts_of(store, run) == ["A", "B"]
    assert texts_of(store, run, until=1) == ["A"]


def test_another_content_stands_beside_it(store: Store, run: Run) -> None:
    """Which of two statements holds, the matching says."""
    save(store, run, "A")
    save(store, run, "B", sha256="t")
    assert texts_of(store, run) == ["A", "B"]


def test_a_batch_that_is_told_later_asks_for_the_file_again(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Of a day that the statement tells of; later ones it cannot have."""
    account = {(run.merchant_id, run.account_id)}
    save(store, run, "A")
    with store.reading() as connection:
        ask = {"bank": "main", "sha256": "s", "accounts": account}
        assert not bank_rows.told_since(connection, **ask)
    settled.save(store, run, storages, "settlement/1", {"settled_on": "2026-11-21"})
    with store.reading() as connection:
        assert not bank_rows.told_since(connection, **ask)
    settled.save(store, run, storages, "settlement/2", {"settled_on": "2026-11-20", "gross": 5})
    with store.reading() as connection:
        assert bank_rows.told_since(connection, **ask)
        assert bank_rows.read_before(connection, name="bank/main/1.csv", sha256="s")


def test_pay_outs_of_the_newest_files_are_asked_about(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Of every account that is served, and of no other."""
    paid = {"entry_type": "payout", "batch_id": "B1"}
    settled.save(store, run, storages, "settlement/1", {}, paid)
    settled.save(store, run, storages, "settlement/1", {}, {**paid, "net": 40})
    mine = {(run.merchant_id, run.account_id)}
    with store.reading() as connection:
        rows = bank_rows.payouts_of(connection, accounts=mine, until=None)
        assert rows["net"].tolist() == [40]
        assert bank_rows.payouts_of(connection, accounts={("X", "Y")}, until=None).empty
        assert bank_rows.settled_to(connection, accounts=mine, until=None) == {
            (run.merchant_id, run.account_id): run.business_date.isoformat()
        }

"""Settlement lines of a night come some at a time, and are all of them."""

import pandas as pd
import pyarrow as pa
import pytest

from recon.store.database.engine import Store
from recon.store.nights import settlement_rows
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import AskedFor, Settlements, frame_of_lines
from tests.recon.store.nights.test_settlement_rows import save

OLD = {"settled_on": "2026-01-01"}
LINES: tuple[dict[str, object], ...] = (
    {"order_no": "A", **OLD},
    {"order_no": "B", "method": "card", **OLD},
    {"order_no": "B", "transaction_id": "T", "brand": "visa", **OLD},
    {"entry_type": "payout", **OLD},
    {"entry_type": "refund", "order_no": "A", **OLD},
    {"order_no": "D"},
    {"order_no": "E", "region": "EEA"},
    {"entry_type": "payout"},
)


@pytest.mark.parametrize("at_once", [1, 3, 50_000])
def test_lines_come_some_at_a_time_and_are_all_of_them(
    store: Store, run: Run, storages: StorageOf, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """However many are decoded at a time."""
    save(store, run, storages, "settlement/1", *LINES)
    with store.reading() as connection:
        asked = AskedFor.of(["A", "Z", ""], ["T"])
        settled = Settlements(connection, run, storages)
        expected = settled.lines(since="2026-11-01", asked=asked)
        whole = expected.frame()
        monkeypatch.setattr(settlement_rows, "LINES_AT_ONCE", at_once)
        lines = settled.lines(since="2026-11-01", asked=asked)
        tables = [*lines.batches()]

    assert whole["order_no"].tolist() == ["", "", "A", "B", "A", "D", "E", ""]
    assert lines.older.equals(expected.older)
    assert max(len(table) for table in tables[1:]) <= at_once
    pd.testing.assert_frame_equal(frame_of_lines(pa.concat_tables(tables)), whole)


def test_only_lines_of_some_types_or_with_some_text_are_asked_for(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Older ones and sums of them among these, with the columns that are wanted."""
    save(store, run, storages, "settlement/1", *LINES)
    with store.reading() as connection:
        asked = AskedFor.of(["A"], ["T"])
        lines = Settlements(connection, run, storages).lines(since="2026-11-01", asked=asked)
        paid = lines.batches(columns=["settled_on"], entry_types=["payout"])
        days = pa.concat_tables(paid)["settled_on"].to_pylist()
        telling = lines.batches(columns=["order_no", "source"], telling=["brand", "region"])
        told = pa.concat_tables(telling).to_pylist()

    assert days == ["2026-01-01", "2026-11-20"]
    assert told == [{"order_no": each, "source": "settlement/1"} for each in ("B", "E")]


def test_older_lines_are_not_looked_for_where_there_are_none(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Whatever is asked for."""
    save(store, run, storages, "settlement/1", {"order_no": "D"})
    keys = pa.array(["D"], pa.string())
    with store.reading() as connection:
        settled = Settlements(connection, run, storages)
        lines = settled.lines(since="2026-11-20", asked=AskedFor(keys, None))
        assert lines.frame()["order_no"].tolist() == ["D"]

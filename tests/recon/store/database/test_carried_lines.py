"""Settlement lines in rows of an earlier version, read on either database."""

import pandas as pd
import pytest
from sqlalchemy import delete, insert, select

from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from recon.model.words import SourceFile, SourceKind
from recon.store.database import carried_lines
from recon.store.database.carried_lines import files_with_lines, lines_of_file
from recon.store.database.engine import Store
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from recon.store.schema import order_facts, order_facts_account, settlement_line
from tests.recon.store.kept_lines import keep_lines

AMOUNTS = (5, -(2**62), 2**62, 0)


@pytest.fixture
def lines(run: Run) -> pd.DataFrame:
    """As many chargebacks, some cells of which are odd; each of them is a row."""
    plain = {"merchant_id": run.merchant_id, "account_id": run.account_id, "batch_id": 'B "1", é'}
    plain |= {"settled_on": "2026-11-20", "entry_type": "chargeback", "currency": "EUR"}
    rows = [
        {**plain, "order_no": f"O{at}", "gross": amount, "fee": at, "net": 0, "line": 9 - at}
        for at, amount in enumerate(AMOUNTS)
    ]
    return frame_of(rows, columns=SETTLEMENT_COLUMNS)


@pytest.mark.parametrize("at_once", [1, 3, 50_000])
def test_lines_are_read_as_they_were_kept(
    store: Store,
    run: Run,
    storages: StorageOf,
    lines: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
) -> None:
    """In the order in which they were stored, those of other files between them."""
    monkeypatch.setattr(carried_lines, "ROWS_AT_ONCE", at_once)
    source = SourceFile(SourceKind.SETTLEMENT, "settlement/S1", "s", 9, 4, 4, 0, 0)
    keep_lines(store, run, lines, source=source, storages=storages)
    with store.writing() as connection:
        rows = connection.execute(select(settlement_line)).mappings().all()
        first = {**rows[0], "line_id": 1_000, "gross": 7}
        connection.execute(insert(settlement_line), [first])
        kept = [*lines_of_file(connection, rows[0]["file_id"])]

    assert [len(frame) for frame in kept][:1] == [min(at_once, 5)]
    whole = pd.concat(kept, ignore_index=True)
    assert whole["gross"].tolist() == [*AMOUNTS, 7]
    expected = lines[[*carried_lines.COLUMNS]]
    pd.testing.assert_frame_equal(whole.iloc[:4], expected)


def test_files_without_facts_are_those_that_are_carried(
    store: Store, run: Run, storages: StorageOf, lines: pd.DataFrame
) -> None:
    """One that has its file of facts already is done."""
    source = SourceFile(SourceKind.SETTLEMENT, "settlement/S1", "s", 9, 4, 4, 0, 0)
    keep_lines(store, run, lines, source=source, storages=storages)
    with store.writing() as connection:
        (file_id,) = connection.execute(select(order_facts.c.file_id)).scalars()
        assert files_with_lines(connection) == []
        connection.execute(delete(order_facts_account))
        connection.execute(delete(order_facts))
        assert files_with_lines(connection) == [str(file_id)]

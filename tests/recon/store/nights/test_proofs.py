from dataclasses import replace

import pytest
from sqlalchemy import text, update

from recon.matching.frames.sources import ORDER_COLUMNS, frame_of
from recon.model.words import InstructionKind, InstructionState, SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.money import sending_rows
from recon.store.nights import facts_rows
from recon.store.nights.answer_parts import BASELINE
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import Run
from recon.store.schema import instruction
from tests.recon.store.kept_files import keep
from tests.recon.store.scripted import CAPTURE, planned


def _file(store: Store, run: Run, storages: StorageOf) -> None:
    order = {
        "merchant_id": run.merchant_id,
        "account_id": run.account_id,
        "currency": "EUR",
        "amount": 1_000,
        "status": "paid",
        "ordered_at": "2026-11-20T10:00:00Z",
        "line": 2,
    }
    orders = frame_of(
        [{**order, "order_no": key} for key in ("A", "B", "B")], columns=ORDER_COLUMNS
    )
    source = SourceFile(SourceKind.ORDERS, "orders.csv", "sha", 9, 3, 3, 0, 0)
    keep(store, run, orders, source=source, storages=storages)


def _failed(store: Store, run: Run, storages: StorageOf) -> list[str]:
    with store.reading() as connection:
        stored = facts_rows.stored_rows(facts_rows.of_night(connection, run), storages=storages)
        totals = sending_rows.before_money(
            connection, run, in_files=stored, universe=0, phase=BASELINE
        )
    return [total.id for total in totals if not total.passed]


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ("SELECT 1", []),
        ("UPDATE order_file SET rows_read = rows_read + 1", ["T1"]),
        ("DELETE FROM order_facts", ["T2"]),
        (
            (
                "INSERT INTO answer_part (run_id, phase, merchant_id, account_id, path, "
                "schema_label, answered) VALUES ('r1', 'baseline', 'm', 'a', 'p', 'replies/1', 1)"
            ),
            ["T3"],
        ),
    ],
)
def test_each_total_before_money_sees_its_loss(
    store: Store, run: Run, storages: StorageOf, change: str, failed: list[str]
) -> None:
    """A row too many or too few in a table makes exactly its own total fail."""
    _file(store, run, storages)
    with store.writing() as connection:
        connection.execute(text(change))

    assert _failed(store, run, storages) == failed


REFUND = InstructionKind.REFUND
DOUBT, NOT_DONE = InstructionState.IN_DOUBT, InstructionState.RESOLVED_NOT_APPLIED


@pytest.mark.parametrize(
    ("moved", "failed"),
    [
        ([(REFUND, 700), (REFUND, 300)], []),
        ([(REFUND, 700), (REFUND, 700)], ["T9"]),
        ([(InstructionKind.CAPTURE, 600), (InstructionKind.CAPTURE, 600)], ["T9"]),
        ([(InstructionKind.CAPTURE, 600), (REFUND, 600)], []),
        ([(InstructionKind.CAPTURE, 600), (REFUND, 700)], ["T9"]),
    ],
)
def test_money_beyond_what_a_payment_holds_fails_t9(
    store: Store,
    run: Run,
    storages: StorageOf,
    moved: list[tuple[InstructionKind, int]],
    failed: list[str],
) -> None:
    """What may have moved: captures up to the payment, refunds up to what was captured of it."""
    actions = (
        replace(
            CAPTURE,
            transaction_id="T1",
            kind=kind,
            action_amount=amount,
            request_id=f"R-{n}",
        )
        for n, (kind, amount) in enumerate(moved)
    )
    planned(store, run, *actions)
    told = []
    for state in (None, DOUBT, NOT_DONE):
        with store.writing() as connection:
            if state is not None:
                values = {"state": state.value, "payment_amount": 1_000}
                connection.execute(update(instruction).values(values))
        told.append(_failed(store, run, storages))

    assert told == [[], failed, []]

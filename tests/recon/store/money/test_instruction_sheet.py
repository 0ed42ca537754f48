from datetime import UTC, date, datetime

from recon.model.nights import Mode
from recon.model.words import InstructionKind
from recon.settlement.sending_order import BatchPlan
from recon.store.database.engine import Store
from recon.store.money.instruction_sheet import batch_frame
from recon.store.money.sending_rows import dry_batches, keep_dry_batches
from recon.store.nights.runs import Run

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
RUN = Run(
    run_id="20261120-a",
    merchant_id="100042",
    account_id="100042001",
    business_date=date(2026, 11, 20),
    mode=Mode.DRY_RUN,
    status="active",
    step="",
    owner="",
    started_at=AT,
    as_of=AT,
    verdict="",
    workbook="",
    problem="",
)
PLANS = [
    BatchPlan(1, InstructionKind.CAPTURE, {"EUR": (50, 123_400), "JPY": (1, 900)}),
    BatchPlan(2, InstructionKind.REFUND, {"EUR": (1, 100)}),
]


def test_a_dry_run_lists_its_batches_with_kind_rows_and_sums(store: Store) -> None:
    """The sheet shows, batch by batch and currency by currency, what would have been sent."""
    with store.writing() as connection:
        keep_dry_batches(connection, RUN.run_id, plans=PLANS)
        frame = batch_frame(connection, RUN)

    assert frame[["kind", "currency", "rows", "amount", "not_sent"]].to_numpy().tolist() == [
        ["capture", "EUR", 50, 123_400, 50],
        ["capture", "JPY", 1, 900, 1],
        ["refund", "EUR", 1, 100, 1],
    ]
    assert set(frame["message"]) == {"dry run: not sent"}


def test_a_repeated_dry_run_keeps_its_newest_list(store: Store) -> None:
    """The step run again leaves one list, not two."""
    with store.writing() as connection:
        keep_dry_batches(connection, RUN.run_id, plans=PLANS)
        keep_dry_batches(connection, RUN.run_id, plans=PLANS[:1])
        assert dry_batches(connection, RUN.run_id) == PLANS[:1]

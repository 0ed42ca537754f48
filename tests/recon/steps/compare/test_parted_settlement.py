"""A large settlement is sealed table by table: nobody holds all of its lines but as their file."""

from collections.abc import Callable
from typing import Any

import pytest

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Rows
from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from recon.model.words import SourceFile, SourceKind
from recon.proof.night_tables import SETTLEMENT, TARIFFS
from recon.steps.compare.inputs import frozen_inputs
from recon.steps.compare.parted_settlement import parted_settlement
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.steps.ground.window import NOTHING_BEFORE
from recon.store.nights import settled_lines
from recon.store.nights.night_lines import AskedFor
from recon.store.nights.runs import Run
from tests.recon.steps.compare.test_parted_inputs import ingested
from tests.recon.steps.conftest import Merchant
from tests.recon.steps.files.test_settlement_files import declare, place
from tests.recon.steps.large_nights import peak_bytes, peak_bytes_of_objects
from tests.recon.store.kept_lines import keep_lines

BYTES_A_LINE = 340
"""Of Arrow: both tables as they are written, unsorted, with the column that is sorted."""
OBJECT_BYTES_A_LINE = 20
"""Of Python and numpy: the bytes of their file while it is read; nothing else grows with them."""


@pytest.mark.parametrize(
    ("peak", "most"), [(peak_bytes, BYTES_A_LINE), (peak_bytes_of_objects, OBJECT_BYTES_A_LINE)]
)
def test_lines_take_the_room_of_their_file_and_of_no_frame(
    merchant: Merchant,
    monkeypatch: pytest.MonkeyPatch,
    peak: Callable[[Callable[[], Any]], int],
    most: int,
) -> None:
    """What four times the lines take more; rows of Python stand for a few of them at a time."""
    place(merchant).mkdir()
    declare(merchant)
    monkeypatch.setattr(settled_lines, "LINES_AT_ONCE", 2_000)
    sizes = []
    for lines in (20_000, 80_000):
        with ingested(merchant, orders=2) as (run, _, environment):
            settled(run, lines=lines, environment=environment)
            sizes.append(peak(lambda: written(run, environment)))

    assert sizes[1] - sizes[0] < most * 60_000


def written(run: Run, environment: Environment) -> None:
    """As a night does, one table after the other."""
    inputs, rules = frozen_inputs(run, environment=environment), environment.settings.rules
    with environment.store.reading() as connection:
        parted = parted_settlement(
            connection,
            run,
            asked=AskedFor.of(),
            inputs=inputs,
            before=NOTHING_BEFORE,
            rules=rules,
            environment=environment,
        )
    assert parted is not None
    assert len(parted.pay_outs) == 1
    for name in (SETTLEMENT, TARIFFS):
        assert Rows.of(parted.made[name](), schema=SCHEMAS[name]).rows.num_rows >= 20_000


def settled(run: Run, *, lines: int, environment: Environment) -> None:
    """So many lines of as many orders, all with a brand, and what they came to."""
    plain = {"batch_id": "B1", "merchant_id": run.merchant_id, "account_id": run.account_id}
    plain |= {"settled_on": "2026-11-20", "entry_type": "capture", "currency": "EUR"}
    amounts = {"gross": 100, "fee": 1, "net": 99, "brand": "visa"}
    rows: list[dict[str, object]] = [
        {**plain, **amounts, "order_no": f"{lines}-{at:020}", "transaction_id": f"{at:020}"}
        for at in range(lines)
    ]
    rows.append({**plain, "entry_type": "payout", "gross": 0, "fee": 0, "net": 99 * lines})
    frame = frame_of(
        ({**row, "line": at} for at, row in enumerate(rows)), columns=SETTLEMENT_COLUMNS
    )
    name = "settlement/S1"
    size = len(rows)
    source = SourceFile(SourceKind.SETTLEMENT, name, str(lines), 9, size, size, 0, 0)
    storages = storages_of(environment)
    keep_lines(environment.store, run, frame, source=source, storages=storages)

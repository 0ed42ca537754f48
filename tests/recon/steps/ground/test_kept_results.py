from pathlib import Path

import pandas as pd
import pytest

from recon.model.errors import ArchiveBrokenError
from recon.steps.compare.rebuild import rebuilt
from recon.steps.ground import kept_results
from recon.store.nights import results, runs
from tests.recon.steps.conftest import Merchant

FRAMES = (
    *("matches", "breaks", "pending", "unverified", "effects"),
    *("sides", "movements", "journals"),
)
RULES = """
[grace]
gateway_to_ledger = "1h"
[journal.accounts]
clearing = "9360"
sales = "8400"
refunds = "8700"
chargebacks = "6930"
payouts = "1200"
"""


@pytest.fixture
def ended(merchant: Merchant) -> Merchant:
    """A merchant after a night with matches, breaks, journals and what waits."""
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + RULES)
    first, second, third = merchant.payments("captured")[:3]
    merchant.drop(
        "orders.csv",
        merchant.order(first),
        merchant.order(second),
        merchant.order(third, order_no="NOBODY-1"),
        merchant.order(third, order_no="NOBODY-2", ordered_at="2026-11-20T23:30:00Z"),
    )
    merchant.night()
    return merchant


def _breaks(merchant: Merchant) -> Path:
    (path,) = merchant.folder.glob("**/archive/nights/*/*/*/*/results/breaks.parquet")
    return path


def test_a_result_comes_back_from_its_folder_as_it_was_made(ended: Merchant) -> None:
    """Every frame with its rows in their order, and words, totals and digest beside them."""
    with ended.environment() as environment, environment.store.reading() as connection:
        run = runs.get(connection, runs.finished(connection)[-1].run_id)
        kept = kept_results.load(connection, run.run_id, environment=environment)
        made = rebuilt(run, environment=environment).result
        orders = kept_results.orders_left_open(connection, run.run_id, environment=environment)
        parts = [
            *kept_results.match_batches(connection, run.run_id, rows_max=1, environment=environment)
        ]
        totals = results.load_totals(connection, run.run_id)

    assert kept is not None
    for name in FRAMES:
        stored, wanted = getattr(kept, name), getattr(made, name)
        pd.testing.assert_frame_equal(
            stored.astype(str), wanted.astype(str)[list(stored.columns)], check_dtype=False
        )
    assert len(kept.journals) == 4
    assert (kept.digest, kept.control_totals) == (made.digest, totals)
    assert kept.scope_of_assurance == made.scope_of_assurance
    assert orders == {*made.breaks["order_no"], *made.pending["order_no"]}
    assert sum(map(len, parts)) == len(made.matches)


def test_a_run_without_a_result_has_none(merchant: Merchant) -> None:
    """What never came to a result is not looked for in the archive."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        assert kept_results.load(connection, "unknown", environment=environment) is None
        assert kept_results.open_breaks(connection, "unknown", environment=environment) is None
        left = kept_results.orders_left_open(connection, "unknown", environment=environment)
    assert left == set()


def test_a_changed_file_is_refused_and_never_shown(ended: Merchant) -> None:
    """One bit of it, or the whole folder gone: the sentence says which and what to do."""
    path = _breaks(ended)
    content = path.read_bytes()
    path.write_bytes(bytes([content[0], content[1] ^ 1]) + content[2:])
    with pytest.raises(ArchiveBrokenError, match="is not the file that was sealed"):
        ended.result()

    path.write_bytes(content[:-1])
    with pytest.raises(ArchiveBrokenError, match="and was sealed with"):
        ended.result()

    path.parent.rename(path.parent.with_name("elsewhere"))
    with pytest.raises(ArchiveBrokenError, match="from a backup of the archive"):
        ended.result()

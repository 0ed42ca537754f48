from pathlib import Path

import pytest

from recon.model.errors import ArchiveBrokenError
from tests.recon.steps.conftest import Merchant

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

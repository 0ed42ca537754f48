"""Files to read: an order row that is right, and ways to write tables of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"
ROW = "100042,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z"


@pytest.fixture
def header() -> str:
    """The required columns of an order table."""
    return HEADER


@pytest.fixture
def row() -> str:
    """One order that is right in every cell."""
    return ROW


@pytest.fixture
def order_csv(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Write text or bytes as `orders.csv`."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "orders.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write

"""Steps of a night for the archive's own tests."""

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import About, Document, Rows, Sealed, StepFile, write_step
from recon.archive.storage import Storage

NIGHT = "nights/100042/100042001/2026-11-20/20261120-1a2b3c4d"
AT = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)


def universe(*order_nos: str) -> pa.Table:
    rows = [{"merchant_id": "100042", "account_id": "100042001", "order_no": n} for n in order_nos]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["universe"].columns)


def orders(*amounts: int) -> pa.Table:
    rows = [
        {
            "merchant_id": "100042",
            "account_id": "100042001",
            "order_no": f"W{number}",
            "currency": "EUR",
            "amount": amount,
            "status": "paid",
            "ordered_at": AT,
            "transaction_id": "",
            "source": "orders.csv",
            "line": number + 2,
        }
        for number, amount in enumerate(amounts)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["orders"].columns)


def about(step: str = "inputs", **changed: str) -> About:
    told = {
        "run_id": "20261120-1a2b3c4d",
        "merchant_id": "100042",
        "account_id": "100042001",
        "business_date": "2026-11-20",
        "mode": "live",
        "predecessor": "",
        "rules_digest": "5" * 64,
        "product_version": "0.1.0",
        "history_before": f"7:{'a' * 64}",
    }
    return About(step=step, **(told | changed))


def parts(*amounts: int) -> list[StepFile]:
    return [
        Rows.of(orders(*amounts), schema=SCHEMAS["orders"]),
        Rows.of(universe("W0", "W1"), schema=SCHEMAS["universe"]),
        Document("rules.toml", b"[tolerance]\n"),
    ]


def written(
    storage: Storage,
    *amounts: int,
    crash_point: Callable[[str], None] = lambda _: None,
    **changed: str,
) -> Sealed:
    return write_step(
        storage,
        night=NIGHT,
        about=about(**changed),
        files=parts(*amounts),
        crash_point=crash_point,
    )

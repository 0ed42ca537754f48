"""Amounts that are objects: the currency beside the value is that of the row."""

import json
from pathlib import Path
from typing import Any

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.proposing.proposal import Proposal, proposal_of
from recon.files.typing.table_schema import ORDER_FILE, SETTLEMENT_FILE, TableSchema
from recon.files.typing.typed_table import Table, read_table

CONSTANTS = {"merchant_id": "100042", "account_id": "100042001"}


def money(value: str, currency: str = "EUR", *, named: str = "currency") -> dict[str, str]:
    """An amount as an object."""
    return {"value": value, named: currency}


def proposed(folder: Path, *rows: dict[str, Any], schema: TableSchema) -> Proposal:
    """The proposal for a file of these objects."""
    path = folder / "sample.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return proposal_of([read_bytes(path)], schema=schema, constants=CONSTANTS, answers={})


def read(folder: Path, found: Proposal, *, schema: TableSchema) -> Table:
    """The sample by its layout."""
    layout = FileLayout.model_validate(found.layout)
    path = folder / "sample.jsonl"
    return read_table(path, kind=schema.kind, rules=Rules(), layout=layout, schema=schema)


def test_the_currency_of_the_amount_is_that_of_the_order(tmp_path: Path) -> None:
    """Another amount of the row has a currency of its own, which says nothing of the order."""
    rows = [
        {
            "order_no": f"A-{n}",
            "shipping": money("1.00", "USD"),
            "amount": money(f"{n}0.00", named="currency_code"),
            "refund_amount": money("1.00"),
            "status": "paid",
            "ordered_at": f"2026-11-2{n}T10:00:00Z",
        }
        for n in (1, 2)
    ]
    found = proposed(tmp_path, *rows, schema=ORDER_FILE)
    assert found.questions == {}
    assert found.layout["columns"] == {
        "amount": "amount.value",
        "currency": "amount.currency_code",
        "refund_amount": "refund_amount.value",
    }
    assert found.layout["currencies"] == {"refund_amount": "refund_amount.currency"}
    table = read(tmp_path, found, schema=ORDER_FILE)
    assert table.frame["amount"].tolist() == [1000, 2000]
    assert table.frame["currency"].tolist() == ["EUR", "EUR"]


def test_other_amounts_of_a_settled_row_are_held_to_its_currency(tmp_path: Path) -> None:
    """A fee in another currency rejects its row."""
    rows = [
        {
            "batch_id": "B1",
            "settled_on": f"2026-11-2{n}",
            "entry_type": "capture",
            "order_no": f"A-{n}",
            "transaction_id": f"T{n}",
            "reference_no": "",
            "gross": money(f"{n}0.00"),
            "fee": money("1.00"),
            "net": money(f"{n - 1}9.00"),
        }
        for n in (1, 2)
    ]
    found = proposed(tmp_path, *rows, schema=SETTLEMENT_FILE)
    assert found.questions == {}
    assert found.layout["currencies"] == {"fee": "fee.currency", "net": "net.currency"}
    table = read(tmp_path, found, schema=SETTLEMENT_FILE)
    assert table.frame["net"].tolist() == [900, 1900]
    rows[1]["fee"] = money("1.00", "USD")
    path = tmp_path / "sample.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [reject.line for reject in read(tmp_path, found, schema=SETTLEMENT_FILE).rejects] == [2]

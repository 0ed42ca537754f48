from datetime import UTC, datetime

from sqlalchemy import insert

from recon.model.words import InstructionState
from recon.store.database.engine import Store
from recon.store.money.outcome_rows import CameTo, outcome_of
from recon.store.schema import instruction


def test_an_instruction_tells_what_it_came_to(store: Store) -> None:
    """State, hold, message and the gateway's reference of exactly that instruction."""
    row = {
        "merchant_id": "m",
        "account_id": "a",
        "kind": "refund",
        "order_no": "o",
        "currency": "EUR",
        "amount": 1,
        "payment_amount": 2,
        "run_id": "r",
        "planned_at": datetime(2026, 11, 20, tzinfo=UTC),
    }
    told = [
        {"instruction_id": "i1", "natural_key": "k1", "state": "planned", "hold": "waits"},
        {"instruction_id": "i2", "natural_key": "k2", "state": "rejected", "hold": ""},
    ]
    with store.writing() as connection:
        connection.execute(insert(instruction), [row | one for one in told])
        found = outcome_of(connection, "i1")

    assert found == CameTo(InstructionState.PLANNED, "waits", "", "")

from datetime import UTC, datetime

from sqlalchemy import insert

from recon.store.database.engine import Store
from recon.store.money import attention_rows
from recon.store.nights.runs import Run
from recon.store.schema import observation

EARLY, LATE = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC)


def test_a_payment_is_as_old_as_its_first_answer_says(store: Store, run: Run) -> None:
    """Of several answers the earliest date counts; other accounts' payments do not."""
    row = {
        "run_id": run.run_id,
        "phase": "baseline",
        "merchant_id": run.merchant_id,
        "account_id": run.account_id,
        "order_no": "A1",
        "transaction_id": "T1",
        "currency": "EUR",
        "amount": 1,
        "queried_at": LATE,
        "transaction_date": LATE,
    }
    rows = [
        row,
        {**row, "transaction_date": EARLY},
        {**row, "order_no": "A2", "account_id": "other"},
        {**row, "order_no": "A3", "transaction_date": None},
    ]
    with store.writing() as connection:
        connection.execute(insert(observation), rows)
        found = attention_rows.authorised_at(connection, run, order_nos=["A1", "A2", "A3", ""])

    assert found == {"A1": EARLY}

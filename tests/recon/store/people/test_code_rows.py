from datetime import UTC, datetime

from sqlalchemy import insert

from recon.store.database.engine import Store
from recon.store.people.code_rows import codes_seen
from recon.store.schema import observation


def test_codes_are_counted_per_account_the_most_frequent_first(store: Store) -> None:
    """What another account showed is not ours, and a blank code is none."""
    told = [("3000", "a"), ("3000", "a"), ("9999", "a"), ("7777", "b"), ("", "a")]
    rows = [
        {
            "run_id": "r",
            "phase": "baseline",
            "merchant_id": "m",
            "account_id": account,
            "order_no": f"o{number}",
            "currency": "EUR",
            "amount": 1,
            "payment_status": code,
            "query_result": "",
            "queried_at": datetime(2026, 11, 20, tzinfo=UTC),
        }
        for number, (code, account) in enumerate(told)
    ]
    with store.writing() as connection:
        connection.execute(insert(observation), rows)
        seen = codes_seen(connection, merchant_id="m", account_id="a")

    assert [(code.code, code.count, code.order_no) for code in seen] == [
        ("3000", 2, "o0"),
        ("9999", 1, "o2"),
    ]

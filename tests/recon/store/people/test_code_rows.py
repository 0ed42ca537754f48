import json
from dataclasses import replace

from recon.store.database.engine import Store
from recon.store.nights import answer_parts
from recon.store.people.code_rows import codes_seen
from tests.recon.store.nights.test_answer_parts import PART


def test_codes_are_counted_per_account_the_most_frequent_first(store: Store) -> None:
    """What another account showed is not ours; the first order of all files is named."""
    shown = (
        ("a", {"payment_status": {"3000": [1, "o7"], "9999": [1, "o2"]}, "query_result": {}}),
        ("a", {"payment_status": {"3000": [1, "o0"]}, "query_result": {"5": [4, "o0"]}}),
        ("b", {"payment_status": {"7777": [9, "o3"]}}),
    )
    with store.writing() as connection:
        for account, codes in shown:
            of_account = replace(PART, merchant_id="m", account_id=account, codes=json.dumps(codes))
            answer_parts.save(connection, of_account)
        seen = codes_seen(connection, merchant_id="m", account_id="a")

    assert [(code.field, code.code, code.count, code.order_no) for code in seen] == [
        ("payment_status", "3000", 2, "o0"),
        ("payment_status", "9999", 1, "o2"),
        ("query_result", "5", 4, "o0"),
    ]

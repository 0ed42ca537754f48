"""The rows of an order file as a night takes them: as orders, and as what they instruct."""

from typing import NamedTuple

import pandas as pd

ACTION_COLUMNS = (
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "currency",
    "amount",
    "status",
    "expected_captured_amount",
    "refund_amount",
    "action",
    "action_amount",
    "action_reason",
    "request_id",
    "source",
    "line",
)
"""One row per order row with an action. `amount` is the order's, int64 minor units; `action_amount`
is Int64, blank for the row's own figure; `transaction_id` may be blank until the gateway is asked.
"""


class SpooledRows(NamedTuple):
    """Some rows of an order file."""

    orders: pd.DataFrame
    """ORDER_COLUMNS."""
    actions: pd.DataFrame
    """ACTION_COLUMNS."""

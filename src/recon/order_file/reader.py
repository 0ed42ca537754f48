"""One order file of an inbox: its orders, and what the merchant wants done with them."""

from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd

from recon.foreign_bytes import ORDER_FILE, read_table
from recon.matching.sources import ORDER_COLUMNS
from recon.model import Reject, SourceFile, SourceKind
from recon.rules import Rules

ACTION_COLUMNS = (
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "currency",
    "amount",
    "status",
    "action",
    "action_amount",
    "action_reason",
    "request_id",
    "source",
    "line",
)
"""One row per order row with an action. `amount` is the order's, int64 minor units; `action_amount`
is Int64, blank for the whole order. `transaction_id` may be blank until the gateway was asked."""


@dataclass(frozen=True, slots=True)
class OrderFile:
    """One order file, read; a bad action rejects its whole row."""

    orders: pd.DataFrame
    """ORDER_COLUMNS."""
    actions: pd.DataFrame
    """ACTION_COLUMNS."""
    rejects: tuple[Reject, ...]
    source_file: SourceFile
    ignored_columns: tuple[str, ...] = ()


def read_order_file(path: Path, *, rules: Rules, zone: ZoneInfo | None = None) -> OrderFile:
    """Orders, actions and rejects of a CSV, XLSX or Parquet file.

    `zone` is that of timestamps without an offset, UTC by default. A last line without a line end
    is a reject: it may have been cut.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not what its name says, or columns are missing.
    """
    table = read_table(path, kind=SourceKind.ORDERS, rules=rules, zone=zone, schema=ORDER_FILE)
    with_action = table.frame[table.frame["action"] != ""].reset_index(drop=True)
    return OrderFile(
        orders=table.frame[list(ORDER_COLUMNS)],
        actions=with_action[list(ACTION_COLUMNS)],
        rejects=table.rejects,
        source_file=table.source_file,
        ignored_columns=table.ignored_columns,
    )

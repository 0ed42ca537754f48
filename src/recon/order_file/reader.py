"""One order file of an inbox: its orders, and what the merchant wants done with them."""

from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd

from recon.file_layouts import STANDARD, FileLayout
from recon.foreign_bytes import ORDER_FILE, type_table
from recon.foreign_bytes.mapped_columns import names_of
from recon.foreign_bytes.opening import FileBytes, read_bytes
from recon.foreign_bytes.raw_reader import raw_of
from recon.matching.sources import ORDER_COLUMNS
from recon.model import Reject, SourceFile
from recon.order_file.whole_file import refuse_unproven
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


def read_order_file(
    path: Path, *, rules: Rules, layout: FileLayout = STANDARD, zone: ZoneInfo | None = None
) -> OrderFile:
    """Orders, actions and rejects of a CSV, XLSX, Parquet, JSON lines or XML file.

    `zone` is that of timestamps without an offset, UTC by default. A last line without a line end
    is a reject: it may have been cut.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not what its name says, columns are missing, its control
            figures differ, or a row is bad where all or nothing holds.
    """
    return order_file_of(read_bytes(path), rules=rules, layout=layout, zone=zone)


def order_file_of(
    file: FileBytes, *, rules: Rules, layout: FileLayout = STANDARD, zone: ZoneInfo | None = None
) -> OrderFile:
    """As `read_order_file`, from bytes that were read before."""
    wanted = frozenset(names_of(ORDER_FILE, layout=layout).values())
    raw = raw_of(file, wanted=wanted, layout=layout)
    table = type_table(raw, schema=ORDER_FILE, rules=rules, layout=layout, zone=zone)
    refuse_unproven(
        file.path,
        declared=raw.declared,
        counted=table.counted,
        rejects=table.rejects,
        layout=layout,
    )
    with_action = table.frame[table.frame["action"] != ""].reset_index(drop=True)
    return OrderFile(
        orders=table.frame[list(ORDER_COLUMNS)],
        actions=with_action[list(ACTION_COLUMNS)],
        rejects=table.rejects,
        source_file=table.source_file,
        ignored_columns=table.ignored_columns,
    )

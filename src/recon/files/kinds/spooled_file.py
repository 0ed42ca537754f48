"""An order file, read: its facts, and its rows in the file in which its reader laid them."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, NamedTuple

import pandas as pd
import pyarrow as pa

from recon.matching.frames.sources import ORDER_COLUMNS
from recon.model.words import Reject, SourceFile

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


@dataclass(frozen=True, slots=True)
class SpooledFile:
    """One file, read to its end."""

    rejects: tuple[Reject, ...]
    source_file: SourceFile
    private: str
    """Why it must not be archived, or ""."""
    header: tuple[str, ...]
    """All column names of the file."""
    ignored_columns: tuple[str, ...]
    """Columns of the file that recon does not know; nothing was read from them."""
    _spool: IO[bytes]

    def parts(self) -> Iterator[SpooledRows]:
        """The rows of an order file, in their order."""
        if not self._spool.seek(0, io.SEEK_END):
            return
        self._spool.seek(0)
        for batch in pa.ipc.open_stream(self._spool):
            frame = batch.to_pandas()
            with_action = frame[frame["action"] != ""].reset_index(drop=True)
            yield SpooledRows(frame[list(ORDER_COLUMNS)], with_action[list(ACTION_COLUMNS)])

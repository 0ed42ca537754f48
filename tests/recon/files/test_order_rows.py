from pathlib import Path

import pandas as pd
import pytest

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.reader.files import ACTION_COLUMNS
from recon.matching.frames.sources import ORDER_COLUMNS
from recon.model.errors import SourceMissingError, SourceUnreadableError
from tests.recon.files.whole_read import OrderFile, read_order_file

HEADER = (
    "merchant_id,account_id,order_no,currency,amount,status,ordered_at,transaction_id,"
    "action,action_amount,action_reason,request_id"
)
PLAIN = "100042,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z,T-1,,,,"
REFUND = "100042,100042001,A-2,EUR,10.00,paid,2026-01-05T10:00:00Z,T-2,refund,2.50,broken,R-1"
CAPTURE = "100042,100042001,A-3,JPY,1200,authorised,2026-01-05T10:00:00Z,,capture,,,"


def read(tmp_path: Path, text: str) -> OrderFile:
    """An order file of this text."""
    path = tmp_path / "orders-2026-01-05.csv"
    path.write_text(text)
    return read_order_file(path, rules=Rules())


def test_orders_and_actions_come_apart(tmp_path: Path) -> None:
    """Every row is an order; rows with an action are also what the merchant wants done."""
    found = read(tmp_path, f"{HEADER}\n{PLAIN}\n{REFUND}\n{CAPTURE}\n")
    assert found.orders["order_no"].tolist() == ["A-1", "A-2", "A-3"]
    told = found.actions[["order_no", "action", "action_reason", "request_id", "transaction_id"]]
    assert told.to_numpy().tolist() == [
        ["A-2", "refund", "broken", "R-1", "T-2"],
        ["A-3", "capture", "", "", ""],
    ]
    assert found.actions["action_amount"].tolist() == [250, pd.NA]
    assert found.actions["line"].tolist() == [3, 4]
    assert set(found.actions["source"]) == {"orders-2026-01-05.csv"}


def test_frames_have_the_columns_and_types_of_the_contract(tmp_path: Path) -> None:
    """Orders are what the engine reads; amounts are whole numbers."""
    found = read(tmp_path, f"{HEADER}\n{REFUND}\n")
    assert {name: str(kind) for name, kind in found.orders.dtypes.items()} == ORDER_COLUMNS
    assert tuple(found.actions.columns) == ACTION_COLUMNS
    assert str(found.actions["action_amount"].dtype) == "Int64"
    assert str(found.actions["amount"].dtype) == "int64"


def test_a_file_without_the_columns_of_actions_has_none(tmp_path: Path) -> None:
    """A plain order file is an order file."""
    names = ",".join(HEADER.split(",")[:8])
    found = read(tmp_path, f"{names}\n{','.join(PLAIN.split(',')[:8])}\n")
    assert (len(found.orders), len(found.actions)) == (1, 0)


def test_a_last_line_that_may_be_cut_is_not_taken(tmp_path: Path) -> None:
    """Without its line end the last row could be a longer one; the others are read."""
    found = read(tmp_path, f"{HEADER}\n{PLAIN}\n{REFUND}")
    (reject,) = found.rejects
    assert (reject.line, reject.order_no) == (3, "A-2")
    assert "has no line end" in reject.reason
    assert found.orders["order_no"].tolist() == ["A-1"]
    assert found.actions.empty


def test_a_bad_action_rejects_its_row_only(tmp_path: Path) -> None:
    """Nothing of a row is taken whose action cannot be meant so; its key is kept."""
    found = read(tmp_path, f"{HEADER}\n{PLAIN}\n{REFUND.replace('2.50', '25.00')}\n")
    (reject,) = found.rejects
    assert (reject.column, reject.order_no, reject.value) == ("action_amount", "A-2", "25.00")
    counts = found.source_file
    assert (counts.rows_read, counts.rows_accepted, counts.rows_rejected) == (2, 1, 1)


def test_local_times_follow_the_zone(tmp_path: Path) -> None:
    """The zone of the layout is that of times without an offset."""
    path = tmp_path / "orders.csv"
    path.write_text(f"{HEADER}\n{PLAIN.replace('00Z', '00')}\n")
    found = read_order_file(path, rules=Rules(), layout=FileLayout(zone="Asia/Hong_Kong"))
    assert found.orders["ordered_at"][0].hour == 2


def test_what_is_no_order_file_is_refused(tmp_path: Path) -> None:
    """An absent file and one with other columns end in different sentences."""
    with pytest.raises(SourceMissingError):
        read_order_file(tmp_path / "none.csv", rules=Rules())
    with pytest.raises(SourceUnreadableError, match="lacks the columns merchant_id, account_id"):
        read(tmp_path, "order,price\n1,2\n")

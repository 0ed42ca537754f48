from collections.abc import Callable
from pathlib import Path

import pytest

from recon.config.rules import Rules
from recon.files.typing.table_schema import ORDER_FILE
from recon.files.typing.typed_table import Table, read_table
from recon.model.words import SourceKind

Write = Callable[[str | bytes], Path]
HEADER = (
    "merchant_id,account_id,order_no,currency,amount,status,ordered_at,refund_amount,"
    "action,action_amount,action_reason,request_id"
)


def read(order_csv: Write, *cells: str) -> Table:
    """One order of 10.00 EUR with these last cells."""
    row = f"100042,100042001,A-1,EUR,10.00,{cells[0]},2026-01-05T10:00:00Z"
    path = order_csv(f"{HEADER}\n{','.join([row, *cells[1:]])}\n")
    return read_table(path, kind=SourceKind.ORDERS, rules=Rules(), schema=ORDER_FILE)


REFUSED = {
    "partly refunded, unknown by how much": ("partially_refunded,,,,,", "refund_amount"),
    "unknown action": ("paid,,pay,,,", "action"),
    "amount without an action": ("paid,,,1.00,,", "action"),
    "reason without an action": ("paid,,,,because,", "action"),
    "request without an action": ("paid,,,,,R-1", "action"),
    "capture above the order": ("authorised,,capture,10.01,,", "action_amount"),
    "refund above the order": ("paid,,refund,10.01,,", "action_amount"),
    "capture of nothing": ("authorised,,capture,0.00,,", "action_amount"),
    "refund of nothing": ("paid,,refund,0.00,,", "action_amount"),
    "refund below nothing": ("paid,,refund,-1.00,,", "action_amount"),
    "refund of other decimals": ("paid,,refund,1.5,,", "action_amount"),
    "cancel of a part": ("authorised,,cancel,5.00,,", "action_amount"),
    "review of a part": ("authorised,,review,5.00,,", "action_amount"),
    "reason too long": (f"paid,,refund,1.00,{'x' * 51},", "action_reason"),
    "reason not ascii": ("paid,,refund,1.00,zu groß,", "action_reason"),
    "reason with a tab": ("paid,,refund,1.00,a\tb,", "action_reason"),
    "reason with a line feed": ('paid,,refund,1.00,"a\nb",', "action_reason"),
    "request with a space": ("paid,,refund,1.00,ok,R 1", "request_id"),
}


@pytest.mark.parametrize(("cells", "column"), REFUSED.values(), ids=REFUSED)
def test_a_row_whose_cells_contradict_each_other_is_refused(
    order_csv: Write, cells: str, column: str
) -> None:
    """An action that cannot be meant so rejects its row; nothing of it is carried out."""
    table = read(order_csv, *cells.split(","))
    assert [reject.column for reject in table.rejects] == [column]
    assert table.frame.empty


@pytest.mark.parametrize(
    "cells",
    [
        *("paid,,,,,", "partially_refunded,2.50,,,,", "authorised,,capture,10.00,,"),
        *("authorised,,capture,,,R-1", "paid,,refund,,,", "paid,,refund,0.01,it broke,R-1"),
        *("authorised,,cancel,,,", "authorised,,cancel,10.00,,", "authorised,,review,,,"),
    ],
)
def test_a_row_that_says_one_thing_is_accepted(order_csv: Write, cells: str) -> None:
    """Blank means the whole order; parts are for captures and refunds."""
    assert read(order_csv, *cells.split(",")).rejects == ()

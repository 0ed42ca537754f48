from zoneinfo import ZoneInfo

import pytest

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.typing.table_schema import ORDER_FILE, schema_of
from recon.model.errors import SourceUnreadableError
from recon.model.terms import SourceKind
from tests.recon.files.whole_read import read_table

ROW = "100042,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z"
GATEWAY_HEADER = (
    "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,query_result,"
    "reference_no,transaction_date"
)
LEDGER_HEADER = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at"
INSTRUCTION_HEADER = (
    "instruction_id,merchant_id,account_id,order_no,transaction_id,kind,currency,amount,state"
)


def orders(path):
    return read_table(path, kind=SourceKind.ORDERS, rules=Rules())


def test_all_bad_cells_of_a_row_are_told_at_once(order_csv, header):
    bad = "100042,100042001,A 1,EURO,10.00,settled,2026-99-99"
    (reject,) = orders(order_csv(f"{header}\n{bad}\n")).rejects
    first, *others = reject.reason.split("; also ")
    assert first.startswith("is not an order key")
    assert [told.partition(":")[0] for told in others] == ["currency", "status", "ordered_at"]
    (reject,) = orders(order_csv(f"{header}\n,,,EURO,x,settled,2026-99-99\n")).rejects
    assert (reject.column, reject.merchant_id, reject.order_no) == ("merchant_id", "", "")
    assert reject.reason.endswith("; also 2 more cells")
    assert reject.reason.startswith("is blank; also account_id: is blank; also order_no: is blank")


def test_what_holds_between_cells_is_judged_of_cells_that_can_be_read(order_csv, header):
    bad = ROW.replace("paid", "partially_refunded").replace("EUR", "EURO")
    (reject,) = orders(order_csv(f"{header}\n{bad}\n")).rejects
    assert reject.reason == "'EURO' is not an ISO 4217 currency code"


def test_a_reject_keeps_the_key_that_can_be_read(order_csv, header):
    """So that the whole set counts as not verified; without a key the row is unassigned."""
    text = f"{header}\n{ROW.replace('10.00', 'x')}\n{ROW.replace('100042,', 'x y,')}\nshort\n"
    table = orders(order_csv(text))
    keys = [(r.merchant_id, r.account_id, r.order_no) for r in table.rejects]
    assert keys == [("100042", "100042001", "A-1"), ("", "100042001", "A-1"), ("", "", "")]
    assert table.source_file.rows_unassigned == 2


def test_card_numbers_are_in_no_part_of_what_is_read(order_csv, header):
    cells = ROW.split(",")
    rows = [
        ",".join([*cells[:place], "4111111111111111", *cells[place + 1 :]])
        for place in range(len(cells))
    ]
    rows.append("4111111111111111")
    table = orders(order_csv("\n".join([header, *rows]) + "\n"))
    told = table.frame.to_csv() + "".join(map(str, table.rejects))
    assert "411111******1111" in told
    assert "4111111111111111" not in told


@pytest.mark.parametrize("row", [ROW, "Erika Muster,1957-03-09,DE89370400440532013000,12,a,b,c"])
def test_nothing_of_a_file_without_a_header_is_quoted(order_csv, row):
    """Its first row may be a payee and his account: it is told by its place alone."""
    with pytest.raises(SourceUnreadableError, match="its first row is no header, or") as refused:
        orders(order_csv(f"{row}\n{row}\n"))
    assert not [cell for cell in row.split(",") if len(cell) > 2 and cell in str(refused.value)]


def test_unknown_columns_are_ignored_and_told(order_csv, header):
    table = orders(order_csv(f"{header},colour,Amount\n{ROW},red,99.00\n"))
    assert table.ignored_columns == ("colour", "Amount")
    assert table.frame["amount"].tolist() == [1000]


def test_local_times_are_of_the_sources_zone(order_csv, header):
    path = order_csv(f"{header}\n{ROW.replace('Z', '')}\n")
    tokyo = Rules.of({"calendar": {"timezone": "Asia/Tokyo"}}, source="rules.toml")
    theirs = read_table(path, kind=SourceKind.ORDERS, rules=tokyo)
    assert theirs.frame["ordered_at"][0].isoformat() == "2026-01-05T01:00:00+00:00"
    table = read_table(path, kind=SourceKind.ORDERS, rules=Rules(), zone=ZoneInfo("Asia/Hong_Kong"))
    assert orders(path).frame["ordered_at"][0].isoformat() == "2026-01-05T10:00:00+00:00"
    assert table.frame["ordered_at"][0].isoformat() == "2026-01-05T02:00:00+00:00"


def gateway(path, text):
    """A gateway table of rows below its header."""
    path.write_text(f"{GATEWAY_HEADER}\n{text}")
    rules = Rules.of({"gateway": {"timezone": "Asia/Hong_Kong"}}, source="rules.toml")
    return read_table(path, kind=SourceKind.GATEWAY, rules=rules)


def test_gateway_rows_show_their_answer_and_local_time(tmp_path):
    table = gateway(
        tmp_path / "g.csv",
        "1,2,A-1,T1,EUR,10.00,3000,1,R1,20260105103000\n"
        "1,2,,T2,JPY,1200,3000,-1,,2026-01-05T10:30:00Z\n",
    )
    assert table.rejects == ()
    assert table.frame["answer"].tolist() == ["found", "found"]
    assert table.frame["transaction_date"].dt.hour.tolist() == [2, 10]


@pytest.mark.parametrize("code", ["2", "0", "5", "999", "77"])
def test_an_answer_without_a_payment_needs_its_key_only(tmp_path, code):
    table = gateway(
        tmp_path / "g.csv",
        f"1,2,A-1,,,,,{code},,\n1,2,A-2,T,EURO,0,x y,{code},,never\n1,2,,T3,,,,{code},,\n"
        f"1,2,A-3,T4,EUR,10.00,3000,{code},R1,20260105103000\n",
    )
    assert table.frame["order_no"].tolist() == ["A-1", "A-2", "A-3"]
    assert table.frame["amount"].isna().all()
    assert [(reject.line, reject.column) for reject in table.rejects] == [(4, "order_no")]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("1,2,A-1,,EUR,10.00,3000,1,R1,20260105103000", "transaction_id"),
        ("1,2,A-1,T1,,10.00,3000,1,R1,20260105103000", "currency"),
        ("1,2,A-1,T1,EUR,,3000,1,R1,20260105103000", "amount"),
        ("1,2,A-1,T1,EUR,10.00,,1,R1,20260105103000", "payment_status"),
        ("1,2,A-1,T1,EUR,10.00,3000,,R1,20260105103000", "query_result"),
        ("1,2,A-1,T1,EUR,10.00,3000,1,R1,", "transaction_date"),
        ("1,2,A-1,T1,EUR,10.00,3000,1,R1,20261305103000", "transaction_date"),
        ("1,2,A-1,T 1,EUR,10.00,3000,1,R1,20260105103000", "transaction_id"),
        ("1,,A-1,T1,EUR,10.00,3000,1,R1,20260105103000", "account_id"),
    ],
)
def test_a_payment_must_be_complete(tmp_path, row, column):
    (reject,) = gateway(tmp_path / "g.csv", row + "\n").rejects
    assert reject.column == column


def ledger(path, text, *, columns=None):
    path.write_text(text)
    return read_table(
        path, kind=SourceKind.LEDGER, rules=Rules(), layout=FileLayout(columns=columns or {})
    )


def test_only_adjustments_are_signed(tmp_path):
    table = ledger(
        tmp_path / "l.csv",
        f"{LEDGER_HEADER}\nE1,1,2,A-1,adjustment,EUR,-1.00,2026-01-05\n"
        "E2,1,2,,adjustment_reversal,EUR,-1.00,2026-01-05\n"
        "E3,1,2,A-1,capture,EUR,-1.00,2026-01-05\nE4,1,2,A-1,sale,EUR,1.00,2026-01-05\n",
    )
    assert table.frame["amount"].tolist() == [-100, -100]
    assert [(reject.line, reject.column) for reject in table.rejects] == [
        (4, "amount"),
        (5, "entry_type"),
    ]


def test_instructions_name_a_payment_unless_their_kind_has_none(tmp_path):
    path = tmp_path / "i.csv"
    path.write_text(
        f"{INSTRUCTION_HEADER}\nI1,1,2,A-1,T1,refund,EUR,1.00,confirmed\n"
        "I2,1,2,,,payout,EUR,1.00,in_doubt\nI3,1,2,,T1,refund,EUR,1.00,confirmed\n"
        "I4,1,2,A-1,,capture,EUR,1.00,confirmed\nI5,1,2,A-1,T1,move,EUR,1.00,confirmed\n"
        "I6,1,2,A-1,T1,refund,EUR,1.00,done\n"
    )
    table = read_table(path, kind=SourceKind.INSTRUCTIONS, rules=Rules())
    assert table.frame["instruction_id"].tolist() == ["I1", "I2"]
    assert [reject.column for reject in table.rejects] == [
        *("order_no", "transaction_id", "kind", "state")
    ]


def test_no_column_of_any_table_is_a_float(tmp_path):
    for kind in SourceKind:
        path = tmp_path / f"{kind}.csv"
        path.write_text(",".join(schema_of(kind).names) + "\n")
        frame = read_table(path, kind=kind, rules=Rules()).frame
        assert not [name for name in frame.columns if frame[name].dtype.kind == "f"]
    assert set(schema_of(SourceKind.ORDERS).names) < set(ORDER_FILE.names)


@pytest.mark.parametrize(
    ("cells", "order_no"),
    [
        ("100042,100042001,A-1,EUR,10,00,paid,2026-01-05T10:00:00Z", "A-1"),
        ('100042,100042001,"A-1",EUR,10.00,paid,2026-01-05T10:00:00Z,x', "A-1"),
        # What stands before the order number is no id: something was cut in two there.
        ("100042,,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z", ""),
        ("100042,100042001,,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z", ""),
        ("100042,100042001, A 1,EUR,10.00,paid,2026-01-05T10:00:00Z,x", ""),
        ("100042,100042001,4111111111111111,EUR,10,00,paid,2026-01-05T10:00:00Z", ""),
        # A row that is too short may lack its first cell, and be cut within its last one.
        ("100042,100042001,A-1,EUR,10.00", ""),
    ],
)
def test_a_row_with_too_many_cells_names_its_order(order_csv, cells, order_no):
    """Its order is known, so that it is not compared by an older row as if nothing had come."""
    header = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"
    (reject,) = orders(order_csv(f"{header}\n{cells}\n")).rejects
    assert (reject.column, reject.line, reject.order_no) == ("(row)", 2, order_no)
    assert bool(reject.account_id) == bool(order_no)


def test_a_row_with_too_many_cells_names_its_order_as_its_layout_writes_it(order_csv):
    layout = FileLayout.model_validate(
        {
            "constants": {"merchant_id": "100042", "account_id": "100042001"},
            "columns": {"order_no": "Bestellung"},
            "order_numbers": {"prefix": "#"},
        }
    )
    rows = ["Bestellung,currency,amount,status,ordered_at", "#7,EUR,1,00,paid,2026-01-05T10:00:00Z"]
    path = order_csv("\n".join([*rows, ""]))
    table = read_table(path, kind=SourceKind.ORDERS, rules=Rules(), layout=layout)
    assert [(one.account_id, one.order_no) for one in table.rejects] == [("100042001", "7")]
    rows = [
        "Kunde,Bestellung,currency,amount,status,ordered_at",
        "Li, Wu,7,EUR,1.00,paid,2026-01-05",
    ]
    path = order_csv("\n".join([*rows, ""]))
    table = read_table(path, kind=SourceKind.ORDERS, rules=Rules(), layout=layout)
    assert [one.order_no for one in table.rejects] == [""]
    rows = ["amount,Bestellung,currency,status,ordered_at", "1,00,7,EUR,paid,2026-01-05T10:00:00Z"]
    path = order_csv("\n".join([*rows, ""]))
    table = read_table(path, kind=SourceKind.ORDERS, rules=Rules(), layout=layout)
    assert [one.order_no for one in table.rejects] == [""]


HEADER = (
    "merchant_id,account_id,order_no,currency,amount,status,ordered_at,refund_amount,"
    "action,action_amount,action_reason,request_id"
)


def read(order_csv, *cells):
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
def test_a_row_whose_cells_contradict_each_other_is_refused(order_csv, cells, column):
    table = read(order_csv, *cells.split(","))
    assert [reject.column for reject in table.rejects] == [column]
    assert table.frame.empty

import pandas as pd
import pytest

from recon.config.file_layouts import FileLayout, WrittenNumbers
from recon.config.rules import Rules
from recon.model.errors import SourceUnreadableError
from recon.model.terms import SourceKind
from tests.recon.files.whole_read import read_table

THEIRS = "Shop;Konto;Bestellung;Geld;Betrag;Stand;Wann"
ROW = "100042;100042001;A-1;EUR;10,00;bezahlt;05.01.2026 10:00"
LAYOUT = FileLayout(
    delimiter=";",
    columns={
        "merchant_id": "Shop",
        "account_id": "Konto",
        "order_no": "Bestellung",
        "currency": "Geld",
        "amount": "Betrag",
        "status": "Stand",
        "ordered_at": "Wann",
    },
    words={"status": {"bezahlt": "paid", "offen": "pending"}},
    decimal_sign=",",
    times="%d.%m.%Y %H:%M",
    zone="Europe/Lisbon",
)


def read(path, layout):
    return read_table(path, kind=SourceKind.ORDERS, rules=Rules(), layout=layout)


@pytest.mark.parametrize(
    ("old", "new", "column", "told"),
    [
        ("10,00", "10.00", "Betrag", "is not an amount with the decimal sign ','"),
        ("10,00", "1.000,00", "Betrag", "is not an amount with the decimal sign ','"),
        ("bezahlt", "paid", "Stand", "is none of bezahlt, offen"),
        ("05.01.2026 10:00", "2026-01-05 10:00", "Wann", "is not a time written as %d.%m.%Y %H:%M"),
        ("05.01.2026 10:00", "31.02.2026 10:00", "Wann", "no moment of the calendar"),
        ("10,00", "", "Betrag", "is blank"),
        ("bezahlt", "", "Stand", "is blank"),
    ],
)
def test_what_the_layout_does_not_explain_is_refused_in_their_words(
    order_csv, old, new, column, told
):
    table = read(order_csv(f"{THEIRS}\n{ROW.replace(old, new)}\n"), LAYOUT)
    (reject,) = table.rejects
    assert (reject.line, reject.column, reject.value) == (2, column, new)
    assert told in reject.reason
    assert table.frame.empty


@pytest.mark.parametrize(
    ("currency", "text", "units"),
    [
        ("EUR", "1050", 1050),
        ("EUR", "5", 5),
        ("EUR", "0", 0),
        ("JPY", "1200", 1200),
        ("KWD", "12", 12),
    ],
)
def test_minor_units_are_whole_numbers_of_the_smallest_unit(order_csv, currency, text, units):
    header = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"
    row = f"100042,100042001,A-1,{currency},{text},paid,2026-01-05T10:00:00Z"
    layout = FileLayout(units="minor")
    assert read(order_csv(f"{header}\n{row}\n"), layout).frame["amount"].tolist() == [units]
    for wrong in ("10.50", "-1", "007", "1e3"):
        bad = row.replace(f",{text},paid", f",{wrong},paid")
        assert read(order_csv(f"{header}\n{bad}\n"), layout).frame.empty


def test_constants_fill_columns_that_the_file_does_not_have(order_csv):
    layout = FileLayout(constants={"merchant_id": "100042", "account_id": "1", "currency": "EUR"})
    text = "order_no,amount,status,ordered_at\nA-1,1.00,paid,2026-01-05T10:00:00Z\n"
    frame = read(order_csv(text), layout).frame
    assert frame[["merchant_id", "account_id", "currency"]].to_numpy().tolist() == [
        ["100042", "1", "EUR"]
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-15", "windows-1252"])
@pytest.mark.parametrize("note", ["'a\nb'", "a"])
def test_other_encodings_and_quotes_read_alike(order_csv, encoding, note):
    layout = FileLayout(
        encoding=encoding, delimiter="|", quote="'", columns={"currency": "Währung"}
    )
    header = "merchant_id|account_id|order_no|Währung|amount|status|ordered_at|note"
    row = f"100042|100042001|A-1|EUR|10.00|paid|2026-01-05T10:00:00Z|{note}"
    table = read(order_csv(f"{header}\n{row}\n{row}\n".encode(encoding)), layout)
    assert table.frame["line"].tolist() == ([2, 4] if "'" in note else [2, 3])


def test_dates_of_a_workbook_need_no_pattern(tmp_path):
    layout = FileLayout(times="%d.%m.%Y")
    cells = {
        "merchant_id": ["1", "1"],
        "account_id": ["1", "1"],
        "order_no": ["A-1", "A-2"],
        "currency": ["EUR", "EUR"],
        "amount": [10.5, 10.5],
        "status": ["paid", "paid"],
        "ordered_at": [pd.Timestamp(2026, 1, 5, 10), "06.01.2026"],
    }
    path = tmp_path / "orders.xlsx"
    pd.DataFrame(cells).to_excel(path, index=False)
    frame = read(path, layout).frame
    assert [str(moment) for moment in frame["ordered_at"]] == [
        "2026-01-05 10:00:00+00:00",
        "2026-01-06 00:00:00+00:00",
    ]


@pytest.mark.parametrize(
    "text",
    ["1.23,00", "1.2345,00", "12345.678,00", ".123,00", "1..234,00", "1,234.00", "1.234,5.0"],
)
def test_thousands_grouped_otherwise_are_refused(order_csv, text):
    layout = LAYOUT.model_copy(update={"thousands_sign": "."})
    assert len(read(order_csv(f"{THEIRS}\n{ROW.replace('10,00', text)}\n"), layout).rejects) == 1
    plain = LAYOUT.model_copy(update={"decimal_sign": ".", "units": "minor"})
    grouped = plain.model_copy(update={"thousands_sign": "'"})
    for whole, layout, units in (("1'234", grouped, [1234]), ("1'234", plain, [])):
        table = read(order_csv(f"{THEIRS}\n{ROW.replace('10,00', whole)}\n"), layout)
        assert table.frame["amount"].tolist() == units


def test_a_preamble_is_passed_over_and_lines_count_from_the_top(order_csv):
    bad = ROW.replace("bezahlt", "fort")
    path = order_csv(f'Export "vom 20.11.\n\n{THEIRS}\n{ROW}\n{bad}\n')
    table = read(path, LAYOUT.model_copy(update={"preamble": 2}))
    assert len(table.frame) == 1
    assert [reject.line for reject in table.rejects] == [5]


def test_a_card_number_before_the_header_refuses_the_file(order_csv):
    path = order_csv(f"4111 1111 1111 1111\n{THEIRS}\n{ROW}\n")
    with pytest.raises(SourceUnreadableError, match="card number before its header"):
        read(path, LAYOUT.model_copy(update={"preamble": 1}))


def test_all_faults_of_a_row_are_told_at_once(order_csv):
    bad = ROW.replace("bezahlt", "fort").replace("10,00", "1.0").replace("05.01", "45.01")
    (reject,) = read(order_csv(f"{THEIRS}\n{bad}\n"), LAYOUT).rejects
    assert reject.column == "Betrag"
    assert "; also Stand: is none of bezahlt, offen" in reject.reason
    assert "; also Wann: " in reject.reason


@pytest.mark.parametrize(
    ("order_numbers", "written", "read_as"),
    [
        ({"prefix": "#"}, ["#1001", "1001", "#"], ["1001", "1001", "#"]),
        ({"prefix": "SHOP-", "suffix": ".0"}, ["SHOP-1001.0", "1001.0.0"], ["1001", "1001.0"]),
        (
            {"digits": 6},
            ["1001", "0001001", "A-1", "1234567"],
            ["001001", "001001", "A-1", "1234567"],
        ),
        ({"digits": 1}, ["001001", "0", "000"], ["1001", "0", "0"]),
        ({}, ["#1001", "001001"], ["#1001", "001001"]),
    ],
)
def test_order_numbers_are_read_as_the_other_sides_write_them(
    order_csv, order_numbers, written, read_as
):
    rows = [ROW.replace("A-1", number) for number in written]
    layout = LAYOUT.model_copy(update={"order_numbers": WrittenNumbers(**order_numbers)})
    table = read(order_csv("\n".join([THEIRS, *rows, ""])), layout)

    assert table.frame["order_no"].tolist() == read_as


SETTLED = (
    "batch_id,merchant_id,account_id,settled_on,entry_type,order_no,transaction_id,reference_no"
)
OF_LINE = "B1,100042,100042001,2026-11-18,{type},A-1,T1,"
PARTS = ("Commission", "Markup", "Scheme")


def settled(order_csv, header, *rows, layout):
    """Rows of a settlement file, `capture:cells` each, behind the columns that all have."""
    lines = [OF_LINE.format(type=kind) + f",{cells}" for kind, _, cells in map(_parted, rows)]
    path = order_csv("\n".join([f"{SETTLED},{header}", *lines]) + "\n")
    wanted = FileLayout.model_validate(layout)
    return read_table(path, kind=SourceKind.SETTLEMENT, rules=Rules(), layout=wanted)


def _parted(row):
    return row.partition(":")


def test_a_fee_is_the_sum_of_its_columns(order_csv):
    """Each is an amount by itself; beside a net a blank adds nothing, and one may be given back."""
    table = settled(
        order_csv,
        "currency,gross,net,Commission,Markup,Scheme",
        "capture:EUR,55.00,54.00,0.30,0.20,0.50",
        "capture:EUR,30.00,29.75,,0.25,",
        "refund:EUR,-10.00,-10.00,,,",
        "refund:EUR,-10.00,-9.90,-0.30,0.20,",
        "capture:JPY,500,490,10,,0",
        layout={"sums": {"fee": PARTS}},
    )
    assert table.rejects == ()
    assert table.frame["fee"].tolist() == [100, 25, 0, -10, 10]
    assert table.ignored_columns == ()


@pytest.mark.parametrize(
    ("cells", "column", "value", "told"),
    [
        ("EUR,55.00,54.00,0.30,0.20,0.49", "net", "54.00", "0.30 + 0.20 + 0.49"),
        ("EUR,55.00,54.00,0.30,,0.50", "net", "54.00", "fee read as 0.30 + 0.50"),
        (
            "EUR,55.00,54.00,0.30,x,0.50",
            "C + M + S",
            "0.30 + x + 0.50",
            "Markup 'x' is not an amount",
        ),
        ("EUR,55.00,54.00,0.30,0.2,0.50", "C + M + S", "0.30 + 0.2 + 0.50", "Markup "),
        ("EUR,55.00,54.00,0.30,0.205,0.495", "C + M + S", "0.30 + 0.205 + 0.495", "Markup "),
        ("XXX,55.00,54.00,0.30,0.20,0.50", "currency", "XXX", "Commission + Markup + Scheme: "),
        (
            "EUR,55.00,54.00,999999999999999.00,999999999999999.00,0.50",
            "C + M + S",
            "999999999999999.00 + 999999999999999.00 + 0.50",
            "more than 15 digits",
        ),
    ],
)
def test_a_row_that_does_not_add_up_is_named_with_its_summands(
    order_csv, cells, column, value, told
):
    layout = {"sums": {"fee": PARTS}}
    header = "currency,gross,net,Commission,Markup,Scheme"
    table = settled(order_csv, header, f"capture:{cells}", layout=layout)
    (reject,) = table.rejects
    named = "Commission + Markup + Scheme" if column == "C + M + S" else column
    assert (reject.column, reject.value) == (named, value)
    assert told in reject.reason
    assert table.frame.empty


def test_summands_are_written_as_other_amounts_are(order_csv):
    header = "currency,gross,net,Commission,Markup,Scheme"
    cents = {"units": "minor", "negated": ["fee"], "sums": {"fee": PARTS}}
    table = settled(order_csv, header, "capture:EUR,5500,5400,-30,-20,-50", layout=cents)
    assert table.rejects == ()
    assert table.frame["fee"].tolist() == [100]
    short = {"decimals": "as_written", "sums": {"fee": PARTS}}
    table = settled(order_csv, header, "capture:EUR,55,54,0.3,.2,0.5", layout=short)
    assert [(one.column, "Markup" in one.reason) for one in table.rejects] == [
        ("Commission + Markup + Scheme", True)
    ]
    table = settled(order_csv, header, "capture:EUR,55,54,0.3,0.2,0.5", layout=short)
    assert table.frame["fee"].tolist() == [100]


def test_without_a_net_gross_less_fee_is_it(order_csv):
    """Nothing proves such a row, so that none of its amounts may be blank."""
    layout = {"net": "gross_less_fee"}
    table = settled(
        order_csv,
        "currency,gross,fee",
        "capture:EUR,55.00,1.89",
        "refund:EUR,-10.00,-0.34",
        "fee:EUR,-8.25,0.00",
        "payout:EUR,35.20,0.00",
        "capture:EUR,55.00,",
        layout=layout,
    )
    amounts = table.frame[["gross", "fee", "net"]].to_numpy().tolist()
    assert amounts == [[5500, 189, 5311], [-1000, -34, -966], [0, 825, -825], [3520, 0, 3520]]
    assert [(one.line, one.column, one.reason) for one in table.rejects] == [(6, "fee", "is blank")]


def test_without_a_net_a_row_has_all_summands(order_csv):
    """A blank may be a part of the fee that is not known yet; who has none writes 0.00."""
    layout = {"net": "gross_less_fee", "sums": {"fee": PARTS}}
    table = settled(
        order_csv,
        "currency,gross,Commission,Markup,Scheme",
        "capture:EUR,55.00,0.30,0.20,0.00",
        "capture:EUR,55.00,0.30,,0.50",
        "refund:EUR,-10.00,,,",
        layout=layout,
    )
    assert table.frame["net"].tolist() == [5450]
    assert [(one.line, one.reason) for one in table.rejects] == [
        (3, "Markup is blank beside other summands"),
        (4, "is blank"),
    ]


@pytest.mark.parametrize(
    ("cells", "taken"),
    [
        ("EUR,55.00,1.00,EUR", [5400]),
        ("EUR,55.00,1.00,USD", []),
        ("EUR,55.00,1.00,", []),
        ("EUR,55.00,0.00,", [5500]),
        ("EUR,55.00,0.00,USD", []),
    ],
)
def test_a_fee_in_another_currency_is_not_taken_off(order_csv, cells, taken):
    """Euros less dollars are nothing; only a fee of nothing needs no currency."""
    layout = {"net": "gross_less_fee", "currencies": {"fee": "Fee Currency"}}
    header = "currency,gross,fee,Fee Currency"
    table = settled(order_csv, header, f"capture:{cells}", layout=layout)
    assert table.frame["net"].tolist() == taken
    assert [one.reason for one in table.rejects] == (
        [] if taken else ["is in another currency than its row, or in none"]
    )

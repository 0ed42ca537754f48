"""Classes of bad order files: what each is told, and that nothing of it is taken by mistake."""

import json
import re

import openpyxl
import pytest
from lxml import etree
from openpyxl import Workbook

from recon.config.file_layouts import FileLayout, Trailer
from recon.config.rules import Rules
from recon.model.errors import SourceUnreadableError
from tests.recon.files.whole_read import read_order_file

HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"
ROW = "100042,100042001,A-1,EUR,10.00,paid,2026-01-05T10:00:00Z"
GOOD = f"{HEADER}\n{ROW}\n"
OBJECT = dict(zip(HEADER.split(","), ROW.split(","), strict=True))
CARD = "4111111111111111"
LAUGHS = "".join(f'<!ENTITY l{n} "{"&l" + str(n - 1) + ";" * 10}">' for n in range(1, 9))


def xml(record):
    """A document of one record."""
    return f"<orders>\n<order>{record}</order>\n</orders>\n"


def record(**changed):
    """The leaves of a record that is right but for these."""
    cells = OBJECT | changed
    return "".join(f"<{name}>{text}</{name}>" for name, text in cells.items())


def line(**changed):
    """One line of JSON that is right but for these keys."""
    return json.dumps(OBJECT | changed) + "\n"


def changed(old, new):
    """The good file with one cell changed."""
    assert old in GOOD
    return GOOD.replace(old, new)


WHOLE = [
    ("empty", "o.csv", "", "is empty: it has not even a header"),
    ("zip_named_csv", "o.csv", b"PK\x03\x04rest", "is not CSV but a zip archive"),
    ("gzip", "o.csv", b"\x1f\x8b\x08rest", "is not CSV but gzip; unpack it first"),
    ("parquet_named_csv", "o.csv", b"PAR1rest", "is not CSV but a Parquet file"),
    ("office_named_csv", "o.csv", b"\xd0\xcf\x11\xe0rest", "is not CSV but an old or encrypted"),
    ("pdf", "o.csv", b"%PDF-1.7", "is not CSV but a PDF"),
    ("lacks_column", "o.csv", GOOD.replace(",amount", ",sum"), "lacks the column amount"),
    ("unknown_ending", "o.txt", GOOD, "does not end in .csv"),
    ("xlsx_not_zip", "o.xlsx", GOOD, "o.xlsx is not"),
    ("old_excel", "o.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", "o.xlsx is"),
    ("parquet_cut", "o.parquet", b"PAR1rest", "was cut (its ends are not PAR1)"),
    ("parquet_encrypted", "o.parquet", b"PAREx", "is an encrypted Parquet file"),
    (
        "json_array_file",
        "o.jsonl",
        "[]\n",
        "has no line that is a JSON object: line 1 is not a JSON",
    ),
    (
        "json_lacks_key",
        "o.jsonl",
        '{"order_no":"A-1"}\n',
        "lacks the columns merchant_id, account_id",
    ),
    ("xml_doctype", "o.xml", f"<!DOCTYPE o>{xml(record())}", "has a document type"),
    ("xml_laughs", "o.xml", f"<!DOCTYPE o [{LAUGHS}]>{xml('&l8;')}", "has a document type"),
    ("xml_cut", "o.xml", xml(record())[:-12], "is not well-formed XML"),
    ("xml_utf16", "o.xml", xml(record()).encode("utf-16"), "is not XML in UTF-8"),
    (
        "xml_latin1",
        "o.xml",
        f'<?xml version="1.0" encoding="latin1"?>{xml(record())}',
        "is XML in latin1; write it in UTF-8",
    ),
    ("xml_no_record", "o.xml", "<orders/>", "has no element below its root"),
    ("xml_deep", "o.xml", "<a>" * 40 + "</a>" * 40, "is nested deeper than 32 elements"),
]
ROWS = [
    ("short_row", "o.csv", f"{HEADER}\na,b\n", "(row)", "has 2 cells where the header has 7"),
    ("long_row", "o.csv", f"{HEADER}\n{ROW},x\n", "(row)", "has 8 cells where the header has 7"),
    ("stray_quote", "o.csv", f'{HEADER}\nA"B,x\n', "(row)", "has a quote inside a cell"),
    ("cut_short_row", "o.csv", f"{GOOD}100042,1", "(row)", "has 2 cells where the header has 7"),
    ("cut_last_line", "o.csv", GOOD[:-1], "(row)", "has no line end, so it may have been cut"),
    ("blank_merchant", "o.csv", changed("100042,1", ",1"), "merchant_id", "is blank"),
    ("blank_account", "o.csv", changed("100042001", ""), "account_id", "is blank"),
    ("spaced_account", "o.csv", changed("100042001", "1000 42"), "account_id", "is not an id"),
    ("blank_order", "o.csv", changed("A-1", " "), "order_no", "is blank"),
    ("comma_in_order", "o.csv", changed("A-1", '"A,1"'), "order_no", "is not an order key"),
    ("right_to_left", "o.csv", changed("A-1", "A\u202e1"), "order_no", "character 2 is U+202E"),
    ("formula", "o.csv", changed("A-1", "=1+1"), "order_no", "is not an order key"),
    ("path", "o.csv", changed("A-1", "../A"), "order_no", "is not an order key"),
    ("sql", "o.csv", changed("A-1", "A';--"), "order_no", "is not an order key"),
    ("very_long_id", "o.csv", changed("A-1", "A" * 30_000), "order_no", "is not an order key"),
    ("gold", "o.csv", changed("EUR", "XAU"), "currency", "no minor unit"),
    ("blank_currency", "o.csv", changed("EUR", ""), "currency", "is blank"),
    ("comma_in_amount", "o.csv", changed("10.00", '"10,00"'), "amount", "is not an amount"),
    ("capital_status", "o.csv", changed("paid", "PAID"), "status", "is none of"),
    ("blank_status", "o.csv", changed("paid", ""), "status", "is blank"),
    ("blank_time", "o.csv", changed("2026-01-05T10:00:00Z", ""), "ordered_at", "is blank"),
    ("negative", "o.csv", changed("10.00", "-10.00"), "amount", "is not an amount such as"),
    ("few_decimals", "o.csv", changed("10.00", "10.5"), "amount", "does not have the decimals of"),
    ("blank_amount", "o.csv", changed("10.00", ""), "amount", "is blank"),
    ("unknown_currency", "o.csv", changed("EUR", "EUX"), "currency", "EUX"),
    ("currency_na", "o.csv", changed("EUR", "NA"), "currency", "'NA' is not an ISO 4217 currency"),
    ("lower_currency", "o.csv", changed("EUR", "eur"), "currency", "eur"),
    ("unknown_status", "o.csv", changed("paid", "bezahlt"), "status", "is none of"),
    ("cyrillic_id", "o.csv", changed("A-1", "\u0410-1"), "order_no", "(character 1 is U+0410)"),
    ("zero_width", "o.csv", changed("A-1", "A\u200b1"), "order_no", "(character 2 is U+200B)"),
    ("long_id", "o.csv", changed("A-1", "A" * 51), "order_no", "at most 50"),
    ("card", "o.csv", changed("A-1", CARD), "order_no", "looks like a card number"),
    ("us_date", "o.csv", changed("2026-01-05T10:00:00Z", "01/05/2026"), "ordered_at", "not a time"),
    ("no_such_day", "o.csv", changed("01-05", "02-30"), "ordered_at", "no moment of the calendar"),
    ("year_9999", "o.csv", changed("2026", "9999"), "ordered_at", "is not between the years"),
    ("json_twice", "o.jsonl", line() + '{"a":1,"a":2}\n', "(row)", "has a key twice in one object"),
    (
        "json_nan",
        "o.jsonl",
        line() + line(amount=float("nan")),
        "(row)",
        "has NaN, which is no JSON",
    ),
    (
        "json_cut",
        "o.jsonl",
        line() + '{"order_no": "A',
        "(row)",
        "is not JSON: Unterminated string",
    ),
    ("json_list", "o.jsonl", line() + line(amount=[1]), "(row)", "has a list, which no column"),
    ("json_half", "o.jsonl", line() + '{"order_no":"\\ud800"}', "(row)", "has half a character"),
    ("json_deep", "o.jsonl", line() + "[" * 99_999, "(row)", "is nested deeper than 8"),
    ("json_true", "o.jsonl", line(amount=True), "amount", "'TRUE' is not an amount"),
    ("json_exponent", "o.jsonl", line() + line().replace('"10.00"', "1e1"), "amount", "1e1"),
    ("json_huge", "o.jsonl", line() + line().replace('"10.00"', "1e309"), "amount", "1e309"),
    ("json_long_id", "o.jsonl", line(order_no=12345678901234567), "order_no", "make it text"),
    ("xml_twice", "o.xml", xml(record() + "<amount>1.00</amount>"), "(row)", "has amount twice"),
    ("xml_mixed", "o.xml", xml("x" + record()), "(row)", "has text between the elements"),
    ("xml_blank", "o.xml", xml(record(amount="")), "amount", "is blank"),
]


@pytest.mark.parametrize(
    ("name", "content", "told"), [r[1:] for r in WHOLE], ids=[r[0] for r in WHOLE]
)
def test_a_file_that_is_not_what_it_says_is_refused_whole(tmp_path, name, content, told):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SourceUnreadableError) as refused:
        read_order_file(path, rules=Rules())
    assert told in str(refused.value)
    assert str(refused.value).startswith(name)


@pytest.mark.parametrize(
    ("name", "content", "column", "told"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_row_that_cannot_be_read_is_refused_by_line_and_column(
    tmp_path, name, content, column, told
):
    path = tmp_path / name
    if name.endswith(".xml") and column == "(row)":
        content = content.replace("<orders>\n", f"<orders>\n<order>{record()}</order>\n")
    path.write_text(content)
    found = read_order_file(path, rules=Rules())
    (reject,) = found.rejects
    assert reject.column == column
    assert told in reject.reason
    last_row = content.removesuffix("</orders>\n").removesuffix("\n")
    assert reject.line == last_row.count("\n") + 1
    assert CARD not in reject.value + reject.reason
    assert "\n" not in reject.value + reject.reason
    assert len(reject.reason) < 400
    assert len(found.orders) == found.source_file.rows_read - 1


AT_FIRST = Trailer(word="N", rows=2, amount=3)
BEHIND = Trailer(word="Total", place=3, rows=4, amount=5)


@pytest.mark.parametrize(
    ("trailer", "last", "told"),
    [
        (AT_FIRST, "N,2,20.00", ""),
        (AT_FIRST, "N,3,20.00", "declares 3 rows and has 2"),
        (AT_FIRST, "N,2,20.01", "declares 20.01 EUR and its rows have 20.00"),
        (AT_FIRST, "N,2,20:00", "declares a sum that cannot be read"),
        (AT_FIRST, "N,2,", "declares a sum that cannot be read"),
        (AT_FIRST, "M,2,20.00", "does not end with a record 'N'"),
        (AT_FIRST, "N,2x,20.00", "declares '2x' rows, which is no number"),
        (AT_FIRST, "N,2", "has only 2 cells in its last record"),
        (BEHIND, ",,Total,2,20.00,,", ""),
        (BEHIND, ",,Total,2,20.01,,", "declares 20.01 EUR and its rows have 20.00"),
        (BEHIND, ",,Total,3,20.00,,", "declares 3 rows and has 2"),
        (BEHIND, "Total,,,2,20.00,,", "does not end with a record 'Total'"),
        (BEHIND, "100042,,Total,2,20.00,,", "does not end with a record 'Total'"),
        (BEHIND, ",Total,,2,20.00,,", "does not end with a record 'Total'"),
        (BEHIND, ",", "does not end with a record 'Total'"),
    ],
)
def test_a_trailer_proves_the_whole_file(trailer, last, told, tmp_path):
    layout = FileLayout(trailer=trailer)
    path = tmp_path / "o.csv"
    path.write_text(f"{HEADER}\n{ROW}\n{ROW.replace('A-1', 'A-2')}\n{last}\n")
    if not told:
        assert len(read_order_file(path, rules=Rules(), layout=layout).orders) == 2
        return
    with pytest.raises(SourceUnreadableError, match=re.escape(told)):
        read_order_file(path, rules=Rules(), layout=layout)


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (("Total", 2), ""),
        (("Total", 3), "declares 3 rows and has 2"),
        (("Sum", 2), "does not end with a record 'Total', so it may have been cut"),
        (("Total",), "declares '?' rows, which is no number"),
    ],
)
def test_the_last_row_of_a_workbook_proves_it_whole(tmp_path, last, told):
    book = Workbook()
    for cells in (HEADER.split(","), ROW.split(","), ROW.replace("A-1", "A-2").split(","), last):
        book.active.append(cells)
    path = tmp_path / "o.xlsx"
    book.save(path)
    layout = FileLayout(trailer=Trailer(word="Total", rows=2))
    if not told:
        assert len(read_order_file(path, rules=Rules(), layout=layout).orders) == 2
        summed = FileLayout(trailer=Trailer(word="Total", amount=2))
        with pytest.raises(SourceUnreadableError, match=r"no trailer\.amount"):
            read_order_file(path, rules=Rules(), layout=summed)
        return
    with pytest.raises(SourceUnreadableError) as refused:
        read_order_file(path, rules=Rules(), layout=layout)
    assert told in str(refused.value)


def test_a_list_that_nobody_reads_refuses_no_row(tmp_path):
    """What an order is made of stands beside its amount in many exports."""
    path = tmp_path / "o.jsonl"
    path.write_text(line(items=[{"sku": "x"}, 1.5, None]))
    assert len(read_order_file(path, rules=Rules()).orders) == 1


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        ("rows = 2\n", "declares 2 rows and has 1"),
        ("amount.EUR = 10.01\n", "declares 10.01 EUR and its rows have 10.00"),
        ("amount.USD = 1.00\n", "declares 1.00 USD and its rows have 0.00"),
        (f"sha256 = {'0' * 64}\n", "has another SHA-256 than its control figures say"),
        ("rows = 1\nrows = 1\n", "has a line 2 that is no control figure, or one twice"),
        ("rows: 1\n", "has a line 1 that is no control figure"),
        ("", "has no control figure"),
        (None, "has no o.csv.control beside it"),
    ],
)
def test_a_file_beside_it_proves_the_whole_file(tmp_path, figures, told):
    path, beside = tmp_path / "o.csv", tmp_path / "o.csv.control"
    path.write_text(GOOD)
    layout = FileLayout(control_file=".control")
    beside.write_text("rows = 1\n\namount = 10.00\namount.EUR = 10.00\n")
    assert len(read_order_file(path, rules=Rules(), layout=layout).orders) == 1
    beside.unlink()
    if figures is not None:
        beside.write_text(figures)
    with pytest.raises(SourceUnreadableError) as refused:
        read_order_file(path, rules=Rules(), layout=layout)
    assert told in str(refused.value)


def test_parsers_of_xml_are_those_that_were_judged():
    """The workbook library has its safe parser; libxml2 is not older than the one judged."""
    assert openpyxl.DEFUSEDXML is True
    assert etree.LIBXML_VERSION >= (2, 11)

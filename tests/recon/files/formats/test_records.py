import csv
import io
import os
import random
import socket
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from recon.config.file_layouts import FileLayout
from recon.files.formats import format_limits, named_bytes
from recon.files.formats.json_text import read_json_object
from recon.files.formats.named_bytes import FileBytes, read_bytes
from recon.files.formats.raw_reader import REPORTED_COLUMNS, raw_of
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.privacy.displayed_text import defused


@pytest.mark.parametrize("name", ["orders.txt", "orders", "orders.csv.gz", "orders.xls", ".csv"])
def test_a_format_that_is_not_known_is_refused(tmp_path, name):
    path = tmp_path / name
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SourceUnreadableError, match=r"does not end in \.csv, \.xlsx, \.parquet"):
        raw_of(read_bytes(path), columns_read=frozenset("ab"))


def test_a_name_that_no_file_can_have_is_missing():
    with pytest.raises(SourceMissingError, match="not a file name"):
        read_bytes(Path("a\0b.csv"))


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "socket", "device"])
def test_only_regular_files_are_opened(tmp_path, monkeypatch, kind):
    path = tmp_path / "orders.csv"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        target = tmp_path / "target.csv"
        target.write_text("a,b\n")
        path.symlink_to(target)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            monkeypatch.chdir(tmp_path)  # a socket's address is short
            server.bind("orders.csv")
    else:
        path = Path("/dev/null")
    with pytest.raises(SourceUnreadableError, match=r"regular file|symbolic link|cannot be opened"):
        read_bytes(path)


def test_a_file_above_the_bound_is_not_read(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_bytes(b"x" * 11)
    with pytest.raises(SourceUnreadableError, match="has 11 bytes; at most 10"):
        read_bytes(path, bytes_max=10)


@pytest.mark.parametrize("change", ["grows", "is replaced", "is removed"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, change):
    path = tmp_path / "orders.csv"
    path.write_text("first")
    read = os.read

    def read_then_change(descriptor, size):
        content = read(descriptor, size)
        if change == "grows":
            path.write_text("first and more")
        elif change == "is replaced":
            other = tmp_path / "other"
            other.write_text("secnd")
            other.replace(path)
        else:
            path.unlink()
        return content

    monkeypatch.setattr(named_bytes.os, "read", read_then_change)
    with pytest.raises(SourceUnreadableError, match="while it was read"):
        read_bytes(path)


def test_numbers_stay_exact(tmp_path):
    path = tmp_path / "summary.json"
    path.write_text('{"a": 0.1, "b": 12345678901234567890}')
    assert read_json_object(path) == {"a": Decimal("0.1"), "b": 12345678901234567890}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"a": NaN}', "has NaN, which is no JSON number"),
        (b'{"a": 1, "a": 2}', "has a key twice"),
        (b"[1]", "is not a JSON object"),
        (b'{"a": "\xff"}', "is not JSON in UTF-8"),
        (b'{"a": ', "is not JSON in UTF-8"),
        (b"[" * 100_000, "is not JSON in UTF-8"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "is not JSON in UTF-8"),
    ],
)
def test_what_is_not_one_strict_object_is_refused(tmp_path, content, told):
    path = tmp_path / "summary.json"
    path.write_bytes(content)
    with pytest.raises(SourceUnreadableError, match=told):
        read_json_object(path)


def read(tmp_path, text, *columns_read):
    path = tmp_path / "o.jsonl"
    path.write_text(text)
    return raw_of(read_bytes(path), columns_read=frozenset(columns_read))


def test_leaves_are_columns_and_numbers_keep_their_digits(tmp_path):
    text = (
        '{"id":"A","amount":{"value":10.50}}\n\n{"id":null,"other":true,"amount":{"value":"1"}}\n'
    )
    table = read(tmp_path, text, "id", "amount.value")
    assert table.header == ("id", "amount.value", "other")
    assert table.columns["id"].to_pylist() == ["A", ""]
    assert table.columns["amount.value"].to_pylist() == ["10.50", "1"]
    assert table.numbers["amount.value"].to_pylist() == [True, False]
    assert table.lines.tolist() == [1, 3]


@pytest.mark.parametrize("key", ["", " a", "a.b"])
def test_a_key_that_could_be_another_is_refused(tmp_path, key):
    """A point in a key would look like a deeper one."""
    table = read(tmp_path, f'{{"id":1}}\n{{"{key}":1}}\n', "id")
    (bad,) = table.bad_rows
    assert (bad.line, bad.text) == (2, f'{{"{key}":1}}')


def test_a_line_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("recon.files.formats.json_text.JSON_LINE_BYTES_MAX", 40_000)
    long = "x" * (format_limits.CELL_CHARACTERS_MAX + 1)
    table = read(tmp_path, f'{{"id":1}}\n{{"id":"{long}"}}\n{{"id":"{long * 2}"}}\n', "id")
    assert [bad.reason for bad in table.bad_rows] == [
        f"has a value of more than {format_limits.CELL_CHARACTERS_MAX} characters",
        "has more than 40000 bytes",
    ]
    keys = ",".join(f'"k{n}":1' for n in range(format_limits.COLUMNS_MAX + 1))
    with pytest.raises(SourceUnreadableError, match="different names"):
        read(tmp_path, f"{{{keys}}}\n", "id")


def read_of_xml_records(tmp_path, text, *columns_read, record=""):
    """These columns of an XML file."""
    path = tmp_path / "o.xml"
    path.write_text(text)
    return raw_of(
        read_bytes(path), columns_read=frozenset(columns_read), layout=FileLayout(record=record)
    )


def test_leaves_and_attributes_are_columns(tmp_path):
    text = (
        '<o xmlns="urn:x">\n<order id="7"><!-- c --><sum><amount currency="EUR">1.00</amount></sum>'
        "<note><![CDATA[<b>]]></note></order>\n</o>"
    )
    table = read_of_xml_records(tmp_path, text, "@id", "sum/amount", "sum/amount/@currency", "note")
    assert {name: cells.to_pylist() for name, cells in table.columns.items()} == {
        "@id": ["7"],
        "sum/amount": ["1.00"],
        "sum/amount/@currency": ["EUR"],
        "note": ["<b>"],
    }
    assert table.lines.tolist() == [2]


def test_only_records_count_where_one_is_named(tmp_path):
    orders = "<order><id>1</id></order>\n<order><id>2</id></order>"
    text = f"<f><head><id>0</id></head>\n<b>{orders}</b></f>"
    table = read_of_xml_records(tmp_path, text, "id", record="order")
    assert table.columns["id"].to_pylist() == ["1", "2"]
    assert table.lines.tolist() == [2, 3]


def test_lines_are_right_far_down(tmp_path):
    text = "<f>" + "\n" * 70_000 + "<o><id>1</id></o></f>"
    assert read_of_xml_records(tmp_path, text, "id").lines[-1] == 70_001


@pytest.mark.parametrize("text", ["<f>x</f>", "<f><o></f>", "<f></f><f></f>", "<f>&e;</f>", "\x01"])
def test_what_is_not_well_formed_is_refused(tmp_path, text):
    with pytest.raises(SourceUnreadableError, match=r"o\.xml (is not well-formed|has no element)"):
        read_of_xml_records(tmp_path, text, "id")


def test_an_element_has_a_bound(tmp_path):
    long = "x" * (format_limits.CELL_CHARACTERS_MAX + 1)
    table = read_of_xml_records(
        tmp_path, f"<f><o><id>1</id></o><o><id>{long}</id></o><o/></f>", "id"
    )
    assert [bad.reason for bad in table.bad_rows] == [
        f"has more than {format_limits.CELL_CHARACTERS_MAX} characters in id",
        "has nothing in it",
    ]
    many = "".join(f"<k{n}>1</k{n}>" for n in range(format_limits.COLUMNS_MAX + 1))
    with pytest.raises(SourceUnreadableError, match="different names"):
        read_of_xml_records(tmp_path, f"<f><o>{many}</o></f>", "id")


def read_of_mended_cells(folder, *cells):
    """What our reader makes of a mended file with these cells in one column."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["reason", *REPORTED_COLUMNS])
    writer.writerows([cell, "2", "reason", "x", "y"] for cell in cells)
    path = folder / "mended-1.csv"
    path.write_text(out.getvalue())
    return raw_of(read_bytes(path), columns_read={"reason"}).columns["reason"].to_pylist()  # type: ignore[no-any-return] # texts


def test_every_text_comes_back(tmp_path):
    dice = random.Random(7)
    signs = "=+-@';|a1 .\uff1d"
    texts = ["".join(dice.choices(signs, k=dice.randrange(1, 12))).strip() for _ in range(5_000)]
    assert read_of_mended_cells(tmp_path, *map(defused, texts)) == texts


WANTED = frozenset({"a", "b"})
ROWS = [("x1", Decimal("1.50")), ("x2", Decimal("2.00")), ("x3", Decimal("3.25")), ("x4", None)]


def workbook():
    """A sheet that begins below and beside its corner, with a row that is none."""
    book, out = Workbook(), io.BytesIO()
    for place, cell in (("B3", "a"), ("C3", "b"), ("B5", "x1"), ("D6", "beside")):
        book.active[place] = cell
    for line, (key, amount) in enumerate(ROWS, start=8):
        book.active.cell(line, 2, key)
        book.active.cell(line, 3, amount)
    book.active["D3"] = "c"
    book.active["E9"] = "beside"
    book.save(out)
    return out.getvalue()


def parquet():
    """A table in row groups of three."""
    keys, amounts = zip(*ROWS, strict=True)
    out = pa.BufferOutputStream()
    table = pa.table({"a": keys, "b": pa.array(amounts, pa.decimal128(9, 2)), "c": keys})
    pq.write_table(table, out, row_group_size=3)
    return out.getvalue().to_pybytes()


LINES = b'\xef\xbb\xbf{"a": "x1", "b": 1.50}\r\n\n{"c": "\xc3\xa4"}\n[1]\n{"a": "x4", "b": "2"}'
XML = b"<f>\n<o><a>x1</a></o>\n<o><a>x2</a><b>2</b></o><o/>\n<o><c>1</c></o></f>"
CASES = {"o.xlsx": workbook(), "o.parquet": parquet(), "o.xml": XML, "o.jsonl": LINES}


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_rows_that_become_columns_in_pieces_are_the_file(name, most, monkeypatch):
    file = FileBytes(Path(name), CASES[name], "")
    whole = raw_of(file, columns_read=WANTED)
    for module in ("raw_table", "parquet_file"):
        monkeypatch.setattr(f"recon.files.formats.{module}.ROWS_AT_ONCE", most)
    pieces = raw_of(file, columns_read=WANTED)
    assert pieces.columns == whole.columns
    assert pieces.numbers == whole.numbers
    assert pieces.lines.tolist() == whole.lines.tolist()
    assert (pieces.bad_rows, pieces.header) == (whole.bad_rows, whole.header)

import io
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from recon.files.formats.json_lines import json_parts
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.parquet_file import parquet_parts
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import RawTable, joined
from recon.files.formats.xlsx_book import xlsx_parts
from recon.files.formats.xml_records import xml_parts

WANTED = frozenset({"a", "b"})
ROWS = [("x1", Decimal("1.50")), ("x2", Decimal("2.00")), ("x3", Decimal("3.25")), ("x4", None)]


def workbook() -> bytes:
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


def parquet() -> bytes:
    """A table in row groups of three."""
    keys, amounts = zip(*ROWS, strict=True)
    out = pa.BufferOutputStream()
    table = pa.table({"a": keys, "b": pa.array(amounts, pa.decimal128(9, 2)), "c": keys})
    pq.write_table(table, out, row_group_size=3)
    return out.getvalue().to_pybytes()


LINES = b'\xef\xbb\xbf{"a": "x1", "b": 1.50}\r\n\n{"c": "\xc3\xa4"}\n[1]\n{"a": "x4", "b": "2"}'
XML = b"<f>\n<o><a>x1</a></o>\n<o><a>x2</a><b>2</b></o><o/>\n<o><c>1</c></o></f>"
CASES: dict[str, tuple[bytes, Callable[[FileBytes, int], Iterator[RawTable]]]] = {
    "o.xlsx": (workbook(), lambda file, most: xlsx_parts(file, wanted=WANTED, rows_at_once=most)),
    "o.parquet": (
        parquet(),
        lambda file, most: parquet_parts(file, wanted=WANTED, rows_at_once=most),
    ),
    "o.xml": (
        XML,
        lambda file, most: xml_parts(file, wanted=WANTED, record="", rows_at_once=most),
    ),
    "o.jsonl": (
        LINES,
        lambda file, most: json_parts(
            [file.content[at : at + most] for at in range(0, len(file.content), most)],
            name=file.path.name,
            wanted=WANTED,
            rows_at_once=most,
        ),
    ),
}


@pytest.mark.parametrize("most", [1, 2, 3, 100])
@pytest.mark.parametrize("name", CASES)
def test_parts_together_are_the_file(name: str, most: int) -> None:
    """Cells, line numbers, bad rows and which cells were numbers do not depend on the parts."""
    content, parts_of = CASES[name]
    file = FileBytes(Path(name), content, "")
    whole = raw_of(file, wanted=WANTED)
    parts = list(parts_of(file, most))
    assert max(part.rows_read for part in parts) <= most
    together = joined(parts, sha256="", size_bytes=len(content))
    assert together.columns == whole.columns
    assert together.numbers == whole.numbers
    assert together.lines.tolist() == whole.lines.tolist()
    assert (together.bad_rows, together.header) == (whole.bad_rows, whole.header)


def test_rows_wait_until_a_needed_name_was_seen() -> None:
    """Whether a column is missing is known behind the last record, not behind the first part."""
    lines = [b'{"a": "1"}\n'] * 5 + [b'{"b": "2"}\n'] * 3
    found = list(json_parts(lines, name="o", wanted=WANTED, needed=("a", "b"), rows_at_once=2))
    assert [part.rows_read for part in found] == [6, 2, 0]
    assert all(part.header == ("a", "b") for part in found)

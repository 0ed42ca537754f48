import io
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of

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
CASES = {"o.xlsx": workbook(), "o.parquet": parquet(), "o.xml": XML, "o.jsonl": LINES}


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_rows_that_become_columns_in_pieces_are_the_file(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells, line numbers, bad rows and which cells were numbers do not depend on the pieces."""
    file = FileBytes(Path(name), CASES[name], "")
    whole = raw_of(file, wanted=WANTED)
    for module in ("raw_table", "parquet_file"):
        monkeypatch.setattr(f"recon.files.formats.{module}.ROWS_AT_ONCE", most)
    pieces = raw_of(file, wanted=WANTED)
    assert pieces.columns == whole.columns
    assert pieces.numbers == whole.numbers
    assert pieces.lines.tolist() == whole.lines.tolist()
    assert (pieces.bad_rows, pieces.header) == (whole.bad_rows, whole.header)

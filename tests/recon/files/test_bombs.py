"""Small files that stand for gigabytes: each is refused by name, in little memory."""

import io
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.config.rules import Rules
from recon.files.formats.format_limits import REJECTED_CHARACTERS_MAX, REJECTED_ROWS_MAX
from recon.files.formats.raw_table import BadRow, Rows
from recon.files.reader import plain_table
from recon.files.reader_process import MIB, SMALL_BYTES, Ending, file_reader
from recon.files.typing.table_schema import schema_of
from recon.model.errors import SourceUnreadableError
from recon.model.terms import SourceKind
from tests.recon.files.kind_cases import SPACE, book_of

PEAK_MIB_MAX = 512
"""Of the process that reads one of these files, with all that it had before."""
MILLISECONDS_MAX = 20_000
NAMES = ("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at")
HEADER = ",".join(NAMES) + "\n"


def book(rows, *, strings=""):
    """A workbook of these rows and shared strings."""
    sheet = f'<worksheet xmlns="{SPACE}"><sheetData>{rows}</sheetData></worksheet>'
    return book_of(sheet, strings=strings)


def cells(number, inside):
    """A row of as many equal cells as there are columns."""
    row = "".join(f'<c r="{chr(65 + at)}{number}" {inside}</c>' for at in range(len(NAMES)))
    return f'<row r="{number}">{row}</row>'


def header():
    """A first row of the names."""
    row = "".join(
        f'<c r="{chr(65 + at)}1" t="inlineStr"><is><t>{name}</t></is></c>'
        for at, name in enumerate(NAMES)
    )
    return f'<row r="1">{row}</row>'


def repeated_string():
    """One shared string of 30,000 characters in 2,800 cells: 84 MB of text."""
    rows = "".join(cells(n, 't="s"><v>0</v>') for n in range(2, 402))
    return book(header() + rows, strings=f"<si><t>{'x' * 30_000}</t></si>")


def far_off_cell():
    """A cell far below the header."""
    far = '<row r="1048576"><c r="Q1048576"><v>1</v></c></row>'
    return book(header() + far)


def one_cell_in_parquet(characters, *, rows):
    """Rows whose seven cells are all the same one: up to 22 GB of text."""
    places = pa.array([0] * rows, pa.int32())
    one = pa.DictionaryArray.from_arrays(places, pa.array(["x" * characters]))
    out = io.BytesIO()
    pq.write_table(pa.table(dict.fromkeys(NAMES, one)), out, compression="zstd")
    return out.getvalue()


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "repeated.xlsx": (repeated_string, "of more than 67108864 characters in its cells"),
    "far.xlsx": (far_off_cell, "delete the far-off cells"),
    "word.parquet": (
        lambda: one_cell_in_parquet(32_000, rows=100_000),
        "bytes or more; at most 134217728 are read",
    ),
    "cell.parquet": (
        lambda: one_cell_in_parquet(1_000_000, rows=2_000),
        "holds a cell of 1000000 characters",
    ),
    "short.csv": ((HEADER + "x\n" * 400_000).encode, "more rows that cannot be read"),
    "blank.csv": ((HEADER + ",,,,,,\n" * 150_000).encode, "more rows that cannot be"),
    "lines.jsonl": (lambda: b'{"order_no": "A"\n' * 110_000, "more rows that cannot be read"),
}


class Refused(NamedTuple):
    """What was said of a file, and what its reader took."""

    told: str
    took: Ending


@pytest.fixture(scope="module")
def read_apart(tmp_path_factory):
    """Each file, read in the reading process as a night reads it."""
    folder = tmp_path_factory.mktemp("bombs")
    refused = {}
    for name, (make, _) in BOMBS.items():
        path = folder / name
        path.write_bytes(make())
        assert path.stat().st_size < SMALL_BYTES
        with pytest.raises(SourceUnreadableError) as raised:
            plain_table(path, schema=schema_of(SourceKind.ORDERS), rules=Rules())
        took = file_reader().ended
        assert took is not None
        refused[name] = Refused(str(raised.value), took)
    return refused


@pytest.mark.parametrize("name", BOMBS)
def test_every_bomb_is_refused_by_its_name_in_little_memory_and_time(read_apart, name):
    told, took = read_apart[name]

    assert told.startswith(name)
    assert BOMBS[name][1] in told
    assert took.exit == 0
    assert took.peak_bytes <= PEAK_MIB_MAX * MIB
    assert took.milliseconds <= MILLISECONDS_MAX


def test_as_many_bad_rows_as_are_told_are_told():
    rejected = Rows("o.csv", header=(), columns_read=())
    for line in range(REJECTED_ROWS_MAX):
        rejected.take_bad(BadRow(line, "has 1 cells", "x"))
    with pytest.raises(SourceUnreadableError, match="up to line 7, which has 1 cells; check"):
        rejected.take_bad(BadRow(7, "has 1 cells", "x"))
    rejected = Rows("o.csv", header=(), columns_read=())
    rejected.take_bad(BadRow(2, "has 1 cells", "x" * REJECTED_CHARACTERS_MAX))
    with pytest.raises(SourceUnreadableError, match="up to line 3, which"):
        rejected.take_bad(BadRow(3, "has 1 cells", "x"))

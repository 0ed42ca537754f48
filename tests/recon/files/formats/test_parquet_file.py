from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_reader import raw_of
from recon.model.errors import SourceUnreadableError
from recon.model.terms import SourceKind
from tests.recon.files.whole_read import read_table


def write(path, columns):
    pq.write_table(pa.table(columns), path)
    return path


def read(path):
    return raw_of(read_bytes(path), columns_read=frozenset("ab"))


def test_exact_types_become_text(tmp_path):
    moment = datetime(2026, 1, 5, 10, 30, tzinfo=UTC)
    kinds: dict[str, tuple[Any, list[str]]] = {
        "text": (pa.array([" x", None]), ["x", ""]),
        "words": (pa.array(["x", "x"]).dictionary_encode(), ["x", "x"]),
        "whole": (pa.array([7, None]), ["7", ""]),
        "decimal": (pa.array([Decimal("10.50"), None], pa.decimal128(12, 2)), ["10.50", ""]),
        "day": (pa.array([date(2026, 1, 5), None]), ["2026-01-05", ""]),
        "instant": (pa.array([moment, None]), ["2026-01-05 10:30:00.000000Z", ""]),
        "nothing": (pa.array([None, None]), ["", ""]),
    }
    for name, (column, text) in kinds.items():
        table = read(write(tmp_path / f"{name}.parquet", {"a": column, "b": pa.array(["x", "y"])}))
        assert table.columns["a"].to_pylist() == text, name
        assert table.lines.tolist() == [2, 3]


REFUSED_COLUMNS = {
    "binary fractions": (pa.array([1.5]), "binary fractions in column 'a'"),
    "lists": (pa.array([[1]]), "holds list"),
    "bytes": (pa.array([b"x"]), "holds binary in column 'a'"),
    "truths": (pa.array([True]), "holds bool in column 'a'"),
    "structs": (pa.array([{"x": 1}]), "holds struct"),
    "nanoseconds": (pa.array([1], pa.timestamp("ns")), "is a damaged Parquet file|lose data"),
}


@pytest.mark.parametrize(("column", "told"), REFUSED_COLUMNS.values(), ids=REFUSED_COLUMNS)
def test_inexact_columns_are_refused(tmp_path, column, told):
    path = write(tmp_path / "orders.parquet", {"a": column, "b": pa.array(["x"])})
    with pytest.raises(SourceUnreadableError, match=told):
        read(path)


def test_a_column_that_nobody_wants_may_be_of_any_type(tmp_path):
    path = write(tmp_path / "orders.parquet", {"a": pa.array(["x"]), "weight": pa.array([1.5])})
    assert read(path).header == ("a", "weight")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a,b\n1,2\n", "is not a Parquet file"),
        (b"PAR1 cut", "is not a Parquet file, or was cut"),
        (b"PARE....PARE", "is an encrypted Parquet file"),
        (b"PAR1" + b"\xff" * 60 + b"PAR1", "is a damaged Parquet file"),
        (b"", "is empty"),
    ],
)
def test_what_is_not_parquet_is_refused(tmp_path, content, told):
    path = tmp_path / "orders.parquet"
    path.write_bytes(content)
    with pytest.raises(SourceUnreadableError, match=told):
        read(path)


def test_a_damaged_page_is_noticed(tmp_path):
    path = tmp_path / "orders.parquet"
    table = pa.table({"a": [f"order-{n}" for n in range(200)], "b": ["x"] * 200})
    pq.write_table(table, path, compression="none", write_page_checksum=True)
    content = bytearray(path.read_bytes())
    place = content.find(b"order-50")
    content[place : place + 8] = b"order-51"
    path.write_bytes(bytes(content))
    with pytest.raises(SourceUnreadableError, match="is a damaged Parquet file"):
        read(path)


def test_sizes_are_bounded(tmp_path, monkeypatch):
    path = write(tmp_path / "orders.parquet", {"a": ["x"] * 100, "b": ["y"] * 100})
    monkeypatch.setattr("recon.files.formats.parquet_file.PARQUET_BYTES_MAX", 10)
    with pytest.raises(SourceUnreadableError, match="at most 10 are read"):
        read(path)
    monkeypatch.undo()
    monkeypatch.setattr("recon.files.formats.raw_table.ROWS_MAX", 10)
    with pytest.raises(SourceUnreadableError, match="more than 10 rows"):
        read(path)


def test_amounts_of_decimals_are_exact_whatever_their_scale(tmp_path):
    row = {
        "merchant_id": ["100042"] * 3,
        "account_id": ["100042001"] * 3,
        "order_no": ["A-1", "A-2", "A-3"],
        "currency": ["EUR", "KWD", "EUR"],
        "status": ["paid"] * 3,
        "ordered_at": [datetime(2026, 1, 5, tzinfo=UTC)] * 3,
    }
    values = [Decimal("10.5000"), Decimal("1.2340"), Decimal("0.0010")]
    path = write(
        tmp_path / "orders.parquet", {**row, "amount": pa.array(values, pa.decimal128(18, 4))}
    )
    table = read_table(path, kind=SourceKind.ORDERS, rules=Rules())
    assert table.frame["amount"].tolist() == [1050, 1234]
    assert [(reject.line, reject.column) for reject in table.rejects] == [(4, "amount")]
    path = write(tmp_path / "whole.parquet", {**row, "amount": pa.array([10, 10, 10])})
    assert read_table(path, kind=SourceKind.ORDERS, rules=Rules()).frame.empty


def test_a_cell_longer_than_a_spreadsheet_holds_is_refused(tmp_path):
    table = pa.table({"a": ["x" * 32_767, "y" * 32_768], "b": ["1", "2"]})
    pq.write_table(table.slice(0, 1), tmp_path / "fits.parquet")
    assert read(tmp_path / "fits.parquet").rows_read == 1
    pq.write_table(table, tmp_path / "o.parquet")
    with pytest.raises(SourceUnreadableError, match="a cell of 32768 characters in column 'a'"):
        read(tmp_path / "o.parquet")

import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.archive.rows_file import Ordered, ordered_rows, read_rows, write_ordered
from recon.archive.schemas import ANSWER_SCHEMAS, MINOR_UNITS, SCHEMAS, FileSchema
from recon.archive.step_folder import Rows, content_digest
from recon.model.errors import ArchiveBrokenError, Defect
from tests.recon.archive.planted import AT, orders
from tests.recon.steps.large_nights import in_groups_of

MANY_ROWS = 20_000
BYTES_A_ROW_MAX = 4
"""Of such rows; as text they are twenty times as long."""


def file_of(table: pa.Table, *, schema: FileSchema) -> bytes:
    file = io.BytesIO()
    write_ordered(file, ordered_rows(table, schema=schema), schema=schema)
    return file.getvalue()


def test_rows_come_back_as_they_were_sorted_by_their_key() -> None:
    table = orders(4200, 100, 7)
    turned = table.take(pa.array([2, 0, 1]))
    content = file_of(turned, schema=SCHEMAS["orders"])

    assert read_rows(content, name="orders.parquet").equals(table)
    assert Rows.of(turned, schema=SCHEMAS["orders"]).content == (
        Rows.of(table, schema=SCHEMAS["orders"]).content
    )
    read = pq.read_table(io.BytesIO(content))
    seen = read.select(["order_no", "amount", "ordered_at"]).to_pylist()
    assert [tuple(row.values()) for row in seen] == [
        ("W0", 4200, AT),
        ("W1", 100, AT),
        ("W2", 7, AT),
    ]


def test_what_changes_little_from_row_to_row_costs_little() -> None:
    """Sorted order numbers and amounts are written by their changes, repeated ids once."""
    table = orders(*[0] * MANY_ROWS)
    amounts = pa.array(range(MANY_ROWS), pa.int64())
    place = table.schema.get_field_index("amount")
    table = table.set_column(place, table.schema.field(place), amounts)
    ids = pa.array([f"{number // 4:016x}" for number in range(MANY_ROWS)])
    place = table.schema.get_field_index("transaction_id")
    rows = table.set_column(place, table.schema.field(place), ids)
    content = file_of(rows, schema=SCHEMAS["orders"])
    pages = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0)
    encodings = {
        pages.column(at).path_in_schema: pages.column(at).encodings
        for at in range(pages.num_columns)
    }

    assert "DELTA_BYTE_ARRAY" in encodings["order_no"]
    assert "DELTA_BINARY_PACKED" in encodings["amount"]
    assert "RLE_DICTIONARY" in encodings["currency"]
    assert len(content) < BYTES_A_ROW_MAX * len(rows)
    assert read_rows(content, name="orders.parquet").num_rows == len(rows)


def test_a_schema_of_a_later_version_is_refused_by_name() -> None:
    later = replace(SCHEMAS["orders"], version=2)

    with pytest.raises(ArchiveBrokenError, match=r"orders\.parquet .* orders/2, .* knows orders/1"):
        read_rows(file_of(orders(1), schema=later), name="orders.parquet")


def test_a_file_without_a_schema_of_ours_and_one_cut_short_are_refused() -> None:
    """A Parquet file of somebody else is none of a night; half a file is none at all."""
    strange = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), strange)
    with pytest.raises(ArchiveBrokenError, match="nobody"):
        read_rows(strange.getvalue(), name="orders.parquet")

    content = file_of(orders(1, 2), schema=SCHEMAS["orders"])
    with pytest.raises(ArchiveBrokenError, match="no whole Parquet file"):
        read_rows(content[: len(content) // 2], name="orders.parquet")


def test_rows_with_other_columns_than_their_schema_are_a_defect() -> None:
    with pytest.raises(Defect, match="orders"):
        ordered_rows(orders(1).drop_columns(["amount"]), schema=SCHEMAS["orders"])


def test_rows_of_many_groups_make_the_file_that_one_copy_in_order_makes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = SCHEMAS["orders"]
    table = orders(*range(MANY_ROWS + 1))
    turned = table.take(pa.array(range(MANY_ROWS, -1, -1)))
    in_groups_of(3_000, patch=monkeypatch)
    whole, content = file_of(table, schema=schema), Rows.of(table, schema=schema).content
    rows, file = Rows.of(turned, schema=schema), io.BytesIO()
    write_ordered(file, rows.rows, schema=schema)

    assert isinstance(rows.rows, Ordered)
    assert rows.rows.order is not None
    assert rows.content == content
    assert file.getvalue() == whole
    assert pq.ParquetFile(file).num_row_groups > 1


def digest_of(table: pa.Table) -> str:
    return content_digest(Ordered(table))


def test_the_digest_is_of_what_the_rows_say_and_of_nothing_else() -> None:
    words = pa.array(["EUR", "GBP", "EUR"])
    plain = pa.table({"currency": words, "amount": pa.array([1, 2, None])})
    other_order = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["GBP", "EUR"]))
    amounts = pa.array([9, 1, 2, None, 9])[1:4]
    stored_otherwise = pa.table(
        {
            "currency": pa.chunked_array([other_order[:1], other_order[1:]]),
            "amount": pa.chunked_array([amounts[:2], amounts[2:]]),
        }
    )

    assert digest_of(stored_otherwise) == digest_of(plain)


@pytest.mark.parametrize(
    "changed",
    [
        {"a": pa.array(["x", "yz"]), "n": pa.array([1, 0])},
        {"a": pa.array(["xy", "z"]), "n": pa.array([1, None])},
        {"a": pa.array(["xy", None]), "n": pa.array([1, 0])},
        {"a": pa.array(["xy", "z"]), "m": pa.array([1, 0])},
        {"a": pa.array(["z", "xy"]), "n": pa.array([0, 1])},
    ],
)
def test_each_difference_of_what_is_said_is_another_digest(changed: dict[str, pa.Array]) -> None:
    assert digest_of(pa.table(changed)) != digest_of(
        pa.table({"a": pa.array(["xy", "z"]), "n": pa.array([1, 0])})
    )


def test_a_fraction_has_no_place_in_a_night() -> None:
    """Money is never a float, not in a file either."""
    with pytest.raises(Defect, match="double"):
        digest_of(pa.table({"amount": pa.array([1.5])}))


def test_a_digest_is_what_it_was_when_the_night_was_sealed() -> None:
    """Sealed nights are held against it for years: every kind of column, blanks or none."""
    moment = pa.scalar(1_769_000_000_000_000, pa.timestamp("us", tz="UTC"))
    columns = {
        "text": pa.array(["ä", "", None]),
        "full": pa.array(["x", "y", "z"], pa.large_string()),
        "units": pa.array([-5, None, 2**60]),
        "small": pa.array([1, 2, 3], pa.int16()),
        "is_open": pa.array([True, None, False]),
        "day": pa.array([20_000, None, 1], pa.date32()),
        "moment": pa.array([moment.value, None, 0], moment.type),
    }

    assert digest_of(pa.table(columns)) == (
        "a5bc4072cef79e2748e2d111fe7bbb3b044fb58fdeb19c5b345bba923d60158e"
    )


def test_a_digest_of_no_row_is_what_it_was_and_of_its_columns() -> None:
    """A file without a row says which columns it has, and nights were sealed with such files."""
    none = pa.table({"currency": pa.array([], pa.string()), "amount": pa.array([], pa.int64())})
    sealed = "93d1baeb81f2f618b09ea1ccaa4fd2ecb704347edbdcd00a7dde7858351fae81"

    assert digest_of(none) == digest_of(none.slice(0, 0)) == sealed
    assert digest_of(none.rename_columns(["currency", "units"])) != sealed


FOLDERS = {"inputs", "compared", "results", "proof", "answers"}
EVERY = {**SCHEMAS, **ANSWER_SCHEMAS}


@pytest.mark.parametrize("name", EVERY)
def test_a_file_says_what_each_column_is(name: str) -> None:
    schema = EVERY[name]
    assert schema.folder in FOLDERS
    assert schema.path == f"{schema.folder}/{name}.parquet"
    assert schema.label == f"{name}/{schema.version}".encode()
    assert schema.key
    assert len({*schema.key}) == len(schema.key)
    assert {*schema.key} <= {*schema.columns.names}
    for field in schema.columns:
        told = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        assert told["doc"], field.name
        if told.get("unit") == MINOR_UNITS:
            assert field.type == pa.int64(), field.name
        assert not pa.types.is_floating(field.type), field.name

import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.archive.rows_file import ordered_rows, read_rows, write_ordered
from recon.archive.schemas import ANSWER_SCHEMAS, MINOR_UNITS, SCHEMAS
from recon.archive.step_folder import Rows
from recon.model.errors import ArchiveBrokenError
from tests.recon.archive.planted import AT, orders
from tests.recon.steps.large_nights import in_groups_of

MANY_ROWS = 20_000


def file_of(table, *, schema):
    file = io.BytesIO()
    write_ordered(file, ordered_rows(table, schema=schema), schema=schema)
    return file.getvalue()


def test_rows_come_back_as_they_were_sorted_by_their_key():
    table = orders(4200, 100, 7)
    turned = table.take(pa.array([2, 0, 1]))
    content = file_of(turned, schema=SCHEMAS["orders"])

    assert read_rows(content, name="orders.parquet").equals(table)
    assert content == file_of(table, schema=SCHEMAS["orders"])
    read = pq.read_table(io.BytesIO(content))
    seen = read.select(["order_no", "amount", "ordered_at"]).to_pylist()
    assert [tuple(row.values()) for row in seen] == [
        ("W0", 4200, AT),
        ("W1", 100, AT),
        ("W2", 7, AT),
    ]


def test_a_schema_of_a_later_version_is_refused_by_name():
    later = replace(SCHEMAS["orders"], version=2)

    with pytest.raises(ArchiveBrokenError, match=r"orders\.parquet .* orders/2, .* knows orders/1"):
        read_rows(file_of(orders(1), schema=later), name="orders.parquet")


def test_a_file_without_a_schema_of_ours_and_one_cut_short_are_refused():
    """A Parquet file of somebody else is none of a night; half a file is none at all."""
    strange = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), strange)
    with pytest.raises(ArchiveBrokenError, match="nobody"):
        read_rows(strange.getvalue(), name="orders.parquet")

    content = file_of(orders(1, 2), schema=SCHEMAS["orders"])
    with pytest.raises(ArchiveBrokenError, match="no whole Parquet file"):
        read_rows(content[: len(content) // 2], name="orders.parquet")


def test_rows_of_many_groups_make_the_file_that_one_copy_in_order_makes(monkeypatch):
    schema = SCHEMAS["orders"]
    table = orders(*range(MANY_ROWS + 1))
    turned = table.take(pa.array(range(MANY_ROWS, -1, -1)))
    in_groups_of(3_000, patch=monkeypatch)
    whole = file_of(table, schema=schema)
    rows, file = Rows.of(turned, schema=schema), io.BytesIO()
    write_ordered(file, rows.rows, schema=schema)

    assert file.getvalue() == whole
    assert pq.ParquetFile(file).num_row_groups > 1


def test_the_bytes_are_of_what_the_rows_say_and_of_nothing_else():
    """By them a step that is written again is known: chunks and numbers of words do not show."""
    schema, table = SCHEMAS["orders"], orders(4200, 100, 7)
    location = table.schema.get_field_index("currency")
    numbers = pa.array([1, 1, 1], pa.int32())
    words = pa.DictionaryArray.from_arrays(numbers, pa.array(["GBP", "EUR"]))
    otherwise = table.set_column(location, table.schema.field(location), words)
    chunks = pa.concat_tables([otherwise.slice(0, 1), otherwise.slice(1)])
    less = table.set_column(
        table.schema.get_field_index("line"), table.schema.field("line"), pa.array([2, 3, 5])
    )

    assert file_of(chunks, schema=schema) == file_of(table, schema=schema)
    assert file_of(less, schema=schema) != file_of(table, schema=schema)


FOLDERS = {"inputs", "compared", "results", "proof", "answers"}
EVERY = {**SCHEMAS, **ANSWER_SCHEMAS}


@pytest.mark.parametrize("name", EVERY)
def test_a_file_says_what_each_column_is(name):
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

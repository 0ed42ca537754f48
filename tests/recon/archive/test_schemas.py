"""The files of a night's folder are described once, column by column."""

import pyarrow as pa
import pytest

from recon.archive.schemas import ANSWER_SCHEMAS, MINOR_UNITS, SCHEMAS, FileSchema

FOLDERS = {"inputs", "compared", "results", "proof"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_says_what_each_column_is(name: str) -> None:
    """Each column has words for people, and money has its unit and no fraction."""
    schema = SCHEMAS[name]
    assert schema.folder in FOLDERS
    assert schema.path == f"{schema.folder}/{name}.parquet"
    assert schema.label == f"{name}/{schema.version}".encode()
    for field in schema.columns:
        told = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        assert told["doc"], field.name
        if told.get("unit") == MINOR_UNITS:
            assert field.type == pa.int64(), field.name
        assert not pa.types.is_floating(field.type), field.name


@pytest.mark.parametrize("name", SCHEMAS)
def test_rows_are_sorted_by_columns_that_the_file_has(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema.key
    assert len({*schema.key}) == len(schema.key)
    assert {*schema.key} <= {*schema.columns.names}


@pytest.mark.parametrize("schema", ANSWER_SCHEMAS.values(), ids=ANSWER_SCHEMAS)
def test_files_of_answers_are_described_as_well(schema: FileSchema) -> None:
    assert all((field.metadata or {}).get(b"doc") for field in schema.columns)
    assert {*schema.key} <= {*schema.columns.names}

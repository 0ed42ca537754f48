"""Rows of texts and numbers as the file of a schema has them."""

import pyarrow as pa


def coded(table: pa.Table, *, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of a schema, its words by number."""
    columns = [
        table[field.name].cast(pa.string()).dictionary_encode().cast(field.type)
        if pa.types.is_dictionary(field.type)
        else table[field.name]
        for field in schema
    ]
    return pa.table(columns, schema=schema).combine_chunks()

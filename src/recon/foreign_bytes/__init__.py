"""The only place that reads bytes of foreign files: hardened, bounded, strict.

`opening` takes the bytes, `csv_text`, `xlsx_book` and `parquet_file` make text columns of them,
`typed_table` makes the frames of `recon.matching.sources` and names every row it cannot read.
"""

from recon.foreign_bytes.table_schema import ORDER_FILE, Column, TableSchema, schema_of
from recon.foreign_bytes.typed_table import Table, read_table, type_table

__all__ = [
    "ORDER_FILE",
    "Column",
    "Table",
    "TableSchema",
    "read_table",
    "schema_of",
    "type_table",
]

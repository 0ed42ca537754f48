"""Read a file of any supported format: the name declares the format and the bytes must match.

In a file of corrected rows the apostrophe that `defused` put before a formula is removed: people
edit such a file in a spreadsheet, which must not execute its cells.
"""

from collections.abc import Container
from dataclasses import replace

import pyarrow.compute as pc

from recon.config.file_layouts import STANDARD, FileLayout
from recon.files.formats.csv_text import csv_table
from recon.files.formats.json_text import json_table
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.parquet_file import MAGIC as PARQUET_MAGIC
from recon.files.formats.parquet_file import parquet_table
from recon.files.formats.raw_table import RawTable, refuse
from recon.files.formats.xlsx_book import OLE_MAGIC, ZIP_MAGIC, xlsx_table
from recon.files.formats.xml_records import xml_table
from recon.privacy.displayed_text import BEGINNING, FORMULA

REPORTED_COLUMNS = ("rejected_line", "rejected_column", "rejected_reason", "rejected_text")

_UNDO = f"{BEGINNING}'{FORMULA}"


def as_before(table: RawTable) -> RawTable:
    """Return the table without the apostrophes of `defused`, if it is a file of corrected rows."""
    if not set(REPORTED_COLUMNS).issubset(table.header):
        return table
    columns = {
        name: pc.replace_substring_regex(cells, pattern=_UNDO, replacement=r"\1\2\3")
        for name, cells in table.columns.items()
    }
    return replace(table, columns=columns)


FORMATS = {
    ".csv": "csv",
    ".xlsx": "xlsx",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".xml": "xml",
}
"""File name suffix -> format."""
SUFFIXES = tuple(FORMATS)
_TEXT = {"csv": "CSV", "jsonl": "JSON lines", "xml": "XML"}
_NOT_TEXT = {
    ZIP_MAGIC: "a zip archive, perhaps an .xlsx workbook",
    PARQUET_MAGIC: "a Parquet file",
    OLE_MAGIC: "an old or encrypted Office file",
    b"\x1f\x8b": "gzip; unpack it first",
    b"%PDF": "a PDF",
    b"BZh": "bzip2; unpack it first",
    b"\x28\xb5\x2f\xfd": "zstd; unpack it first",
}


def raw_of(
    file: FileBytes, *, columns_read: Container[str], layout: FileLayout = STANDARD
) -> RawTable:
    """Read the wanted columns of a CSV, XLSX, Parquet, JSON lines or XML file as text.

    Raises:
        SourceUnreadableError: the content is not what the name or the layout declares.
    """
    path = file.path
    kind = layout.format or FORMATS.get(path.suffix.lower(), "")
    if not kind:
        refuse(path.name, f"does not end in {', '.join(SUFFIXES)}, so its format is not known")
    if not file.content:
        refuse(path.name, "is empty: it has not even a header")
    for magic, what in _NOT_TEXT.items() if kind in _TEXT else ():
        if file.content.startswith(magic):
            refuse(path.name, f"is not {_TEXT[kind]} but {what} (its first bytes say so)")
    match kind:
        case "csv":
            table = csv_table(file, columns_read=columns_read, layout=layout)
        case "jsonl":
            table = json_table(file, columns_read=columns_read)
        case "xml":
            table = xml_table(file, columns_read=columns_read, record=layout.record)
        case "xlsx":
            table = xlsx_table(file, columns_read=columns_read, layout=layout)
        case _:
            table = parquet_table(file, columns_read=columns_read)
    return replace(as_before(table), sha256=file.sha256, size_bytes=len(file.content))

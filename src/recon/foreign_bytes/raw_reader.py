"""One door for all formats: the name says what a file should be, its bytes must agree."""

from pathlib import Path

from recon.foreign_bytes.csv_text import read_csv
from recon.foreign_bytes.opening import FileBytes, read_bytes
from recon.foreign_bytes.parquet_file import MAGIC as PARQUET_MAGIC
from recon.foreign_bytes.parquet_file import read_parquet
from recon.foreign_bytes.raw_table import RawTable, refuse
from recon.foreign_bytes.xlsx_archive import OLE_MAGIC, ZIP_MAGIC
from recon.foreign_bytes.xlsx_book import read_xlsx

READERS = {".csv": read_csv, ".xlsx": read_xlsx, ".parquet": read_parquet}
SUFFIXES = tuple(READERS)
_NOT_TEXT = {
    ZIP_MAGIC: "a zip archive, perhaps an .xlsx workbook",
    PARQUET_MAGIC: "a Parquet file",
    OLE_MAGIC: "an old or encrypted Office file",
    b"\x1f\x8b": "gzip; unpack it first",
    b"%PDF": "a PDF",
    b"BZh": "bzip2; unpack it first",
    b"\x28\xb5\x2f\xfd": "zstd; unpack it first",
}


def read_raw(path: Path, *, wanted: frozenset[str]) -> RawTable:
    """The wanted columns of a CSV, XLSX or Parquet file, as text.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not what its name says.
    """
    reader = READERS.get(path.suffix.lower())
    file = read_bytes(path)
    if reader is None:
        refuse(path.name, f"does not end in {', '.join(SUFFIXES)}, so its format is not known")
    if not file.content:
        refuse(path.name, "is empty: it has not even a header")
    if reader is read_csv:
        _refuse_not_text(file)
    return reader(file, wanted=wanted)


def _refuse_not_text(file: FileBytes) -> None:
    for magic, what in _NOT_TEXT.items():
        if file.content.startswith(magic):
            refuse(file.path.name, f"is not CSV but {what} (its first bytes say so)")

"""One door for all formats: the name says what a file should be, its bytes must agree."""

from collections.abc import Callable, Container, Iterator
from itertools import chain
from pathlib import Path

from recon.file_layouts import STANDARD, FileLayout
from recon.foreign_bytes.csv_text import PART_BYTES, csv_parts, read_csv
from recon.foreign_bytes.json_lines import read_json_lines
from recon.foreign_bytes.opening import FileBytes, Seen, read_bytes, read_pieces
from recon.foreign_bytes.parquet_file import MAGIC as PARQUET_MAGIC
from recon.foreign_bytes.parquet_file import read_parquet
from recon.foreign_bytes.raw_table import RawTable, refuse
from recon.foreign_bytes.xlsx_archive import OLE_MAGIC, ZIP_MAGIC
from recon.foreign_bytes.xlsx_book import read_xlsx
from recon.foreign_bytes.xml_records import read_xml

FORMATS = {
    ".csv": "csv",
    ".xlsx": "xlsx",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".xml": "xml",
}
"""Ending of a name -> format."""
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


def read_raw(path: Path, *, wanted: Container[str], layout: FileLayout = STANDARD) -> RawTable:
    """The wanted columns of a CSV, XLSX, Parquet, JSON lines or XML file, as text.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not what its name or its layout says.
    """
    file = read_bytes(path)
    return raw_of(file, wanted=wanted, layout=layout)


def raw_of(file: FileBytes, *, wanted: Container[str], layout: FileLayout = STANDARD) -> RawTable:
    """As `read_raw`, from bytes that were read before.

    Raises:
        SourceUnreadableError: they are not what the name or the layout says.
    """
    kind = _kind_of(file.path, layout=layout)
    _refuse_disguised(file.path, file.content, kind=kind)
    readers: dict[str, Callable[[], RawTable]] = {
        "csv": lambda: read_csv(file, wanted=wanted, layout=layout),
        "xlsx": lambda: read_xlsx(file, wanted=wanted),
        "parquet": lambda: read_parquet(file, wanted=wanted),
        "jsonl": lambda: read_json_lines(file, wanted=wanted),
        "xml": lambda: read_xml(file, wanted=wanted, record=layout.record),
    }
    return readers[kind]()


def raw_parts(
    path: Path, *, wanted: Container[str], layout: FileLayout, seen: Seen
) -> Iterator[RawTable]:
    """As `read_raw`, CSV in parts of bounded size; `seen` holds size and hash behind the last one.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not what its name or its layout says, or it changed meanwhile.
    """
    kind = _kind_of(path, layout=layout)
    pieces = read_pieces(path, seen=seen, piece_bytes=PART_BYTES)
    if kind != "csv":
        content = b"".join(pieces)
        yield raw_of(FileBytes(path, content, seen.sha256), wanted=wanted, layout=layout)
        return
    first = next(pieces, b"")
    _refuse_disguised(path, first, kind=kind)
    yield from csv_parts(chain([first], pieces), name=path.name, wanted=wanted, layout=layout)


def _kind_of(path: Path, *, layout: FileLayout) -> str:
    kind = layout.format or FORMATS.get(path.suffix.lower(), "")
    if not kind:
        refuse(path.name, f"does not end in {', '.join(SUFFIXES)}, so its format is not known")
    return kind


def _refuse_disguised(path: Path, content: bytes, *, kind: str) -> None:
    if not content:
        refuse(path.name, "is empty: it has not even a header")
    if kind not in _TEXT:
        return
    for magic, what in _NOT_TEXT.items():
        if content.startswith(magic):
            refuse(path.name, f"is not {_TEXT[kind]} but {what} (its first bytes say so)")

"""One door for all formats: the name says what a file should be, its bytes must agree."""

from collections.abc import Collection, Container, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from recon.config.file_layouts import STANDARD, FileLayout
from recon.files.formats.csv_text import PART_BYTES, csv_parts
from recon.files.formats.format_limits import ROWS_MAX
from recon.files.formats.json_lines import json_parts
from recon.files.formats.mended_cells import as_before
from recon.files.formats.named_bytes import (
    FileBytes,
    FilePieces,
    ReadSoFar,
    read_bytes,
    read_pieces,
)
from recon.files.formats.parquet_file import MAGIC as PARQUET_MAGIC
from recon.files.formats.parquet_file import parquet_parts
from recon.files.formats.raw_table import RawTable, joined, refuse
from recon.files.formats.record_rows import ROWS_AT_ONCE
from recon.files.formats.xlsx_archive import OLE_MAGIC, ZIP_MAGIC
from recon.files.formats.xlsx_book import xlsx_parts
from recon.files.formats.xml_records import xml_parts

FORMATS = {
    ".csv": "csv",
    ".xlsx": "xlsx",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".xml": "xml",
}
"""Ending of a name -> format."""
SUFFIXES = tuple(FORMATS)
_READ_IN_PIECES = frozenset({"csv", "jsonl"})
"""Of these not even the bytes are ever held whole."""
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
    pieces = (
        file.content[start : start + PART_BYTES]
        for start in range(0, len(file.content), PART_BYTES)
    )
    parts = _parts(file, pieces, wish=_Wish(wanted, rows_at_once=ROWS_MAX), layout=layout)
    tables = [as_before(part) for part in parts]
    return joined(tables, sha256=file.sha256, size_bytes=len(file.content))


def raw_parts(
    path: Path,
    *,
    wanted: Container[str],
    layout: FileLayout,
    seen: ReadSoFar,
    needed: Collection[str] = (),
) -> Iterator[RawTable]:
    """As `read_raw`, in parts of bounded size; `seen` holds size and hash behind the last one.

    `needed` columns must be in the header of the first part, or are nowhere in the file.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not what its name or its layout says, or it changed meanwhile.
    """
    pieces = read_pieces(path, seen=seen, piece_bytes=PART_BYTES)
    wish = _Wish(wanted, needed)
    yield from _of_pieces(path, pieces, wish=wish, layout=layout)


def parts_of(
    file: FilePieces,
    *,
    wanted: Container[str],
    layout: FileLayout = STANDARD,
    needed: Collection[str] = (),
) -> Iterator[RawTable]:
    """As `raw_parts`, of a file that may be read again with the same content.

    Raises:
        SourceUnreadableError: it is not what its name or its layout says, or it changed meanwhile.
    """
    return _of_pieces(file.path, file.pieces(), wish=_Wish(wanted, needed), layout=layout)


class _Wish(NamedTuple):
    """What is asked of a file."""

    wanted: Container[str]
    needed: Collection[str] = ()
    rows_at_once: int = ROWS_AT_ONCE


def _of_pieces(
    path: Path, pieces: Iterator[bytes], *, wish: _Wish, layout: FileLayout
) -> Iterator[RawTable]:
    """The parts of a file: of some formats not even the bytes are ever held whole."""
    if kind_of(path, layout=layout) in _READ_IN_PIECES:
        file = FileBytes(path, next(pieces, b""), "")
        pieces = chain([file.content], pieces)
    else:
        file = FileBytes(path, b"".join(pieces), "")
    return _parts(file, pieces, wish=wish, layout=layout)


def _parts(
    file: FileBytes, pieces: Iterable[bytes], *, wish: _Wish, layout: FileLayout
) -> Iterator[RawTable]:
    """The parts of a file: by its pieces where they do, else by its whole content."""
    kind = kind_of(file.path, layout=layout)
    _refuse_disguised(file.path, file.content, kind=kind)
    name, (wanted, needed, most) = file.path.name, wish
    match kind:
        case "csv":
            return csv_parts(pieces, name=name, wanted=wanted, layout=layout)
        case "jsonl":
            return json_parts(pieces, name=name, wanted=wanted, needed=needed, rows_at_once=most)
        case "xml":
            record = layout.record
            return xml_parts(file, wanted=wanted, record=record, needed=needed, rows_at_once=most)
        case "xlsx":
            before = layout.preamble
            last = layout.trailer
            return xlsx_parts(file, wanted=wanted, rows_at_once=most, preamble=before, trailer=last)
    return parquet_parts(file, wanted=wanted, rows_at_once=most)


def kind_of(path: Path, *, layout: FileLayout) -> str:
    """The format of a file, as its name or its layout says.

    Raises:
        SourceUnreadableError: neither does.
    """
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

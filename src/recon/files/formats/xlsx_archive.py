"""Whether a file is an honest workbook, before any spreadsheet reader sees it.

A workbook is a zip of XML. Its parts are unpacked here once, counted as they come, because what a
zip declares of itself may be a lie. Refused: bombs, macros, links to other files, document types,
sheets that span more cells than memory holds, and cells whose value Excel never worked out.
"""

import io
import lzma
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from xml.parsers import expat

from recon.files.formats.format_limits import (
    ARCHIVE_BYTES_MAX,
    ARCHIVE_ENTRIES_MAX,
    ARCHIVE_RATIO_FREE_BYTES,
    ARCHIVE_RATIO_MAX,
    COLUMNS_MAX,
    ROWS_MAX,
    SHEET_CELLS_MAX,
)
from recon.files.formats.raw_table import refuse
from recon.files.formats.xlsx_cells import SheetSpan, refuse_malformed, shared_lengths, span_of

ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
WORKBOOK_PART = "xl/workbook.xml"
RELATIONS_PART = "xl/_rels/workbook.xml.rels"
STRINGS_PART = "xl/sharedstrings.xml"
"""In lower case; writers differ."""
SHEETS_FOLDER = "xl/worksheets/"
_SHEETS_WITHOUT_CELLS = ("xl/chartsheets/", "xl/dialogsheets/")
FORBIDDEN_PARTS = {
    "vbaproject": "macros",
    "externallinks/": "links to other files",
    "embeddings/": "embedded files",
    "macrosheets/": "macro sheets",
    "connections.xml": "connections to other sources",
}
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,  # encrypted parts; also NotImplementedError
    ValueError,  # names that are no text
)
"""All that the zip reader raises on bytes that are not a sound archive."""

_READ_BYTES = 1024 * 1024


def refuse_unfit_archive(
    content: bytes, *, name: str, as_form: bool = False, unpacked_max: int = ARCHIVE_BYTES_MAX
) -> None:
    """Let only a plain workbook pass.

    Args:
        content: the file.
        name: its name, for messages.
        unpacked_max: bytes of all parts together.
        as_form: formulas are read as formulas, so that their values do not matter.

    Raises:
        SourceUnreadableError: what is the matter with it, in words.
    """
    if content.startswith(OLE_MAGIC):
        refuse(name, "is encrypted or an old .xls; save it as .xlsx without a password")
    if not content.startswith(ZIP_MAGIC):
        refuse(name, "is not an .xlsx workbook (its first bytes are not those of a zip)")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _refuse_unfit_parts(archive, name=name, unpacked_max=unpacked_max)
            cells = _Cells(name, as_form=as_form)
            for part, text in _unpacked(archive, name=name, unpacked_max=unpacked_max):
                _refuse_unfit_text(part, text, name=name, cells=cells)
            _refuse_unseen_sheets(archive, name=name)
    except _DAMAGE as error:
        refuse(name, f"is a damaged workbook: {error}")


def _refuse_unfit_parts(archive: zipfile.ZipFile, *, name: str, unpacked_max: int) -> None:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(entries) > ARCHIVE_ENTRIES_MAX:
        refuse(name, f"has {len(entries)} parts; at most {ARCHIVE_ENTRIES_MAX} are read")
    if len({part.lower() for part in names}) != len(names):
        refuse(name, "holds two parts of one name")
    missing = {WORKBOOK_PART, RELATIONS_PART}.difference(names)
    if missing:
        refuse(name, f"is a zip but not an .xlsx workbook ({max(missing)} is missing)")
    for part in names:
        for word, what in FORBIDDEN_PARTS.items():
            if word in part.lower():
                refuse(name, f"holds {what} ({part}); save it as plain .xlsx without them")
    declared = sum(entry.file_size for entry in entries)
    if declared > unpacked_max:
        refuse(name, f"unpacks to {declared} bytes; at most {unpacked_max} are read")


def _unpacked(
    archive: zipfile.ZipFile, *, name: str, unpacked_max: int
) -> Iterator[tuple[str, bytes]]:
    total = 0
    # The strings first: what a cell may say depends on how many there are.
    entries = archive.infolist()
    for entry in sorted(entries, key=lambda part: part.filename.lower() != STRINGS_PART):
        text = bytearray()
        with archive.open(entry) as part:
            while piece := part.read(_READ_BYTES):
                text += piece
                _refuse_bomb(entry, len(text), name=name)
                if len(text) + total > unpacked_max:
                    refuse(name, f"unpacks to more than {unpacked_max} bytes")
        total += len(text)
        yield entry.filename, bytes(text)


def _refuse_bomb(entry: zipfile.ZipInfo, size: int, *, name: str) -> None:
    ratio = size // max(1, entry.compress_size)
    if size > ARCHIVE_RATIO_FREE_BYTES and ratio > ARCHIVE_RATIO_MAX:
        refuse(name, f"has a part ({entry.filename}) packed more than 1:{ARCHIVE_RATIO_MAX}")


class _Cells:
    """The cells of a workbook, a sheet at a time."""

    def __init__(self, name: str, *, as_form: bool) -> None:
        self._name, self._as_form = name, as_form
        self._shared: Sequence[int] = ()
        self._spanned = 0

    def take_strings(self, part: str, text: bytes) -> None:
        """The shared strings, which come before the sheets."""
        self._shared = shared_lengths(part, text, name=self._name)

    def take_sheet(self, part: str, text: bytes) -> None:
        """Refuse a sheet that says what cannot be, or too much."""
        span = span_of(part, text, name=self._name, shared=self._shared, as_form=self._as_form)
        self._spanned += span.rows * span.columns
        self._refuse_wide(part, span)

    def _refuse_wide(self, part: str, span: SheetSpan) -> None:
        rows, columns = span
        if rows > ROWS_MAX or columns > COLUMNS_MAX or self._spanned > SHEET_CELLS_MAX:
            refuse(
                self._name,
                f"has a sheet ({part}) of {rows} rows and {columns} columns; at most {COLUMNS_MAX} "
                f"columns and {SHEET_CELLS_MAX} cells of all sheets are read: delete the far-off "
                "cells",
            )


def _refuse_unfit_text(part: str, text: bytes, *, name: str, cells: _Cells) -> None:
    kind = part.lower()
    if not kind.endswith((".xml", ".rels", ".vml")):
        return
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:64]:
        refuse(name, f"has a part ({part}) that is not UTF-8")
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        refuse(name, f"has a part ({part}) with a document type, which no workbook needs")
    if kind.startswith(SHEETS_FOLDER) and kind.endswith(".xml"):
        cells.take_sheet(part, text)
    elif kind == STRINGS_PART:
        cells.take_strings(part, text)
    elif not kind.endswith(".vml"):  # old drawings, which Excel itself writes carelessly
        refuse_malformed(part, text, name=name)


def _refuse_unseen_sheets(archive: zipfile.ZipFile, *, name: str) -> None:
    """Sheets and strings stand where they were looked at, and nowhere else."""
    sheets = {
        id_ for tag, of in _elements(archive, WORKBOOK_PART) if tag == "sheet" for id_ in _ids(of)
    }
    for tag, attributes in _elements(archive, RELATIONS_PART):
        what = attributes.get("Type", "").rpartition("/")[2]
        target = posixpath.normpath(posixpath.join("/xl", attributes.get("Target", ""))).lower()
        is_sheet = attributes.get("Id") in sheets or what == "worksheet"
        if tag != "Relationship" or (is_sheet and _is_seen_sheet(target)):
            continue
        if is_sheet or (what == "sharedStrings" and target != f"/{STRINGS_PART}"):
            shown = attributes.get("Target", "")[:80]
            refuse(name, f"is a damaged workbook: it has a sheet or its strings at {shown!r}")


def _is_seen_sheet(target: str) -> bool:
    folders = tuple(f"/{folder}" for folder in (SHEETS_FOLDER, *_SHEETS_WITHOUT_CELLS))
    return target.startswith(folders) and target.endswith(".xml")


def _ids(attributes: dict[str, str]) -> list[str]:
    """What an element of the workbook says of its relation, whatever the name space is called."""
    return [value for key, value in attributes.items() if key.rpartition(" ")[2] == "id"]


def _elements(archive: zipfile.ZipFile, part: str) -> list[tuple[str, dict[str, str]]]:
    """Local name and attributes of every element of a part that was found well-formed."""
    elements: list[tuple[str, dict[str, str]]] = []
    parser = expat.ParserCreate("UTF-8", " ")
    parser.StartElementHandler = lambda tag, of: elements.append((tag.rpartition(" ")[2], of))
    parser.Parse(archive.read(part), True)
    return elements

"""Whether a file is an honest workbook, before any spreadsheet reader sees it.

A workbook is a zip of XML. Its parts are unpacked here once, counted as they come, because what a
zip declares of itself may be a lie. Refused: bombs, macros, links to other files, document types,
sheets that span more cells than memory holds, and cells whose value Excel never worked out.
"""

import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator

from recon.foreign_bytes.limits import (
    ARCHIVE_BYTES_MAX,
    ARCHIVE_ENTRIES_MAX,
    ARCHIVE_RATIO_FREE_BYTES,
    ARCHIVE_RATIO_MAX,
    COLUMNS_MAX,
    ROWS_MAX,
    SHEET_CELLS_MAX,
)
from recon.foreign_bytes.raw_table import refuse
from recon.foreign_bytes.xlsx_cells import Span, refuse_malformed, span_of

ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
WORKBOOK_PART = "xl/workbook.xml"
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
_PLACE = re.compile(rb"\sr\s*=\s*[\"']\s*([A-Za-z]{0,7})([0-9]{1,10})\s*[\"']")
_WRONG = re.compile(rb"<(?:\w+:)?c\s[^<>]*?\bt\s*=\s*[\"']e[\"'][^<>]*>")
_NEVER_CALCULATED = re.compile(
    rb"<(?:\w+:)?c(?:\s[^<>]*)?>\s*<(?:\w+:)?f(?:\s[^<>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)


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
            for part, text in _unpacked(archive, name=name, unpacked_max=unpacked_max):
                _refuse_unfit_text(part, text, name=name, as_form=as_form)
    except _DAMAGE as error:
        refuse(name, f"is a damaged workbook: {error}")


def _refuse_unfit_parts(archive: zipfile.ZipFile, *, name: str, unpacked_max: int) -> None:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(entries) > ARCHIVE_ENTRIES_MAX:
        refuse(name, f"has {len(entries)} parts; at most {ARCHIVE_ENTRIES_MAX} are read")
    if len({part.lower() for part in names}) != len(names):
        refuse(name, "holds two parts of one name")
    if WORKBOOK_PART not in names:
        refuse(name, f"is a zip but not an .xlsx workbook ({WORKBOOK_PART} is missing)")
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
    for entry in archive.infolist():
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


def _refuse_unfit_text(part: str, text: bytes, *, name: str, as_form: bool) -> None:
    if not part.lower().endswith((".xml", ".rels", ".vml")):
        return
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:64]:
        refuse(name, f"has a part ({part}) that is not UTF-8")
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        refuse(name, f"has a part ({part}) with a document type, which no workbook needs")
    if part.lower().startswith("xl/worksheets/") and part.lower().endswith(".xml"):
        span = span_of(part, text, name=name)
        _refuse_wide_sheet(part, span, name=name)
        if not as_form:
            _refuse_valueless(part, text, name=name, span=span)
    elif not part.lower().endswith(".vml"):  # old drawings, which Excel itself writes carelessly
        refuse_malformed(part, text, name=name)


def _refuse_wide_sheet(part: str, span: Span, *, name: str) -> None:
    rows, columns = span.rows, span.columns
    if rows > ROWS_MAX or columns > COLUMNS_MAX or rows * columns > SHEET_CELLS_MAX:
        refuse(
            name,
            f"has a sheet ({part}) of {rows} rows and {columns} columns; at most {COLUMNS_MAX} "
            f"columns and {SHEET_CELLS_MAX} cells are read: delete the far-off cells",
        )


def _refuse_valueless(part: str, text: bytes, *, name: str, span: Span) -> None:
    for pattern, what, may_be in (
        (_WRONG, "an error such as #N/A", "e" in span.types),
        (_NEVER_CALCULATED, "a formula that was never calculated", span.formulas),
    ):
        found = pattern.search(text) if may_be else None
        if found is not None:
            place = _PLACE.search(found[0])
            cell = b"".join(place.groups()).decode() if place else "?"
            refuse(name, f"holds {what} in cell {cell} ({part}); correct it and save again")

"""The parts of a workbook, which is a zip of XML, within bounds.

Each part that is read is unpacked once and counted as it comes, because what a zip declares of
itself may be a lie. Refused: bombs, macros, links to other files, document types.
"""

import io
import lzma
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from lxml import etree

from recon.files.formats.format_limits import (
    ARCHIVE_BYTES_MAX,
    ARCHIVE_ENTRIES_MAX,
    ARCHIVE_RATIO_FREE_BYTES,
    ARCHIVE_RATIO_MAX,
)
from recon.files.formats.raw_table import refuse

ZIP_MAGIC = b"PK\x03\x04"
OLE_MAGIC = b"\xd0\xcf\x11\xe0"
WORKBOOK_PART = "xl/workbook.xml"
RELATIONS_PART = "xl/_rels/workbook.xml.rels"
STYLES_PART = "xl/styles.xml"
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
_SHEETS_WITHOUT_CELLS = ("chartsheet", "dialogsheet")
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)})
"""Numbers of the formats of dates and times that every spreadsheet has."""
_SAID_IN_FORMATS = re.compile(r'"[^"]*"|\\.|[_*].|\[[^\]]*\]')
"""What a format shows as it stands: no letter of it means a part of a date."""


@contextmanager
def reading_archive(name: str) -> Iterator[None]:
    """Refuse a file whose bytes are no sound archive, wherever it shows.

    Raises:
        SourceUnreadableError: they are not.
    """
    try:
        yield
    except _DAMAGE as error:
        refuse(name, f"is a damaged workbook: {error}")


class WorkbookFile:
    """A plain workbook: its parts, its sheets, its shared strings, its formats of dates."""

    def __init__(self, content: bytes, *, name: str, unpacked_max: int = ARCHIVE_BYTES_MAX) -> None:
        self.name = name
        self._unpacked_max = self._left = unpacked_max
        self._seen: set[str] = set()
        if content.startswith(OLE_MAGIC):
            refuse(name, "is encrypted or an old .xls; save it as .xlsx without a password")
        if not content.startswith(ZIP_MAGIC):
            refuse(name, "is not an .xlsx workbook (its first bytes are not those of a zip)")
        self._zip = zipfile.ZipFile(io.BytesIO(content))
        entries = self._zip.infolist()
        self.parts = [entry.filename for entry in entries]
        if len(entries) > ARCHIVE_ENTRIES_MAX:
            refuse(name, f"has {len(entries)} parts; at most {ARCHIVE_ENTRIES_MAX} are read")
        if len({part.lower() for part in self.parts}) != len(self.parts):
            refuse(name, "holds two parts of one name")
        missing = {WORKBOOK_PART, RELATIONS_PART}.difference(self.parts)
        if missing:
            refuse(name, f"is a zip but not an .xlsx workbook ({max(missing)} is missing)")
        for part in self.parts:
            for word, what in FORBIDDEN_PARTS.items():
                if word in part.lower():
                    refuse(name, f"holds {what} ({part}); save it as plain .xlsx without them")
        declared = sum(entry.file_size for entry in entries)
        if declared > unpacked_max:
            refuse(name, f"unpacks to {declared} bytes; at most {unpacked_max} are read")
        self._workbook = self._root(WORKBOOK_PART)
        relations = self._root(RELATIONS_PART)
        self._relations = {str(own.get("Id")): own for own in relations.iterchildren("{*}*")}

    def part(self, part: str) -> bytes:
        """The bytes of a part, as text in UTF-8 without a document type where it is XML."""
        if part not in self.parts:
            refuse(self.name, f"is a damaged workbook: it has no part {part[:80]!r}")
        entry = self._zip.getinfo(part)
        fair = max(ARCHIVE_RATIO_FREE_BYTES, ARCHIVE_RATIO_MAX * entry.compress_size)
        with self._zip.open(entry) as packed:
            text = packed.read(min(self._left, fair) + 1)
        if len(text) > fair:
            refuse(self.name, f"has a part ({part}) packed more than 1:{ARCHIVE_RATIO_MAX}")
        if len(text) > self._left:
            refuse(self.name, f"unpacks to more than {self._unpacked_max} bytes")
        self._left -= len(text)
        self._seen.add(part)
        if part.lower().endswith((".xml", ".rels", ".vml")):
            if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:64]:
                refuse(self.name, f"has a part ({part}) that is not UTF-8")
            if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
                refuse(
                    self.name, f"has a part ({part}) with a document type, which no workbook needs"
                )
        return text

    def elements(
        self, part: str, *, tags: tuple[str, ...], events: tuple[str, ...]
    ) -> Iterator[tuple[str, Any]]:
        """Event and element of some tags of a part, and its root as the last."""
        found = etree.iterparse(
            io.BytesIO(self.part(part)),
            events=events,
            tag=tags,
            resolve_entities=False,
            no_network=True,
            huge_tree=False,
            load_dtd=False,
        )
        try:
            yield from found
            yield "root", found.root
        except etree.XMLSyntaxError as error:
            self.damaged(f"{part} is not well-formed XML ({error})")

    def damaged(self, what: str) -> NoReturn:
        """Refuse the file.

        Raises:
            SourceUnreadableError: always.
        """
        refuse(self.name, f"is a damaged workbook: {what}")

    def _root(self, part: str) -> Any:
        return [*self.elements(part, tags=("{}-",), events=("end",))][-1][1]

    def rest(self) -> None:
        """Look at the parts that were not read, but that another program may open."""
        for part in self.parts:
            if part not in self._seen:
                self._root(part) if part.lower().endswith((".xml", ".rels")) else self.part(part)

    def sheets(self) -> list[tuple[str, str]]:
        """Title and part of every sheet that has cells."""
        found = []
        for sheet in self._workbook.iter("{*}sheet"):
            # Whatever the name space of relations is called.
            ids = [text for key, text in sheet.attrib.items() if key.endswith("}id")]
            relation = self._relations.get("".join(ids[:1]))
            if relation is None:
                self.damaged(f"its sheet {sheet.get('name', '')[:40]!r} is nowhere")
            elif not str(relation.get("Type")).endswith(_SHEETS_WITHOUT_CELLS):
                found.append((sheet.get("name", ""), _target(relation)))
        return found

    def strings_part(self) -> str:
        """Where the shared strings are; "" where there are none."""
        related = self._relations.values()
        kind = "/sharedStrings"
        return next((_target(own) for own in related if str(own.get("Type")).endswith(kind)), "")

    def date_styles(self) -> frozenset[str]:
        """The styles of cells whose numbers are dates or times, as cells name them."""
        if STYLES_PART not in self.parts:
            return frozenset()
        root = self._root(STYLES_PART)
        codes = {own.get("numFmtId"): own.get("formatCode", "") for own in root.iter("{*}numFmt")}
        styles = root.find("{*}cellXfs")
        found = set()
        for number, style in enumerate(styles if styles is not None else ()):
            own = style.get("numFmtId", "0")
            if own in codes:
                code = _SAID_IN_FORMATS.sub("", codes[own].partition(";")[0])
                is_date = re.search("[dmhysDMHYS]", code) is not None
                is_date &= re.search(r"\[[hms]+\]", codes[own], re.IGNORECASE) is None
            else:
                is_date = own.isdecimal() and int(own) in _DATE_FORMATS
            if is_date:
                found.add(str(number))
        return frozenset(found)

    def counts_from_1904(self) -> bool:
        """Whether day 0 of its dates is that of old Macintosh programs."""
        own = self._workbook.find("{*}workbookPr")
        return own is not None and own.get("date1904") in {"1", "true"}


def _target(relation: Any) -> str:
    return posixpath.normpath(posixpath.join("/xl", relation.get("Target", "")))[1:]

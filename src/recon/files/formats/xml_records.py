"""XML as rows: one per record element, its leaves as columns, attributes as `amount/@currency`.

Document types are refused in every encoding: they define entities, and a parser that merely leaves
entities unresolved silently drops the text around them. Names are used without their namespace;
comments and processing instructions are ignored.
"""

import io
import re
from codecs import BOM_UTF8
from collections.abc import Container, Iterator, Mapping
from typing import Any

from lxml import etree

from recon.files.formats.format_limits import CELL_CHARACTERS_MAX, XML_DEPTH_MAX
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import RawTable, Record, refuse, table_of
from recon.privacy.displayed_text import redacted

_ENCODING = re.compile(rb"""\A\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_TYPES = (b"<!DOCTYPE", b"<!ENTITY")
BELOW_ROOT = 2
HEAD_BYTES = 4_096
"""The encoding declaration must be within this many bytes."""
_ACCEPTED_ENCODINGS = frozenset({"utf-8", "us-ascii", "ascii"})
_WHITE = " \t\r\n"
FOREIGN: Mapping[str, Any] = {
    **dict.fromkeys(("resolve_entities", "huge_tree", "load_dtd"), False),
    **dict.fromkeys(("no_network", "remove_comments", "remove_pis"), True),
}
"""Parser options for external XML: nothing is resolved or loaded from elsewhere."""


def xml_table(file: FileBytes, *, columns_read: Container[str], record: str) -> RawTable:
    """Read the wanted columns of an XML document in UTF-8.

    `record` is the name of the element that forms a row; "" takes every child of the root.

    Raises:
        SourceUnreadableError: it is not well-formed, has a document type, or has no record.
    """
    name = file.path.name
    refuse_unfit_xml(file)
    what = f"element {record!r}" if record else "element below its root"
    return table_of(
        _records(file.content, record=record, name=name),
        name=name,
        columns_read=columns_read,
        nothing=lambda first: f"has no {what}{first and ' that can be read'}{first}",
    )


def _records(content: bytes, *, record: str, name: str) -> Iterator[Record]:
    try:
        for element in _elements(content, record=record, name=name):
            row: dict[str, str] = {}
            problem = _take_row(element, row=row)
            shown = " ".join("".join(element.itertext()).split()) if problem else ""
            yield Record(int(element.sourceline or 0), row, problem, shown)
    except (etree.XMLSyntaxError, ValueError) as error:
        refuse(name, f"is not well-formed XML: {redacted(str(error))}")


def refuse_unfit_xml(file: FileBytes) -> None:
    """Refuse a document that is not in UTF-8 or has a document type.

    Raises:
        SourceUnreadableError: it is such a document.
    """
    name, content = file.path.name, file.content
    if content[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\0" in content:
        refuse(name, "is not XML in UTF-8 (it has NUL bytes or the mark of UTF-16)")
    declared = _ENCODING.match(content[:HEAD_BYTES].removeprefix(BOM_UTF8))
    if declared and declared[1].decode().lower() not in _ACCEPTED_ENCODINGS:
        refuse(name, f"is XML in {declared[1].decode()}; write it in UTF-8")
    if any(word in content for word in _TYPES):
        refuse(name, "has a document type, from which entities come; write it without")


def _elements(content: bytes, *, record: str, name: str) -> Iterator[Any]:
    """Yield every record element; each is cleared when the next one is requested."""
    depth = 0
    events = etree.iterparse(io.BytesIO(content), events=("start", "end"), **FOREIGN)
    inside = 0
    for event, element in events:
        if event == "start":
            depth += 1
            if depth > XML_DEPTH_MAX:
                refuse(name, f"is nested deeper than {XML_DEPTH_MAX} elements")
            is_record = local_name(element.tag) == record if record else depth == BELOW_ROOT
            if is_record and not inside:
                inside = depth
            continue
        if depth == inside:
            yield element
            inside = 0
            element.clear()
            _forget_earlier(element)
        elif not inside and depth > 1:
            _forget_earlier(element)
        depth -= 1


def _forget_earlier(element: Any) -> None:
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _take_row(element: Any, *, row: dict[str, str]) -> str:
    """Put the leaves of a record into `row` by path; return the problem, or ""."""
    for path, text in _leaves(element, prefix=""):
        if text is None:
            return f"has text between the elements of {path or 'the record'}"
        if path in row:
            return f"has {redacted(path)} twice"
        if len(text) > CELL_CHARACTERS_MAX:
            return f"has more than {CELL_CHARACTERS_MAX} characters in {redacted(path)}"
        row[path] = text
    return "" if row else "has nothing in it"


def _leaves(element: Any, *, prefix: str) -> Iterator[tuple[str, str | None]]:
    """Yield (path, text) of each leaf; the text is None where elements and text are mixed."""
    inner = f"{prefix}/" if prefix else ""
    for name, value in element.attrib.items():
        yield f"{inner}@{local_name(name)}", value
    children = list(element)
    if not children:
        if prefix or (element.text or "").strip(_WHITE):
            yield prefix or ".", element.text or ""
        return
    between = (element.text, *(child.tail for child in children))
    if any(text and text.strip(_WHITE) for text in between):
        yield prefix, None
    for child in children:
        yield from _leaves(child, prefix=f"{inner}{local_name(child.tag)}")


def local_name(name: Any) -> str:
    """Return the name of an element or attribute without its namespace."""
    return str(name).rpartition("}")[2]

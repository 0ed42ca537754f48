"""Request bodies read and replies written: JSON, XML and form, told apart by the first byte.

A body's Content-Type is ignored, as the samples of the API document send JSON text under a form's
type. Requests are foreign bytes: sizes, counts and nesting have limits, XML has no entities.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from lxml import etree

Fields = dict[str, Any]

BODY_BYTES_MAX = 2_097_152
FIELDS_MAX = 2_000
"""Fields of a form, elements of an XML document."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_body(body: bytes) -> tuple[Fields | None, str]:
    """The fields of a request and "", or None and why the body cannot be read."""
    try:
        text = body.decode("utf-8-sig").lstrip()
        fields = _parser(text)(text)
        json.dumps(fields, ensure_ascii=False, default=str).encode()  # lone surrogates are no text
    except (ValueError, RecursionError, etree.XMLSyntaxError) as error:
        return None, f"{type(error).__name__}: {error}"
    return (fields, "") if isinstance(fields, dict) else (None, "the body is not an object")


def _parser(text: str) -> Any:
    first = text[:1]
    if not first:
        msg = "the body is empty"
        raise ValueError(msg)
    return {"{": _parse_json, "[": _parse_json, "<": _parse_xml}.get(first, _parse_form)


def _parse_json(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _parse_form(text: str) -> Fields:
    pairs = parse_qsl(
        text,
        keep_blank_values=True,
        strict_parsing=True,
        max_num_fields=FIELDS_MAX,
        errors="strict",
    )
    fields = dict(pairs)
    if len(fields) != len(pairs):
        msg = "a field is given twice"
        raise ValueError(msg)
    return fields


def _parse_xml(text: str) -> Fields:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    root = etree.fromstring(text.encode(), parser)
    docinfo: Any = root.getroottree().docinfo
    if docinfo.doctype:
        msg = "a document type is not accepted"
        raise ValueError(msg)
    if sum(1 for _ in root.iter()) > FIELDS_MAX:
        msg = "too many fields"
        raise ValueError(msg)
    fields = _xml_value(root)
    return fields if isinstance(fields, dict) else {}


def _xml_value(element: Any) -> Any:
    """Text, or an object when it has elements; a name that repeats is a list."""
    children = [child for child in element if isinstance(child.tag, str)]
    if not children:
        return element.text or ""
    fields: Fields = {}
    for child in children:
        name, value = str(child.tag), _xml_value(child)
        if name in fields:
            earlier = fields[name]
            fields[name] = [*earlier, value] if isinstance(earlier, list) else [earlier, value]
        else:
            fields[name] = value
    return fields


def render_json(content: Mapping[str, Any]) -> bytes:
    """A reply as JSON; Decimal values become numbers."""
    return json.dumps(content, ensure_ascii=False, default=_number).encode()


def _number(value: Any) -> float | int:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    msg = f"{type(value).__name__} has no JSON form"
    raise TypeError(msg)


def render_xml(content: Mapping[str, Any]) -> bytes:
    """A payment reply as XML with the root `respon`; a mapping becomes child elements."""
    root = etree.Element("respon")
    _fill(root, content)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def _fill(element: Any, content: Mapping[str, Any]) -> None:
    for name, value in content.items():
        child = etree.SubElement(element, name)
        if isinstance(value, Mapping):
            _fill(child, value)
        else:
            child.text = _NOT_IN_XML.sub("", str(value))

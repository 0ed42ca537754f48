"""Requests as bytes: JSON, form or XML, the same bytes for the same message."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote_plus

from lxml import etree

_PLAIN = re.compile(r"[A-Za-z0-9_.~,-]*", re.ASCII)

XML_ROOT = "request"
"""The document shows no name for the root of an XML request."""


def request_body(message: Mapping[str, Any], *, body: Literal["json", "form", "xml"]) -> bytes:
    """The message in its wire format; its order is kept.

    Args:
        message: Field names to text, whole numbers, objects or lists of these.
        body: `form` writes objects and lists as JSON text, `xml` as elements (a list's element
            repeats the field's name).
    """
    if body == "json":
        return _json(message).encode("ascii")
    if body == "form":
        flat = {
            name: value if _is_plain(value) else _json(value) for name, value in message.items()
        }
        return "&".join(f"{_quoted(name)}={_quoted(text)}" for name, text in flat.items()).encode()
    root = etree.Element(XML_ROOT)
    _fill(root, message=message)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def _quoted(value: str | int) -> str:
    """As `urllib.parse.urlencode` does; a hundred plain keys in a fraction of its time."""
    text = str(value)
    return text.replace(",", "%2C") if _PLAIN.fullmatch(text) else quote_plus(text)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int)


def _fill(element: etree._Element, *, message: Mapping[str, Any]) -> None:
    for name, value in message.items():
        for part in value if _is_list(value) else (value,):
            child = etree.SubElement(element, name)
            if isinstance(part, Mapping):
                _fill(child, message=part)
            else:
                child.text = str(part)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)

"""Messages as the sandbox parses and renders them: bodies, fields, pages, signatures.

Bodies are JSON, XML or a form, recognised by their first byte; Content-Type is ignored because the
samples of the API document send JSON text with the type of a form or of XML. Requests are untrusted
input: sizes, counts and nesting are limited, XML entities are disabled. Field lengths in the
profile `extended` are those of the bundled profiles.toml (A-03).

A signature is the lower-case hex SHA-256 of the values of a template's fields in order, without
delimiters and spaces, a missing field as empty, followed by the sign key. The templates are those
of the bundled signature.toml; the sandbox has its own implementation and shares no code with the
client.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

from jinja2 import Environment, PackageLoader, StrictUndefined
from lxml import etree

from recon.config.settings import load_tables
from recon.model.errors import AmountError, ConfigurationError
from recon.model.money import WIRE_DECIMALS_MIN, exponent, parse_minor_units
from recon.sandbox.options import as_text

Fields = dict[str, Any]

BODY_BYTES_MAX = 2_097_152
FIELDS_MAX = 2_000
"""Maximum number of fields of a form."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_body(body: bytes) -> tuple[Fields | None, str]:
    """Parse a request: its fields and "", or None and why the body cannot be read."""
    try:
        text = body.decode("utf-8-sig").lstrip()
        parse = {"{": _parse_json, "[": _parse_json, "<": _parse_xml}.get(text[:1], _parse_form)
        fields = parse(text)
        json.dumps(fields, ensure_ascii=False, default=str).encode()  # lone surrogates are not text
    except (ValueError, RecursionError, etree.XMLSyntaxError) as error:
        return None, f"{type(error).__name__}: {error}"
    return (fields, "") if isinstance(fields, dict) else (None, "the body is not an object")


def _parse_json(text: str) -> Any:
    def refuse(name: str) -> None:
        msg = f"{name} is not JSON"
        raise ValueError(msg)

    return json.loads(text, parse_float=Decimal, parse_constant=refuse)


def _parse_form(text: str) -> Fields:
    pairs = parse_qsl(
        text,
        keep_blank_values=True,
        strict_parsing=True,
        max_num_fields=FIELDS_MAX,
        errors="strict",
    )
    fields = dict(pairs)
    if not pairs or len(fields) != len(pairs):
        msg = "the body is empty, or a field is given twice"
        raise ValueError(msg)
    return fields


def _parse_xml(text: str) -> Fields:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    root = etree.fromstring(text.encode(), parser)
    docinfo: Any = root.getroottree().docinfo
    if docinfo.doctype:
        msg = "a document type is not accepted"
        raise ValueError(msg)
    return _children(root)


def _children(element: Any) -> Fields:
    """The children of an element by name; one with children of its own is an object."""
    return {
        str(child.tag): _children(child) if len(child) else child.text or "" for child in element
    }


def render_json(content: Mapping[str, Any]) -> bytes:
    """Render a reply as JSON; Decimal values become numbers."""
    return json.dumps(content, ensure_ascii=False, default=_number).encode()


def _number(value: Any) -> float | int:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    msg = f"{type(value).__name__} has no JSON form"
    raise TypeError(msg)


def render_xml(content: Mapping[str, Any]) -> bytes:
    """Render a payment reply as XML with the root `respon`; a mapping becomes child elements."""
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


_PAGES = Environment(
    loader=PackageLoader("recon.sandbox", package_path="pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters["as_text"] = as_text
_PAGES.filters["grouped"] = lambda card: " ".join(re.findall(".{1,4}", card))


def rendered(name: str, **content: Any) -> str:
    """Render the page template of this name."""
    return _PAGES.get_template(f"{name}.html").render(content)


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def wire_minor_units(text: Any, *, currency: str) -> int | None:
    """Minor units of a wire amount with a point and exactly the wire's decimals, else None.

    That is two decimals, or the currency's own where it has more; JPY 1000 is `1000.00`.
    """
    if not isinstance(text, str):
        return None
    try:
        decimals = max(WIRE_DECIMALS_MIN, exponent(currency))
        minor_units = parse_minor_units(text, currency=currency)
    except AmountError:
        return None
    return minor_units if len(text.partition(".")[2]) == decimals else None


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID in canonical form."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def is_date(text: str) -> bool:
    """Whether a text is a date as YYYY-MM-DD."""
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


@cache
def _lengths() -> Mapping[str, int]:
    return dict(load_tables("profiles", config_dir=None)["extended"]["lengths"])


def too_long(fields: Mapping[str, Any], *, profile: str) -> str:
    """The first field longer than allowed, "" when none is; `base` has no length limits."""
    bounds = _lengths() if profile == "extended" else {}
    given = (name for name in fields if name in bounds)
    return next((name for name in given if len(text_of(fields[name])) > bounds[name]), "")


ALL_ROWS = "[]"
"""A field with this suffix is taken from every row of the request, in order."""


@cache
def signed_fields(template: str) -> tuple[str, ...]:
    """Names of the fields that a signature covers, in order, from the bundled signature.toml.

    Raises:
        ConfigurationError: signature.toml has no such template.
    """
    templates = load_tables("signature", config_dir=None).get("base", {}).get("templates", {})
    if template not in templates:
        msg = f"signature.toml has no template {template}; the sandbox cannot sign it"
        raise ConfigurationError(msg)
    return tuple(templates[template])


def sign(
    template: str,
    fields: Mapping[str, Any],
    *,
    sign_key: str,
    rows: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Sign a message: 64 lower-case hexadecimal characters."""
    parts: list[str] = []
    for name in signed_fields(template):
        if name.endswith(ALL_ROWS):
            parts += [text_of(row.get(name.removesuffix(ALL_ROWS))) for row in rows]
        else:
            parts.append(text_of(fields.get(name)))
    plain = "".join(parts).replace(" ", "")
    return hashlib.sha256(f"{plain}{sign_key}".encode()).hexdigest()


def text_of(value: Any) -> str:
    """A field as text: ids may be numbers, any value but text or an integer is empty."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)

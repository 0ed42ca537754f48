"""Strict parsers for replies: ambiguous documents are refused, never repaired.

JSON: refuses duplicate keys, NaN and Infinity, and too much depth or size, which `json.loads`
accepts; values become str, int, Decimal, bool, None, list and dict, never float. XML: a DOCTYPE is
refused, no entity is resolved, nothing is fetched. HTML: the form that a page submits by itself is
read as data; declarations are refused, and nothing on the page is executed.
"""

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, islice
from typing import Any
from urllib.parse import parse_qsl

from lxml import etree

from recon.privacy.foreign_text import NOT_STORED, is_private

REPLY_BYTES_MAX = 2 * 1024 * 1024
PADDING = " \t\r\n"
DEPTH_MAX = 32
NUMBER_CHARACTERS_MAX = 40
EXTRA_FIELDS_MAX = 50

_NESTED = frozenset({dict, list})


class UnreadableReplyError(ValueError):
    """The bytes are not a document that can be trusted."""


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a reply that is a JSON object; a UTF-8 byte order mark is accepted.

    Raises:
        UnreadableReplyError: anything else, with the reason.
    """
    _refuse_size(body)
    try:
        value = json.loads(
            body.decode("utf-8-sig"),
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_float=lambda text: Decimal(_short(text)),
            parse_int=lambda text: int(_short(text)),
        )
    except UnreadableReplyError:
        raise
    except (ValueError, ArithmeticError, RecursionError) as error:
        msg = f"not JSON ({type(error).__name__})"
        raise UnreadableReplyError(msg) from error
    if not isinstance(value, dict):
        msg = "not a JSON object"
        raise UnreadableReplyError(msg)
    _refuse_depth(value)
    return value


def text_of(value: object) -> str | None:
    """Return a field as text without padding: "" for null or missing, digits for numbers.

    None for other types. No-break and ideographic spaces are not padding: names may have them.
    """
    text = exact_text_of(value)
    return None if text is None else text.strip(PADDING)


def exact_text_of(value: object) -> str | None:
    """Like `text_of`, but with padding: the text that a signature covers."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return str(value)


def texts_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the exact text of every field, to be signed; "" for objects and lists."""
    return {name: exact_text_of(value) or "" for name, value in fields.items()}


def unlisted(
    fields: Mapping[str, Any], *, listed: Container[str], masked: Callable[[str], str]
) -> dict[str, str]:
    """Return fields that the API document does not list, as text; private values are masked.

    Objects and lists are left out, as they may hold personal data.
    """
    names = [name for name in fields if name not in listed][:EXTRA_FIELDS_MAX]
    texts = {name: NOT_STORED if is_private(name) else text_of(fields[name]) for name in names}
    return {masked(name): masked(text) for name, text in texts.items() if text}


def rows_of(reply: Mapping[str, Any], *, field: str) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of a list field and the number of elements that are not rows.

    A single object counts as a list of one; null, "" and missing as an empty list.
    """
    value = reply.get(field)
    if value is None or value == "":
        return [], 0
    elements = value if isinstance(value, list) else [value]
    rows = [element for element in elements if isinstance(element, dict)]
    return rows, len(elements) - len(rows)


def _refuse_size(body: bytes) -> None:
    if len(body) > REPLY_BYTES_MAX:
        msg = f"larger than {REPLY_BYTES_MAX} bytes"
        raise UnreadableReplyError(msg)


def _refuse_depth(value: Any) -> None:
    """Check the nesting level by level; the parser itself refuses more than Python's own limit."""
    level = [value]
    for _ in range(DEPTH_MAX):
        parts = (part.values() if type(part) is dict else part for part in level)
        level = [part for part in chain.from_iterable(parts) if type(part) in _NESTED]
        if not level:
            return
    msg = f"nested deeper than {DEPTH_MAX}"
    raise UnreadableReplyError(msg)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        msg = "JSON with the same key twice in one object"
        raise UnreadableReplyError(msg)
    return members


def _refuse_constant(name: str) -> Any:
    msg = f"{name} is not a JSON number"
    raise UnreadableReplyError(msg)


def _short(text: str) -> str:
    if len(text) > NUMBER_CHARACTERS_MAX:
        msg = f"a number of more than {NUMBER_CHARACTERS_MAX} characters"
        raise UnreadableReplyError(msg)
    return text


ELEMENTS_MAX = 2_000


def xml_root(body: bytes, *, root: str) -> etree._Element:
    """Parse an XML reply and return its root element, which must be named `root`.

    Raises:
        UnreadableReplyError: anything else, with the reason, which never quotes the reply.
    """
    _refuse_size(body)
    # Without comments, split text becomes one text; a parser serves a single document.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        element = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        msg = f"not XML ({type(error).__name__})"
        raise UnreadableReplyError(msg) from None
    docinfo: Any = element.getroottree().docinfo  # the type stubs lack doctype
    if docinfo.doctype:
        msg = "XML with a DOCTYPE"
        raise UnreadableReplyError(msg)
    if element.tag != root:
        msg = f"XML without the root element {root}"
        raise UnreadableReplyError(msg)
    if sum(1 for _ in element.iter()) > ELEMENTS_MAX:
        msg = f"more than {ELEMENTS_MAX} elements"
        raise UnreadableReplyError(msg)
    return element


def element_texts(element: etree._Element, *, repeated: str = "") -> dict[str, str]:
    """Return name -> text of every child without children of its own.

    `repeated` may occur more than once and is left out.

    Raises:
        UnreadableReplyError: another name occurs twice, so that it is ambiguous.
    """
    texts: dict[str, str] = {}
    seen: set[str] = set()
    for child in element:
        name = str(child.tag)
        if name == repeated:
            continue
        if name in seen:
            msg = "XML with the same element twice"
            raise UnreadableReplyError(msg)
        seen.add(name)
        if len(child) == 0:
            texts[name] = (child.text or "").strip(PADDING)
    return texts


FORMS_MAX = 20
INPUTS_MAX = 500
VALUE_CHARACTERS_MAX = 20_000
PARAMETERS_MAX = 500
ALL_PARAMETERS = "allParams"
_DECLARES = re.compile(rb"<!(?:ENTITY|DOCTYPE[^>\[]{0,1000}\[)", re.IGNORECASE)
_DOCTYPE = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HostedForm:
    """The hidden inputs of a page's form; they may identify a shopper and are not in the repr."""

    action: str
    """Where the form is submitted: an address or a path, as written."""
    method: str
    inputs: dict[str, str] = field(repr=False)
    parameters: dict[str, str] = field(repr=False)
    """The parameters in the input allParams; the first value of a name counts."""


def html_form(body: bytes) -> HostedForm:
    """Parse a page and return its only form with hidden inputs.

    Raises:
        UnreadableReplyError: no such form or several, an input with two values, or declarations.
    """
    _refuse_size(body)
    if _DECLARES.search(body):
        msg = "a page with declarations of its own"
        raise UnreadableReplyError(msg)
    forms = [form for form in _forms(body) if next(_hidden(form), None) is not None]
    if len(forms) != 1:
        msg = f"a page with {len(forms)} forms of hidden inputs, not one"
        raise UnreadableReplyError(msg)
    inputs = _inputs(forms[0])
    try:
        text = inputs.get(ALL_PARAMETERS, "")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        msg = f"{ALL_PARAMETERS} with more than {PARAMETERS_MAX} parameters"
        raise UnreadableReplyError(msg) from None
    parameters = dict(reversed(pairs))
    if any(map(_DOCTYPE.search, (*inputs.values(), *parameters.values()))):
        msg = "a page with a DOCTYPE in its inputs"
        raise UnreadableReplyError(msg)
    return HostedForm(
        action=str(forms[0].get("action") or "").strip(),
        method=str(forms[0].get("method") or "get").strip().lower(),
        inputs=inputs,
        parameters=parameters,
    )


def _forms(body: bytes) -> list[Any]:
    parser = etree.HTMLParser(
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    try:
        page: Any = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        msg = f"not HTML ({type(error).__name__})"
        raise UnreadableReplyError(msg) from None
    forms = [] if page is None else list(islice(page.iter("form"), FORMS_MAX + 1))
    if len(forms) > FORMS_MAX:
        msg = f"a page with more than {FORMS_MAX} forms"
        raise UnreadableReplyError(msg)
    return forms


def _hidden(form: Any) -> Iterator[Any]:
    return (field for field in form.iter("input") if (field.get("type") or "").lower() == "hidden")


def _inputs(form: Any) -> dict[str, str]:
    hidden = list(islice(_hidden(form), INPUTS_MAX + 1))
    if len(hidden) > INPUTS_MAX:
        msg = f"a form of more than {INPUTS_MAX} inputs"
        raise UnreadableReplyError(msg)
    inputs: dict[str, str] = {}
    for element in hidden:
        name, value = str(element.get("name") or ""), str(element.get("value") or "")
        if len(value) > VALUE_CHARACTERS_MAX:
            msg = f"an input of more than {VALUE_CHARACTERS_MAX} characters"
            raise UnreadableReplyError(msg)
        if inputs.setdefault(name, value) != value:
            msg = "an input with two values"
            raise UnreadableReplyError(msg)
    inputs.pop("", None)
    return inputs

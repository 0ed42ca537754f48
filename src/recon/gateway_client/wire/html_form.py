"""The form that a page submits by itself, read as data: nothing of the page ever runs.

A page may say that it is HTML. Declarations of its own (entities, an internal subset) and a DOCTYPE
in an input or in allParams have no place there and are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

from lxml import etree

from recon.gateway_client.wire.json_reply import REPLY_BYTES_MAX, UnreadableReplyError

FORMS_MAX = 20
INPUTS_MAX = 500
VALUE_CHARACTERS_MAX = 20_000
PARAMETERS_MAX = 500
ALL_PARAMETERS = "allParams"
_DECLARES = re.compile(rb"<!(?:ENTITY|DOCTYPE[^>\[]{0,1000}\[)", re.IGNORECASE)
_DOCTYPE = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HostedForm:
    """The hidden inputs of a page's one form; they may name a shopper, so none shows in a repr."""

    action: str
    """Where it is sent, as the page says: an address or a path."""
    method: str
    inputs: dict[str, str] = field(repr=False)
    parameters: dict[str, str] = field(repr=False)
    """The input allParams in its parts; the first value of a name counts."""


def html_form(body: bytes) -> HostedForm:
    """The one form of a page that has hidden inputs.

    Raises:
        UnreadableReplyError: no such form or several, an input with two values, or declarations.
    """
    if len(body) > REPLY_BYTES_MAX:
        msg = f"larger than {REPLY_BYTES_MAX} bytes"
        raise UnreadableReplyError(msg)
    if _DECLARES.search(body):
        msg = "a page with declarations of its own"
        raise UnreadableReplyError(msg)
    forms = [form for form in _forms(body) if next(_hidden(form), None) is not None]
    if len(forms) != 1:
        msg = f"a page with {len(forms)} forms of hidden inputs, not one"
        raise UnreadableReplyError(msg)
    inputs = _inputs(forms[0])
    parameters = _parameters(inputs.get(ALL_PARAMETERS, ""))
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


def _parameters(text: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    except ValueError:
        msg = f"{ALL_PARAMETERS} with more than {PARAMETERS_MAX} parameters"
        raise UnreadableReplyError(msg) from None
    return dict(reversed(pairs))

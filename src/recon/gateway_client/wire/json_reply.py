"""JSON replies, hardened: anything ambiguous is refused, never repaired.

Duplicate keys, NaN and Infinity, numbers as floats, too much depth or size are what `json.loads`
accepts by default and money must not. Values become str, int, Decimal, bool, None, list and dict.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

REPLY_BYTES_MAX = 2 * 1024 * 1024
PADDING = " \t\r\n"
DEPTH_MAX = 32
NUMBER_CHARACTERS_MAX = 40

_NESTED = frozenset({dict, list})


class UnreadableReplyError(ValueError):
    """The bytes are not one JSON object that can be trusted."""


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object a reply consists of; a UTF-8 byte order mark is tolerated.

    Raises:
        UnreadableReplyError: anything else, with the reason.
    """
    if len(body) > REPLY_BYTES_MAX:
        msg = f"larger than {REPLY_BYTES_MAX} bytes"
        raise UnreadableReplyError(msg)
    try:
        value = json.loads(
            body.decode("utf-8-sig"),
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_float=_decimal,
            parse_int=_integer,
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
    """The text of a field without padding: null and missing are "", numbers their digits.

    None for other types. A no-break or ideographic space is no padding: a name may begin with it.
    """
    text = exact_text_of(value)
    return None if text is None else text.strip(PADDING)


def exact_text_of(value: object) -> str | None:
    """As `text_of`, with its padding: what a signature covers."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return str(value)


def texts_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The exact text of every field, for its signature; "" for objects and lists."""
    return {name: exact_text_of(value) or "" for name, value in fields.items()}


def rows_of(reply: Mapping[str, Any], *, field: str) -> tuple[list[dict[str, Any]], int]:
    """The rows of a list field and the count of elements that are not rows.

    A single object stands for a list of one; null, "" and missing for an empty list.
    """
    value = reply.get(field)
    if value is None or value == "":
        return [], 0
    elements = value if isinstance(value, list) else [value]
    rows = [element for element in elements if isinstance(element, dict)]
    return rows, len(elements) - len(rows)


def _refuse_depth(value: Any) -> None:
    """Level by level; what is deeper than Python's own limit was no JSON for the parser already."""
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


def _decimal(text: str) -> Decimal:
    return Decimal(_short(text))


def _integer(text: str) -> int:
    return int(_short(text))


def _short(text: str) -> str:
    if len(text) > NUMBER_CHARACTERS_MAX:
        msg = f"a number of more than {NUMBER_CHARACTERS_MAX} characters"
        raise UnreadableReplyError(msg)
    return text

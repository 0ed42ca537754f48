"""JSON readers: the summary of an earlier run, and JSON lines as rows with nested keys as `a.b`.

Numbers in rows keep the digits they were written with and are marked as numbers. Whatever a JSON
parser would silently accept (a duplicate key, NaN, a lone surrogate) makes a bad row. A list is not
a cell value: a row is bad if one of the columns that are read holds a list.
"""

import io
import json
import re
from codecs import BOM_UTF8
from collections.abc import Container, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from recon.files.formats.format_limits import (
    CELL_CHARACTERS_MAX,
    JSON_DEPTH_MAX,
    JSON_LINE_BYTES_MAX,
)
from recon.files.formats.named_bytes import FileBytes, read_bytes
from recon.files.formats.raw_table import ListText, NumberText, RawTable, Record, refuse, table_of

JSON_BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of a run's summary."""


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; decimal numbers become Decimal, duplicate keys and NaN are refused.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not a single JSON object in UTF-8.
    """
    content = read_bytes(path, bytes_max=JSON_BYTES_MAX).content
    try:
        document = json.loads(
            content.decode("utf-8"),
            parse_float=Decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object_of,
        )
    except (ValueError, RecursionError) as error:
        refuse(path.name, f"is not JSON in UTF-8: {error}")
    if not isinstance(document, dict):
        refuse(path.name, "is not a JSON object")
    return document


_NUMBER_STORED = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = b" \t\r\n"


def json_table(
    file: FileBytes, *, columns_read: Container[str], rows_max: int | None = None
) -> RawTable:
    """Read the wanted columns of a JSON lines file in UTF-8.

    Raises:
        SourceUnreadableError: no line of it is a JSON object, or there are too many rows.
    """
    lines = enumerate(io.BytesIO(file.content.removeprefix(BOM_UTF8)), start=1)
    return table_of(
        (_record(number, line) for number, own in lines if (line := own.strip(_BLANK))),
        name=file.path.name,
        columns_read=columns_read,
        nothing=lambda first: f"has no line that is a JSON object{first}",
        rows_max=rows_max,
    )


def _record(number: int, line: bytes) -> Record:
    """Flatten one line into a record, or return a record with the problem."""
    try:
        return Record(number, _row_of(line))
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 (byte {error.start} of the line)"
    except RecursionError:
        problem = f"is nested deeper than {JSON_DEPTH_MAX}"
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} at character {error.pos + 1}"
    except ValueError as error:
        problem = str(error)
    excerpt = line[:CELL_CHARACTERS_MAX].decode("utf-8", "replace")
    return Record(number, {}, problem, excerpt)


def _row_of(line: bytes) -> dict[str, str]:
    if len(line) > JSON_LINE_BYTES_MAX:
        msg = f"has more than {JSON_LINE_BYTES_MAX} bytes"
        raise ValueError(msg)
    document = json.loads(
        line.decode("utf-8"),
        parse_float=NumberText,
        parse_int=NumberText,
        parse_constant=_refuse_constant,
        object_pairs_hook=_object_of,
    )
    if not isinstance(document, dict):
        msg = "is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - bad data, told like all other
    return dict(_leaves(document, prefix="", depth=1))


def _leaves(leaves: Mapping[str, Any], *, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > JSON_DEPTH_MAX:
        msg = f"is nested deeper than {JSON_DEPTH_MAX}"
        raise ValueError(msg)
    for key, value in leaves.items():
        if not key.strip() or key != key.strip() or "." in key or _SURROGATE.search(key):
            msg = "has a key that is blank, or has a point, a space at its ends or half a character"
            raise ValueError(msg)
        if isinstance(value, dict):
            yield from _leaves(value, prefix=f"{prefix}{key}.", depth=depth + 1)
        else:
            yield f"{prefix}{key}", _cell(value)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return NumberText(str(value).upper())  # not text, so never accepted as an id
        case NumberText():
            return value if _NUMBER_STORED.fullmatch(value) else str(value)
        case str():
            if _SURROGATE.search(value):
                msg = "has half a character (a lone surrogate) in a value"
                raise ValueError(msg)
            if len(value) > CELL_CHARACTERS_MAX:
                msg = f"has a value of more than {CELL_CHARACTERS_MAX} characters"
                raise ValueError(msg)
            return value
    return ListText(json.dumps(value, ensure_ascii=False))


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        msg = "has a key twice in one object"
        raise ValueError(msg)
    return members


def _refuse_constant(word: str) -> NoReturn:
    msg = f"has {word}, which is no JSON number"
    raise ValueError(msg)

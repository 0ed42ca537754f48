"""JSON lines: one object per line, its leaves as columns, `amount.value` for what lies deeper.

Numbers keep the digits they were written with and are marked as numbers; what a JSON reader would
silently accept (a key twice, NaN, a lone surrogate) makes a bad row. A list has no column, so its
row is bad too.
"""

import json
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from recon.foreign_bytes.limits import (
    CELL_CHARACTERS_MAX,
    COLUMNS_MAX,
    JSON_DEPTH_MAX,
    JSON_LINE_BYTES_MAX,
)
from recon.foreign_bytes.opening import FileBytes
from recon.foreign_bytes.raw_table import (
    BadRow,
    RawTable,
    checked_header,
    refuse,
    refuse_too_many_rows,
    trimmed,
)

_NUMBER_KEPT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = b" \t\r"


class _Number(str):
    """The digits of a number as written."""

    __slots__ = ()


class _Cell(NamedTuple):
    text: str
    is_number: bool


def read_json_lines(file: FileBytes, *, wanted: Container[str]) -> RawTable:
    """The wanted columns of a JSON lines file in UTF-8.

    Raises:
        SourceUnreadableError: it is not UTF-8, or no line of it is an object.
    """
    name = file.path.name
    content = file.content.removeprefix(b"\xef\xbb\xbf")
    lines: list[int] = []
    rows: list[dict[str, _Cell]] = []
    bad: list[BadRow] = []
    header: dict[str, None] = {}
    for number, line in _lines(content):
        read = _read_row(line)
        if isinstance(read, str):
            shown = line[:CELL_CHARACTERS_MAX].decode("utf-8", "replace")
            bad.append(BadRow(number, read, shown))
        else:
            header |= dict.fromkeys(read)
            if len(header) > COLUMNS_MAX:
                refuse(
                    name, f"has more than {COLUMNS_MAX} different keys; at most so many are read"
                )
            lines.append(number)
            rows.append({key: cell for key, cell in read.items() if key in wanted})
        refuse_too_many_rows(len(lines) + len(bad), name=name)
    if not rows:
        first = f": line {bad[0].line} {bad[0].reason}" if bad else ""
        refuse(name, f"has no line that is a JSON object{first}")
    columns, numbers = _columns(rows, header=header, wanted=wanted)
    return RawTable(
        name=name,
        sha256=file.sha256,
        size_bytes=len(file.content),
        header=checked_header(list(header), name=name),
        columns=columns,
        lines=np.array(lines, dtype=np.int64),
        bad_rows=tuple(bad),
        numbers=numbers,
    )


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every line that is not blank."""
    position, number = 0, 1
    while position < len(content):
        end = content.find(b"\n", position)
        end = len(content) if end < 0 else end
        line = content[position:end].strip(_BLANK)
        if line:
            yield number, line
        position, number = end + 1, number + 1


def _columns(
    rows: list[dict[str, _Cell]], *, header: Mapping[str, None], wanted: Container[str]
) -> tuple[dict[str, pa.Array], dict[str, pa.Array]]:
    nothing = _Cell("", is_number=False)
    columns: dict[str, pa.Array] = {}
    numbers: dict[str, pa.Array] = {}
    for column in header:
        if column in wanted:
            cells = [row.get(column, nothing) for row in rows]
            columns[column] = trimmed(pa.array([cell.text for cell in cells], pa.large_string()))
            numbers[column] = pa.array([cell.is_number for cell in cells], pa.bool_())
    return columns, numbers


def _read_row(line: bytes) -> dict[str, _Cell] | str:
    """The leaves of one object, or why the line is none."""
    try:
        return _row_of(line)
    except UnicodeDecodeError as error:
        return f"is not UTF-8 (byte {error.start} of the line)"
    except RecursionError:
        return f"is nested deeper than {JSON_DEPTH_MAX}"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at character {error.pos + 1}"
    except ValueError as error:
        return str(error)


def _row_of(line: bytes) -> dict[str, _Cell]:
    if len(line) > JSON_LINE_BYTES_MAX:
        msg = f"has more than {JSON_LINE_BYTES_MAX} bytes"
        raise ValueError(msg)
    found = json.loads(
        line.decode("utf-8"),
        parse_float=_Number,
        parse_int=_Number,
        parse_constant=_refuse_constant,
        object_pairs_hook=_object_of,
    )
    if not isinstance(found, dict):
        msg = "is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - bad data, told like all other
    return dict(_leaves(found, prefix="", depth=1))


def _leaves(found: Mapping[str, Any], *, prefix: str, depth: int) -> Iterator[tuple[str, _Cell]]:
    if depth > JSON_DEPTH_MAX:
        msg = f"is nested deeper than {JSON_DEPTH_MAX}"
        raise ValueError(msg)
    for key, value in found.items():
        if not key.strip() or key != key.strip() or "." in key or _SURROGATE.search(key):
            msg = "has a key that is blank, or has a point, a space at its ends or half a character"
            raise ValueError(msg)
        if isinstance(value, dict):
            yield from _leaves(value, prefix=f"{prefix}{key}.", depth=depth + 1)
        else:
            yield f"{prefix}{key}", _cell(value)


def _cell(value: Any) -> _Cell:
    match value:
        case None:
            return _Cell("", is_number=False)
        case bool():
            return _Cell(str(value).upper(), is_number=True)  # no text, so no id
        case _Number():
            return _Cell(str(value), is_number=_NUMBER_KEPT.fullmatch(value) is not None)
        case str():
            if _SURROGATE.search(value):
                msg = "has half a character (a lone surrogate) in a value"
                raise ValueError(msg)
            if len(value) > CELL_CHARACTERS_MAX:
                msg = f"has a value of more than {CELL_CHARACTERS_MAX} characters"
                raise ValueError(msg)
            return _Cell(value, is_number=False)
    msg = "has a list, which no column can hold"
    raise ValueError(msg)


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "has a key twice in one object"
        raise ValueError(msg)
    return found


def _refuse_constant(word: str) -> NoReturn:
    msg = f"has {word}, which is no JSON number"
    raise ValueError(msg)

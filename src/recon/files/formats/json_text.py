"""JSON that an earlier run wrote, read back as carefully as anything else."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_table import refuse

JSON_BYTES_MAX = 64 * 1024 * 1024
"""One summary of a run."""


def read_json_object(path: Path) -> dict[str, Any]:
    """The object of a JSON file; numbers with decimals as Decimal, no key twice, no NaN.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it is not one JSON object in UTF-8.
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


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        msg = "a key stands twice in one object"
        raise ValueError(msg)
    return members


def _refuse_constant(word: str) -> NoReturn:
    msg = f"{word} is no JSON number"
    raise ValueError(msg)

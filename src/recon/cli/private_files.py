"""Files with a person's data: only their owner may be able to read them, nothing is repeated."""

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from recon.model.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

SAFE_MODES = frozenset({0o600, 0o400})
Fields = TypeVar("Fields", bound="BaseModel")


def read_private(path: Path) -> dict[str, Any]:
    """The JSON object of a file that nobody else can read.

    Raises:
        ConfigurationError: others can read it, or it is not a regular file.
        ReconError: it is not there, or not one JSON object.
    """
    from recon.files.formats.json_text import read_json_object

    if path.exists():
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) or stat.S_IMODE(mode) not in SAFE_MODES:
            msg = f"{path} can be read by others (it holds private data): chmod 600 {path}"
            raise ConfigurationError(msg)
    return read_json_object(path)


def checked(model: type[Fields], fields: dict[str, Any]) -> Fields:
    """The message, or which fields are wrong; never what they hold.

    Raises:
        UsageError: naming each field that is unknown, missing or wrong.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(fields)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['type'].replace('_', ' ')}"
            for problem in error.errors(include_input=False, include_url=False)
        )
        msg = f"{problems}; nothing was sent"
        raise UsageError(msg) from None

"""Saying something at the desk from another process: one request over its Unix socket."""

import json
from collections.abc import Mapping
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any

from recon.model import errors
from recon.model.errors import ReconError, UsageError
from recon.privacy.own_sockets import SocketConnection

SECONDS_MAX = 120.0
"""How long the desk may take; it waits for its turn at the database."""
REPLY_BYTES_MAX = 16 * 1024 * 1024
_HEADERS = {"Content-Type": "application/json", "Connection": "close"}


def ask_desk(path: Path, act: str, *, body: Mapping[str, Any]) -> dict[str, Any]:
    """What the desk replies.

    Raises:
        ReconError: what the desk refused, in its words and of its kind.
        UsageError: no desk listens, or it did not reply in time.
    """
    with closing(SocketConnection(path, name="desk", seconds_max=SECONDS_MAX)) as connection:
        try:
            connection.connect()
        except OSError as error:
            msg = f"no desk listens at {path}: start `recon desk serve`; nothing was changed"
            raise UsageError(msg) from error
        try:
            connection.request("POST", f"/{act}", json.dumps(dict(body)), headers=_HEADERS)
            reply = connection.getresponse()
            answer: dict[str, Any] = json.loads(reply.read(REPLY_BYTES_MAX))
        except (HTTPException, OSError, ValueError):
            # Not chained: a protocol error may quote what was sent, and so a code.
            msg = (
                f"the desk at {path} did not reply: look at `recon status` before you say it "
                "again, for it may have been noted"
            )
            raise UsageError(msg) from None
    if reply.status != HTTPStatus.OK:
        raise _error_of(answer)
    return answer


def _error_of(answer: Mapping[str, Any]) -> ReconError:
    """The desk's error of the same kind, so that the command ends as if it had met it itself."""
    kind = getattr(errors, str(answer.get("kind", "")), UsageError)
    is_ours = isinstance(kind, type) and issubclass(kind, ReconError)
    why = str(answer.get("error", "the desk refused"))
    return kind(why) if is_ours else UsageError(why)

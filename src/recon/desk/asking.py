"""Saying something at the desk from another process: one request over its Unix socket."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from recon.model import errors
from recon.model.errors import ReconError, UsageError

SECONDS_MAX = 120.0
"""How long the desk may take; it waits for its turn at the database."""


def ask_desk(path: Path, act: str, *, body: Mapping[str, Any]) -> dict[str, Any]:
    """What the desk replies.

    Raises:
        ReconError: what the desk refused, in its words and of its kind.
        UsageError: no desk listens, or it did not reply in time.
    """
    if not path.is_socket():
        raise UsageError(_nobody(path))
    try:
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(path)), timeout=SECONDS_MAX
        ) as client:
            reply = client.post(f"http://desk/{act}", json=dict(body))
            message: dict[str, Any] = reply.json()
    except httpx.ConnectError as error:
        raise UsageError(_nobody(path)) from error
    except (httpx.HTTPError, ValueError) as error:
        msg = (
            f"the desk at {path} did not reply: look at `recon status` before you say it again, "
            "for it may have been noted"
        )
        raise UsageError(msg) from error
    if reply.status_code != httpx.codes.OK:
        raise _error_of(message)
    return message


def _nobody(path: Path) -> str:
    return f"no desk listens at {path}: start `recon desk serve`; nothing was changed"


def _error_of(reply: Mapping[str, Any]) -> ReconError:
    """The desk's error of the same kind, so that the command ends as if it had met it itself."""
    kind = getattr(errors, str(reply.get("kind", "")), UsageError)
    is_ours = isinstance(kind, type) and issubclass(kind, ReconError)
    why = str(reply.get("error", "the desk refused"))
    return kind(why) if is_ours else UsageError(why)

"""Messages to people by mail and webhooks through Apprise: sent once, within a deadline.

An address contains a password or token, which Apprise's messages may quote: neither is ever logged,
stored or shown. Of an address only the type of service and the host are shown.
"""

import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from recon.model.errors import ConfigurationError
from recon.privacy.this_machine import is_loopback

DEADLINE_SECONDS = 60.0
"""For all addresses of a message together; they are tried in parallel."""
CONNECT_TIMEOUT_SECONDS = 10.0
READ_TIMEOUT_SECONDS = 30.0
ATTACHMENT_BYTES_MAX = 10 * 1024 * 1024
"""A larger file is only named, not attached, as mail servers refuse it."""

_STATUS = re.compile(r"error=([0-9]{3})")
_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]*)://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Message:
    """A message in plain text, optionally with a file."""

    title: str
    text: str
    attachment: Path | None = None


def check_address(address: str) -> str:
    """Return type and host of an address, for display.

    Raises:
        ConfigurationError: not an address, or one that would send messages or passwords unencrypted
            or without verifying the certificate.
    """
    return _displayed(_opened(address), address=address)


def deliver(
    messages: Mapping[str, tuple[str, Message]], *, deadline_seconds: float = DEADLINE_SECONDS
) -> dict[str, str]:
    """Try each message once, all in parallel; return the problem of each by name, or "".

    Args:
        messages: Name -> (address, message).
        deadline_seconds: Deadline for all of them.
    """
    problems: dict[str, str] = {}
    finished = threading.Event()

    def send(name: str, address: str, message: Message) -> None:
        problems[name] = _problem_of(message, address=address)
        if len(problems) == len(messages):
            finished.set()

    for name, message in messages.items():
        args = (name, *message)
        threading.Thread(target=send, args=args, name=f"notice {name}", daemon=True).start()
    if messages:
        finished.wait(deadline_seconds)
    late = f"gave no answer within {deadline_seconds:.0f} s; it may have arrived"
    return {name: problems.get(name, late) for name in messages}


def _problem_of(message: Message, *, address: str) -> str:
    """Send a message; return the problem in our own words, or "" if it was accepted."""
    heard, logger = _Statuses(), _apprise_log()
    try:
        service = _opened(address)
        logger.addHandler(heard)
        taken = service.notify(title=message.title, body=message.text, attach=_attached(message))
    except ConfigurationError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a foreign text may quote the address
        return f"failed with {type(error).__name__}"
    finally:
        logger.removeHandler(heard)
    if taken:
        return ""
    why = f"answered {heard.status}" if heard.status else "did not take it, or is not there"
    return f"{_displayed(service, address=address)} {why}"


class _Statuses(logging.Handler):
    """Extracts only the HTTP status from Apprise's log messages in this thread."""

    def __init__(self) -> None:
        super().__init__()
        self.status = ""
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Record the status."""
        if record.thread == self._thread and (match := _STATUS.search(record.getMessage())):
            self.status = match[1]


def _apprise_log() -> logging.Logger:
    """Return Apprise's logger, cut off from all other handlers."""
    logger = logging.getLogger("apprise")
    logger.propagate = False
    return logger


def _opened(address: str) -> Any:
    """Return the service of an address, with timeouts set."""
    import apprise

    _apprise_log()
    scheme = _SCHEME.match(address)
    service = apprise.Apprise.instantiate(address, suppress_exceptions=True) if scheme else None
    if scheme is None or service is None:
        msg = "its address is none that Apprise knows, such as mailtos://user:password@host?to=..."
        raise ConfigurationError(msg)
    _refuse_unsafe(service, scheme=scheme[1].lower(), address=address)
    service.notify_format = apprise.NotifyFormat.TEXT
    # A redirect could lead to an unencrypted address that nobody configured.
    service.redirects = False
    service.socket_connect_timeout = CONNECT_TIMEOUT_SECONDS
    service.socket_read_timeout = READ_TIMEOUT_SECONDS
    return service


def _refuse_unsafe(service: Any, *, scheme: str, address: str) -> None:
    secure, plain = _names(service.secure_protocol), _names(service.protocol)
    if not secure:
        msg = f"{scheme} is no service of mail or webhooks"
        raise ConfigurationError(msg)
    host = _host_of(service, address=address)
    if host == "localhost" or is_loopback(host):
        return
    if scheme in plain - secure or getattr(service, "secure_mode", "") == "insecure":
        better = " or ".join(sorted(secure))
        msg = f"{scheme} is not encrypted: use {better} (plain only to this machine itself)"
        raise ConfigurationError(msg)
    if not service.verify_certificate:
        msg = f"{scheme} with verify=no: anybody on the way could read it; take that away"
        raise ConfigurationError(msg)


def _names(declared: str | tuple[str, ...] | None) -> set[str]:
    return {declared} if isinstance(declared, str) else set(declared or ())


def _host_of(service: Any, *, address: str) -> str:
    """Return the host that is called; for mail it may differ from that of the address."""
    return getattr(service, "smtp_host", None) or urlsplit(address).hostname or ""


def _displayed(service: Any, *, address: str) -> str:
    """Return type and host, or only the type of services whose host is a token."""
    scheme = address.partition("://")[0].lower()
    has_host = bool(service.protocol)
    return f"{scheme} to {_host_of(service, address=address)}" if has_host else scheme


def _attached(message: Message) -> str | None:
    path = message.attachment
    if path is None or not path.is_file() or path.stat().st_size > ATTACHMENT_BYTES_MAX:
        return None
    return str(path.absolute())

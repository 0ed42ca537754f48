"""The signer's HTTP server on a Unix socket, with limits of size, rate and time.

Its log has each request and its result, one JSON object per line, without secrets. Of a row only
ids, currency and amounts are logged; of a message that starts a payment only its operation, since
its fields may contain a card number.
"""

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from recon.instructions.account import HEALTH_PATH, MATCHES_PATH, REQUEST_BYTES_MAX, SIGN_PATH
from recon.model.errors import ConfigurationError, UsageError
from recon.privacy import own_servers
from recon.privacy.foreign_text import redacted
from recon.privacy.own_files import for_owner
from recon.privacy.own_servers import Bodies, OrderlyServer, SocketUnusableError, server_config
from recon.signer.configured import SignerFile, signer_settings
from recon.signer.signature_log import SignatureLog
from recon.signer.signing import KINDS, Signing, SigningRequest, signing_request_of

BURST_SECONDS = 2.0
"""Length of the largest burst, in seconds of the allowed rate."""


@dataclass(slots=True)
class RateLimiter:
    """Limits the number of calls per second; `seconds` is a monotonic clock."""

    calls_per_second: float
    seconds: Callable[[], float]
    _left: float = field(init=False)
    _looked_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._left = self._most
        self._looked_at = self.seconds()

    @property
    def _most(self) -> float:
        return max(1.0, self.calls_per_second * BURST_SECONDS)

    def lets_pass(self) -> bool:
        """Return whether one more call is allowed now, and count it if so."""
        now = self.seconds()
        gained = (now - self._looked_at) * self.calls_per_second
        self._left = min(self._most, self._left + gained)
        self._looked_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


VALUE_CHARACTERS_MAX = 100
DISPLAYED = (
    *("transaction_id", "order_no", "currency", "amount", "refund_amount"),
    *("request_id", "payment_amount", "payment_currency", "recurring_id"),
)


class RequestLog:
    """Log of requests, appended to a file or, without a path, to standard error."""

    def __init__(self, path: Path | None) -> None:
        """Open the file, accessible to its owner only.

        Raises:
            ConfigurationError: It cannot be written.
        """
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._descriptor = os.dup(2) if path is None else for_owner(str(path), flags)
        except OSError as error:
            msg = f"the signer's log {path} cannot be written: {error.strerror}"
            raise ConfigurationError(msg) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def note(self, answer: str, *, at: datetime, why: str = "", **fields: Any) -> None:
        """Write one line."""
        line = {"at": at.astimezone(UTC).isoformat(), "answer": answer, "why": why, **fields}
        text = json.dumps({name: value for name, value in line.items() if value != ""})
        os.write(self._descriptor, f"{text}\n".encode(errors="replace"))


def logged(signing: SigningRequest) -> dict[str, Any]:
    """Return the parts of a request that are logged."""
    head = {
        "operation": _cut(signing.template),
        "account": _cut(signing.account),
        "endorsements": len(signing.grounds.endorsements),
    }
    if signing.template not in KINDS:
        return head
    ids = [row.instruction_id for row in signing.grounds.rows]
    wires = signing.rows or (signing.fields,)
    rows = [
        _row(wire, instruction_id=ids[position] if position < len(ids) else "")
        for position, wire in enumerate(wires)
    ]
    return {**head, "rows": rows}


def _row(wire: Mapping[str, str], *, instruction_id: str) -> dict[str, str]:
    values = {"instruction_id": instruction_id, **{name: wire.get(name, "") for name in DISPLAYED}}
    return {name: _cut(value) for name, value in values.items() if value}


def _cut(text: str) -> str:
    return redacted(text)[:VALUE_CHARACTERS_MAX]


MALFORMED, REFUSED, TOO_SLOW, TOO_LARGE, TOO_OFTEN = 400, 403, 408, 413, 429


class SignerApp:
    """The HTTP handlers for the three paths; `about` is the answer to a health request."""

    def __init__(
        self,
        signing: Signing,
        *,
        log: RequestLog,
        rate_limiter: RateLimiter,
        clock: Callable[[], datetime],
        about: Mapping[str, object],
    ) -> None:
        self._signing = signing
        self._log = log
        self._rate_limiter = rate_limiter
        self._clock = clock
        self._about = dict(about)
        self._bodies = Bodies(REQUEST_BYTES_MAX)
        # Requests are signed one at a time: the book has one writer, and limits count exactly.
        self._one_by_one = asyncio.Lock()

    @property
    def routes(self) -> Starlette:
        """The application for the server."""
        return Starlette(
            routes=[
                Route(SIGN_PATH, self.sign, methods=["POST"]),
                Route(MATCHES_PATH, self.matches, methods=["POST"]),
                Route(HEALTH_PATH, self.health, methods=["GET"]),
            ]
        )

    async def sign(self, request: Request) -> JSONResponse:
        """Reply with the signature, or why there is none."""
        signing = await self._request_of(request)
        if isinstance(signing, JSONResponse):
            return signing
        async with self._one_by_one:
            answer = await run_in_threadpool(self._signing.sign, signing)
        if answer.signature:
            self._log.note("signed", at=self._clock(), **logged(signing))
            return JSONResponse({"signature": answer.signature})
        self._log.note("refused", at=self._clock(), why=answer.why_not, **logged(signing))
        rows = {str(position): why for position, why in answer.refused.items()}
        return JSONResponse({"message": answer.why_not, "refused": rows}, REFUSED)

    async def matches(self, request: Request) -> JSONResponse:
        """Reply whether a received signature is correct."""
        signing = await self._request_of(request)
        if isinstance(signing, JSONResponse):
            return signing
        return JSONResponse({"matches": self._signing.matches(signing)})

    async def health(self, _request: Request) -> JSONResponse:
        """Reply with the description of this signer."""
        return JSONResponse(self._about)

    async def _request_of(self, request: Request) -> SigningRequest | JSONResponse:
        try:
            body = await self._bodies.read(request)
        except TimeoutError:
            return self._not_heard("the body took too long", status=TOO_SLOW)
        if body is None:
            return self._not_heard(f"larger than {REQUEST_BYTES_MAX} bytes", status=TOO_LARGE)
        # Checked after the body: a client still writing one would not read a reply.
        if not self._rate_limiter.lets_pass():
            return self._not_heard("asked too often", status=TOO_OFTEN)
        try:
            return signing_request_of(json.loads(body))
        except UsageError as error:
            return self._not_heard(str(error), status=MALFORMED)
        except (ValueError, RecursionError):
            return self._not_heard("the request is not JSON", status=MALFORMED)

    def _not_heard(self, why: str, *, status: int) -> JSONResponse:
        self._log.note("not heard", at=self._clock(), why=why)
        return JSONResponse({"message": why}, status)


def sign_until_ended(
    path: Path, *, clock: Callable[[], datetime], ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called with the socket once it accepts requests.

    Raises:
        ConfigurationError: The signer's file, a key or the socket cannot be used.
    """
    settings = signer_settings(path)
    with ExitStack() as opened:
        signature_log = opened.enter_context(closing(SignatureLog(settings.file.signature_log)))
        log = opened.enter_context(closing(RequestLog(settings.file.log)))
        app = SignerApp(
            Signing(settings, signature_log=signature_log, clock=clock),
            log=log,
            rate_limiter=RateLimiter(settings.file.calls_per_second, seconds=time.monotonic),
            clock=clock,
            about={
                "uid": os.geteuid(),
                "accounts": sorted(settings.keys),
                "desk": settings.desk_key is not None,
                "by_rule": sorted(_by_rule(settings.file)),
            },
        )
        listener = opened.enter_context(closing(listening(settings.file)))
        opened.callback(settings.file.socket.unlink, missing_ok=True)
        log.note("started", at=clock(), uid=os.geteuid(), accounts=sorted(settings.keys))
        # Connections wait in the backlog from here on, so `ready` may be called before serving.
        ready(str(settings.file.socket))
        OrderlyServer(server_config(app.routes)).run(sockets=[listener])
        log.note("ended", at=clock())


def _by_rule(given: SignerFile) -> set[str]:
    return {
        f"{name} {kind.value} {currency}"
        for name, account in given.accounts.items()
        for kind, tables in account.by_rule.items()
        for currency in tables
    }


def listening(given: SignerFile) -> socket.socket:
    """Return the listening socket, open to the owner and the group that the file names.

    Raises:
        ConfigurationError: Another process listens there, or it cannot be created.
    """
    try:
        return own_servers.listening(given.socket, whose="the signer", group=given.group)
    except SocketUnusableError as error:
        raise ConfigurationError(str(error)) from error

"""The signer over HTTP on its socket: bounded in size, rate and time."""

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import datetime

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from recon.instructions.account import HEALTH_PATH, MATCHES_PATH, REQUEST_BYTES_MAX, SIGN_PATH
from recon.model.errors import UsageError
from recon.privacy.own_servers import Bodies
from recon.signer.asked_log import AskedLog, shown
from recon.signer.judging import Judge
from recon.signer.request import Asked, asked_of
from recon.signer.turnstile import Turnstile

MALFORMED, REFUSED, TOO_SLOW, TOO_LARGE, TOO_OFTEN = 400, 403, 408, 413, 429


class SignerApp:
    """What answers at the three paths; `about` is what it says of itself."""

    def __init__(
        self,
        judge: Judge,
        *,
        log: AskedLog,
        turnstile: Turnstile,
        clock: Callable[[], datetime],
        about: Mapping[str, object],
    ) -> None:
        self._judge = judge
        self._log = log
        self._turnstile = turnstile
        self._clock = clock
        self._about = dict(about)
        self._bodies = Bodies(REQUEST_BYTES_MAX)
        # One after another: the book has one writer, and a limit is counted once.
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
        """The signature, or why there is none."""
        asked = await self._asked(request)
        if isinstance(asked, JSONResponse):
            return asked
        async with self._one_by_one:
            answer = await run_in_threadpool(self._judge.sign, asked)
        if answer.signature:
            self._log.note("signed", at=self._clock(), **shown(asked))
            return JSONResponse({"signature": answer.signature})
        self._log.note("refused", at=self._clock(), why=answer.why_not, **shown(asked))
        rows = {str(position): why for position, why in answer.refused.items()}
        return JSONResponse({"told": answer.why_not, "refused": rows}, REFUSED)

    async def matches(self, request: Request) -> JSONResponse:
        """Whether a signature that came is the right one."""
        asked = await self._asked(request)
        if isinstance(asked, JSONResponse):
            return asked
        return JSONResponse({"matches": self._judge.matches(asked)})

    async def health(self, _request: Request) -> JSONResponse:
        """What this signer is."""
        return JSONResponse(self._about)

    async def _asked(self, request: Request) -> Asked | JSONResponse:
        try:
            body = await self._bodies.read(request)
        except TimeoutError:
            return self._not_heard("the body took too long", status=TOO_SLOW)
        if body is None:
            return self._not_heard(f"larger than {REQUEST_BYTES_MAX} bytes", status=TOO_LARGE)
        # Behind the body: who is still writing one does not hear an answer.
        if not self._turnstile.lets_pass():
            return self._not_heard("asked too often", status=TOO_OFTEN)
        try:
            return asked_of(json.loads(body))
        except UsageError as error:
            return self._not_heard(str(error), status=MALFORMED)
        except (ValueError, RecursionError):
            return self._not_heard("the request is not JSON", status=MALFORMED)

    def _not_heard(self, why: str, *, status: int) -> JSONResponse:
        self._log.note("not heard", at=self._clock(), why=why)
        return JSONResponse({"told": why}, status)

"""Delivers notifications over real HTTP, to this machine only, by the retries of the virtual clock.

One at a time, in the order in which they are due, so that a run can be replayed. A merchant's 2xx
acknowledges; every other answer and none lead to the next repetition.
"""

import asyncio
import ssl
from http import HTTPStatus

import httpx

from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.notify.notify_faults import sent_body
from recon.sandbox.notify.notify_rows import (
    Notification,
    State,
    next_due,
    next_instant,
    note_attempt,
)
from recon.sandbox.notify.notify_schedule import retry_seconds

ATTEMPT_SECONDS_MAX = 3.0
"""Real seconds that a merchant has for an answer."""

NAP_SECONDS_MAX = 1.0
"""Between two looks at a clock that runs by itself."""

FORM = {"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "recon-sandbox"}


class Courier:
    """The sender of one sandbox; lives as long as its application."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._turn = asyncio.Lock()
        self._work: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Begin to deliver what is due, unless it is being delivered or no server runs."""
        if (self._work and not self._work.done()) or not self._has_work():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._work = loop.create_task(self._deliver())

    async def settle(self) -> int:
        """Deliver everything that is due by now; returns how many attempts were made."""
        attempts = 0
        async with self._turn, _client() as client:
            while due := next_due(self._sandbox.book, now=self._sandbox.clock.now()):
                await self._attempt(client, number=due[0], note=due[1])
                attempts += 1
        return attempts

    def _has_work(self) -> bool:
        instant = next_instant(self._sandbox.book)
        runs = self._sandbox.options.real_clock
        return instant is not None and (runs or instant <= self._sandbox.clock.now())

    async def _deliver(self) -> None:
        await self.settle()
        while self._sandbox.options.real_clock and self._has_work():
            await asyncio.sleep(NAP_SECONDS_MAX)
            await self.settle()

    async def _attempt(self, client: httpx.AsyncClient, *, number: int, note: Notification) -> None:
        outcome, acknowledged = await _post(client, note)
        state, due_at = self._next(note, acknowledged=acknowledged)
        book = self._sandbox.book
        with book.transaction():
            note_attempt(book, number, sent=note, outcome=outcome, state=state, due_at=due_at)

    def _next(self, sent: Notification, *, acknowledged: bool) -> tuple[State, int]:
        """What becomes of a notification after an attempt, and when the next one is due."""
        if acknowledged:
            return "acknowledged", sent.due_at
        about = f"{sent.type}\x1f{sent.transaction_id}\x1f{sent.about}\x1f{sent.fault}"
        terms, seed = self._sandbox.terms.notifications, self._sandbox.options.seed
        repetitions = retry_seconds(terms, seed=seed, about=about) if sent.retried else ()
        if sent.attempts >= len(repetitions):
            return "given up", sent.due_at
        return "waiting", sent.first_at + repetitions[sent.attempts]


def _client() -> httpx.AsyncClient:
    """A client that knows no proxy, follows nothing and trusts no certificate: loopback only."""
    return httpx.AsyncClient(
        timeout=ATTEMPT_SECONDS_MAX,
        trust_env=False,
        follow_redirects=False,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    )


async def _post(client: httpx.AsyncClient, notification: Notification) -> tuple[str, bool]:
    """What the merchant answered, and whether that acknowledges; the body is not read."""
    try:
        async with (
            asyncio.timeout(ATTEMPT_SECONDS_MAX),
            client.stream(
                "POST", notification.url, content=sent_body(notification), headers=FORM
            ) as reply,
        ):
            status = reply.status_code
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        return f"no answer ({type(error).__name__})", False
    return f"HTTP {status}", HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES

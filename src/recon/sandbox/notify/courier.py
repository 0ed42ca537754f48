"""Delivers notifications over real HTTP, to this machine only, by the retries of the virtual clock.

One at a time, in the order in which they are due, so that a run can be replayed. A merchant's 2xx
acknowledges; every other answer and none lead to the next repetition.

When a notification that is not acknowledged is sent again: whole seconds on the virtual clock.

After 1 second, then doubling with jitter; a series is over after 12 hours, and three series are
played, 36 hours in all. The jitter is drawn from a digest, so that a seed replays it.
"""

import asyncio
import hashlib
import ssl
from http import HTTPStatus

import httpx

from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.sandbox_terms import Notifications
from recon.sandbox.notify.notify_events import sent_body
from recon.sandbox.notify.notify_rows import (
    Notification,
    State,
    next_due,
    next_instant,
    note_attempt,
)

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


HOUR_SECONDS = 3_600


def retry_seconds(terms: Notifications, *, seed: int, about: str) -> tuple[int, ...]:
    """When each repetition is due, seconds after the first attempt, rising."""
    series = terms.retry_series_hours * HOUR_SECONDS
    due: list[int] = []
    for number in range(terms.retry_series):
        due += [
            number * series + at
            for at in _one_series(terms, lasting=series, about=f"{seed}\x1f{about}\x1f{number}")
        ]
    return tuple(due)


def _one_series(terms: Notifications, *, lasting: int, about: str) -> list[int]:
    """Waits that double until the series is over; its last attempt is at its very end."""
    at, wait, due = 0, terms.retry_first_seconds, list[int]()
    while at < lasting:
        jitter = 1 + terms.retry_jitter_percent / 100 * _between(f"{about}\x1f{len(due)}")
        at = min(lasting, at + max(1, round(wait * jitter)))
        due.append(at)
        wait *= 2
    return due


def _between(about: str) -> float:
    """A number from -1 to 1 that is the same for the same text."""
    digest = hashlib.sha256(about.encode()).digest()
    return int.from_bytes(digest[:6]) / 2**47 - 1

"""Reading what the gateway knows: many keys in, every key answered exactly once.

Groups within the gateway's bounds go over a few kept connections. A group without an answer is
asked again behind the others, with full jitter, for as long as the patience lasts. A group refused
for its size is halved; keys a reply is silent about are asked again in smaller groups, at last
alone. What cannot be answered is `failed`, never `not_found`.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self

import httpx

from recon.gateway_client.interface.described import CHARACTERS_MAX, GatewayInterface, ReplyPolicy
from recon.gateway_client.interface.prepare import refuse_credentials
from recon.gateway_client.interface.rows import Credentials, text_pattern, text_problem
from recon.gateway_client.interface.signing import beside
from recon.gateway_client.interface.transport import Clock, RawReply, ReadConnection
from recon.gateway_client.query.pace import AccountPace, HeldTooLongError, Sleep, Turns
from recon.gateway_client.query.query_bounds import QueryLimits, grouped, http_date
from recon.gateway_client.query.query_questions import order_question, refund_question
from recon.gateway_client.query.query_reading import GroupAnswer, Record
from recon.gateway_client.query.query_refusal import (
    AgainError,
    judged_by_status,
    note_pace,
)
from recon.gateway_client.query.query_reply import OrderRecord
from recon.gateway_client.query.query_work import Answers, GroupQuestion, Work
from recon.gateway_client.query.refund_reply import RefundRecord
from recon.gateway_client.wire.request_body import request_body
from recon.gateway_client.wire.route import DIRECT, Route, checked_proxy, trust
from recon.gateway_client.wire.wire_errors import (
    CertificateError,
    NotSentError,
    QueryRefusedError,
    UnknownOutcomeError,
)

WAIT_FIRST_SECONDS = 0.5
WAIT_MAX_SECONDS = 10.0
DOUBLINGS_MAX = 16
IDLE_SECONDS = 0.005

QueryAnswers = Answers[OrderRecord]
"""All payments of every order or transaction that was asked about."""

RefundAnswers = Answers[RefundRecord]
"""All refunds of every order or reference that was asked about."""


def _nobody(_: int) -> None:
    """Nobody counts."""


class QueryClient:
    """Asks the gateway about orders; a context manager that holds one connection per worker.

    Args:
        base_url: https, or http to a loopback literal.
        credentials: Who asks.
        interface: Bounds, fields and codes.
        policy: What a reply's signature must be.
        clock: Gives `queried_at`, and reads dates of Retry-After.
        limits: Bounds of reading.
        randomness: For the waits between attempts; without one each wait is as long as it may be.
        sleep: How to wait; a test passes its own.
        pace: What earlier clients of this account have learnt of its pace, and its clock.
        route: Whom to trust, as whom to appear, by which proxy.
        transport: Takes the place of the network, such as httpx.MockTransport; it stays open.
        answered: Hears of how many keys each reply was that answered some.
    """

    def __init__(  # noqa: PLR0913 - everything a client depends on is passed in, by name
        self,
        *,
        base_url: str,
        credentials: Credentials,
        interface: GatewayInterface,
        policy: ReplyPolicy,
        clock: Clock,
        limits: QueryLimits | None = None,
        randomness: random.Random | None = None,
        sleep: Sleep = asyncio.sleep,
        pace: AccountPace | None = None,
        route: Route = DIRECT,
        transport: httpx.AsyncBaseTransport | None = None,
        answered: Callable[[int], None] = _nobody,
    ) -> None:
        refuse_credentials(credentials, interface=interface)
        self._base_url = base_url
        self._credentials = credentials
        self._interface = interface
        self._policy = policy
        self._clock = clock
        self._limits = limits or QueryLimits()
        self._randomness = randomness
        self._sleep = sleep
        self._route = route
        self._transport = transport
        self._answered = answered
        self._stack = AsyncExitStack()
        self._connections: list[ReadConnection] = []
        self._pace = pace or AccountPace(
            calls_per_second=self._limits.calls_per_second,
            in_flight=self._limits.in_flight,
            patience_seconds=self._limits.patience_seconds,
        )
        self._turns = Turns(self._pace, sleep=sleep)

    async def __aenter__(self) -> Self:
        trusted = trust(self._base_url, route=self._route)
        proxy = checked_proxy(self._route, base_url=self._base_url)
        for _ in range(self._limits.in_flight):
            connection = ReadConnection(
                base_url=self._base_url,
                clock=self._clock,
                connect_seconds=self._limits.connect_seconds,
                deadline_seconds=self._limits.deadline_seconds,
                trusted=trusted,
                proxy=proxy,
                transport=self._transport,
            )
            self._connections.append(await self._stack.enter_async_context(connection))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connections.clear()
        await self._stack.aclose()

    async def query(
        self, *, order_nos: Iterable[str] = (), trades: Iterable[str] = ()
    ) -> QueryAnswers:
        """What the gateway knows of these order numbers, or of these transaction ids.

        Raises:
            QueryRefusedError: no query can succeed before a person changes something.
            UnsignedError: whoever holds the key does not sign; nothing was asked.
            CertificateError: the gateway's certificate was not accepted.
        """
        keys, by_transaction = _either(order_nos, trades, named="transaction id")
        asking = partial(
            order_question,
            self._interface,
            policy=self._policy,
            credentials=self._credentials,
            by_transaction=by_transaction,
        )
        return await self._answers(await beside(self._credentials, asking), keys=keys)

    async def refunds(
        self, *, order_nos: Iterable[str] = (), references: Iterable[str] = ()
    ) -> RefundAnswers:
        """The refunds of these order numbers, or those that carry these references of ours.

        Raises:
            InterfaceError: the profile has no refund search.
            QueryRefusedError: no query can succeed before a person changes something.
            UnsignedError: whoever holds the key does not sign; nothing was asked.
            CertificateError: the gateway's certificate was not accepted.
        """
        keys, by_reference = _either(order_nos, references, named="our reference")
        asking = partial(
            refund_question,
            self._interface,
            policy=self._policy,
            credentials=self._credentials,
            by_reference=by_reference,
        )
        return await self._answers(await beside(self._credentials, asking), keys=keys)

    async def _answers(
        self, question: GroupQuestion[Record], *, keys: Sequence[str]
    ) -> Answers[Record]:
        """Every key asked and answered; keys that must not be sent are failed at once."""
        kind = question.reading.kind
        # One look for the many; the reason is asked for the few.
        fits = text_pattern(kind, interface=self._interface).fullmatch
        longest = self._interface.profile.lengths.get(kind, CHARACTERS_MAX)
        odd = [key for key in keys if not (key and fits(key) and len(key) <= longest)]
        problems = {
            key: text_problem(kind, text=key, interface=self._interface) if key else "is empty"
            for key in odd
        }
        groups = grouped(
            [key for key in keys if key not in problems],
            rows_max=question.rows_max,
            characters_max=self._interface.profile.query_characters_max,
        )
        work = Work(
            question,
            groups=deque(groups),
            rows_max=question.rows_max,
            failed={key: f"not asked: the {kind} {why}" for key, why in problems.items()},
        )
        await self._run(work)
        return work.answers(keys)

    async def _run(self, work: Work[Record]) -> None:
        """All groups, over all connections; the first refusal of everything ends it."""
        try:
            async with asyncio.TaskGroup() as workers:
                for connection in self._connections:
                    workers.create_task(self._worker(work, connection=connection))
        except* (QueryRefusedError, CertificateError) as refusals:
            refusal = refusals.exceptions[0]
        else:
            return
        raise refusal

    async def _worker(self, work: Work[Record], *, connection: ReadConnection) -> None:
        misses = 0
        while work.is_open:
            group = work.next_group()
            if not group:
                # Another worker may still halve what it holds; a short wait is cheaper than a lock.
                await asyncio.sleep(IDLE_SECONDS)
                continue
            work.open_groups += 1
            try:
                is_answered = await self._ask(group, work=work, connection=connection)
            finally:
                work.open_groups -= 1
            misses = 0 if is_answered else misses + 1
            if misses:
                await self._sleep(self._backoff(misses))

    async def _ask(
        self, keys: tuple[str, ...], *, work: Work[Record], connection: ReadConnection
    ) -> bool:
        """Ask about a group once; False when it is to be asked again for want of an answer."""
        if work.is_hopeless(self._pace):
            work.abandon(keys, pace=self._pace)
            return True
        try:
            answer = await self._call(keys, work=work, connection=connection)
        except HeldTooLongError as error:
            work.abandon(keys, pace=self._pace, why=str(error))
            return True
        except AgainError as error:
            return not work.miss(keys, reason=str(error), pace=self._pace)
        self._pace.answered()
        work.take(answer, keys=keys)
        self._answered(len(keys))
        return True

    def _backoff(self, misses: int) -> float:
        """Full jitter over a doubling bound; what the gateway asked to wait is the pace's."""
        bound = min(WAIT_MAX_SECONDS, WAIT_FIRST_SECONDS * 2 ** min(misses - 1, DOUBLINGS_MAX))
        bound = max(0.0, min(bound, self._pace.seconds_left))
        return bound if self._randomness is None else self._randomness.uniform(0, bound)

    async def _call(
        self, keys: tuple[str, ...], *, work: Work[Record], connection: ReadConnection
    ) -> GroupAnswer[Record]:
        """One HTTP call; raises AgainError for what may be repeated."""
        before = work.patient_until(keys, pace=self._pace)
        async with self._turns.turn(before=before) as turn:
            work.calls += 1
            try:
                raw = await self._send(keys, work=work, connection=connection)
            except CertificateError:
                raise
            except (NotSentError, UnknownOutcomeError) as error:
                raise AgainError(str(error)) from error
            # Before its place in flight is given on: a Retry-After holds the next call already.
            note_pace(raw, pace=self._pace, turn=turn, now=self._clock())
        answer = judged_by_status(raw, now=self._clock()) or work.question.read(
            keys, raw=raw, reading=work.question.reading
        )
        if answer.refusal is not None and answer.may_repeat:
            raise AgainError(answer.reason)
        if answer.records or answer.not_found:
            work.dates.append(http_date(raw.headers.get("date", "")))
        return answer

    async def _send(
        self, keys: Sequence[str], *, work: Work[Record], connection: ReadConnection
    ) -> RawReply:
        question = work.question
        message = {
            "merchant_id": self._credentials.merchant_id,
            "account_id": self._credentials.account_id,
            question.keys_field: ",".join(keys),
            "encryption_data": question.reading.signature,
        }
        return await connection.call(
            path=question.path,
            content_type=question.content_type,
            body=request_body(message, body=question.body),
        )


def _either(
    order_nos: Iterable[str], others: Iterable[str], *, named: str
) -> tuple[tuple[str, ...], bool]:
    """The keys of the one kind that is asked by, each once; whether they are not order numbers."""
    orders, other = tuple(dict.fromkeys(order_nos)), tuple(dict.fromkeys(others))
    if orders and other:
        msg = f"ask by order number or by {named}, not by both at once"
        raise ValueError(msg)
    return orders or other, bool(other)

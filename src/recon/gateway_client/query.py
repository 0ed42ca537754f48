"""Reading what the gateway knows: many keys in, every key answered exactly once.

Groups within the gateway's bounds go over a few kept connections, repeated with full jitter within
a total time. A group refused for its size is halved; keys a reply is silent about are asked again
in smaller groups, at last alone. What cannot be answered is `failed`, never `not_found`.
"""

import asyncio
import json
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import tenacity

from recon.gateway_client.errors import (
    CertificateError,
    NotSentError,
    QueryRefusedError,
    UnknownOutcomeError,
)
from recon.gateway_client.interface import GatewayInterface, ReplyPolicy
from recon.gateway_client.outcomes import Finding
from recon.gateway_client.pace import Pace
from recon.gateway_client.prepare import refuse_credentials
from recon.gateway_client.query_bounds import QueryLimits, grouped
from recon.gateway_client.query_refusal import (
    SLOW_DOWN_STATUSES,
    AgainError,
    judged_by_status,
    stop_for,
)
from recon.gateway_client.query_reply import (
    QUERY,
    FailedKey,
    GroupAnswer,
    KeyKind,
    OrderRecord,
    QueryReading,
    read_query_reply,
)
from recon.gateway_client.rows import Credentials, text_problem
from recon.gateway_client.signing import sign
from recon.gateway_client.transport import (
    Clock,
    RawReply,
    ReadConnection,
    trust,
)

WAIT_FIRST_SECONDS = 0.5
WAIT_MAX_SECONDS = 30.0
FAILURES_IN_A_ROW_MAX = 6
"""After so many groups without any answer the rest is not asked any more."""

ALONE_FROM = 4
"""So few silent keys are asked one by one, more of them in halves."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class QueryAnswers:
    """Every key that was asked stands in exactly one of found, not_found and failed."""

    found: tuple[OrderRecord, ...]
    """All attempts of every key, in the order of the keys."""
    not_found: tuple[str, ...]
    failed: tuple[FailedKey, ...]
    findings: tuple[Finding, ...]
    calls: int
    """HTTP calls made, repeated ones included."""


@dataclass(frozen=True, slots=True)
class _Group:
    keys: tuple[str, ...]


@dataclass(slots=True)
class _Work:
    """One query on its way: groups still to ask, answers so far."""

    reading: QueryReading
    groups: deque[_Group]
    rows_max: int
    records: dict[str, list[OrderRecord]] = field(default_factory=dict)
    not_found: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    calls: int = 0
    open_groups: int = 0
    failures_in_a_row: int = 0
    last_failure: str = ""


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
        ca_file: Certificates to trust instead of the system's.
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
        ca_file: Path | None = None,
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
        self._ca_file = ca_file
        self._stack = AsyncExitStack()
        self._connections: list[ReadConnection] = []
        self._pace = Pace(
            calls_per_second=self._limits.calls_per_second, in_flight=self._limits.in_flight
        )

    async def __aenter__(self) -> Self:
        trusted = trust(self._base_url, ca_file=self._ca_file)
        for _ in range(self._limits.in_flight):
            connection = ReadConnection(
                base_url=self._base_url,
                clock=self._clock,
                connect_seconds=self._limits.connect_seconds,
                deadline_seconds=self._limits.deadline_seconds,
                trusted=trusted,
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
            CertificateError: the gateway's certificate was not accepted.
        """
        orders, transactions = tuple(dict.fromkeys(order_nos)), tuple(dict.fromkeys(trades))
        if orders and transactions:
            msg = "ask by order number or by transaction id, not by both at once"
            raise ValueError(msg)
        kind = KeyKind.TRANSACTION_ID if transactions else KeyKind.ORDER_NO
        keys = orders or transactions
        work = self._work(keys, kind=kind)
        await self._run(work)
        return QueryAnswers(
            found=tuple(record for key in keys for record in work.records.get(key, ())),
            not_found=tuple(key for key in keys if key in work.not_found),
            failed=tuple(FailedKey(key, work.failed[key]) for key in keys if key in work.failed),
            findings=tuple(sorted(work.findings, key=lambda finding: (finding.kind, str(finding)))),
            calls=work.calls,
        )

    def _work(self, keys: Sequence[str], *, kind: KeyKind) -> _Work:
        signature = sign(QUERY, fields={}, credentials=self._credentials, interface=self._interface)
        reading = QueryReading(self._interface, self._policy, self._credentials, signature, kind)
        problems = {key: text_problem(kind, text=key, interface=self._interface) for key in keys}
        good = [key for key in keys if not problems[key]]
        description = self._interface.profile.query.retrievalTrans
        groups = grouped(
            good,
            rows_max=description.rows_max,
            characters_max=self._interface.profile.query_characters_max,
        )
        failed = {key: f"not asked: the {kind} {why}" for key, why in problems.items() if why}
        return _Work(
            reading,
            deque(_Group(group) for group in groups),
            rows_max=description.rows_max,
            failed=failed,
        )

    async def _run(self, work: _Work) -> None:
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

    async def _worker(self, work: _Work, *, connection: ReadConnection) -> None:
        while work.groups or work.open_groups:
            if not work.groups:
                # Another worker may still halve what it holds; a short wait is cheaper than a lock.
                await asyncio.sleep(0.005)
                continue
            group = work.groups.popleft()
            if len(group.keys) > work.rows_max:
                work.groups.extendleft(reversed(_halves(group.keys)))
                continue
            work.open_groups += 1
            try:
                await self._ask(group, work=work, connection=connection)
            finally:
                work.open_groups -= 1

    async def _ask(self, group: _Group, *, work: _Work, connection: ReadConnection) -> None:
        if work.failures_in_a_row >= FAILURES_IN_A_ROW_MAX:
            _fail(work, keys=group.keys, reason=f"not asked any more: {work.last_failure}")
            return
        attempts = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self._limits.attempts)
            | tenacity.stop_before_delay(self._limits.total_seconds),
            wait=self._wait,
            retry=tenacity.retry_if_exception_type(AgainError),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            answer: GroupAnswer = await attempts(
                self._call, group.keys, work=work, connection=connection
            )
        except AgainError as error:
            work.failures_in_a_row += 1
            work.last_failure = str(error)
            _fail(work, keys=group.keys, reason=str(error))
            return
        self._take(answer, group=group, work=work)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Full jitter over a doubling bound; what the gateway asked for comes first."""
        bound = min(WAIT_MAX_SECONDS, WAIT_FIRST_SECONDS * 2 ** (state.attempt_number - 1))
        jitter = bound if self._randomness is None else self._randomness.uniform(0, bound)
        error = state.outcome.exception() if state.outcome else None
        asked = error.wait_seconds if isinstance(error, AgainError) else 0.0
        return asked + jitter if asked else jitter

    async def _call(
        self, keys: Sequence[str], *, work: _Work, connection: ReadConnection
    ) -> GroupAnswer:
        """One HTTP call; raises AgainError for what may be repeated."""
        async with self._pace.turn():
            work.calls += 1
            try:
                raw = await self._send(keys, work=work, connection=connection)
            except CertificateError:
                raise
            except (NotSentError, UnknownOutcomeError) as error:
                raise AgainError(str(error)) from error
        if raw.status in SLOW_DOWN_STATUSES:
            self._pace.slow_down()
        answer = judged_by_status(raw, now=self._clock()) or read_query_reply(
            keys, raw=raw, reading=work.reading
        )
        if answer.refusal is not None and answer.may_repeat:
            raise AgainError(answer.reason)
        self._pace.went_well()
        return answer

    async def _send(
        self, keys: Sequence[str], *, work: _Work, connection: ReadConnection
    ) -> RawReply:
        description = self._interface.profile.query.retrievalTrans
        by_order = work.reading.kind is KeyKind.ORDER_NO
        name = description.order_nos_field if by_order else description.transaction_ids_field
        fields = {
            "merchant_id": self._credentials.merchant_id,
            "account_id": self._credentials.account_id,
            name: ",".join(keys),
            "encryption_data": work.reading.signature,
        }
        text = urlencode(fields) if description.body == "form" else json.dumps(fields)
        return await connection.call(
            path=description.path, content_type=description.content_type, body=text.encode()
        )

    def _take(self, answer: GroupAnswer, *, group: _Group, work: _Work) -> None:
        """Book an answer; what it leaves open becomes smaller groups at the front."""
        work.findings.extend(answer.findings)
        if answer.refusal in {"address", "signature", "merchant"}:
            stop_for(answer)
        if answer.refusal is not None:
            self._take_refusal(answer, group=group, work=work)
            return
        work.failures_in_a_row = 0
        for record in answer.records:
            work.records.setdefault(record.key, []).append(record)
        work.not_found.update(answer.not_found)
        work.failed.update(answer.failed)
        self._take_silence(answer.missing, group=group, work=work)

    def _take_refusal(self, answer: GroupAnswer, *, group: _Group, work: _Work) -> None:
        if answer.refusal == "system" or len(group.keys) == 1:
            work.failures_in_a_row += 1
            work.last_failure = answer.reason
            _fail(work, keys=group.keys, reason=answer.reason)
            return
        halves = _halves(group.keys)
        if answer.refusal == "too_many":
            work.rows_max = min(work.rows_max, len(halves[0].keys))
        work.groups.extendleft(reversed(halves))

    def _take_silence(self, missing: Sequence[str], *, group: _Group, work: _Work) -> None:
        if not missing:
            return
        if len(group.keys) == 1:
            if self._interface.status_map.query.row_missing_when_asked_alone == "not_found":
                work.not_found.update(missing)
            else:
                _fail(work, keys=missing, reason="the gateway's reply has no row for it")
        elif len(missing) <= ALONE_FROM:
            work.groups.extendleft(_Group((key,)) for key in reversed(missing))
        else:
            work.groups.extendleft(reversed(_halves(missing)))


def _halves(keys: Sequence[str]) -> list[_Group]:
    middle = (len(keys) + 1) // 2
    return [_Group(tuple(keys[:middle])), _Group(tuple(keys[middle:]))]


def _fail(work: _Work, *, keys: Iterable[str], reason: str) -> None:
    for key in keys:
        work.failed[key] = reason

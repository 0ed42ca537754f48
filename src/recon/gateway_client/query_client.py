"""Reading what the gateway knows: many keys in, every key answered exactly once.

`QueryClient._ask` is the way of a group of keys from top to bottom: a group without an answer is
asked again behind the others, with full jitter, for as long as the patience lasts; one refused for
its size is halved; keys a reply is silent about are asked again in smaller groups, at last alone.
What cannot be answered is `failed`, never `not_found`. Reads are safe to repeat.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self

from recon.gateway_client import errors
from recon.gateway_client.batches import refuse_account
from recon.gateway_client.interface import OurAccount, ReadOperation
from recon.gateway_client.messages import request_body, text_problem
from recon.gateway_client.pace import AccountPace, HeldTooLongError, Sleep, Turns
from recon.gateway_client.query_records import (
    QUERY,
    REFUND_QUERY,
    GroupAnswer,
    KeyKind,
    OrderRecord,
    Record,
    RefundRecord,
    read_group,
)
from recon.gateway_client.replies import ReplyContext, ReplyFinding
from recon.gateway_client.transport import RawReply, Read, Transport

WAIT_FIRST_SECONDS, WAIT_MAX_SECONDS = 0.5, 10.0
"""Bounds of the wait after the first call without an answer, and after many."""
DOUBLINGS_MAX = 16
FAILURES_IN_A_ROW_MAX = 6
"""After so many groups without an answer to use the rest is not asked any more."""
ALONE_FROM = 4
"""So few silent keys are asked one by one, more of them in halves."""

REFUSALS: dict[str, tuple[type[errors.QueryRefusedError], str, str]] = {
    "address": (
        errors.AddressNotRegisteredError,
        "refuses queries from this address",
        "register the outgoing IP address of this machine with the gateway",
    ),
    "signature": (
        errors.SignatureRefusedError,
        "refused our signature",
        "check the sign key and the templates of signature.toml",
    ),
    "merchant": (
        errors.MerchantRefusedError,
        "does not know this merchant or account",
        "check both ids",
    ),
}
"""What a person must cure before any query can succeed, and how."""


class FailedKey(NamedTuple):
    """A key without an answer that can be used; it says nothing about the payment."""

    key: str
    reason: str


@dataclass(frozen=True)  # with slots a generic alias of it could not be called (Python 3.11)
class Answers(Generic[Record]):
    """Every key that was asked stands in exactly one of found, not_found and failed."""

    found: tuple[Record, ...]
    """All records of every key, in the order of the keys."""
    not_found: tuple[str, ...]
    """Keys that the gateway knows nothing of."""
    failed: tuple[FailedKey, ...]
    findings: tuple[ReplyFinding, ...]
    calls: int
    """HTTP calls made, repeated ones included."""
    gateway_at: datetime | None = None
    """The earliest Date of the replies that answered; None where one of them had none."""


QueryAnswers = Answers[OrderRecord]
"""All payments of every order or transaction that was asked about."""

RefundAnswers = Answers[RefundRecord]
"""All refunds of every order or reference that was asked about."""


class QueryClient:
    """Asks the gateway about orders; a context manager that holds one connection per worker.

    Args:
        transport: The way to the gateway.
        account: Who asks.
        pace: How fast, what earlier clients of this account have learnt of that, and its clock.
        randomness: For the waits between attempts; without one each wait is as long as it may be.
        sleep: How to wait; a test passes its own.
        answered: Hears of how many keys each reply was that answered some.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        account: OurAccount,
        pace: AccountPace,
        randomness: random.Random | None = None,
        sleep: Sleep = asyncio.sleep,
        answered: Callable[[int], None] = lambda _: None,
    ) -> None:
        refuse_account(account)
        self._transport, self._account, self._pace = transport, account, pace
        self._randomness, self._sleep = randomness, sleep
        self._answered = answered
        self._stack = AsyncExitStack()
        self._reads: list[Read] = []
        self._turns = Turns(pace, sleep=sleep)

    async def __aenter__(self) -> Self:
        for _ in range(self._pace.limits.in_flight):
            self._reads.append(await self._stack.enter_async_context(self._transport.reading()))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reads.clear()
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
        silence = self._account.interface.status_map.query.row_missing_when_asked_alone
        asked = {KeyKind.ORDER_NO: order_nos, KeyKind.TRANSACTION_ID: trades}
        return await self._answers(QUERY, asked, is_silence_absence=silence == "not_found")

    async def refunds(
        self, *, order_nos: Iterable[str] = (), references: Iterable[str] = ()
    ) -> RefundAnswers:
        """The refunds of these order numbers, or those that carry these references of ours.

        Raises:
            InterfaceError: the profile has no refund search; only `extended` has.
            QueryRefusedError: no query can succeed before a person changes something.
            UnsignedError: whoever holds the key does not sign; nothing was asked.
            CertificateError: the gateway's certificate was not accepted.
        """
        silence = self._account.interface.status_map.query.refund_missing_when_asked_alone
        asked = {KeyKind.ORDER_NO: order_nos, KeyKind.REFUND_REFERENCE: references}
        return await self._answers(REFUND_QUERY, asked, is_silence_absence=silence == "not_found")

    async def _answers(
        self, operation: str, kinds: dict[KeyKind, Iterable[str]], *, is_silence_absence: bool
    ) -> Answers[Any]:
        """Every key of the one kind that is asked by, each once."""
        described: ReadOperation | None = getattr(self._account.interface.profile.query, operation)
        if described is None:
            msg = f"profiles.toml describes no {operation}; only the profile extended has it"
            raise errors.InterfaceError(msg)
        given = {kind: tuple(dict.fromkeys(keys)) for kind, keys in kinds.items()}
        asked = [kind for kind, keys in given.items() if keys]
        if len(asked) > 1:
            msg = f"ask by {asked[0]} or by {asked[1]}, not by both at once"
            raise ValueError(msg)
        kind = asked[0] if asked else KeyKind.ORDER_NO
        context = ReplyContext(
            operation=operation,
            signature=await self._account.beside(partial(self._account.sign, operation, fields={})),
            account=self._account,
            rows_field=described.rows_field,
            must_name_account=False,
        )
        query = _Query(
            given[kind],
            kind=kind,
            described=described,
            context=context,
            is_silence_absence=is_silence_absence,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                workers = [tasks.create_task(self._work(query, one)) for one in self._reads]
                await query.waiting.join()
                for worker in workers:
                    worker.cancel()
        except* (errors.QueryRefusedError, errors.CertificateError) as refusals:
            refusal = refusals.exceptions[0]
        else:
            return query.answers()
        raise refusal

    async def _work(self, query: "_Query", read: Read) -> None:
        while True:
            group = await query.waiting.get()
            try:
                await self._ask(query, group, read)
            finally:
                query.waiting.task_done()

    async def _ask(self, query: "_Query", group: "_Group", read: Read) -> None:
        """Ask about a group until each of its keys has ended, or put it back behind the others.

        The smaller groups that come of it are asked here, one after the other, so that a refusal
        that no halving cures is known after few calls.
        """
        keys = group.keys
        if self._is_hopeless(query):
            query.abandon(group, why=self._pace.closed_because)
            return
        if len(keys) > query.group_max:  # learnt since the group was made
            await self._ask_each(query, _halves(keys), read)
            return
        try:
            answer = await self._call(query, group, read)
        except HeldTooLongError as error:
            query.abandon(group, why=str(error))
            return
        except _NoAnswerError as error:
            await self._put_back(query, group, reason=str(error))
            return
        self._pace.answered()
        query.misses = 0
        query.findings.extend(answer.findings)
        if answer.refusal in REFUSALS:
            kind, what, cure = REFUSALS[answer.refusal]
            msg = f"the gateway {what} ({answer.reason}): {cure}"
            raise kind(msg)
        if answer.refusal is None:
            query.book(answer)
            self._answered(len(keys))
            if answer.missing and len(keys) == 1:
                query.end_silent(keys[0])
            elif len(answer.missing) <= ALONE_FROM:
                await self._ask_each(query, [(key,) for key in answer.missing], read)
            else:
                await self._ask_each(query, _halves(answer.missing), read)
        elif answer.refusal == "system" or len(keys) == 1:
            query.refused += 1
            query.last_failure = answer.reason
            query.fail(keys, answer.reason)
        else:
            halves = _halves(keys)
            if answer.refusal == "too_many":
                query.group_max = min(query.group_max, len(halves[0]))
            await self._ask_each(query, halves, read)

    async def _ask_each(
        self, query: "_Query", groups: Iterable[tuple[str, ...]], read: Read
    ) -> None:
        for keys in groups:
            await self._ask(query, _Group(keys), read)

    async def _call(self, query: "_Query", group: "_Group", read: Read) -> GroupAnswer[Any]:
        """One HTTP call, and what its reply says.

        Raises:
            HeldTooLongError: the wait for it would be too long; none was made.
            _NoAnswerError: it failed, or what came says nothing; it may be repeated.
        """
        since = self._pace.seconds() if group.missed is None else group.missed.since
        async with self._turns.turn(before=since + self._pace.patience_seconds) as turn:
            query.calls += 1
            try:
                raw = await read(query.described, query.body(group.keys))
            except errors.CertificateError:
                raise
            except (errors.NotSentError, errors.UnknownOutcomeError) as error:
                raise _NoAnswerError(str(error)) from error
            # Before its place in flight is given on: a Retry-After holds the next call already.
            self._pace.heed(raw, turn=turn)
        answer = _answer_of_status(raw) or read_group(
            group.keys, raw=raw, context=query.context, kind=query.kind
        )
        if answer.may_repeat:
            raise _NoAnswerError(answer.reason)
        if answer.records or answer.not_found:
            query.dates.append(raw.dated)
        return answer

    async def _put_back(self, query: "_Query", group: "_Group", *, reason: str) -> None:
        """A call without an answer: its group is asked again behind the others, or has failed."""
        pace = self._pace
        pace.missed()
        query.misses += 1
        query.last_failure = reason
        now = pace.seconds()
        since = now if group.missed is None else group.missed.since
        group = _Group(group.keys, _Missed(since, now, reason))
        if now + pace.held_seconds >= since + pace.patience_seconds:
            query.abandon(group)
            return
        query.waiting.put_nowait(group)
        # Full jitter below a bound that doubles; what the gateway asked to wait is the pace's.
        bound = WAIT_FIRST_SECONDS * 2 ** min(query.misses - 1, DOUBLINGS_MAX)
        patience_left = since + pace.patience_seconds - now
        bound = max(0.0, min(WAIT_MAX_SECONDS, bound, patience_left, pace.seconds_left))
        await self._sleep(self._randomness.uniform(0, bound) if self._randomness else bound)

    def _is_hopeless(self, query: "_Query") -> bool:
        """Whether nothing more is worth asking: all is refused, or nobody answers."""
        if query.refused >= FAILURES_IN_A_ROW_MAX or self._pace.closed_because:
            return True
        return query.misses >= FAILURES_IN_A_ROW_MAX and self._pace.has_been_silent_too_long


class _NoAnswerError(Exception):
    """A call that told nothing; it may be repeated."""


class _Missed(NamedTuple):
    """Calls about a group that nobody answered."""

    since: float
    """When the first of them had failed, by the clock of the pace."""
    last: float
    reason: str
    """Of the last one."""


class _Group(NamedTuple):
    """Keys that are asked at once."""

    keys: tuple[str, ...]
    missed: _Missed | None = None


class _Query:
    """One query on its way: the groups that wait, and how each key has ended so far."""

    def __init__(
        self,
        keys: tuple[str, ...],
        *,
        kind: KeyKind,
        described: ReadOperation,
        context: ReplyContext,
        is_silence_absence: bool,
    ) -> None:
        self.kind, self.described, self.context = kind, described, context
        self.group_max = described.rows_max
        self.waiting: asyncio.Queue[_Group] = asyncio.Queue()
        self.findings: list[ReplyFinding] = []
        self.dates: list[datetime | None] = []
        """The Date of each reply that answered some key."""
        self.calls = 0
        self.misses = self.refused = 0
        """Calls without an answer, and groups refused, one after the other."""
        self.last_failure = ""
        self._keys, self._is_silence_absence = keys, is_silence_absence
        self._ended: dict[str, tuple[Any, ...] | str | None] = {}
        """Key -> its records, or why it failed, or None: not found. It ends in one way only."""
        for key in keys:
            problem = text_problem(kind, text=key, interface=context.account.interface)
            if problem := problem if key else "is empty":
                self.fail([key], f"not asked: the {kind} {problem}")
        characters_max = context.account.interface.profile.query_characters_max
        may_be_sent = [key for key in keys if key not in self._ended]
        for group in grouped(
            may_be_sent, rows_max=described.rows_max, characters_max=characters_max
        ):
            self.waiting.put_nowait(_Group(group))

    def body(self, keys: Sequence[str]) -> bytes:
        """The request about a group."""
        fields = {self.described.keys[self.kind.value]: ",".join(keys)}
        message = self.context.account.message(fields, signature=self.context.signature)
        return request_body(message, body=self.described.body)

    def book(self, answer: GroupAnswer[Any]) -> None:
        """The keys that have ended with this answer."""
        self.refused = 0
        for record in answer.records:
            known = self._ended.get(record.key)
            self._ended[record.key] = (*(known if isinstance(known, tuple) else ()), record)
        self._ended |= {**dict.fromkeys(answer.not_found), **answer.failed}

    def end_silent(self, key: str) -> None:
        """A key that was asked alone and has no row."""
        why = "the gateway's reply has no row for it"
        self._ended[key] = None if self._is_silence_absence else why

    def fail(self, keys: Iterable[str], reason: str) -> None:
        """Keys without an answer."""
        self._ended |= dict.fromkeys(keys, reason)

    def abandon(self, group: _Group, *, why: str = "") -> None:
        """A group that is not asked again, or was not asked at all."""
        missed = group.missed
        if missed is None:
            self.fail(group.keys, f"not asked any more: {why or self.last_failure}")
            return
        seconds = missed.last - missed.since
        again = f"; asked again for {seconds:.0f} s" if seconds >= 1 else ""
        self.fail(group.keys, f"{missed.reason}{again}")

    def answers(self) -> Answers[Any]:
        """What came of all keys, in an order that does not depend on which worker was first."""
        ended = [(key, self._ended[key]) for key in self._keys]
        return Answers(
            found=tuple(one for _, end in ended if isinstance(end, tuple) for one in end),
            not_found=tuple(key for key, end in ended if end is None),
            failed=tuple(FailedKey(key, end) for key, end in ended if isinstance(end, str)),
            findings=tuple(sorted(self.findings, key=lambda one: (one.kind, str(one)))),
            calls=self.calls,
            gateway_at=None if None in self.dates else min(filter(None, self.dates), default=None),
        )


def _answer_of_status(raw: RawReply) -> GroupAnswer[Any] | None:
    """What the HTTP status alone decides; None when the body must be read."""
    reason = f"the gateway answered HTTP {raw.status}"
    match raw.meaning:
        case "read":
            return None
        case "no_access":
            return GroupAnswer("address", reason)
        case "refused":
            return GroupAnswer("parameters", reason)
        case "busy":
            seconds = raw.retry_after_seconds
            wait = f" and asked to wait {seconds:.0f} s" if seconds else ""
            return GroupAnswer("system", reason + wait, may_repeat=True)
        case _:
            return GroupAnswer("system", reason)


def grouped(keys: Sequence[str], *, rows_max: int, characters_max: int) -> list[tuple[str, ...]]:
    """Keys in groups of at most `rows_max` whose comma-joined text fits; 0 characters: no bound."""
    groups: list[tuple[str, ...]] = []
    group: list[str] = []
    characters = 0
    for key in keys:
        longer = characters + len(key) + (1 if group else 0)
        if group and (len(group) >= rows_max or (characters_max and longer > characters_max)):
            groups.append(tuple(group))
            group, longer = [], len(key)
        group.append(key)
        characters = longer
    return [*groups, tuple(group)] if group else groups


def _halves(keys: Sequence[str]) -> list[tuple[str, ...]]:
    middle = (len(keys) + 1) // 2
    return [tuple(keys[:middle]), tuple(keys[middle:])]

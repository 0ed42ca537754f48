"""The gateway for separate programs: one account, every operation, an outcome for each row.

`AsyncGateway` is for asyncio, `Gateway` for everything else. Money requests are sent once and never
retried; failures are outcomes (`NOT_SENT`, `UNKNOWN`), not exceptions. A caller with a journal uses
the phases underneath: `prepare`, `Transport.send`, `read_batch_reply`.
"""

import asyncio
import os
import random
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from pydantic import SecretStr

from recon.gateway_client.batches import (
    CancelRow,
    CancelSubscriptionRow,
    CaptureRow,
    Operation,
    PreparedRequest,
    RefundRow,
    ReviewRow,
    Row,
    prepare,
    read_batch_reply,
    without_reply,
)
from recon.gateway_client.errors import MisuseError, NotSentError, UnknownOutcomeError
from recon.gateway_client.interface import Signer
from recon.gateway_client.messages import PreparedCall
from recon.gateway_client.pace import AccountPace, HeldTooLongError
from recon.gateway_client.payments import (
    Payment,
    PaymentReply,
    payment_without_reply,
    prepare_payment,
    read_payment_reply,
)
from recon.gateway_client.payouts import PayoutRow
from recon.gateway_client.queries import QueryAnswers, QueryClient, RefundAnswers
from recon.gateway_client.replies import BatchReply
from recon.gateway_client.transport import Connection, RawReply, Transport

Answer = TypeVar("Answer")
Given = ParamSpec("Given")


class AsyncGateway:
    """One account at the gateway, for asyncio.

    Raises (all methods): InvalidRequestError for what must not be sent, naming each field, and
    UnsignedError if another process holds the key and does not sign; nothing was sent then.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.transport = Transport(connection)
        self._pace = AccountPace(connection.limits)

    async def capture(self, rows: Sequence[CaptureRow]) -> BatchReply:
        """Capture authorised payments, at most 50."""
        return await self.send(Operation.CAPTURE, rows)

    async def cancel(self, rows: Sequence[CancelRow]) -> BatchReply:
        """Release authorised payments, at most 50."""
        return await self.send(Operation.CANCEL, rows)

    async def refund(self, rows: Sequence[RefundRow]) -> BatchReply:
        """Refund captured payments in full or in part, at most 50."""
        return await self.send(Operation.REFUND, rows)

    async def review(self, rows: Sequence[ReviewRow]) -> BatchReply:
        """Set review flags, at most 100."""
        return await self.send(Operation.REVIEW, rows)

    async def payout(self, row: PayoutRow) -> BatchReply:
        """Pay a beneficiary; the reply has one row, with the gateway's record."""
        return await self.send(Operation.PAYOUT, [row])

    async def cancel_subscription(self, row: CancelSubscriptionRow) -> BatchReply:
        """End a recurring contract; the reply has one row."""
        return await self.send(Operation.CANCEL_SUBSCRIPTION, [row])

    async def pay(self, payment: Payment) -> PaymentReply:
        """Start a payment: by card, by another method, or by the hosted page."""
        ours = self._connection
        making = partial(prepare_payment, payment, account=ours, today=ours.clock().date())
        prepared = await ours.in_thread(making)
        try:
            raw = await self._send(prepared)
        except (NotSentError, UnknownOutcomeError) as error:
            return payment_without_reply(error)
        return await ours.in_thread(
            partial(read_payment_reply, prepared, raw, base_url=ours.base_url)
        )

    async def query(
        self, *, order_nos: Iterable[str] = (), transaction_ids: Iterable[str] = ()
    ) -> QueryAnswers:
        """Query any number of orders, or of transactions.

        Raises:
            QueryRefusedError: no query can succeed before a person changes something.
        """
        async with self.reading() as client:
            return await client.query(order_nos=order_nos, trades=transaction_ids)

    async def refunds(
        self, *, order_nos: Iterable[str] = (), references: Iterable[str] = ()
    ) -> RefundAnswers:
        """Search the refunds of orders, or of the merchant's own references (profile extended).

        Raises:
            InterfaceError: the profile has no refund search.
            QueryRefusedError: no query can succeed before a person changes something.
        """
        async with self.reading() as client:
            return await client.refunds(order_nos=order_nos, references=references)

    async def send(self, operation: Operation, rows: Sequence[Row]) -> BatchReply:
        """Prepare one batch of any operation, send it once and return an outcome for each row."""
        prepared = await self._connection.in_thread(partial(self.prepare, operation, rows))
        try:
            raw = await self._send(prepared)
        except (NotSentError, UnknownOutcomeError) as error:
            return without_reply(prepared, error=error)
        return await self._connection.in_thread(partial(read_batch_reply, prepared, raw))

    def prepare(
        self,
        operation: Operation,
        rows: Sequence[Row],
        *,
        sign_key: SecretStr | Signer | None = None,
    ) -> PreparedRequest:
        """Run the first phase of `send`, for callers with a journal; `transport.send` is the next.

        `sign_key` signs this batch instead of the connection's key.
        """
        ours = self._connection
        account = replace(ours, sign_key=sign_key) if sign_key else ours
        return prepare(operation, rows, account=account)

    def reading(
        self,
        *,
        pace: AccountPace | None = None,
        randomness: random.Random | None = None,
        answered: Callable[[int], None] = lambda _: None,
    ) -> QueryClient:
        """Return a `QueryClient` (a context manager) that reuses connections for many queries."""
        return QueryClient(
            self.transport,
            account=self._connection,
            pace=pace or self._pace,
            randomness=randomness,
            answered=answered,
        )

    async def _send(self, prepared: PreparedCall) -> RawReply:
        """Send one request at the account's pace; not sent if it had to wait too long."""
        pace = self._pace
        try:
            before = pace.seconds() + pace.retry_seconds
            await pace.next_turn(before=before, sleep=asyncio.sleep)
        except HeldTooLongError as error:
            msg = f"{error}; nothing was sent"
            raise NotSentError(msg, kind="RetryAfter") from None
        turn = pace.slowed
        raw = await self.transport.send(prepared)
        pace.heed(raw, turn=turn)
        return raw


def _awaited(
    method: Callable[Concatenate[AsyncGateway, Given], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate["Gateway", Given], Answer]:
    """Turn an async method into one that waits for the result."""

    @wraps(method)
    def call(self: "Gateway", /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        return self.run(method(self.gateway, *args, **kwargs))

    return call


class Gateway:
    """One account at the gateway, without asyncio; a context manager, or call `close`.

    Threads may share one, also inside a running event loop: all calls run in the loop of a separate
    thread. MisuseError is raised before anything is prepared.

    It has the same operations as `AsyncGateway`; docs/GATEWAY.md has an example.
    """

    def __init__(self, connection: Connection) -> None:
        self.gateway = AsyncGateway(connection)
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._serve, name="gateway", daemon=True)
        self._process = os.getpid()
        # Reentrant, as a signal handler may call while this thread holds it.
        self._lock = threading.RLock()
        self._under_way: set[Future[Any]] = set()
        self._is_closed = False
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Refuse new calls and wait until running ones have ended; closing again has no effect."""
        if os.getpid() != self._process:
            return  # the thread is in the other process
        self._refuse_within()
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
            under_way = [*self._under_way]
        wait(under_way)
        if not was_closed:
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    capture = _awaited(AsyncGateway.capture)
    cancel = _awaited(AsyncGateway.cancel)
    refund = _awaited(AsyncGateway.refund)
    review = _awaited(AsyncGateway.review)
    payout = _awaited(AsyncGateway.payout)
    cancel_subscription = _awaited(AsyncGateway.cancel_subscription)
    pay = _awaited(AsyncGateway.pay)
    query = _awaited(AsyncGateway.query)
    refunds = _awaited(AsyncGateway.refunds)

    def run(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        """Run a coroutine of `gateway` in its loop and return the result."""
        try:
            answer = self._started(call)
        except MisuseError:
            call.close()  # it never started
            raise
        try:
            return answer.result()
        except BaseException:  # such as Ctrl-C while waiting
            answer.cancel()
            raise

    def _started(self, call: Coroutine[Any, Any, Answer]) -> Future[Answer]:
        if os.getpid() != self._process:
            msg = (
                "this Gateway is of another process, which forked; nothing was sent: make a new one"
            )
            raise MisuseError(msg)
        self._refuse_within()
        with self._lock:
            if self._is_closed:
                msg = "this Gateway is closed; nothing was sent"
                raise MisuseError(msg)
            answer = asyncio.run_coroutine_threadsafe(call, self._loop)
            self._under_way.add(answer)
        answer.add_done_callback(self._under_way.discard)
        return answer

    def _refuse_within(self) -> None:
        """Raise an error if the call would wait for itself."""
        if threading.current_thread() is self._thread:
            msg = (
                "this Gateway is called from within a call of its own (by a clock, a signer or a "
                "transport that it was given); nothing was sent by the inner call"
            )
            raise MisuseError(msg)

    def _serve(self) -> None:
        with self._runner:
            self._loop.run_forever()

"""One `Gateway` used by many at once: what it sends takes effect once, whoever calls it."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pydantic import SecretStr

from recon.gateway_client import (
    Connection,
    Gateway,
    MisuseError,
    QueryLimits,
    RefundRow,
    ReplyOutcome,
)
from tests.literal.gateway import ACCOUNT, KEY, MERCHANT, Payment, literal_gateway

THREADS = 8
REFUNDS_EACH = 6
QUICK = QueryLimits(calls_per_second=10_000, in_flight=THREADS)


@pytest.fixture
def gateway():
    """The API document as a server, with more captured than is refunded: a second refund counts."""
    with literal_gateway() as (base_url, truth):
        for number in range(THREADS * REFUNDS_EACH):
            truth.seed(
                Payment(
                    f"SO{number}",
                    f"T{number}",
                    "EUR",
                    "50.00",
                    "20261120120000",
                    "paid",
                    Decimal("50.00"),
                )
            )
        yield base_url, truth


def place_of(base_url, *, clock=lambda: datetime(2026, 11, 20, tzinfo=UTC)):
    """How the literal gateway's account is reached."""
    return Connection(
        base_url=base_url,
        merchant_id=MERCHANT,
        account_id=ACCOUNT,
        sign_key=SecretStr(KEY),
        limits=QUICK,
        clock=clock,
    )


def refund_of(number):
    """Ten euros of a payment."""
    return RefundRow(
        transaction_id=f"T{number}",
        order_no=f"SO{number}",
        currency="EUR",
        amount=Decimal("50.00"),
        refund_amount=Decimal("10.00"),
        refund_reason="returned",
    )


def refunded_again_on_error(shared, number):
    """What a caller does who holds every exception for "nothing was sent"."""
    for last in (False, False, True):
        try:
            return shared.refund([refund_of(number)])
        except RuntimeError:
            if last:
                raise
    raise AssertionError


def test_eight_threads_share_it_and_each_refund_takes_effect_once(gateway):
    base_url, truth = gateway
    together = threading.Barrier(THREADS)

    def refund(thread):
        together.wait()
        mine = range(thread * REFUNDS_EACH, (thread + 1) * REFUNDS_EACH)
        return [refunded_again_on_error(shared, number).rows[0].outcome for number in mine]

    with Gateway(place_of(base_url)) as shared, ThreadPoolExecutor(THREADS) as threads:
        outcomes = [one for some in threads.map(refund, range(THREADS)) for one in some]

    assert outcomes == [ReplyOutcome.ACCEPTED] * (THREADS * REFUNDS_EACH)
    assert sorted(truth.took("refund")) == sorted(
        ("refund", f"T{number}", "10.00") for number in range(THREADS * REFUNDS_EACH)
    )


def test_it_works_inside_a_running_loop(gateway):
    base_url, truth = gateway

    async def cell():
        with Gateway(place_of(base_url)) as shared:
            return refunded_again_on_error(shared, 0)

    reply = asyncio.run(cell())

    assert [row.outcome for row in reply.rows] == [ReplyOutcome.ACCEPTED]
    assert truth.took("refund") == [("refund", "T0", "10.00")]


def test_a_call_from_within_a_call_is_refused_before_anything_is_prepared(gateway):
    """It would wait for itself: here the clock that the client was given calls the client."""
    base_url, truth = gateway
    refused: list[MisuseError] = []

    def clock():
        for again in (lambda: shared.refund([refund_of(1)]), shared.close):
            with pytest.raises(MisuseError, match="from within a call of its own") as error:
                again()
            refused.append(error.value)
        return datetime(2026, 11, 20, tzinfo=UTC)

    with Gateway(place_of(base_url, clock=clock)) as shared:
        reply = shared.refund([refund_of(0)])

    assert [row.outcome for row in reply.rows] == [ReplyOutcome.ACCEPTED]
    assert len(refused) >= 2
    assert truth.took("refund") == [("refund", "T0", "10.00")]


def test_closing_lets_calls_under_way_end_and_refuses_new_ones(gateway):
    base_url, truth = gateway
    shared = Gateway(place_of(base_url))
    with truth.lock, ThreadPoolExecutor(2) as threads:  # the gateway answers nobody meanwhile
        under_way = threads.submit(shared.refund, [refund_of(0)])
        while not shared._under_way:
            threading.Event().wait(0.001)
        closing = threads.submit(shared.close)
        while not shared._is_closed:
            threading.Event().wait(0.001)
        with pytest.raises(MisuseError, match="is closed; nothing was sent"):
            shared.refund([refund_of(1)])
        assert not closing.done()
        truth.lock.release()
        try:
            assert under_way.result().rows[0].outcome is ReplyOutcome.ACCEPTED
            closing.result()
        finally:
            truth.lock.acquire()
    shared.close()

    assert truth.took("refund") == [("refund", "T0", "10.00")]


def test_a_forked_process_is_refused(gateway):
    """The thread that sends is not in the child: without a refusal it would wait for ever."""
    base_url, truth = gateway
    with Gateway(place_of(base_url)) as shared:
        child = os.fork()
        if not child:
            try:
                shared.refund([refund_of(0)])
            except MisuseError:
                shared.close()
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert truth.took("refund") == []

"""One request of each operation, as it goes over the wire, in both profiles."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from typing import Any

from pydantic import SecretStr

from recon.gateway_client import (
    CancelRow,
    CancelSubscriptionRow,
    CaptureRow,
    Connection,
    Gateway,
    GatewayInterface,
    QueryLimits,
    RefundRow,
    ReviewRow,
)
from tests.golden.figures import Figure
from tests.loopback import Answer, answering
from tests.recon.gateway_client import sample_payments as payments
from tests.recon.gateway_client import sample_payouts as payouts

PROFILES = ("base", "extended")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LIMITS = QueryLimits(calls_per_second=1_000, in_flight=1, retry_seconds=0)
ROW: dict[str, Any] = {
    "transaction_id": "T20261120000001",
    "order_no": "SO-1",
    "currency": "EUR",
    "amount": Decimal("12.50"),
}
REFUNDED: dict[str, Any] = {"refund_amount": Decimal("4.50"), "refund_reason": "came back, wet"}

OPERATIONS: dict[str, Callable[[Gateway], object]] = {
    "capture": lambda gateway: gateway.capture([CaptureRow(**ROW)]),
    "cancel": lambda gateway: gateway.cancel([CancelRow(**ROW)]),
    "review": lambda gateway: gateway.review([ReviewRow(**ROW, review_flag="1")]),
    "refund": lambda gateway: gateway.refund([RefundRow(**ROW, **REFUNDED)]),
    "payout": lambda gateway: gateway.payout(payouts.payout_with()),
    "cancel subscription": lambda gateway: gateway.cancel_subscription(
        CancelSubscriptionRow(recurring_id="R-1", contract_name="Gold plan")
    ),
    "authorise by card": lambda gateway: gateway.pay(payments.card_payment()),
    "authorise by another method": lambda gateway: gateway.pay(payments.apm_payment()),
    "checkout": lambda gateway: gateway.pay(payments.hosted_payment()),
    "query by order": lambda gateway: gateway.query(order_nos=["SO-1", "SO-2"]),
    "query by transaction": lambda gateway: gateway.query(transaction_ids=["T1", "T2"]),
    "search for refunds": lambda gateway: gateway.refunds(order_nos=["SO-1"]),
}
ONLY_EXTENDED = {"search for refunds"}


def request_bodies() -> dict[str, dict[str, Figure]]:
    """Profile -> operation -> method, path, content type and body, to the byte."""
    with _gateway() as (base_url, seen):
        return {
            f"requests, profile {profile}": {
                name: _first(call, base_url=base_url, profile=profile, seen=seen)
                for name, call in OPERATIONS.items()
                if profile == "extended" or name not in ONLY_EXTENDED
            }
            for profile in PROFILES
        }


def _first(
    call: Callable[[Gateway], object], *, base_url: str, profile: str, seen: list[str]
) -> str:
    """What the operation sends first; what it makes of the empty reply is another test's."""
    seen.clear()
    connection = Connection(
        base_url=base_url,
        merchant_id="100042",
        account_id="100042001",
        sign_key=SecretStr("sandbox"),
        interface=GatewayInterface.bundled(profile),
        limits=LIMITS,
        deadline_seconds=10,
        clock=lambda: NOW,
    )
    with Gateway(connection) as gateway:
        call(gateway)
    return seen[0]


@contextmanager
def _gateway() -> Iterator[tuple[str, list[str]]]:
    """A gateway on loopback that keeps what it is sent and answers with an empty object."""
    seen: list[str] = []

    def keep(request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        kind = request.headers["Content-Type"]
        seen.append(f"{request.command} {request.path} {kind}\n{body.decode()}")
        return 200, {}, b"{}"

    with answering(keep) as url:
        yield url, seen

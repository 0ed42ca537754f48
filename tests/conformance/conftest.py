"""The contracts of the gateway's operations, held by the real client against a running gateway.

Without further settings that is a sandbox of this process. With CONFORMANCE_BASE_URL set it is any
gateway, and only what reads runs there: a test that moves money asks for `sandbox`, which then
skips. `make conformance BASE_URL=…` sets it from the environment of the command line.
"""

import asyncio
import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from pydantic import SecretStr

from recon.config.settings import GATEWAY_FILES, load_tables
from recon.gateway_client import (
    AsyncGateway,
    BatchReply,
    Connection,
    GatewayInterface,
    Operation,
    Payment,
    PaymentReply,
    QueryAnswers,
    QueryLimits,
    Row,
)
from recon.gateway_client.interface import same_signature
from recon.sandbox import SandboxOptions, serving
from tests.recon.sandbox.conftest import Caller

BASE_URL = os.environ.get("CONFORMANCE_BASE_URL", "")
PROFILE = os.environ.get("CONFORMANCE_PROFILE", "base")
POLITE = QueryLimits(calls_per_second=5, in_flight=1, retry_seconds=0)
QUICK = QueryLimits(calls_per_second=1_000, in_flight=2, retry_seconds=0)
TODAY = datetime(2026, 11, 20, tzinfo=UTC)
"""Where the sandbox's clock stands."""


@dataclass(frozen=True)
class Target:
    """One gateway and the real client towards it."""

    account: Connection
    known_orders: tuple[str, ...] = ()
    """Orders that this gateway knows."""

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return self.account.base_url

    @property
    def gateway(self) -> AsyncGateway:
        """The client."""
        return AsyncGateway(self.account)

    def ask(self, *, order_nos: Sequence[str] = (), trades: Sequence[str] = ()) -> QueryAnswers:
        return asyncio.run(self.gateway.query(order_nos=order_nos, transaction_ids=trades))

    def status(self, order_no: str) -> str:
        """The payment_status that the query shows of the one attempt of an order."""
        (record,) = self.ask(order_nos=[order_no]).found
        return record.payment_status

    def move(self, operation: str, rows: Sequence[Row]) -> BatchReply:
        """Send one batch; what the wire did is an outcome too."""
        return asyncio.run(self.gateway.send(Operation(operation), rows))

    def pay(self, payment: Payment) -> PaymentReply:
        """Start one payment, on the day where the sandbox's clock stands."""
        return asyncio.run(self.but(clock=lambda: TODAY).gateway.pay(payment))

    def but(self, **changes: Any) -> "Target":
        """The same client with another account, key, interface or bound."""
        return replace(self, account=replace(self.account, **changes))

    def signing_with(self, key: str) -> "Target":
        """The same client with another key."""
        return self.but(sign_key=SecretStr(key))


def place_of(base_url: str, **fields: Any) -> Connection:
    """A connection to a gateway; without further fields as the sandbox's account."""
    own = {"merchant_id": "100042", "account_id": "100042001", "sign_key": SecretStr("sandbox")}
    return Connection(**{"limits": QUICK, **own, **fields}, base_url=base_url)


def interface_of(profile: str) -> GatewayInterface:
    """The shipped interface."""
    tables: Any = {name: load_tables(name, config_dir=None) for name in GATEWAY_FILES}
    return GatewayInterface.of(**tables, profile=profile)


@pytest.fixture(scope="session")
def own_gateway() -> Iterator[Caller | None]:
    """A sandbox of this process, none when another gateway is named."""
    if BASE_URL:
        yield None
        return
    with serving(SandboxOptions(orders=120, profile="extended")) as running:
        caller = Caller(running.base_url)
        with caller.http:
            yield caller


@pytest.fixture
def sandbox(own_gateway: Caller | None) -> Iterator[Caller]:
    """The sandbox at its beginning and its truth; what needs it moves money."""
    if own_gateway is None:
        pytest.skip("runs against our own sandbox only: elsewhere it would move money")
    yield own_gateway
    begin_again(own_gateway)


def way_back(location: str, *, target: Target) -> dict[str, str]:
    """What a shopper's browser carries to the merchant, its signature checked by the client."""
    pairs = dict(parse_qsl(urlsplit(location).query, keep_blank_values=True))
    expected = target.account.sign("payment_reply", fields=pairs)
    given = pairs.pop("encryption_data", "")
    assert same_signature(given, expected=expected)
    return pairs


def begin_again(gateway: Caller) -> None:
    """Reset, as soon as a fault that cannot be taken back has passed."""
    place = gateway.http.base_url
    for _ in range(100):
        try:
            # A kept connection outlives a closed door; the next test needs a new one.
            socket.create_connection((place.host, place.port or 80)).close()
            gateway.http.post("/_sandbox/reset").raise_for_status()
        except (OSError, httpx.TransportError):
            time.sleep(0.01)
        else:
            return
    pytest.fail("the sandbox does not come back")


@pytest.fixture(scope="session")
def target(own_gateway: Caller | None) -> Target:
    """The gateway to be asked."""
    if own_gateway is None:
        return named_gateway()
    orders = tuple(row["order_no"] for row in own_gateway.captured()[:3])
    return Target(place_of(own_gateway.base_url, interface=interface_of(PROFILE)), orders)


def named_gateway() -> Target:
    """The gateway of the environment; what is missing is named."""
    given = {
        name: os.environ.get(f"CONFORMANCE_{name}", "")
        for name in ("MERCHANT", "ACCOUNT", "SIGN_KEY", "ORDERS")
    }
    missing = [name for name in ("MERCHANT", "ACCOUNT", "SIGN_KEY") if not given[name]]
    if missing:
        pytest.fail(f"set {', '.join(f'RECON_{name}' for name in missing)} for `make conformance`")
    account = place_of(
        BASE_URL,
        merchant_id=given["MERCHANT"],
        account_id=given["ACCOUNT"],
        sign_key=SecretStr(given["SIGN_KEY"]),
        interface=interface_of(PROFILE),
        limits=POLITE,
    )
    orders = tuple(key for key in given["ORDERS"].split(",") if key)
    return Target(account, orders)

"""The contracts of the gateway's operations, held by the real client against a running gateway.

Without further settings that is a sandbox of this process. With CONFORMANCE_BASE_URL set it is any
gateway, and only what reads runs there: a test that moves money asks for `sandbox`, which then
skips. `make conformance BASE_URL=…` sets it from the environment of the command line.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from pydantic import SecretStr

from recon.config.settings import GATEWAY_FILES, load_tables
from recon.gateway_client import (
    BatchReply,
    GatewayInterface,
    OurAccount,
    Payment,
    PaymentReply,
    QueryAnswers,
    QueryClient,
    QueryLimits,
    Row,
    Transport,
    prepare,
    prepare_payment,
    read_batch_reply,
    read_payment_reply,
)
from recon.gateway_client.interface import same_signature
from recon.gateway_client.pace import AccountPace
from recon.sandbox import SandboxOptions, serving
from tests.recon.sandbox.conftest import Caller

BASE_URL = os.environ.get("CONFORMANCE_BASE_URL", "")
PROFILE = os.environ.get("CONFORMANCE_PROFILE", "base")
POLITE = QueryLimits(calls_per_second=5, in_flight=1, patience_seconds=0)
QUICK = QueryLimits(calls_per_second=1_000, in_flight=2, patience_seconds=0)
TODAY = date(2026, 11, 20)
"""Where the sandbox's clock stands."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Target:
    """One gateway and the real client towards it."""

    base_url: str
    account: OurAccount
    known_orders: tuple[str, ...]
    """Orders that this gateway knows."""
    limits: QueryLimits
    deadline_seconds: float = 20

    def ask(self, *, order_nos: Sequence[str] = (), trades: Sequence[str] = ()) -> QueryAnswers:
        """What the gateway answers."""

        async def asked() -> QueryAnswers:
            client = QueryClient(
                self.transport(),
                account=self.account,
                pace=AccountPace(self.limits),
            )
            async with client:
                return await client.query(order_nos=order_nos, trades=trades)

        return asyncio.run(asked())

    def move(self, operation: str, rows: Sequence[Row]) -> BatchReply:
        """Send one batch and read its reply."""
        prepared = prepare(operation, rows, account=self.account)
        raw = asyncio.run(self.transport().send(prepared))
        return read_batch_reply(prepared, raw)

    def pay(self, payment: Payment) -> PaymentReply:
        """Start one payment and read its reply."""
        prepared = prepare_payment(payment, account=self.account, today=TODAY)
        raw = asyncio.run(self.transport().send(prepared))
        return read_payment_reply(prepared, raw, base_url=self.base_url)

    def signing_with(self, key: str) -> "Target":
        """The same client with another key."""
        return replace(self, account=replace(self.account, sign_key=SecretStr(key)))

    def of_account(self, account_id: str) -> "Target":
        """The same client for another account."""
        return replace(self, account=replace(self.account, account_id=account_id))

    def transport(self) -> Transport:
        """The way to this gateway."""
        return Transport(base_url=self.base_url, clock=_now, deadline_seconds=self.deadline_seconds)


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
    for _ in range(100):
        try:
            gateway.http.post("/_sandbox/reset").raise_for_status()
        except httpx.TransportError:
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
    ours = OurAccount("100042", "100042001", SecretStr("sandbox"), interface_of(PROFILE))
    return Target(own_gateway.base_url, ours, orders, QUICK)


def named_gateway() -> Target:
    """The gateway of the environment; what is missing is named."""
    given = {
        name: os.environ.get(f"CONFORMANCE_{name}", "")
        for name in ("MERCHANT", "ACCOUNT", "SIGN_KEY", "ORDERS")
    }
    missing = [name for name in ("MERCHANT", "ACCOUNT", "SIGN_KEY") if not given[name]]
    if missing:
        pytest.fail(f"set {', '.join(f'RECON_{name}' for name in missing)} for `make conformance`")
    account = OurAccount(
        given["MERCHANT"], given["ACCOUNT"], SecretStr(given["SIGN_KEY"]), interface_of(PROFILE)
    )
    orders = tuple(key for key in given["ORDERS"].split(",") if key)
    return Target(BASE_URL, account, orders, POLITE)

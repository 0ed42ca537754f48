"""What the client's tests share: the shipped interface, account, prepared batches."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from recon.config.settings import GATEWAY_FILES, load_tables
from recon.gateway_client import (
    CaptureRow,
    GatewayInterface,
    OurAccount,
    PreparedRequest,
    RefundRow,
    prepare,
)
from tests.recon.gateway_client.played import Player


def interface_with(tables: dict[str, dict[str, Any]], **profile: object) -> GatewayInterface:
    """The shipped interface with a gateway's own keys of profiles.toml."""
    return GatewayInterface.of(**tables | {"profiles": tables["profiles"] | {"user": profile}})


@pytest.fixture(scope="session")
def tables() -> dict[str, dict[str, Any]]:
    """The three files as they ship."""
    return {name: load_tables(name, config_dir=None) for name in GATEWAY_FILES}


@pytest.fixture(scope="session")
def interface(tables: dict[str, dict[str, Any]]) -> GatewayInterface:
    """The shipped interface, profile base."""
    return GatewayInterface.of(**tables)


@pytest.fixture(scope="session")
def account(interface: GatewayInterface) -> OurAccount:
    """The sandbox's."""
    return OurAccount("100042", "100042001", SecretStr("sandbox"), interface)


@pytest.fixture(scope="session")
def captures(account: OurAccount) -> PreparedRequest:
    """Two captures, ready to send."""
    rows = [
        CaptureRow(
            transaction_id=f"T{n}", order_no=f"SO{n}", currency="EUR", amount=Decimal("10.00")
        )
        for n in (1, 2)
    ]
    return prepare("capture", rows, account=account)


@pytest.fixture(scope="session")
def refunds(account: OurAccount) -> PreparedRequest:
    """Two partial refunds, ready to send."""
    rows = [
        RefundRow(
            transaction_id=f"T{n}",
            order_no=f"SO{n}",
            currency="EUR",
            amount=Decimal("10.00"),
            refund_amount=Decimal("4.50"),
            refund_reason="returned",
        )
        for n in (1, 2)
    ]
    return prepare("refund", rows, account=account)


@pytest.fixture
def player() -> Player:
    """A server that plays what a test tells it."""
    return Player()

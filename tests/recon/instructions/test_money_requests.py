import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from recon.config.keys import SignKeys
from recon.config.rules import Rules
from recon.config.settings import GATEWAY_FILES, GatewaySettings, Settings, load_tables
from recon.gateway_client import NotSentError, RawReply, ReplyOutcome
from recon.instructions.account import gateway_account
from recon.instructions.eligibility import Cleared, ShownPayment
from recon.instructions.money_requests import GatewayOfMoney
from recon.model.errors import ConfigurationError, Defect
from recon.model.words import GatewayState, InstructionKind
from recon.sandbox import RunningSandbox, SandboxOptions, serving
from tests.recon.gateway_client.played import Player, answer
from tests.recon.instructions.sample_instructions import INSTRUCTION

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[RunningSandbox]:
    """A sandbox gateway of 60 orders."""
    with serving(SandboxOptions(orders=60)) as running:
        yield running


def _gateway(
    base_url: str, *, key: str = "sandbox", amounts: dict[str, Any] | None = None
) -> GatewayOfMoney:
    interface = {name: load_tables(name, config_dir=None) for name in GATEWAY_FILES}
    interface["profiles"] = {**interface["profiles"], "user": {"amounts": amounts or {}}}
    settings = Settings(
        database_url=SecretStr("sqlite:///unused"),
        gateway_base_url=base_url,
        sign_keys=SignKeys.read({"RECON_SIGN_KEY": key}, accounts={}),
        gateway=GatewaySettings(connect_timeout_seconds=1, deadline_seconds=2),
        interface=interface,
        accounts={},
        rules=Rules(),
        config_dir=None,
    )
    return GatewayOfMoney(settings, account=("100042", "100042001"), clock=lambda: AT)


def _cleared(
    *,
    kind: InstructionKind = InstructionKind.REFUND,
    currency: str = "EUR",
    amount: int = 400,
    reason: str = "",
    transaction_id: str = "T1",
) -> Cleared:
    instruction = replace(
        INSTRUCTION,
        kind=kind,
        transaction_id="",
        currency=currency,
        amount=amount,
        payment_amount=1_000,
        reason=reason,
    )
    return Cleared(
        instruction, ShownPayment(transaction_id, GatewayState.PAID, "3000", currency, 1_000)
    )


@pytest.mark.parametrize(
    ("kind", "currency", "expected"),
    [
        (InstructionKind.CAPTURE, "EUR", {"amount": "4.00"}),
        (InstructionKind.CANCEL, "EUR", {"amount": "10.00"}),
        (InstructionKind.REFUND, "JPY", {"amount": "1000.00", "refund_amount": "400.00"}),
        (InstructionKind.REFUND, "KWD", {"amount": "1.000", "refund_amount": "0.400"}),
    ],
)
def test_amounts_leave_with_the_wires_decimals(
    sandbox: RunningSandbox, kind: InstructionKind, currency: str, expected: dict[str, str]
) -> None:
    """Minor units become the wire's text exactly; a cancel and a refund name the whole payment."""
    prepared = _gateway(sandbox.base_url).prepare([_cleared(kind=kind, currency=currency)])
    (row,) = json.loads(prepared.body)[f"{kind}_orders"]

    assert {name: row[name] for name in expected} == expected


def test_a_gateway_of_two_decimals_gets_two(sandbox: RunningSandbox) -> None:
    """As configured; an amount that needs more is a problem of its row, told and never rounded."""
    gateway = _gateway(sandbox.base_url, amounts={"own_decimals_if_more": False})
    fits = _cleared(kind=InstructionKind.REFUND, currency="KWD", amount=420)
    (row,) = json.loads(gateway.prepare([fits]).body)["refund_orders"]

    assert (row["amount"], row["refund_amount"]) == ("1.00", "0.42")
    assert gateway.problem(fits) == ""
    assert "0.423 KWD cannot be written with 2 decimals" in gateway.problem(
        _cleared(kind=InstructionKind.REFUND, currency="KWD", amount=423)
    )


def test_a_refund_without_a_reason_carries_our_own_tag(sandbox: RunningSandbox) -> None:
    """A blank reason becomes our instruction's id, so that a person finds the row in the portal."""
    gateway = _gateway(sandbox.base_url)
    bodies = [
        json.loads(gateway.prepare([_cleared(reason=reason)]).body) for reason in ("", "damaged")
    ]

    assert [body["refund_orders"][0]["refund_reason"] for body in bodies] == ["recon i1", "damaged"]


def test_a_row_that_cannot_be_sent_is_named_before_anything_is(sandbox: RunningSandbox) -> None:
    """A row against the gateway's grammar has a problem in words, and is never put in a batch."""
    gateway = _gateway(sandbox.base_url)
    bad = _cleared(transaction_id="T,1")

    assert "transaction_id" in gateway.problem(bad)
    assert gateway.problem(_cleared()) == ""
    with pytest.raises(Defect, match="must not be sent"):
        gateway.prepare([bad])


def test_a_reply_is_judged_row_by_row(sandbox: RunningSandbox) -> None:
    """An unknown transaction is refused by the gateway for its row alone: rejected, not doubt."""
    gateway = _gateway(sandbox.base_url)
    prepared = gateway.prepare([_cleared()])
    reply = asyncio.run(gateway.send(prepared))

    result = gateway.read(prepared, reply)
    assert [row.outcome for row in result.rows] == [ReplyOutcome.FAILED]
    assert result.stop_reason == ""


def test_a_wrong_key_is_rejected_and_stops(sandbox: RunningSandbox) -> None:
    """A refused signature rejects the whole batch and stops all sending."""
    gateway = _gateway(sandbox.base_url, key="wrong")
    prepared = gateway.prepare([_cleared()])
    reply = asyncio.run(gateway.send(prepared))

    result = gateway.read(prepared, reply)
    assert [row.outcome for row in result.rows] == [ReplyOutcome.REJECTED]
    assert "sign" in result.stop_reason


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("7200", 7_200), ("Sat, 21 Nov 2026 02:00:30 GMT", 30), ("soon", 0), ("", 0)],
)
def test_a_reply_says_how_long_the_gateway_wants_no_further_request(
    asked: str, seconds: int
) -> None:
    """A count or a date of Retry-After; the sender waits so long, and this batch is in doubt."""
    said = answer(503, b"", headers=f"Retry-After: {asked}\r\n" if asked else "")

    async def send() -> RawReply:
        player = Player()
        async with player.playing(said):
            gateway = _gateway(player.base_url)
            return await gateway.send(gateway.prepare([_cleared()]))

    assert asyncio.run(send()).retry_after_seconds == seconds


def test_a_closed_port_is_surely_not_sent() -> None:
    """A refused connection may be tried again; anything else may not."""
    gateway = _gateway("http://127.0.0.1:9")
    with pytest.raises(NotSentError):
        asyncio.run(gateway.send(gateway.prepare([_cleared()])))


@pytest.mark.parametrize("base_url", ["http://gateway.example", "ftp://127.0.0.1", "gateway"])
def test_an_address_that_must_not_be_called_is_refused(base_url: str) -> None:
    """Only https, or http to loopback, is an address for money."""
    with pytest.raises(ConfigurationError, match="base URL"):
        _gateway(base_url)


def test_a_wrong_interface_file_is_named(sandbox: RunningSandbox) -> None:
    """A mistake in profiles.toml is a configuration error that names its key."""
    settings = Settings(
        database_url=SecretStr("sqlite:///unused"),
        gateway_base_url=sandbox.base_url,
        sign_keys=SignKeys.read({"RECON_SIGN_KEY": "sandbox"}, accounts={}),
        gateway=GatewaySettings(),
        interface={
            **{name: load_tables(name, config_dir=None) for name in GATEWAY_FILES},
            "profiles": {"base": {"no_such_key": 1}},
        },
        accounts={},
        rules=Rules(),
        config_dir=None,
    )

    with pytest.raises(ConfigurationError, match="no_such_key"):
        gateway_account(settings, merchant_id="100042", account_id="100042001")

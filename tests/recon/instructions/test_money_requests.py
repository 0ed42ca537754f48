import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.config.keys import SignKeys
from recon.config.rules import Rules
from recon.config.settings import GATEWAY_FILES, GatewaySettings, Settings, load_tables
from recon.gateway_client import RawReply, Route
from recon.instructions.account import gateway_account
from recon.instructions.eligibility import Eligible, QueriedPayment
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.sealing import Seal
from recon.model.errors import ConfigurationError, Defect
from recon.model.terms import GatewayState, InstructionKind
from tests.recon.instructions.sample_instructions import IBAN, INSTRUCTION

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
ACCOUNT = ("100042", "100042001")
CERTIFICATE = Path(__file__).parents[1] / "gateway_client" / "loopback.pem"
CAPTURE, REFUND, CANCEL = InstructionKind.CAPTURE, InstructionKind.REFUND, InstructionKind.CANCEL
KEY = SecretStr(Fernet.generate_key().decode())
DETAILS = {
    "beneficiary": {"bank_details": {"iban": IBAN, "account_name": "Ana Quill"}},
    "payment_date": "2026-11-20",
}
PAYOUT = replace(
    INSTRUCTION,
    kind=InstructionKind.PAYOUT,
    order_no="",
    transaction_id="",
    amount=25_000,
    payment_amount=25_000,
    request_id="P-1",
    approved_by="Ann and Jo",
    gateway_request_id="7b8c1f0e-54a1-4f65-9a0e-6d1f0c4b2a11",
    payee="DE…3000",
    payee_digest=Seal(KEY).digest(f"{IBAN}\x1f\x1f\x1f"),
    sealed=Seal(KEY).close(json.dumps(DETAILS)),
)


def _settings(
    base_url="https://gateway.example.test",
    *,
    key="sandbox",
    seal_key=KEY,
    profiles=None,
    **gateway,
):
    interface = {name: load_tables(name, config_dir=None) for name in GATEWAY_FILES}
    interface["profiles"] = {**interface["profiles"], **(profiles or {})}
    return Settings(
        database_url=SecretStr("sqlite:///unused"),
        gateway_base_url=base_url,
        sign_keys=SignKeys.read({"RECON_SIGN_KEY": key}, accounts={}),
        seal_key=seal_key,
        gateway=GatewaySettings.model_validate(gateway),
        interface=interface,
        accounts={},
        rules=Rules(),
        config_dir=None,
    )


def _gateway(base_url, **settings):
    quick = {"connect_timeout_seconds": 1, "deadline_seconds": 2}
    made = _settings(base_url, **quick | settings)
    return GatewayOfMoney(made, account=ACCOUNT, clock=lambda: AT)


def _account(base_url="https://gateway.example.test", **settings):
    made = _settings(base_url, **settings)
    return gateway_account(made, merchant_id=ACCOUNT[0], account_id=ACCOUNT[1])


def _eligible(*, kind=REFUND, currency="EUR", amount=400, reason="", transaction_id="T1"):
    instruction = replace(
        INSTRUCTION,
        kind=kind,
        transaction_id="",
        currency=currency,
        amount=amount,
        payment_amount=1_000,
        reason=reason,
    )
    return Eligible(
        instruction, QueriedPayment(transaction_id, GatewayState.PAID, "3000", currency, 1_000)
    )


@pytest.mark.parametrize(
    ("kind", "currency", "expected"),
    [
        (CAPTURE, "EUR", {"amount": "4.00"}),
        (CANCEL, "EUR", {"amount": "10.00"}),
        (REFUND, "JPY", {"amount": "1000.00", "refund_amount": "400.00"}),
        (REFUND, "KWD", {"amount": "1.000", "refund_amount": "0.400"}),
    ],
)
def test_amounts_leave_with_the_wires_decimals(kind, currency, expected):
    """Minor units become the wire's text exactly; a cancel and a refund name the whole payment."""
    prepared = _gateway("http://127.0.0.1:9").prepare([_eligible(kind=kind, currency=currency)])
    (row,) = json.loads(prepared.body)[f"{kind}_orders"]

    assert {name: row[name] for name in expected} == expected


def test_a_refund_without_a_reason_carries_our_own_tag():
    gateway = _gateway("http://127.0.0.1:9")
    bodies = [
        json.loads(gateway.prepare([_eligible(reason=reason)]).body) for reason in ("", "damaged")
    ]

    assert [body["refund_orders"][0]["refund_reason"] for body in bodies] == ["recon i1", "damaged"]


def test_a_row_that_cannot_be_sent_is_named_before_anything_is():
    gateway = _gateway("http://127.0.0.1:9")
    bad = _eligible(transaction_id="T,1")

    assert "transaction_id" in gateway.problem(bad)
    assert gateway.problem(_eligible()) == ""
    with pytest.raises(Defect, match="must not be sent"):
        gateway.prepare([bad])


class Echo:
    """A gateway that answers with the request itself, the payee's details among it."""

    async def send(self, prepared):
        return RawReply(200, {}, prepared.body, AT)


def _paying(key=KEY):
    gateway = _gateway("http://127.0.0.1:1", seal_key=key)
    echo: Any = Echo()
    gateway._client.transport = echo
    return gateway


def _payout(**changed):
    return Eligible(
        replace(PAYOUT, **changed), QueriedPayment("", GatewayState.NONE, "", "EUR", 25_000)
    )


def test_a_payout_leaves_with_its_details_and_rests_without():
    gateway = _paying()
    request = gateway.prepare([_payout()])
    reply = asyncio.run(gateway.send(request))
    kept = request.masked(reply.body)

    assert json.loads(request.body)["beneficiary"]["bank_details"]["iban"] == IBAN
    assert json.loads(request.body)["payment_amount"] == "250.00"
    assert IBAN.encode() not in request.masked(request.body)
    assert IBAN.encode() in reply.body
    assert IBAN.encode() not in kept
    assert b"250.00" in kept
    assert IBAN not in repr(request) + repr(reply)


@pytest.mark.parametrize(
    ("key", "changed", "word"),
    [
        (None, {}, "RECON_SEAL_KEY"),
        (SecretStr(Fernet.generate_key().decode()), {}, "another RECON_SEAL_KEY"),
        (KEY, {"sealed": ""}, "erased"),
        (KEY, {"payee_digest": "d" * 64}, "of another payee than DE…3000"),
    ],
)
def test_a_payout_that_cannot_be_opened_waits_with_the_reason(key, changed, word):
    assert word in _paying(key).problem(_payout(**changed))


def test_the_way_to_the_gateway_is_what_the_settings_say():
    way: dict[str, Any] = {
        "proxy": "http://proxy.example.test:3128",
        "ca_file": CERTIFICATE,
        "client_certificate_file": CERTIFICATE,
    }

    assert _account(**way).route == Route(**way)
    assert _account().route == Route()


@pytest.mark.parametrize(
    ("base_url", "changes", "says"),
    [
        ("http://gateway.example.test", {}, "base URL must be https"),
        ("ftp://127.0.0.1", {}, "base URL"),
        ("gateway", {}, "base URL"),
        ("https://gateway.example.test", {"proxy": "proxy:3128"}, "http://host:port"),
        ("http://127.0.0.1:1", {"proxy": "http://127.0.0.1:2"}, "would read"),
        ("https://gateway.example.test", {"ca_file": "absent.pem"}, "absent.pem"),
        ("https://gateway.example.test", {"client_key_file": "k.pem"}, "no client certificate"),
        (
            *("https://gateway.example.test", {"profiles": {"base": {"no_such_key": 1}}}),
            "no_such_key",
        ),
    ],
)
def test_a_way_that_cannot_work_is_told_before_anything_is_sent(base_url, changes, says):
    """As an error of the configuration, which a person can cure; it names a wrong key."""
    with pytest.raises(ConfigurationError, match=says):
        _account(base_url, **changes)

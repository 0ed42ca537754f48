import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.config.keys import SignKeys
from recon.config.rules import Rules
from recon.config.settings import GATEWAY_FILES, GatewaySettings, Settings, load_tables
from recon.gateway_client import PreparedRequest, RawReply
from recon.instructions.eligibility import Cleared, ShownPayment
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.sealing import Seal
from recon.model.words import GatewayState, InstructionKind
from tests.recon.instructions.sample_instructions import INSTRUCTION

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
KEY = SecretStr(Fernet.generate_key().decode())
IBAN = "DE89370400440532013000"
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
    sealed=Seal(KEY).close(json.dumps(DETAILS)),
)


class Echo:
    """A gateway that answers with the request itself, the payee's details among it."""

    async def send(self, prepared: PreparedRequest) -> RawReply:
        return RawReply(200, {}, prepared.body, AT)


def _gateway(key: SecretStr | None = KEY) -> GatewayOfMoney:
    settings = Settings(
        database_url=SecretStr("sqlite:///unused"),
        gateway_base_url="http://127.0.0.1:1",
        sign_keys=SignKeys.read({"RECON_SIGN_KEY": "sandbox"}, accounts={}),
        seal_key=key,
        gateway=GatewaySettings(),
        interface={name: load_tables(name, config_dir=None) for name in GATEWAY_FILES},
        accounts={},
        rules=Rules(),
        config_dir=None,
    )
    gateway = GatewayOfMoney(settings, account=("100042", "100042001"), clock=lambda: AT)
    echo: Any = Echo()
    gateway._client.transport = echo
    return gateway


def _cleared(**changed: Any) -> Cleared:
    return Cleared(
        replace(PAYOUT, **changed), ShownPayment("", GatewayState.NONE, "", "EUR", 25_000)
    )


def test_a_payout_leaves_with_its_details_and_rests_without() -> None:
    """The request carries the account; what may be stored of request and reply does not."""
    gateway = _gateway()
    request = gateway.prepare([_cleared()])
    reply = asyncio.run(gateway.send(request))
    kept = request.masked(reply.body)

    assert json.loads(request.body)["beneficiary"]["bank_details"]["iban"] == IBAN
    assert json.loads(request.body)["payment_amount"] == "250.00"
    assert IBAN.encode() not in request.masked(request.body)
    assert IBAN.encode() in reply.body
    assert IBAN.encode() not in kept
    assert b"250.00" in kept
    assert IBAN not in repr(request) + repr(reply)


def test_the_same_payout_is_the_same_request_for_ever() -> None:
    """Rebuilt from its journal row, a payout has the same bytes and the same request id."""
    first, again = (_gateway().prepare([_cleared()]).body_sha256 for _ in range(2))

    assert first == again


@pytest.mark.parametrize(
    ("key", "changed", "word"),
    [
        (None, {}, "RECON_SEAL_KEY"),
        (SecretStr(Fernet.generate_key().decode()), {}, "another RECON_SEAL_KEY"),
        (KEY, {"sealed": ""}, "erased"),
    ],
)
def test_a_payout_that_cannot_be_opened_waits_with_the_reason(
    key: SecretStr | None, changed: dict[str, str], word: str
) -> None:
    """A missing or other key stops the one payout, in words, and nothing else."""
    assert word in _gateway(key).problem(_cleared(**changed))


def test_the_end_of_a_subscription_names_its_contract() -> None:
    """The request carries the recurring id and the contract, and no payment."""
    kind = InstructionKind.CANCEL_SUBSCRIPTION
    cleared = _cleared(kind=kind, recurring_id="REC-7", contract_name="Gold", sealed="")
    body = _gateway().prepare([cleared]).body

    assert b"REC-7" in body
    assert b"Gold" in body

"""A sandbox gateway on loopback and a client of its own that signs by hand."""

import hashlib
import json
import ssl
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from recon.sandbox import RunningSandbox, SandboxOptions, serving

MERCHANT = "100042"
ACCOUNT = "100042001"
SIGN_KEY = "sandbox"
TLS = ssl.create_default_context()
"""Made once: loading the authorities costs more than a request to loopback."""
ROW_FIELDS = ("transaction_id", "order_no", "currency", "amount")

CARD_PAYMENT = {
    "merchant_id": MERCHANT,
    "account_id": ACCOUNT,
    "order_no": "web-1",
    "currency": "EUR",
    "amount": "10.00",
    "first_name": "Ann",
    "last_name": "Lee",
    "card": "4111111111111111",
    "expiration_year": "2030",
    "expiration_month": "05",
    "security_code": "123",
    "shopper_email": "ann@example.com",
}
CARD_SIGNED = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "first_name", "last_name"),
    *("card", "expiration_year", "expiration_month", "security_code", "shopper_email"),
)


def signature(*values: str, key: str = SIGN_KEY) -> str:
    """SHA-256 over the values without their spaces, and the key."""
    return hashlib.sha256(("".join(values).replace(" ", "") + key).encode()).hexdigest()


class Caller:
    """A client of one sandbox: what a merchant's system would send, and the truth to compare."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.http = httpx.Client(base_url=base_url, trust_env=False, timeout=10, verify=TLS)

    @staticmethod
    def sign(*values: str, key: str = SIGN_KEY) -> str:
        """The signature over some values."""
        return signature(*values, key=key)

    def batch(self, operation: str, rows: Sequence[Any], **changed: Any) -> httpx.Response:
        """Send a batch; `changed` replaces fields of the whole request after signing."""
        ids = [str(row.get("transaction_id", "")) for row in rows]
        body = {
            "merchant_id": MERCHANT,
            "account_id": ACCOUNT,
            "encryption_data": signature(MERCHANT, ACCOUNT, *ids),
            f"{operation}_orders": rows,
        }
        return self.http.post(f"/v1/{operation}", json=body | changed)

    def row(self, operation: str, row: dict[str, Any]) -> dict[str, Any]:
        """Send a batch of one and give its row of the reply."""
        reply = self.batch(operation, [row]).json()
        assert reply["return_status"] == "1", reply
        (answer,) = reply[f"{operation}_orders"]
        return answer

    def query(self, **changed: str) -> httpx.Response:
        """Ask for `orders` or `trades`."""
        body = {
            "merchant_id": MERCHANT,
            "account_id": ACCOUNT,
            "encryption_data": signature(MERCHANT, ACCOUNT),
        }
        return self.http.post("/v1/retrievalTrans", data=body | changed)

    def status(self, order_no: str) -> str:
        """The payment_status of one order."""
        (row,) = self.query(orders=order_no).json()["orders_list"]
        return row["payment_status"]

    def authorise(self, **changed: Any) -> httpx.Response:
        """Pay by card."""
        fields = CARD_PAYMENT | changed
        signed = signature(*(str(fields.get(name, "")) for name in CARD_SIGNED))
        return self.http.post("/v1/authorise", json={"encryption_data": signed} | fields)

    def effects(self, *, origin: str = "api") -> list[dict[str, str]]:
        """The truth of one origin."""
        lines = self.http.get("/_sandbox/effects").text.splitlines()
        return [effect for effect in map(json.loads, lines) if effect["origin"] == origin]

    def invariants(self) -> dict[str, int]:
        """What must be 0."""
        return self.http.get("/_sandbox/invariants").json()

    def faults(self, *rules: dict[str, Any]) -> None:
        """Put a fault plan into force."""
        self.http.post("/_sandbox/faults", json=list(rules)).raise_for_status()

    def pass_days(self, days: int) -> None:
        """Move the virtual clock."""
        self.http.post("/_sandbox/clock", json={"seconds": days * 86_400}).raise_for_status()

    def seeded(self, operation: str, *, without: Sequence[str] = ()) -> list[dict[str, str]]:
        """Rows of the default account's payments that had one effect and none of others."""
        seed = [effect for effect in self.effects(origin="seed") if effect["account_id"] == ACCOUNT]
        spoiled = {effect["transaction_id"] for effect in seed if effect["operation"] in without}
        return [
            {name: effect[name] for name in ROW_FIELDS}
            for effect in seed
            if effect["operation"] == operation and effect["transaction_id"] not in spoiled
        ]

    def authorised(self) -> list[dict[str, str]]:
        """Payments that can be captured or cancelled."""
        return self.seeded("authorise", without=("capture", "cancel"))

    def captured(self) -> list[dict[str, str]]:
        """Payments that can be refunded in full."""
        return self.seeded("capture", without=("refund", "chargeback"))


@pytest.fixture(scope="session")
def running() -> Iterator[RunningSandbox]:
    """One sandbox for all tests of a process."""
    with serving(SandboxOptions(orders=200)) as sandbox:
        yield sandbox


@pytest.fixture
def gateway(running: RunningSandbox) -> Iterator[Caller]:
    """A client of a sandbox that stands at its beginning."""
    caller = Caller(running.base_url)
    with caller.http:
        caller.http.post("/_sandbox/reset").raise_for_status()
        yield caller

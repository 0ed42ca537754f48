"""A signer as it is run: a process, files and a socket of its own; and a desk that endorses."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from recon.desk.endorsement import Endorsement, Kind, Signed, endorse, instant, terms_digest
from recon.desk.held_keys import public_text
from recon.gateway_client.interface import SignedMessage
from recon.instructions.account import SignerSocket
from recon.signer.configured import signer_settings
from recon.signer.server import RateLimiter, RequestLog, SignerApp, listening
from recon.signer.signature_log import SignatureLog
from recon.signer.signing import Signing

MERCHANT, ACCOUNT = "100042", "100042001"
KEY = "the-gateways-key-canary-77ab"
RECON = str(Path(sys.executable).with_name("recon"))
PEOPLE = (("anna", "Anna Berg", "reviewer"), ("ben", "Ben Hill", "approver"))
BY_RULE = """
[accounts."100042/100042001".by_rule.capture.EUR]
item = 500
day = 800
count = 3
"""
Terms = dict[str, str | int]


def refund_terms(number: int = 1, **changed: str | int) -> Terms:
    """What an instruction to refund 10.00 of a payment of 25.00 EUR would send."""
    terms: Terms = {
        "merchant_id": MERCHANT,
        "account_id": ACCOUNT,
        "kind": "refund",
        "order_no": f"SO-{number}",
        "transaction_id": f"T{number}",
        "currency": "EUR",
        "amount": 1000,
        "payment_amount": 2500,
    }
    return terms | changed


def capture_terms(number: int = 1, **changed: str | int) -> Terms:
    """What an instruction to capture 25.00 EUR would send."""
    return refund_terms(number) | {"kind": "capture", "amount": 2500} | changed


def review_terms(number: int = 1, **changed: str | int) -> Terms:
    """What an instruction to review a payment of 25.00 EUR would send."""
    return refund_terms(number) | {"kind": "review", "review_flag": "1"} | changed


def wire(terms: Mapping[str, str | int], **changed: str) -> dict[str, str]:
    row = {
        "transaction_id": str(terms["transaction_id"]),
        "order_no": str(terms["order_no"]),
        "currency": str(terms["currency"]),
        "amount": _major(terms["payment_amount"]),
    }
    if terms["kind"] == "refund":
        row |= {"refund_amount": _major(terms["amount"]), "refund_reason": "returned"}
    if terms["kind"] == "capture":
        row["amount"] = _major(terms["amount"])
    if terms["kind"] == "review":
        row["review_flag"] = str(terms["review_flag"])
    return row | changed


def _major(minor_units: str | int) -> str:
    return f"{int(minor_units) / 100:.2f}"


@dataclass
class Desk:
    """Two people who say yes to lists."""

    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    sequence: int = 0

    def agreed(
        self,
        items: Mapping[str, Terms],
        *,
        people: Sequence[tuple[str, str, str]] = PEOPLE,
        proven: bool = True,
        hours: int = 24,
    ) -> list[Signed]:
        endorsements = []
        for person, name, role in people:
            self.sequence += 1
            now = datetime.now(UTC)
            endorsements.append(
                endorse(
                    Endorsement(
                        kind=Kind.APPROVAL,
                        subject="a1b2",
                        items={wanted: terms_digest(terms) for wanted, terms in items.items()},
                        says={},
                        person=person,
                        name=name,
                        role=role,
                        proven=proven,
                        at=instant(now),
                        valid_until=instant(now + timedelta(hours=hours)),
                        sequence=self.sequence,
                        nonce=f"{self.sequence:032x}",
                        database="11" * 32,
                    ),
                    key=self.key,
                )
            )
        return endorsements


def grounds(items: Mapping[str, Terms], endorsements: Sequence[Signed] = ()) -> dict[str, Any]:
    """What a worker says for rows: their instructions, and who endorsed them."""
    return {
        "rows": [{"instruction_id": wanted, "terms": terms} for wanted, terms in items.items()],
        "endorsements": [
            {
                "document": endorsement.document,
                "signature": endorsement.signature,
                "key": endorsement.key,
            }
            for endorsement in endorsements
        ],
    }


def message(template: str, *rows: Mapping[str, str], account: str = ACCOUNT) -> SignedMessage:
    return SignedMessage(
        template=template, merchant_id=MERCHANT, account_id=account, fields={}, rows=tuple(rows)
    )


@dataclass
class RunningSigner:
    """A signer's process and files."""

    folder: Path
    desk: Desk
    process: subprocess.Popen[bytes]

    @property
    def socket(self) -> SignerSocket:
        return SignerSocket(self.folder / "socket", retry_seconds=0.5)

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]


def write_rules(
    folder: Path, *, desk: Desk, more: str = BY_RULE, head: str = "", key: str = KEY
) -> Path:
    """The signer's own file, with its keys."""
    (folder / "key").write_text(f"{key}\n")
    (folder / "key").chmod(0o600)
    (folder / "desk.pem").write_text(public_text(desk.key.public_key()))
    rules = folder / "signer.toml"
    rules.write_text(
        f'socket = "{folder}/socket"\nlog = "{folder}/log"\n'
        f'signature_log = "{folder}/signed.sqlite"\n'
        f'sign_key_file = "{folder}/key"\ndesk_key_file = "{folder}/desk.pem"\n{head}\n'
        f'[accounts."{MERCHANT}/{ACCOUNT}"]\n[accounts."{MERCHANT}/100042002"]\n{more}'
    )
    rules.chmod(0o600)
    return rules


@contextmanager
def signing(folder: Path, **changed: Any) -> Iterator[RunningSigner]:
    desk = changed.pop("desk", None) or Desk()
    rules = write_rules(folder, desk=desk, **changed)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    process = subprocess.Popen(
        [RECON, "serve", "signer", "--rules", str(rules)], stdout=subprocess.PIPE, env=environment
    )
    try:
        assert process.stdout.readline().strip() == str(folder / "socket").encode()
        yield RunningSigner(folder, desk, process)
    finally:
        process.terminate()
        process.communicate(timeout=20)


@contextmanager
def signing_here(folder: Path, *, clock: Callable[[], datetime], **changed: Any) -> Iterator[Path]:
    """The same on a real socket, but by a clock of the test's; gives the socket."""
    settings = signer_settings(write_rules(folder, **changed))
    with (
        closing(SignatureLog(settings.file.signature_log)) as signature_log,
        closing(RequestLog(settings.file.log)) as log,
        closing(listening(settings.file)) as listener,
    ):
        app = SignerApp(
            Signing(settings, signature_log=signature_log, clock=clock),
            log=log,
            rate_limiter=RateLimiter(1_000, seconds=time.monotonic),
            clock=clock,
            about={"uid": os.geteuid(), "accounts": sorted(settings.keys)},
        )
        server = uvicorn.Server(uvicorn.Config(app.routes, lifespan="off", log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield settings.file.socket
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="sign-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def signer() -> Iterator[RunningSigner]:
    """One signer for a module's tests; each asks about instructions of its own."""
    with tempfile.TemporaryDirectory(prefix="sign-") as folder, signing(Path(folder)) as running:
        yield running

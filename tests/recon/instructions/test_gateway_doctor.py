import asyncio
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recon.config.settings import load_settings
from recon.gateway_client.addresses import Route
from recon.gateway_client.interface import SignatureState
from recon.gateway_client.queries import QUERY
from recon.instructions.account import GatewayAccount, gateway_account
from recon.model.errors import ReconError
from recon.sandbox import SandboxOptions, serving
from recon.steps.admin.gateway_doctor import connection_reported, probe, rules_to_try


def place_of(base_url: str, **variables: str) -> GatewayAccount:
    """The demo's account at a gateway."""
    settings = load_settings(
        {
            "RECON_GATEWAY_BASE_URL": base_url,
            "RECON_SIGN_KEY": "sandbox",
            "RECON_DATABASE_URL": "sqlite:////nowhere/recon.sqlite",
            **variables,
        }
    )
    return gateway_account(settings, merchant_id="100042", account_id="100042001")


def asked(place: GatewayAccount) -> Any:
    """One probe under the configured rule."""
    clock = lambda: datetime.now(UTC)  # noqa: E731 - the machine's clock, handed in
    return asyncio.run(probe(place, rule=place.interface.signature, clock=clock))


def test_a_gateway_says_what_it_thinks_of_our_question() -> None:
    """Accepted, refused for the key, and silent are told apart."""
    with serving(SandboxOptions(orders=5)) as sandbox:
        right = asked(place_of(sandbox.base_url))
        wrong = asked(place_of(sandbox.base_url, RECON_SIGN_KEY="other"))

    assert (right.word, right.signature) == ("accepted", SignatureState.VALID)
    assert wrong.word == "signature"
    assert asked(place_of("http://127.0.0.1:9")).word == "silent"


def test_every_other_rule_is_tried_once_after_the_configured_one() -> None:
    configured = place_of("http://127.0.0.1:9").interface.signature
    tried = [rule for _, rule in rules_to_try(configured)]

    assert tried[0] == configured
    assert len(tried) == len({(r.algorithm, r.hex_case, r.templates[QUERY]) for r in tried}) == 8


SELF_SIGNED = Path(__file__).parents[1] / "gateway_client" / "loopback.pem"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@contextmanager
def listening() -> Iterator[str]:
    """A server that does the TLS handshake with a certificate of its own and hangs up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SELF_SIGNED)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_greet, args=(server, context))
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def _greet(server: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = server.accept()
    try:
        context.wrap_socket(connection, server_side=True).close()
    except OSError:
        connection.close()


def told(base_url: str, *, ca_file: Path | None, now: datetime = NOW) -> str:
    """The line of the doctor."""
    return connection_reported(base_url, route=Route(ca_file=ca_file), connect_seconds=2, now=now)


def test_a_trusted_gateway_shows_its_protocol_and_the_end_of_its_certificate() -> None:
    """What an operator must know before it runs out; when that is soon the line fails."""
    with listening() as base_url:
        line = told(base_url, ca_file=SELF_SIGNED)

    match = re.search(r" answers over TLSv1\.[23]; its certificate ends on (\S+)$", line)
    assert match is not None
    soon = datetime.fromisoformat(match[1]).replace(tzinfo=UTC) - timedelta(days=10)
    with listening() as base_url, pytest.raises(ReconError, match="in 10 days: ask the gateway"):
        told(base_url, ca_file=SELF_SIGNED, now=soon)


def test_a_certificate_of_a_stranger_says_what_to_name() -> None:
    with listening() as base_url, pytest.raises(ReconError, match="ca_file"):
        told(base_url, ca_file=None)


@pytest.mark.parametrize(
    ("base_url", "ca_file"),
    [("http://127.0.0.1:9", None), ("https://127.0.0.1:9", Path("/nowhere/ca.pem"))],
)
def test_what_keeps_a_connection_from_standing_is_a_sentence(
    base_url: str, ca_file: Path | None
) -> None:
    with pytest.raises(ReconError, match="cannot be reached"):
        told(base_url, ca_file=ca_file)

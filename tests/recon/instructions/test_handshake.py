import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recon.gateway_client.addresses import Route
from recon.steps.care.gateway_doctor import Handshake, shake_hands

SELF_SIGNED = Path(__file__).parents[1] / "gateway_client" / "loopback.pem"


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


def test_a_trusted_gateway_shows_its_protocol_and_the_end_of_its_certificate() -> None:
    """What an operator must know before it runs out."""
    with listening() as base_url:
        found = shake_hands(base_url, route=Route(ca_file=SELF_SIGNED), connect_seconds=2)

    assert isinstance(found, Handshake)
    assert found.protocol in {"TLSv1.2", "TLSv1.3"}
    assert found.certificate_ends_at is not None
    assert found.certificate_ends_at > datetime(2026, 1, 1, tzinfo=UTC)


def test_a_certificate_of_a_stranger_says_what_to_name() -> None:
    """Without its authority the handshake fails, and the sentence names ca_file."""
    with listening() as base_url:
        found = shake_hands(base_url, route=Route(), connect_seconds=2)

    assert isinstance(found, str)
    assert "ca_file" in found


@pytest.mark.parametrize(
    ("base_url", "ca_file"),
    [("http://127.0.0.1:9", None), ("https://127.0.0.1:9", Path("/nowhere/ca.pem"))],
)
def test_what_keeps_a_connection_from_standing_is_a_sentence(
    base_url: str, ca_file: Path | None
) -> None:
    """A closed port and a missing file are words, not exceptions."""
    found = shake_hands(base_url, route=Route(ca_file=ca_file), connect_seconds=1)

    assert isinstance(found, str)
    assert "cannot be reached" in found

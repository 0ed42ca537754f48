import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recon.gateway_client.addresses import Route
from recon.model.errors import ReconError
from recon.steps.admin.gateway_doctor import connection_reported

SELF_SIGNED = Path(__file__).parents[2] / "gateway_client" / "loopback.pem"
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

"""One look at the way to the gateway: does it answer, and with which certificate?

Opens a connection, looks at it and closes it; no request is sent.
"""

import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from recon.gateway_client.addresses import Route, trust
from recon.gateway_client.errors import AddressError

PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a connection to the gateway came to."""

    reached: str
    """Host and port."""
    protocol: str
    """Such as TLSv1.3; "" over http to this machine."""
    certificate_ends_at: datetime | None


def shake_hands(base_url: str, *, route: Route, connect_seconds: float) -> Handshake | str:
    """The connection's facts, or why there is none, in words.

    Args:
        base_url: The gateway's address.
        route: Whom to trust, as whom to appear.
        connect_seconds: How long connecting may take.
    """
    parts = urlsplit(base_url)
    host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    try:
        trusted = trust(base_url, route=route)
        with socket.create_connection((host, port), timeout=connect_seconds) as plain:
            if parts.scheme == "http":
                return Handshake(f"{host}:{port}", "", None)
            with trusted.wrap_socket(plain, server_hostname=host) as wrapped:
                return Handshake(f"{host}:{port}", wrapped.version() or "", _ends_at(wrapped))
    except ssl.SSLCertVerificationError as error:
        return (
            f"the certificate of {host} is not accepted ({error.verify_message}): if it is the "
            "gateway's own authority, name that as ca_file in gateway.toml"
        )
    except (OSError, AddressError) as error:
        cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return f"{host}:{port} cannot be reached ({cause}): check address, firewall and proxy"


def _ends_at(wrapped: ssl.SSLSocket) -> datetime | None:
    certificate = wrapped.getpeercert() or {}
    text = certificate.get("notAfter")
    if not isinstance(text, str):
        return None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)

"""How the gateway is reached: whom to trust, as whom to appear, by which proxy.

There is no way to switch the verification of certificates off.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from recon.gateway_client.wire.addresses import checked_base_url
from recon.gateway_client.wire.wire_errors import AddressError


@dataclass(frozen=True, slots=True)
class Route:
    """The way to the gateway; everything absent is the ordinary way."""

    proxy: str = ""
    """http or https address of a proxy; TLS goes through it unopened."""
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    client_certificate_file: Path | None = None
    """Our certificate, for a gateway that asks for one."""
    client_key_file: Path | None = None
    """Its key; absent when the certificate's file holds it too."""


DIRECT = Route()


def checked_proxy(route: Route, *, base_url: str) -> str:
    """The proxy's address, "" for none.

    Raises:
        AddressError: not an address, with a password in it, or of no use to a loopback gateway.
    """
    if not route.proxy:
        return ""
    try:
        parts = urlsplit(route.proxy)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        msg = f"the proxy is not an address: {error}"
        raise AddressError(msg) from None
    if parts.scheme not in {"http", "https"} or not host or parts.path not in {"", "/"}:
        msg = "the proxy must be http://host:port or https://host:port"
        raise AddressError(msg)
    if parts.username or parts.password:
        msg = "the proxy's address must not carry a name or password"
        raise AddressError(msg)
    if urlsplit(base_url).scheme != "https":
        msg = "a proxy would read what is sent to an http address; leave it out for this gateway"
        raise AddressError(msg)
    return route.proxy


def trust(base_url: str, *, route: Route = DIRECT) -> ssl.SSLContext:
    """Whom to trust and as whom to appear.

    Raises:
        AddressError: a file cannot be read, or holds no certificate or key.
    """
    if urlsplit(checked_base_url(base_url)).scheme == "http":
        # Loopback without TLS: a context that trusts nobody costs nothing to build.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ca_file = route.ca_file
    try:
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as error:
        msg = f"the certificates in {ca_file} cannot be read: {error.strerror or error}"
        raise AddressError(msg) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _appear(context, route=route)
    return context


def _appear(context: ssl.SSLContext, *, route: Route) -> None:
    certificate, key = route.client_certificate_file, route.client_key_file
    if certificate is None:
        if key is not None:
            msg = f"the client key {key} has no client certificate beside it"
            raise AddressError(msg)
        return
    try:
        # A locked key must not make a night wait at a prompt.
        context.load_cert_chain(certificate, keyfile=key, password="")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        msg = f"the client certificate {certificate} or its key cannot be used: {reason}"
        raise AddressError(msg) from None

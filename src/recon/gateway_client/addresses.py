"""Checks of the addresses that may be called or shown to a shopper, and the TLS set-up.

Allowed are https, and http to this machine. Certificate verification cannot be switched off.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from recon.gateway_client.errors import AddressError
from recon.privacy.this_machine import is_loopback

VERSION_OF_EVERY_CALL = "/v1"


def checked_base_url(base_url: str) -> str:
    """Return the base URL without a trailing slash.

    Raises:
        AddressError: neither https nor http to a loopback literal such as 127.0.0.1 or [::1], or it
            ends in the version that every call adds.
    """
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        msg = f"the gateway's base URL is not a URL: {error}"
        raise AddressError(msg) from error
    if parts.username or parts.password or parts.query or parts.fragment or not host:
        msg = "the gateway's base URL must be scheme, host, port and path only"
        raise AddressError(msg)
    if not is_private_way(base_url):
        msg = (
            f"the gateway's base URL must be https (http is allowed to 127.0.0.1 or [::1] only),"
            f" not {parts.scheme or 'nothing'} to {host}"
        )
        raise AddressError(msg)
    address = base_url.rstrip("/")
    if parts.path.rstrip("/").endswith(VERSION_OF_EVERY_CALL):
        msg = (
            f"the gateway's base URL ends in {VERSION_OF_EVERY_CALL}, which every call adds by "
            f"itself: set it to {address.removesuffix(VERSION_OF_EVERY_CALL)}"
        )
        raise AddressError(msg)
    return address


def is_private_way(url: str) -> bool:
    """Return whether nobody can read along: https, or http to a loopback address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    )


def address_problem(url: str) -> str:
    """Return why private data may not be sent to an address; "" if it may, or for no address."""
    is_fit = not url or is_private_way(url)
    return "" if is_fit else "is not https (http is allowed to 127.0.0.1 or [::1] only)"


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach the gateway; the defaults are a direct connection with the system's trust."""

    proxy: str = ""
    """http or https address of a proxy; TLS is tunnelled through it."""
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    client_certificate_file: Path | None = None
    """Our certificate, for a gateway that requires one."""
    client_key_file: Path | None = None
    """Private key of the client certificate; None if its file contains the key too."""


DIRECT = Route()


def checked_proxy(route: Route, *, base_url: str) -> str:
    """Return the proxy's address, "" for none.

    Raises:
        AddressError: not an address, contains a password, or the gateway's URL is http.
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
    """Return the TLS context with the trusted certificates and our own, if any.

    Raises:
        AddressError: a file cannot be read, or holds no certificate or key.
    """
    if urlsplit(checked_base_url(base_url)).scheme == "http":
        # Loopback without TLS: a context without trusted certificates costs nothing to build.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ca_file = route.ca_file
    try:
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as error:
        msg = f"the certificates in {ca_file} cannot be read: {error.strerror or error}"
        raise AddressError(msg) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate, key = route.client_certificate_file, route.client_key_file
    if certificate is None and key is not None:
        msg = f"the client key {key} has no client certificate beside it"
        raise AddressError(msg)
    if certificate is not None:
        try:
            # An encrypted key must not make a run wait at a password prompt.
            context.load_cert_chain(certificate, keyfile=key, password="")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            msg = f"the client certificate {certificate} or its key cannot be used: {reason}"
            raise AddressError(msg) from None
    return context

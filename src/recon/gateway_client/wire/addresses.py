"""Which addresses may be called or sent to a shopper: https, or http to this machine."""

from urllib.parse import urlsplit

from recon.gateway_client.wire.wire_errors import AddressError
from recon.privacy.this_machine import is_loopback

VERSION_OF_EVERY_CALL = "/v1"


def checked_base_url(base_url: str) -> str:
    """The base URL without a trailing slash.

    Raises:
        AddressError: not https, unless http to a loopback literal such as 127.0.0.1 or [::1]; or
            with the version that every call adds.
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
    kept = base_url.rstrip("/")
    if parts.path.rstrip("/").endswith(VERSION_OF_EVERY_CALL):
        msg = (
            f"the gateway's base URL ends in {VERSION_OF_EVERY_CALL}, which every call adds by "
            f"itself: set it to {kept.removesuffix(VERSION_OF_EVERY_CALL)}"
        )
        raise AddressError(msg)
    return kept


def is_private_way(url: str) -> bool:
    """Whether nobody on the way can read what is sent there: https, or http to a loopback."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    )

"""Recognise addresses of this machine, to which data may be sent without encryption."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether a host is a literal loopback address; a host name is never trusted."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""What is on this machine: there, and only there, nobody on the way can read what is sent."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host is a literal address of this machine; names prove nothing."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

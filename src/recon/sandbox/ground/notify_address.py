"""Where a notification goes: the request's notify_url, else the sandbox's own; only to loopback."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from recon.sandbox.ground.operation_call import Sandbox

URL_LENGTH_MAX = 2_000


def address_for(sandbox: Sandbox, given: str, *, merchant_id: str, account_id: str) -> str:
    """The address to tell, "" when there is none; `{merchant_id}` and `{account_id}` are filled."""
    default = sandbox.options.notify_url or sandbox.terms.notifications.url
    filled = default.replace("{merchant_id}", merchant_id).replace("{account_id}", account_id)
    return (given or filled)[:URL_LENGTH_MAX]


def is_loopback(url: str) -> bool:
    """Whether an address is plain HTTP on this machine; a sandbox talks to nobody else."""
    try:
        parts = urlsplit(url)
        known = parts.scheme == "http" and bool(parts.hostname) and parts.username is None
        host, _ = parts.hostname or "", parts.port
        return known and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False

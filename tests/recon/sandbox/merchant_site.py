"""A merchant's site that receives notifications and answers as it is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl

from tests.loopback import Answer, answering


class MerchantSite:
    """What arrived, and how it is answered."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.statuses: list[int] = []
        """Of the next answers; 200 when there are none left."""

    def told(self, name: str) -> list[str]:
        """One field of everything that arrived."""
        return [fields.get(name, "") for fields in self.received]


@contextmanager
def merchant_site() -> Iterator[MerchantSite]:
    """A site on loopback, for as long as the context lasts."""

    def reply(_: BaseHTTPRequestHandler, body: bytes) -> Answer:
        site.bodies.append(body)
        site.received.append(dict(parse_qsl(body.decode(), keep_blank_values=True)))
        return site.statuses.pop(0) if site.statuses else 200, {"Location": site.url}, b""

    with answering(reply) as url:
        site = MerchantSite(f"{url}/told")
        yield site

"""A merchant's shop on loopback: it frames a page, hands one on, and is where shoppers return."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlsplit


@dataclass
class Shop:
    """One shop, and the page that the gateway gave it for its shopper."""

    base_url: str
    handed_on: bytes = b""
    returned: list[str] = field(default_factory=list)
    """Addresses with which shoppers came back, in order."""

    def framing(self, address: str) -> str:
        """The address of a page of the shop that shows another in a frame."""
        return f"{self.base_url}/frame?page={quote(address, safe='')}"


def answer(shop: Shop, path: str) -> bytes:
    """A page of the shop."""
    parts = urlsplit(path)
    if parts.path == "/frame":
        address = escape(parse_qs(parts.query)["page"][0])
        frame = f'<iframe name="pay" title="pay" width="480" height="640" src="{address}"></iframe>'
        return f"<!DOCTYPE html><title>Shop</title><h1>Shop</h1>{frame}".encode()
    if parts.path == "/checkout":
        return shop.handed_on
    if parts.path in {"/done", "/gone"}:
        shop.returned.append(f"{shop.base_url}{path}")
        return f"<!DOCTYPE html><title>Shop</title><h1>Back: {parts.path}</h1>".encode()
    return b""


@contextmanager
def open_shop() -> Iterator[Shop]:
    """A shop that is open until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answer(shop, self.path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shop = Shop(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield shop
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

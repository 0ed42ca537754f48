"""A merchant's site that receives notifications and answers as it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl


class MerchantSite:
    """What arrived, and how it is answered."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/told"
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

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            site.bodies.append(body)
            site.received.append(dict(parse_qsl(body.decode(), keep_blank_values=True)))
            self.send_response(site.statuses.pop(0) if site.statuses else 200)
            self.send_header("Content-Length", "0")
            self.send_header("Location", site.url)
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = MerchantSite(server.server_address[1])
    work = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    work.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        work.join(5)

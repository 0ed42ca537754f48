"""An HTTP server on loopback for a test: what it answers is a function."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body; the body's length is said by itself."""


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler, bytes], Answer]) -> Iterator[str]:
    """The base URL of an HTTP server on loopback whose every request is answered by a function."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, headers, body = answer(self, sent)
            self.send_response(status)
            for name, text in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_OPTIONS = do_POST  # noqa: N815 - as the server calls them

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

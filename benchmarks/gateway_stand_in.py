"""A stand-in gateway that costs next to nothing: asyncio, HTTP/1.1, rows for the keys it is asked.

Run by bench_gateway.py in a process of its own; prints its port, then serves until it is ended.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "


def reply_to(body: bytes) -> bytes:
    """A good answer: every order is found and paid, the signature is the request's."""
    fields = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    rows = [
        {
            "amount": f"{number}.99",
            "currency": "EUR",
            "order_no": order_no,
            "payment_status": "3000",
            "query_result": "1",
            "reference_no": f"R{number:09d}",
            "transaction_date": "20261120101010",
            "transaction_id": f"T{order_no}",
            "website": "shop.example",
        }
        for number, order_no in enumerate(fields["orders"].split(","), start=1)
    ]
    content = {
        "merchant_id": fields["merchant_id"],
        "account_id": fields["account_id"],
        "return_status": "1",
        "return_message": "OK",
        "encryption_data": fields["encryption_data"],
        "orders_list": rows,
        "antifraud_provider": "",
        "fraud_check_result": [],
        "is3ds": "",
    }
    return json.dumps(content).encode()


class StandIn(asyncio.Protocol):
    """One connection."""

    def __init__(self, latency_seconds: float) -> None:
        self.latency_seconds = latency_seconds
        self.buffered = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a TCP server's are
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once the body is whole."""
        self.buffered += data
        end = self.buffered.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffered[:end].lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        if len(self.buffered) < end + 4 + length:
            return
        content = reply_to(self.buffered[end + 4 : end + 4 + length])
        self.buffered = b""
        whole = HEAD + str(len(content)).encode() + b"\r\n\r\n" + content
        loop = asyncio.get_running_loop()
        loop.call_later(self.latency_seconds, self._answer, whole)

    def _answer(self, whole: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(whole)


async def main(latency_milliseconds: str) -> None:
    """Serve on a free port of loopback."""
    seconds = float(latency_milliseconds) / 1000
    server = await asyncio.get_running_loop().create_server(
        lambda: StandIn(seconds), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

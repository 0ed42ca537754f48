"""What an HTTP request says before anything of it is believed."""

from starlette.requests import Request

from recon.sandbox.ground.wire import BODY_BYTES_MAX


def reached_at(request: Request) -> str:
    """The address of this gateway on the connection itself: a header could say anything."""
    host, port = request.scope["server"]
    return f"http://{host}:{port}"


async def read_body(request: Request) -> bytes | None:
    """The whole body, None when it is larger than the gateway takes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            return None
    return bytes(body)

"""The receiver over HTTP: one address per account, bounded in size and time.

Speaks plain HTTP; in production a proxy in front of it does TLS. Nothing of a request is logged.
"""

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from recon.files.formats.form_pairs import FORM_BYTES_MAX
from recon.notifications.receiver import Receiver
from recon.privacy.own_servers import Bodies

PATH = "/notifications/{merchant_id}/{account_id}"
TOO_LARGE = 413
TOO_SLOW = 408


def create_app(receiver: Receiver) -> Starlette:
    """The application around a receiver."""
    bodies = Bodies(FORM_BYTES_MAX)

    async def receive(request: Request) -> PlainTextResponse:
        try:
            body = await bodies.read(request)
        except TimeoutError:
            return PlainTextResponse("the body took too long", TOO_SLOW)
        if body is None:
            return PlainTextResponse(f"larger than {FORM_BYTES_MAX} bytes", TOO_LARGE)
        answer = await run_in_threadpool(receiver.receive, body, **request.path_params)
        return PlainTextResponse(answer.text, answer.status)

    async def health(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    return Starlette(
        routes=[
            Route(PATH, receive, methods=["POST"]),
            Route("/health", health, methods=["GET"]),
        ]
    )

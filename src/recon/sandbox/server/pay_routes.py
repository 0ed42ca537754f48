"""The addresses behind which a shopper pays, outside the operations of the document."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from recon.sandbox.ground.incoming import read_body
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.wire import parse_body
from recon.sandbox.pages.pay_page import Visit, shown, submitted
from recon.sandbox.server.delivery import client_of

HTTP_SEE_OTHER = 303
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}
"""Nothing is kept and nothing runs; any page may frame it."""


def pay_routes(sandbox: Sandbox) -> list[Route]:
    """The one page, which shows what is left to do."""

    async def show(request: Request) -> Response:
        return _response(shown(sandbox, request.path_params["page_key"]))

    async def submit(request: Request) -> Response:
        fields, _ = parse_body(await read_body(request) or b"")
        client, key = client_of(request), request.path_params["page_key"]
        return _response(submitted(sandbox, key, fields=fields or {}, client_ip=client))

    path = "/v1/pay/{page_key}"
    return [Route(path, show, methods=["GET"]), Route(path, submit, methods=["POST"])]


def _response(visit: Visit) -> Response:
    if visit.location:
        return RedirectResponse(visit.location, status_code=HTTP_SEE_OTHER, headers=HEADERS)
    return HTMLResponse(visit.html, status_code=visit.http_status, headers=HEADERS)

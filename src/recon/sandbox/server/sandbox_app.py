"""The gateway as a web application: the operations under `/v1`, the truth under `/_sandbox`."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from recon.model.errors import ConfigurationError
from recon.sandbox.faults.fault_plan import install, read_plan
from recon.sandbox.ground.book import Book
from recon.sandbox.ground.clock import VirtualClock, real_seconds
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.options import ORDERS_MAX, SandboxOptions
from recon.sandbox.ground.population import populate
from recon.sandbox.ground.sandbox_terms import SandboxTerms, load_terms
from recon.sandbox.ground.wire import BODY_BYTES_MAX, parse_body, render_json
from recon.sandbox.notify.courier import Courier
from recon.sandbox.operations.operations import EXTENDED_ONLY, OPERATIONS
from recon.sandbox.pages.pay_page import Visit, shown, submitted
from recon.sandbox.server.control import control_routes
from recon.sandbox.server.delivery import client_of, delivered
from recon.sandbox.server.http_exchange import exchange

HTTP_TOO_LARGE = 413
HTTP_SEE_OTHER = 303
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}
"""Nothing is kept and nothing runs; any page may frame it."""


def create_app(options: SandboxOptions) -> Starlette:
    """The application over its state, populated when the state is new.

    Raises:
        ConfigurationError: state, fault plan or sandbox.toml cannot be used.
    """
    sandbox = open_sandbox(options)
    routes = [
        Route(f"/v1/{name}", _endpoint(sandbox, name), methods=["POST"])
        for name in OPERATIONS
        if options.profile == "extended" or name not in EXTENDED_ONLY
    ]
    routes += pay_routes(sandbox)
    courier = Courier(sandbox)
    sandbox.book.after_commit = courier.wake
    routes += control_routes(sandbox, repopulate=repopulate, courier=courier)
    app = Starlette(routes=routes)
    app.state.sandbox = sandbox
    app.state.transports = {}
    app.state.outage = None
    return app


def open_sandbox(options: SandboxOptions) -> Sandbox:
    """The sandbox on its state: what is there is kept, what is not is made from the seed."""
    if not 0 <= options.orders <= ORDERS_MAX:
        msg = f"a population has 0 to {ORDERS_MAX} orders, not {options.orders}"
        raise ConfigurationError(msg)
    terms = load_terms()
    book = Book(options.state)
    with book.transaction():
        if not book.note("merchant"):
            fill(book, options=options, terms=terms)
        _check_merchant(book, options=options)
        _install_plan(book, options=options)
    as_populated = replace(options, seed=int(book.note("seed")), orders=int(book.note("orders")))
    return Sandbox(as_populated, terms, book, _clock(book, runs=options.real_clock))


def _clock(book: Book, *, runs: bool) -> VirtualClock:
    """The clock where it stood; one that ran by itself is never earlier than the last request."""
    moved = int(book.note("clock_moved") or 0)
    last = book.select("SELECT coalesce(max(received_at), 0) FROM request")[0][0]
    if runs:
        moved = max(moved, last - VirtualClock().now())
    return VirtualClock(moved=moved, real=real_seconds if runs else None)


def fill(book: Book, *, options: SandboxOptions, terms: SandboxTerms) -> None:
    """Write the population and what must be known of it into an empty book."""
    payments, effects = populate(options, terms=terms, now=VirtualClock().now())
    book.write_payments(payments)
    book.append_effects(effects)
    facts = {
        "merchant": options.merchant,
        "account": options.account,
        "seed": str(options.seed),
        "orders": str(options.orders),
        "payments": str(options.orders),
    }
    for name, value in facts.items():
        book.write_note(name, value=value)


def repopulate(sandbox: Sandbox) -> None:
    """Forget all that happened and begin again from the seed, with the plan of the start."""
    with sandbox.book.transaction():
        sandbox.book.clear()
        fill(sandbox.book, options=sandbox.options, terms=sandbox.terms)
        _install_plan(sandbox.book, options=sandbox.options)
    sandbox.clock.moved = 0


def _check_merchant(book: Book, *, options: SandboxOptions) -> None:
    known = (book.note("merchant"), book.note("account"))
    if known != (options.merchant, options.account):
        msg = (
            f"the state {book.name} belongs to merchant {known[0]}, account {known[1]};"
            " name these or another state file"
        )
        raise ConfigurationError(msg)


def _install_plan(book: Book, *, options: SandboxOptions) -> None:
    """Install the plan of the options, unless the state was already started with this very plan."""
    path = options.fault_plan
    if path is None:
        return
    rules = read_plan(path, operations=OPERATIONS)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if book.note("plan_digest") != digest:
        install(book, rules, append=False)
        book.write_note("plan_digest", value=digest)


def _endpoint(sandbox: Sandbox, operation: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        body = await read_body(request)
        if body is None:
            content = {"code": "I0001", "source": "request", "message": "the body is too large"}
            return Response(render_json(content), status_code=HTTP_TOO_LARGE)
        played = exchange(
            sandbox,
            operation=operation,
            body=body,
            client_ip=client_of(request),
            base_url=reached_at(request),
        )
        return delivered(played)

    return answer


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

"""`/_sandbox/files/…`: the page of downloads and the files themselves."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.pages.markup import PageLink, document, links, paragraph, table
from recon.sandbox.pages.timeline import HOME
from recon.sandbox.world.days import Downloads

HTTP_NOT_FOUND = 404
DAYS_SHOWN = 7
"""Business dates that the page of downloads offers, back from the clock's own."""
MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "sta": "text/plain",
    "xml": "application/xml",
}
_EXPLAINED = (
    "Order files, ledger, settlement files and statements of banks as the merchant's systems, the"
    " gateway and banks would write them for one business date, and an answer key of every"
    " discrepancy planted in them."
)


def download_routes(sandbox: Sandbox) -> list[Route]:
    """The routes under `/_sandbox/files`."""
    downloads = Downloads(sandbox)

    async def listed(_request: Request) -> Response:
        return HTMLResponse(_page(sandbox))

    async def of_day(request: Request) -> Response:
        files = _asked_for(downloads.of, request, account_ids=sandbox.options.accounts)
        return _missing() if files is None else HTMLResponse(_day_page(request, list(files)))

    async def download(request: Request) -> Response:
        name = request.path_params["name"]
        text = (_asked_for(downloads.of, request, account_ids=sandbox.options.accounts) or {}).get(
            name
        )
        if text is None:
            return _missing()
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, headers=headers, media_type=MEDIA_TYPES[name.rpartition(".")[2]])

    async def handed_out(request: Request) -> Response:
        texts = _asked_for(downloads.hand_out, request, account_ids=sandbox.options.accounts)
        return _missing() if texts is None else JSONResponse(texts)

    day = "/_sandbox/files/{account}/{day}/"
    return [
        Route("/_sandbox/files/", listed),
        Route(day, of_day, methods=["GET"]),
        Route(day, handed_out, methods=["POST"]),
        Route(f"{day}{{name}}", download),
    ]


def _asked_for(
    files: Callable[..., dict[str, str] | None], request: Request, *, account_ids: Sequence[str]
) -> dict[str, str] | None:
    """The files of the account and day in the path, None when there is no such account or day."""
    account_id = request.path_params["account"]
    try:
        day = date.fromisoformat(request.path_params["day"])
    except ValueError:
        return None
    return files(day=day, account_id=account_id) if account_id in account_ids else None


def _missing() -> Response:
    text = "no such file: /_sandbox/files/ lists accounts, business dates and names\n"
    return PlainTextResponse(text, status_code=HTTP_NOT_FOUND)


def _page(sandbox: Sandbox) -> str:
    today = datetime.fromtimestamp(sandbox.clock.now(), UTC).date()
    rows = [
        (
            day.isoformat(),
            account_id,
            PageLink("Files", f"/_sandbox/files/{account_id}/{day}/"),
        )
        for day in (today - timedelta(days=back) for back in range(DAYS_SHOWN))
        for account_id in sandbox.options.accounts
    ]
    names = ("Business date", "Account", "")
    return document("Files to download", links(HOME), paragraph(_EXPLAINED), table(names, rows))


def _day_page(request: Request, names: list[str]) -> str:
    rows = [(PageLink(name, f"{request.url.path}{name}"),) for name in names]
    title = f"Files of {request.path_params['day']}, account {request.path_params['account']}"
    back = PageLink("All dates", "/_sandbox/files/")
    return document(title, links(HOME, back), paragraph(_EXPLAINED), table(("File",), rows))

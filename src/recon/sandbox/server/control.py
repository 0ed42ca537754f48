"""`/_sandbox/*`: health, truth, invariants, faults, clock and reset, for tests and operators."""

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from recon.model.errors import ConfigurationError
from recon.sandbox.faults.fault_plan import install, planned_faults, rules_in
from recon.sandbox.ground.clock import MOVE_SECONDS_MAX, iso
from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.truth import effect_lines, invariants
from recon.sandbox.ground.wire import rendered
from recon.sandbox.notify.courier import Courier
from recon.sandbox.notify.notify_rows import notification_tables
from recon.sandbox.operations.operations import OPERATIONS
from recon.sandbox.operations.order_query import row_of, state_of
from recon.sandbox.operations.portal_operations import act_by_hand
from recon.sandbox.pages.truth_pages import overview, timeline
from recon.sandbox.server.http_exchange import run_what_is_due
from recon.sandbox.world.days import Downloads

HTTP_BAD_REQUEST = 400
HTTP_NOT_FOUND = 404
JSON_LINES = "application/x-ndjson"
MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "sta": "text/plain",
    "xml": "application/xml",
}
DAYS_SHOWN = 7
"""Business dates that the page of downloads offers, back from the clock's own."""


def control_routes(
    sandbox: Sandbox, *, repopulate: Callable[[Sandbox], None], courier: Courier
) -> list[Route]:
    """The routes under `/_sandbox`."""
    control = _Control(sandbox, repopulate, courier)
    return [
        Route("/_sandbox/", control.overview),
        Route("/_sandbox/transactions/{transaction_id}", control.timeline),
        Route("/_sandbox/health", control.health),
        Route("/_sandbox/effects", control.effects),
        Route("/_sandbox/payments", control.payments),
        Route("/_sandbox/invariants", control.invariants),
        Route("/_sandbox/notifications", control.notifications),
        Route("/_sandbox/faults", control.faults, methods=["GET"]),
        Route("/_sandbox/faults", control.install_faults, methods=["POST"]),
        Route("/_sandbox/portal", control.portal, methods=["POST"]),
        Route("/_sandbox/clock", control.clock, methods=["GET"]),
        Route("/_sandbox/clock", control.move_clock, methods=["POST"]),
        Route("/_sandbox/reset", control.reset, methods=["POST"]),
        Route("/_sandbox/files/", control.files),
        Route(_DAY, control.files_of_day),
        Route(_DAY, control.hand_out, methods=["POST"]),
        Route(f"{_DAY}{{name}}", control.file),
    ]


_DAY = "/_sandbox/files/{account}/{day}/"


class ByHand(BaseModel):
    """What somebody does in the portal."""

    model_config = ConfigDict(extra="forbid")
    action: Literal["capture", "cancel", "refund"]
    key: str
    """transaction_id or order_no."""
    amount: str | None = None


class _Control:
    """The endpoints over one sandbox, which lives as long as the application."""

    def __init__(
        self, sandbox: Sandbox, repopulate: Callable[[Sandbox], None], courier: Courier
    ) -> None:
        self.sandbox = sandbox
        self.repopulate = repopulate
        self.courier = courier
        self.downloads = Downloads(sandbox)

    async def overview(self, request: Request) -> Response:
        """The page for people."""
        page = overview(self.sandbox, searched=request.query_params.get("q", ""))
        return HTMLResponse(page)

    async def timeline(self, request: Request) -> Response:
        """One transaction for people."""
        page = timeline(self.sandbox, transaction_id=request.path_params["transaction_id"])
        if page is None:
            return Response("no such transaction", status_code=HTTP_NOT_FOUND)
        return HTMLResponse(page)

    async def health(self, _request: Request) -> Response:
        """Ready, and what stands here."""
        sandbox, book = self.sandbox, self.sandbox.book
        return JSONResponse(
            {
                "status": "ok",
                "now": iso(sandbox.clock.now()),
                "merchant": sandbox.options.merchant,
                "account": sandbox.options.account,
                "second_account": sandbox.options.second_account,
                "profile": sandbox.options.profile,
                "capture_mode": sandbox.options.capture_mode,
                "seed": int(book.note("seed")),
                "orders": int(book.note("orders")),
                "effects": book.select("SELECT count(*) FROM effect")[0][0],
                "requests": int(book.note("requests") or 0),
            }
        )

    async def effects(self, _request: Request) -> Response:
        """The truth, as JSON lines in commit order; what was due late is part of it."""
        run_what_is_due(self.sandbox)
        return StreamingResponse(effect_lines(self.sandbox.book), media_type=JSON_LINES)

    async def payments(self, _request: Request) -> Response:
        """Every payment as a query would show it, as JSON lines; also those without an effect."""
        return StreamingResponse(self._payment_lines(), media_type=JSON_LINES)

    async def _payment_lines(self) -> AsyncIterator[bytes]:
        now = self.sandbox.clock.now()
        for payment in list(self.sandbox.book.every_payment()):
            row = row_of(self.sandbox, payment, now=now)
            row |= {"merchant_id": payment.merchant_id, "account_id": payment.account_id}
            row["state"] = state_of(self.sandbox, payment, now=now).value
            yield json.dumps(row).encode() + b"\n"

    async def invariants(self, _request: Request) -> Response:
        """What must be 0."""
        run_what_is_due(self.sandbox)
        return JSONResponse(invariants(self.sandbox.book))

    async def notifications(self, _request: Request) -> Response:
        """What was told to merchants, as JSON lines; what is due is delivered first."""
        run_what_is_due(self.sandbox)
        await self.courier.settle()
        return StreamingResponse(self._notification_lines(), media_type=JSON_LINES)

    async def _notification_lines(self) -> AsyncIterator[bytes]:
        for table in notification_tables(self.sandbox.book):
            yield json.dumps(table).encode() + b"\n"

    async def faults(self, _request: Request) -> Response:
        """The plan in force, with how often each rule played."""
        planned = planned_faults(self.sandbox.book)
        return JSONResponse(
            {"rules": [entry.model_dump(exclude_defaults=True) for entry in planned]}
        )

    async def install_faults(self, request: Request) -> Response:
        """Replace the plan, or add to it with `"append": true` or `?append=1`."""
        try:
            tables = await request.json()
            append = request.query_params.get("append", "") in {"1", "true"}
            if isinstance(tables, dict):
                append = bool(tables.pop("append", append))
            rules = rules_in(tables, source="the request", operations=OPERATIONS)
        except (ValueError, RecursionError, ConfigurationError) as error:
            return _refused(str(error))
        with self.sandbox.book.transaction():
            count = install(self.sandbox.book, rules, append=append)
        return JSONResponse({"rules": count})

    async def portal(self, request: Request) -> Response:
        """Capture, cancel or refund by hand, as a clerk would: `{"action", "key", "amount"}`."""
        try:
            by_hand = ByHand.model_validate_json(await request.body())
        except ValidationError as error:
            problems = [f"{problem['loc']}: {problem['msg']}" for problem in error.errors()]
            return _refused("; ".join(problems))
        with self.sandbox.book.transaction():
            refused = act_by_hand(
                self.sandbox, action=by_hand.action, key=by_hand.key, amount=by_hand.amount
            )
        return (
            _refused(f"the gateway refuses: {refused}")
            if refused
            else JSONResponse({"refused": ""})
        )

    async def clock(self, _request: Request) -> Response:
        """The virtual instant."""
        return JSONResponse({"now": iso(self.sandbox.clock.now())})

    async def move_clock(self, request: Request) -> Response:
        """Move the virtual clock forward by `seconds`; what was due takes effect and is told."""
        sandbox = self.sandbox
        seconds = _seconds(await request.body())
        if seconds is None or sandbox.clock.moved + seconds > MOVE_SECONDS_MAX:
            return _refused(f'send {{"seconds": n}}, n from 0 to {MOVE_SECONDS_MAX} in all')
        await self.courier.settle()  # what is due now is not told later
        await self.courier.settle()  # what is due now is not told later
        with sandbox.book.transaction():
            sandbox.clock.moved += seconds
            sandbox.book.write_note("clock_moved", value=str(sandbox.clock.moved))
        late = run_what_is_due(sandbox)
        attempts = await self.courier.settle()
        now = iso(sandbox.clock.now())
        return JSONResponse({"now": now, "late_effects": late, "notification_attempts": attempts})

    async def reset(self, _request: Request) -> Response:
        """Begin again from the seed."""
        self.repopulate(self.sandbox)
        return await self.health(_request)

    async def files(self, request: Request) -> Response:
        """The page of business dates whose files can be had."""
        today = datetime.fromtimestamp(self.sandbox.clock.now(), UTC).date()
        days = [today - timedelta(days=back) for back in range(DAYS_SHOWN)]
        names = [f"{account}/{day}/" for day in days for account in self.sandbox.options.accounts]
        return _listed(request, "Files to download", names)

    async def files_of_day(self, request: Request) -> Response:
        """The page of the files of one account and business date."""
        files = self._asked_for(self.downloads.of, request)
        day, account = request.path_params["day"], request.path_params["account"]
        title = f"Files of {day}, account {account}"
        return _no_file() if files is None else _listed(request, title, [*files], day=day)

    async def file(self, request: Request) -> Response:
        """One file."""
        name = request.path_params["name"]
        text = (self._asked_for(self.downloads.of, request) or {}).get(name)
        if text is None:
            return _no_file()
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, headers=headers, media_type=MEDIA_TYPES[name.rpartition(".")[2]])

    async def hand_out(self, request: Request) -> Response:
        """All files of a date, by name, as it follows those that were handed out before."""
        texts = self._asked_for(self.downloads.hand_out, request)
        return _no_file() if texts is None else JSONResponse(texts)

    def _asked_for(
        self, files: Callable[..., dict[str, str] | None], request: Request
    ) -> dict[str, str] | None:
        """The files of account and day in the path, None when there is no such account or day."""
        account_id = request.path_params["account"]
        try:
            day = date.fromisoformat(request.path_params["day"])
        except ValueError:
            return None
        known = account_id in self.sandbox.options.accounts
        return files(day=day, account_id=account_id) if known else None


def _listed(request: Request, title: str, names: list[str], *, day: str = "") -> Response:
    here = request.url.path
    return HTMLResponse(rendered("files", title=title, here=here, names=names, day=day))


def _no_file() -> Response:
    text = "no such file: /_sandbox/files/ lists accounts, business dates and names\n"
    return PlainTextResponse(text, status_code=HTTP_NOT_FOUND)


def _seconds(body: bytes) -> int | None:
    try:
        seconds: Any = json.loads(body)["seconds"]
    except (ValueError, KeyError, TypeError):
        return None
    return seconds if type(seconds) is int and seconds >= 0 else None


def _refused(why: str) -> Response:
    content = {"code": "I0002", "source": "_sandbox", "message": why}
    return JSONResponse(content, status_code=HTTP_BAD_REQUEST)

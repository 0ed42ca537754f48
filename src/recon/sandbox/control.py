"""`/_sandbox/*`: health, effects, invariants, faults, clock and reset, for tests and operators.

The HTML pages show search, violated invariants and the fault plan; for one transaction, call by
call, what its client was answered next to what took effect; and the files of business dates.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice
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
from recon.sandbox.batch import act_by_hand
from recon.sandbox.call import Sandbox
from recon.sandbox.database import on_wire
from recon.sandbox.exchange import OPERATIONS, run_what_is_due
from recon.sandbox.faults import install, planned_faults, rules_in
from recon.sandbox.notifications import Dispatcher, notification_tables
from recon.sandbox.options import MOVE_SECONDS_MAX, iso
from recon.sandbox.queries import row_of, state_of
from recon.sandbox.wire import rendered
from recon.sandbox.world.days import Downloads

HTTP_BAD_REQUEST = 400
HTTP_NOT_FOUND = 404
LINES_PER_WRITE = 1_000
MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "sta": "text/plain",
    "xml": "application/xml",
}
DAYS_DISPLAYED = 7
"""Number of business dates on the page of downloads, back from the clock's own."""
_DAY = "/_sandbox/files/{account}/{day}/"


def control_routes(
    sandbox: Sandbox, *, repopulate: Callable[[Sandbox], None], dispatcher: Dispatcher
) -> list[Route]:
    """The routes under `/_sandbox`."""
    control = _Control(sandbox, repopulate, dispatcher)
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


class ByHand(BaseModel):
    """An action of a person in the portal."""

    model_config = ConfigDict(extra="forbid")
    action: Literal["capture", "cancel", "refund"]
    key: str
    """transaction_id or order_no."""
    amount: str | None = None


class _Control:
    """The endpoints of one sandbox, which lives as long as the application."""

    def __init__(
        self, sandbox: Sandbox, repopulate: Callable[[Sandbox], None], dispatcher: Dispatcher
    ) -> None:
        self.sandbox = sandbox
        self.repopulate = repopulate
        self.dispatcher = dispatcher
        self.downloads = Downloads(sandbox)

    async def overview(self, request: Request) -> Response:
        return HTMLResponse(overview(self.sandbox, searched=request.query_params.get("q", "")))

    async def timeline(self, request: Request) -> Response:
        page = timeline(self.sandbox, transaction_id=request.path_params["transaction_id"])
        if page is None:
            return Response("no such transaction", status_code=HTTP_NOT_FOUND)
        return HTMLResponse(page)

    async def health(self, _request: Request) -> Response:
        options, database = self.sandbox.options, self.sandbox.database
        shown = ("merchant", "account", "second_account", "profile", "capture_mode")
        return JSONResponse(
            {
                "status": "ok",
                "now": iso(self.sandbox.clock.now()),
                **{name: getattr(options, name) for name in shown},
                "seed": int(database.note("seed")),
                "orders": int(database.note("orders")),
                "effects": database.select("SELECT count(*) FROM effect")[0][0],
                "requests": int(database.note("requests") or 0),
            }
        )

    async def effects(self, _request: Request) -> Response:
        """The ledger of effects in commit order, including late effects that are due."""
        run_what_is_due(self.sandbox)
        return _lines(effect.table() for effect in self.sandbox.database.every_effect())

    async def payments(self, _request: Request) -> Response:
        """Every payment as a query would show it, including those without an effect."""
        now = self.sandbox.clock.now()
        return _lines(
            row_of(self.sandbox, payment, now=now)
            | {"merchant_id": payment.merchant_id, "account_id": payment.account_id}
            | {"state": state_of(self.sandbox, payment, now=now).value}
            for payment in list(self.sandbox.database.every_payment())
        )

    async def invariants(self, _request: Request) -> Response:
        run_what_is_due(self.sandbox)
        return JSONResponse(self.sandbox.database.invariants())

    async def notifications(self, _request: Request) -> Response:
        """All notifications; those that are due are delivered first."""
        run_what_is_due(self.sandbox)
        await self.dispatcher.settle()
        return _lines(notification_tables(self.sandbox.database))

    async def faults(self, _request: Request) -> Response:
        planned = planned_faults(self.sandbox.database)
        return JSONResponse(
            {"rules": [entry.model_dump(exclude_defaults=True) for entry in planned]}
        )

    async def install_faults(self, request: Request) -> Response:
        """Replace the plan, or extend it with `"append": true`."""
        try:
            tables = await request.json()
            append = isinstance(tables, dict) and bool(tables.pop("append", False))
            rules = rules_in(tables, source="the request", operations=OPERATIONS)
        except (ValueError, RecursionError, ConfigurationError) as error:
            return _refused(str(error))
        with self.sandbox.database.transaction():
            count = install(self.sandbox.database, rules, append=append)
        return JSONResponse({"rules": count})

    async def portal(self, request: Request) -> Response:
        """Capture, cancel or refund as a person in the portal: `{"action", "key", "amount"}`."""
        try:
            by_hand = ByHand.model_validate_json(await request.body())
        except ValidationError as error:
            problems = [f"{problem['loc']}: {problem['msg']}" for problem in error.errors()]
            return _refused("; ".join(problems))
        with self.sandbox.database.transaction():
            refused = act_by_hand(self.sandbox, **by_hand.model_dump())
        if refused:
            return _refused(f"the gateway refuses: {refused}")
        return JSONResponse({"refused": ""})

    async def clock(self, _request: Request) -> Response:
        return JSONResponse({"now": iso(self.sandbox.clock.now())})

    async def move_clock(self, request: Request) -> Response:
        """Move the virtual clock forward by `seconds`; apply and notify what was due."""
        sandbox = self.sandbox
        try:
            seconds: Any = json.loads(await request.body())["seconds"]
        except (ValueError, KeyError, TypeError):
            seconds = None
        known = type(seconds) is int and seconds >= 0
        if not known or sandbox.clock.moved + seconds > MOVE_SECONDS_MAX:
            return _refused(f'send {{"seconds": n}}, n from 0 to {MOVE_SECONDS_MAX} in all')
        await self.dispatcher.settle()  # what is due now is sent at its own time
        with sandbox.database.transaction():
            sandbox.clock.moved += seconds
            sandbox.database.write_note("clock_moved", value=str(sandbox.clock.moved))
        late = run_what_is_due(sandbox)
        attempts = await self.dispatcher.settle()
        now = iso(sandbox.clock.now())
        return JSONResponse({"now": now, "late_effects": late, "notification_attempts": attempts})

    async def reset(self, request: Request) -> Response:
        self.repopulate(self.sandbox)
        return await self.health(request)

    async def files(self, request: Request) -> Response:
        today = datetime.fromtimestamp(self.sandbox.clock.now(), UTC).date()
        days = [today - timedelta(days=back) for back in range(DAYS_DISPLAYED)]
        names = [f"{account}/{day}/" for day in days for account in self.sandbox.options.accounts]
        return _listed(request, "Files to download", names)

    async def files_of_day(self, request: Request) -> Response:
        files = self._requested(self.downloads.of, request)
        day, account = request.path_params["day"], request.path_params["account"]
        title = f"Files of {day}, account {account}"
        return _no_file() if files is None else _listed(request, title, [*files], day=day)

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        text = (self._requested(self.downloads.of, request) or {}).get(name)
        if text is None:
            return _no_file()
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, headers=headers, media_type=MEDIA_TYPES[name.rpartition(".")[2]])

    async def hand_out(self, request: Request) -> Response:
        """All files of a date by name, as the continuation of the dates exported before."""
        texts = self._requested(self.downloads.hand_out, request)
        return _no_file() if texts is None else JSONResponse(texts)

    def _requested(
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


def _lines(tables: Iterable[dict[str, Any]]) -> Response:
    """JSON lines, read on the thread that writes to the database."""
    left = iter(tables)

    async def written() -> AsyncIterator[bytes]:
        while some := [json.dumps(each) for each in islice(left, LINES_PER_WRITE)]:
            yield "".join(f"{line}\n" for line in some).encode()

    return StreamingResponse(written(), media_type="application/x-ndjson")


def _listed(request: Request, title: str, names: list[str], *, day: str = "") -> Response:
    here = request.url.path
    return HTMLResponse(rendered("files", title=title, here=here, names=names, day=day))


def _no_file() -> Response:
    text = "no such file: /_sandbox/files/ lists accounts, business dates and names\n"
    return PlainTextResponse(text, status_code=HTTP_NOT_FOUND)


def _refused(why: str) -> Response:
    content = {"code": "I0002", "source": "_sandbox", "message": why}
    return JSONResponse(content, status_code=HTTP_BAD_REQUEST)


PAYMENTS_DISPLAYED = 100
CALLS_DISPLAYED = 20
SEARCH_LENGTH_MAX = 100
STATUSES_DONE = frozenset({"1", "COMPLETED"})
MOVES_NOTHING = frozenset({"retrievalTrans", "retrievalRefund"})
COMPANIONS = frozenset({("authorise", "capture"), ("pay", "capture"), ("review", "authorise")})
"""Operations with the effect that accompanies their own: one answer covers both."""

_SEARCH = (
    "SELECT transaction_id FROM payment WHERE order_no LIKE ? ESCAPE '!'"
    " OR transaction_id LIKE ? ESCAPE '!' ORDER BY created_at DESC, transaction_id LIMIT ?"
)
_WITHOUT_PAYMENT = (
    "SELECT committed_at, operation, transaction_id, request_id FROM effect"
    " WHERE origin <> 'seed' AND transaction_id NOT IN (SELECT transaction_id FROM payment)"
    " AND (transaction_id LIKE ? ESCAPE '!' OR request_id LIKE ? ESCAPE '!')"
    " ORDER BY position DESC LIMIT ?"
)
_CALLS = (
    "SELECT request_log_id, received_at, operation, outcome, fault FROM request"
    " ORDER BY request_log_id DESC LIMIT ?"
)


def overview(sandbox: Sandbox, *, searched: str) -> str:
    """The first page; `searched` is part of an order, a transaction or a payout's request_id."""
    database, now = sandbox.database, sandbox.clock.now()
    text = searched[:SEARCH_LENGTH_MAX]
    pattern = "%" + text.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"
    patterns = (pattern, pattern, PAYMENTS_DISPLAYED)
    payments = database.payments(
        "transaction_id", keys=[row[0] for row in database.select(_SEARCH, patterns)]
    )
    own = {"kind", "operation"}
    return rendered(
        "overview",
        options=sandbox.options,
        now=iso(now),
        broken={name: count for name, count in database.invariants().items() if count},
        searched=text,
        length_max=SEARCH_LENGTH_MAX,
        payments_max=PAYMENTS_DISPLAYED,
        # Effects of payouts and subscriptions belong to no payment.
        found=[(payment, state_of(sandbox, payment, now=now)) for payment in reversed(payments)],
        others=database.select(_WITHOUT_PAYMENT, patterns),
        planned=[
            (entry, entry.rule.model_dump_json(exclude_defaults=True, exclude=own))
            for entry in planned_faults(database)
        ],
        calls_max=CALLS_DISPLAYED,
        calls=database.select(_CALLS, (CALLS_DISPLAYED,)),
    )


@dataclass(slots=True)
class _Moment:
    """One call, or one effect without a call."""

    at: int
    behind: str
    """Id of the call itself, or of the last call before the effect, since instants may be equal."""
    what: tuple[str, ...]
    operation: str = ""
    fault: str = ""
    statuses: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    true: list[str] = field(default_factory=list)
    companions: int = 0
    """Number of effects that accompany another one of the same row."""

    @property
    def moves_nothing(self) -> bool:
        """Whether it is a query; its answers are logged only where a fault falsified them."""
        return self.operation in MOVES_NOTHING

    @property
    def differs(self) -> bool:
        """Whether the client's answers differ from what took effect."""
        if not self.operation or self.moves_nothing:
            return self.moves_nothing
        done = sum(status in STATUSES_DONE for status in self.statuses)
        return done != len(self.true) - self.companions


def timeline(sandbox: Sandbox, *, transaction_id: str) -> str | None:
    """The history page of one transaction; None when it is unknown."""
    payment = sandbox.database.payment(transaction_id)
    moments = _moments(sandbox, transaction_id)
    if payment is None and not moments:
        return None
    now = sandbox.clock.now()
    return rendered(
        "timeline",
        transaction_id=transaction_id,
        payment=(payment, state_of(sandbox, payment, now=now)) if payment else None,
        moments=moments,
        notifications=[*notification_tables(sandbox.database, transaction_id=transaction_id)],
    )


def _moments(sandbox: Sandbox, transaction_id: str) -> list[_Moment]:
    """Calls and effects in order of time; an effect is attached to the call that caused it."""
    states = sandbox.terms.payment_status
    calls: dict[str, _Moment] = {}
    select, of = sandbox.database.select, (transaction_id,)
    for _, log_id, at, operation, fault, status, message in select(
        "SELECT * FROM told WHERE transaction_id = ?", of
    ):
        moment = calls.setdefault(
            log_id, _Moment(at, log_id, (operation, log_id), operation, fault)
        )
        moment.statuses.append(status)
        state = f"({states[status]})" if status in states else ""
        moment.replies.append(" ".join(part for part in (status, state, message) if part))
    others: list[_Moment] = []
    for _, log_id, at, operation, origin, amount, currency, reference, behind in select(
        "SELECT * FROM happened WHERE transaction_id = ?", of
    ):
        paid = f"{on_wire(amount, currency=currency)} {currency}" if amount is not None else ""
        true = " ".join(part for part in (operation, paid, reference) if part)
        if log_id in calls:
            calls[log_id].true.append(true)
            calls[log_id].companions += (calls[log_id].operation, operation) in COMPANIONS
        else:
            others.append(_Moment(at, behind, (_ORIGINS.get(origin, origin),), true=[true]))
    return sorted([*calls.values(), *others], key=lambda moment: (moment.at, moment.behind))


_ORIGINS = {
    "seed": "before the sandbox started",
    "portal": "by hand in the portal",
    "gateway": "by the gateway itself",
}

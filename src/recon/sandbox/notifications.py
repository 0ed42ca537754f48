"""Notifications of payments, reviews, refunds and payouts that the gateway sends by itself.

The document names notify_url but not what is sent there; types and retries follow public
documentation of the same interface, field names and signature are assumption A-13. A notification
is scheduled in the transaction of the effect it reports. After the commit the dispatcher sends it
to the notify_url of the request, else to that of the sandbox, to this machine only, one at a time
and in the order in which they are due, so that a run can be replayed. A 2xx from the merchant
acknowledges it; any other answer, or none, leads to the next retry. Faults of notifications:
dropped, doubled, late, out of order, truncated, forged, contradicting.
"""

import asyncio
import hashlib
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx

from recon.privacy.this_machine import is_loopback
from recon.sandbox.call import STATUS_DONE, STATUS_FAILED, Sandbox
from recon.sandbox.database import Database, Effect, columns_of, ids_of, on_wire
from recon.sandbox.faults import Fault, draw
from recon.sandbox.options import DAY_SECONDS, HOUR_SECONDS, fourteen_digits, iso
from recon.sandbox.terms import Notifications
from recon.sandbox.wire import sign

PAYMENT = "PAYMENT"
REVIEW_RESULT = "REVIEW RESULT"
REFUND_RECEIVED = "REFUND RECIEVED"
"""Misspelt as the gateway spells it."""
REFUND_ACCEPTED = "REFUND ACCEPTED"
REFUND_RESULT = "REFUND RESULT"
NO_TYPE = ""
"""Type of a payout's message: no document names one."""
TEMPLATE = "payment_reply"
URL_LENGTH_MAX = 2_000
ROWS_PER_READ = 1_000

State = Literal["waiting", "acknowledged", "given up", "dropped", "not sent"]
"""`not sent`: its address is not on this machine. `dropped`: by the fault plan."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One message to one address; instants are whole seconds on the virtual clock."""

    type: str
    """The gateway's name of the type; "" for a payout."""
    operation: str
    """Operation of the gateway that it reports, matched by the fault plan."""
    merchant_id: str
    account_id: str
    transaction_id: str
    order_no: str
    about: str
    """refund_reference_id or request_id, "" for a payment."""
    url: str
    body: str
    """The signed form body."""
    fault: str
    created_at: int
    first_at: int
    """Instant of the first attempt, from which retries are scheduled."""
    due_at: int
    rank: int = 0
    """Of two that are due at once the lower is sent first."""
    retried: int = 1
    """0: sent once, whatever the answer."""
    attempts: int = 0
    state: State = "waiting"


_COLUMNS = columns_of(Notification)


def notification_tables(
    database: Database, *, transaction_id: str = ""
) -> Iterator[dict[str, Any]]:
    """Notifications with their attempts as plain values, oldest first; all or one transaction's."""
    after = 0
    shown = ("type", "operation", "merchant_id", "account_id", "transaction_id", "order_no")
    while rows := database.select(
        f"SELECT notification_id, {_COLUMNS} FROM notification WHERE notification_id > ?"  # noqa: S608
        " AND (? = '' OR transaction_id = ?) ORDER BY notification_id LIMIT ?",
        (after, transaction_id, transaction_id, ROWS_PER_READ),
    ):
        for number, *values in rows:
            one = Notification(*values)
            tried = database.select(
                "SELECT at, outcome FROM notification_attempt WHERE notification_id = ?"
                " ORDER BY attempt",
                (number,),
            )
            yield {
                "notification_id": number,
                **{name: getattr(one, name) for name in (*shown, "about", "url", "fault", "state")},
                "created_at": iso(one.created_at),
                "due_at": iso(one.due_at) if one.state == "waiting" else "",
                "fields": dict(parse_qsl(one.body, keep_blank_values=True)),
                "attempts": [{"at": iso(at), "outcome": outcome} for at, outcome in tried],
            }
        after = rows[-1][0]


def notify_refund(sandbox: Sandbox, effect: Effect, *, failed_at: int | None = None) -> None:
    """Schedule the notifications that a refund was received, accepted and, later, processed.

    An accepted refund may fail at `failed_at`: that replaces the result not yet sent.
    """
    database, about, at = sandbox.database, effect.refund_reference_id, effect.committed_at
    processed = at + sandbox.terms.windows.refund_processing_days * DAY_SECONDS
    messages = [(REFUND_RECEIVED, at), (REFUND_ACCEPTED, at), (REFUND_RESULT, processed)]
    if failed_at is not None:
        database.execute(
            "DELETE FROM notification WHERE type = ? AND about = ? AND state = 'waiting'"
            " AND attempts = 0",
            (REFUND_RESULT, about),
        )
        messages = [(REFUND_RESULT, failed_at)]
    payment = database.payment(effect.transaction_id)
    if payment is None:
        return
    for type_, due_at in messages:
        fields = {
            **ids_of(payment),
            "amount": payment.amount,
            "payment_status": sandbox.terms.code_of[payment.state],
            "refund_amount": on_wire(effect.amount or 0, currency=payment.currency),
            "refund_status": STATUS_DONE if failed_at is None else STATUS_FAILED,
            "refund_reason": effect.refund_reason,
            "refund_reference": effect.refund_reference,
            "refund_reference_id": about,
            "refund_date": fourteen_digits(at),
            "refund_processing_date": fourteen_digits(due_at) if type_ == REFUND_RESULT else "",
        }
        to = {"operation": "refund", "type_": type_, "about": about}
        notify(sandbox, fields, at=due_at, notify_url=payment.detail.notify_url, **to)


def notify(
    sandbox: Sandbox,
    fields: Mapping[str, str],
    *,
    operation: str,
    type_: str,
    notify_url: str,
    at: int,
    about: str = "",
) -> None:
    """Schedule one message, with the faults of the plan; nothing without an address."""
    options, terms, database = sandbox.options, sandbox.terms.notifications, sandbox.database
    filled = options.notify_url or terms.url
    for name in ("merchant_id", "account_id"):
        filled = filled.replace(f"{{{name}}}", fields[name])
    url = (notify_url or filled)[:URL_LENGTH_MAX]
    if not url or (type_ and type_ not in terms.types):
        return
    typed = ({"webhooks_type": type_} if type_ else {}) | dict(fields)
    signature = sign(TEMPLATE, typed, sign_key=options.sign_key)
    now = sandbox.clock.now()
    notification = Notification(
        type=type_,
        operation=operation,
        merchant_id=fields["merchant_id"],
        account_id=fields["account_id"],
        transaction_id=fields["transaction_id"],
        order_no=fields.get("order_no", ""),
        about=about,
        url=url,
        body=urlencode(typed | {"encryption_data": signature}),
        fault="",
        created_at=now,
        first_at=at,
        due_at=at,
        state="waiting" if _is_own_address(url) else "not sent",
    )
    row = (notification.transaction_id, notification.order_no or about)
    faults = draw(database, operation=operation, rows=[row], seed=options.seed, notifications=True)
    sent = _faulty(notification, faults=faults, sign_key=options.sign_key)
    for each in sent:
        database.write("notification", [each], kind=Notification)
    is_held = any(each.rank == HELD_RANK for each in sent)
    if notification.state == "waiting" and at <= now and not is_held:
        # Messages held back by a reordering fault follow this one.
        database.execute(
            "UPDATE notification SET due_at = ?, first_at = ?, rank = 1 WHERE rank = ?"
            " AND state = 'waiting' AND attempts = 0 AND account_id = ?",
            (at, at, HELD_RANK, notification.account_id),
        )


def _is_own_address(url: str) -> bool:
    """Whether an address is plain HTTP on this machine; a sandbox sends to no other."""
    try:
        parts = urlsplit(url)
        known = parts.scheme == "http" and bool(parts.hostname) and parts.username is None
        host, _ = parts.hostname or "", parts.port
        return known and (host == "localhost" or is_loopback(host))
    except ValueError:
        return False


FORGED_SIGNATURE = "0" * 64
MORE_DIGITS = ("refund_amount", "payment_amount", "amount")
"""Amount fields of a message, the one it is about first."""
HELD_RANK = -1
"""Rank of a message held back until the next one."""


def _faulty(
    notification: Notification, *, faults: list[Fault], sign_key: str
) -> list[Notification]:
    """The messages sent in place of one, after its faults."""
    sent = replace(notification, fault=" ".join(fault.rule.kind for fault in faults))
    copies: list[Notification] = []
    for fault in faults:
        kind, later = fault.rule.kind, sent.due_at + round(fault.rule.lasting)
        copy = replace(sent, fault=kind)
        # The amount it is about, with one more digit.
        changed = dict(parse_qsl(sent.body, keep_blank_values=True))
        amount = next((name for name in MORE_DIGITS if name in changed), "amount")
        changed[amount] = f"1{changed.get(amount, '')}"
        if kind == "notify_dropped":
            sent = replace(sent, state="dropped")
        elif kind in {"notify_late", "notify_reordered"}:
            rank = HELD_RANK if kind == "notify_reordered" else sent.rank
            sent = replace(sent, due_at=later, first_at=later, rank=rank)
        elif kind == "notify_twice":
            copies.append(copy)
        elif kind in {"notify_forged", "notify_contradicting"}:
            forged = kind == "notify_forged"
            signature = FORGED_SIGNATURE if forged else sign(TEMPLATE, changed, sign_key=sign_key)
            body = urlencode(changed | {"encryption_data": signature})
            copies.append(replace(copy, body=body, retried=0))
    return [sent, *copies]


ATTEMPT_SECONDS_MAX = 3.0
"""Real seconds within which a merchant must answer."""
NAP_SECONDS_MAX = 1.0
"""Interval between two checks of a clock that runs with real time."""
FORM = {"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "recon-sandbox"}


class Dispatcher:
    """Delivers the notifications of one sandbox over real HTTP; lives as long as its application.

    Retries are scheduled in whole seconds on the virtual clock: after 1 second, then doubling with
    jitter. A series ends after 12 hours, and three series follow each other, 36 hours in all. The
    jitter comes from a digest, so that a seed reproduces it.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._turn = asyncio.Lock()
        self._work: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Start delivering what is due, unless a delivery is running or there is no event loop."""
        if (self._work and not self._work.done()) or not self._has_work():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._work = loop.create_task(self._deliver())

    async def settle(self) -> int:
        """Deliver everything that is due by now; return the number of attempts."""
        attempts, database, clock = 0, self._sandbox.database, self._sandbox.clock
        due = (
            f"SELECT notification_id, {_COLUMNS} FROM notification"  # noqa: S608 - our own names
            " WHERE state = 'waiting' AND due_at <= ?"
            " ORDER BY due_at, rank, notification_id LIMIT 1"
        )
        # No proxy, no redirects, no trusted certificates: loopback only.
        client = httpx.AsyncClient(
            timeout=ATTEMPT_SECONDS_MAX,
            trust_env=False,
            follow_redirects=False,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )
        async with self._turn, client:
            while rows := database.select(due, (clock.now(),)):
                await self._attempt(client, rows[0][0], Notification(*rows[0][1:]))
                attempts += 1
        return attempts

    def _has_work(self) -> bool:
        statement = "SELECT min(due_at) FROM notification WHERE state = 'waiting'"
        instant = self._sandbox.database.select(statement)[0][0]
        runs = self._sandbox.options.real_clock
        return instant is not None and (runs or instant <= self._sandbox.clock.now())

    async def _deliver(self) -> None:
        await self.settle()
        while self._sandbox.options.real_clock and self._has_work():
            await asyncio.sleep(NAP_SECONDS_MAX)
            await self.settle()

    async def _attempt(self, client: httpx.AsyncClient, number: int, sent: Notification) -> None:
        outcome, acknowledged = await _post(client, sent)
        database, seed, attempt = (
            self._sandbox.database,
            self._sandbox.options.seed,
            sent.attempts + 1,
        )
        about = "\x1f".join((str(seed), sent.type, sent.transaction_id, sent.about, sent.fault))
        due = retry_seconds(self._sandbox.terms.notifications, about=about) if sent.retried else []
        state, due_at = "given up", sent.due_at
        if acknowledged:
            state = "acknowledged"
        elif sent.attempts < len(due):
            state, due_at = "waiting", sent.first_at + due[sent.attempts]
        with database.transaction():
            # The sandbox may have been reset meanwhile.
            if database.select("SELECT 1 FROM notification WHERE notification_id = ?", (number,)):
                database.execute(
                    "INSERT OR REPLACE INTO notification_attempt VALUES (?, ?, ?, ?)",
                    (number, attempt, sent.due_at, outcome),
                )
                database.execute(
                    "UPDATE notification SET attempts = ?, state = ?, due_at = ?"
                    " WHERE notification_id = ?",
                    (attempt, state, due_at, number),
                )


async def _post(client: httpx.AsyncClient, sent: Notification) -> tuple[str, bool]:
    """The merchant's answer, and whether it acknowledges; the body is not read."""
    # A truncated message is complete when it is retried.
    cut = "notify_truncated" in sent.fault.split() and not sent.attempts
    body = sent.body[: len(sent.body) // 2] if cut else sent.body
    try:
        async with (
            asyncio.timeout(ATTEMPT_SECONDS_MAX),
            client.stream("POST", sent.url, content=body, headers=FORM) as reply,
        ):
            status = reply.status_code
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        return f"no answer ({type(error).__name__})", False
    return f"HTTP {status}", HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES


def retry_seconds(terms: Notifications, *, about: str) -> list[int]:
    """When each retry is due, in ascending seconds after the first attempt.

    Waits double until a series is over; its last attempt is at its very end.
    """
    lasting, due = terms.retry_series_hours * HOUR_SECONDS, list[int]()
    for series in range(terms.retry_series):
        at, wait, number = 0, terms.retry_first_seconds, 0
        while at < lasting:
            digest = hashlib.sha256(f"{about}\x1f{series}\x1f{number}".encode()).digest()
            chance = int.from_bytes(digest[:6]) / 2**47 - 1  # from -1 to 1
            jitter = 1 + terms.retry_jitter_percent / 100 * chance
            at = min(lasting, at + max(1, round(wait * jitter)))
            due.append(series * lasting + at)
            wait, number = 2 * wait, number + 1
    return due

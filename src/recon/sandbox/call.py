"""One request as an operation receives it, and the reply it returns.

Operations are functions from a `Call` to a reply. They change the database inside the transaction
that the exchange holds open, and never see HTTP. The checks before them, and their order, are the
same for all operations.
"""

import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from recon.sandbox.database import Database, LoggedRequest, RowReply
from recon.sandbox.options import SandboxOptions, VirtualClock
from recon.sandbox.terms import OF_PARAMETER, SandboxTerms
from recon.sandbox.wire import Fields, sign, text_of, too_long, wire_minor_units

HTTP_OK = 200
HTTP_BAD_REQUEST = 400
STATUS_DONE, STATUS_FAILED = "1", "0"
RowKey = tuple[str, str]
"""transaction_id and order_no of a row, "" where the request does not name one."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """All parts of a running sandbox except HTTP."""

    options: SandboxOptions
    terms: SandboxTerms
    database: Database
    clock: VirtualClock


@dataclass(frozen=True, slots=True)
class Call:
    """One request with its parsed body."""

    operation: str
    fields: Fields
    client_ip: str
    request_log_id: str
    now: int
    skipped: frozenset[int] = frozenset()
    """Indexes of rows that a fault drops before they take effect."""
    base_url: str = ""
    """Base URL at which this gateway was called, without the version."""

    def text(self, name: str) -> str:
        """A field as text, "" when it is absent."""
        return text_of(self.fields.get(name))

    def texts(self, *names: str) -> dict[str, Any]:
        """Fields as text, by name."""
        return {name: self.text(name) for name in names}

    def missing(self, names: Iterable[str]) -> str:
        """The first of these fields that is absent or empty, "" when none is."""
        return next((name for name in names if not self.text(name)), "")

    def amount(self, name: str, *, currency: str) -> int:
        """Minor units of an amount on the wire, 0 when the amount or its currency is malformed."""
        return wire_minor_units(self.fields.get(name), currency=currency) or 0

    def rows(self, key: str) -> list[Fields] | None:
        """The rows of a batch, None unless a list of objects; a single object is one row."""
        given = self.fields.get(key)
        if isinstance(given, str) and given[:1] in {"{", "["}:
            # A form transmits objects and lists as JSON text.
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                return None
        rows = [given] if isinstance(given, dict) else given
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return None
        return rows

    def table(self, key: str) -> Fields:
        """An object of the request, the first one of a list; empty when absent."""
        rows = self.rows(key)
        return rows[0] if rows else {}

    def logged(self, outcome: str, *, fault: str = "") -> LoggedRequest:
        """The entry of this request for the log."""
        return LoggedRequest(
            request_log_id=self.request_log_id,
            received_at=self.now,
            operation=self.operation,
            merchant_id=self.text("merchant_id"),
            account_id=self.text("account_id"),
            outcome=outcome,
            fault=fault,
        )


@dataclass(frozen=True, slots=True)
class OperationReply:
    """The reply of an operation, before it is turned into HTTP."""

    content: Mapping[str, Any]
    form: Literal["json", "xml", "checkout", "pay", "see_other"] = "json"
    """For a page, the name of its template."""
    http_status: int = HTTP_OK
    rows_key: str = ""
    """Key of the content that holds the rows, "" when there are none."""
    row_replies: tuple[RowReply, ...] = ()
    outcome: str = ""
    address: str = ""
    """Target of a redirect, or of the form of a page."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the content."""
        return list(self.content.get(self.rows_key, ()))


def json_refusal(
    sandbox: Sandbox, call: Call, reason: str, *, http_status: int = HTTP_BAD_REQUEST
) -> OperationReply:
    """A JSON refusal, for operations whose record has no field for one."""
    code, text = sandbox.terms.refusal(reason).split(":", 1)
    content = {"code": code, "source": call.operation, "message": text}
    return OperationReply(content, http_status=http_status, outcome=str(http_status))


def list_reply(
    sandbox: Sandbox,
    call: Call,
    rows_key: str,
    *,
    status: str,
    reason: str = "",
    rows: Iterable[dict[str, Any]] = (),
) -> OperationReply:
    """The reply of an operation that answers with rows, or refuses all of them."""
    content = {
        **call.texts("merchant_id", "account_id"),
        "return_status": status,
        "return_message": sandbox.terms.refusal(reason) if reason else "OK",
        "encryption_data": echoed_signature(call, reason=reason),
        rows_key: list(rows),
    }
    return OperationReply(content, rows_key=rows_key, outcome=status)


def echoed_signature(call: Call, *, reason: str = "") -> str:
    """The request's signature as the reply repeats it, "" where that signature was refused."""
    return "" if reason == "signature" else call.text("encryption_data")


def wrong(parameter: str) -> str:
    """Reason `parameters` with the name of the missing or malformed parameter; "" for none."""
    return f"parameters{OF_PARAMETER}{parameter}" if parameter else ""


@dataclass(frozen=True, slots=True)
class SandboxOperation:
    """One operation of the gateway: its checks, its refusals and its answer.

    The reason of a refusal is a short name from sandbox.toml, followed by the parameter concerned.
    """

    answer: Callable[[Sandbox, Call], OperationReply]
    refuse: Callable[[Sandbox, Call, str], OperationReply] = json_refusal
    unfit: Callable[[Sandbox, Call], str] = lambda _sandbox, _call: ""
    """Reason to refuse it although merchant, account and signature are right, else ""."""
    template: str = ""
    """Name of its signature template, where this differs from the operation's."""
    rows_key: str = ""
    """Key of the list of rows in its request, "" when the request is a single row."""
    needs_registered_ip: bool = False
    instead: Callable[[Sandbox, Call], OperationReply | None] = lambda _sandbox, _call: None
    """Reply that is returned without any of these checks, None to continue."""
    keys: Callable[[Call], list[RowKey]] | None = None
    """Keys of a request that has no list of rows but concerns several."""

    def played(self, sandbox: Sandbox, call: Call) -> OperationReply:
        """Run the operation on a call; return its reply or refusal."""
        if reply := self.instead(sandbox, call):
            return reply
        reason = self._refusal(sandbox, call)
        return self.refuse(sandbox, call, reason) if reason else self.answer(sandbox, call)

    def row_keys(self, call: Call) -> list[RowKey]:
        """The transactions and orders that a request is about."""
        if self.keys:
            return self.keys(call)
        if not self.rows_key:
            names = ("order_no", "request_id", "recurring_id")
            name = next((name for name in names if call.fields.get(name)), "order_no")
            return [(call.text("transaction_id"), call.text(name))]
        rows = call.rows(self.rows_key) or ()
        return [(text_of(row.get("transaction_id")), text_of(row.get("order_no"))) for row in rows]

    def _refusal(self, sandbox: Sandbox, call: Call) -> str:
        options = sandbox.options
        rows = call.rows(self.rows_key) if self.rows_key else []
        if rows is None:
            return wrong(self.rows_key)
        if self.needs_registered_ip and call.client_ip != options.registered_ip:
            return "caller"
        if call.text("merchant_id") != options.merchant:
            return "merchant"
        if call.text("account_id") not in options.accounts:
            return "account"
        template = self.template or call.operation
        expected = sign(template, call.fields, sign_key=options.sign_key, rows=rows)
        given = call.text("encryption_data").lower()
        if not hmac.compare_digest(given.encode(), expected.encode()):
            return "signature"
        return wrong(too_long(call.fields, profile=options.profile)) or self.unfit(sandbox, call)

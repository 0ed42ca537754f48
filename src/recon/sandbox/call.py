"""One request on its way through an operation, and the reply it gets.

Operations are functions from a `Call` to a reply; they change the book inside the transaction that
the exchange holds open, and never see HTTP. What is checked before any of them, and in which order,
is the same for all.
"""

import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from recon.sandbox.book import Book, LoggedRequest, RowReply
from recon.sandbox.options import SandboxOptions, VirtualClock
from recon.sandbox.terms import OF_PARAMETER, SandboxTerms
from recon.sandbox.wire import Fields, sign, text_of, too_long, wire_minor_units

HTTP_OK = 200
HTTP_BAD_REQUEST = 400
STATUS_DONE, STATUS_FAILED = "1", "0"
RowKey = tuple[str, str]
"""transaction_id and order_no of a row, "" where the request does not say."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Everything one running sandbox consists of, besides HTTP."""

    options: SandboxOptions
    terms: SandboxTerms
    book: Book
    clock: VirtualClock


@dataclass(frozen=True, slots=True)
class Call:
    """One request after its body was read."""

    operation: str
    fields: Fields
    client_ip: str
    request_log_id: str
    now: int
    skipped: frozenset[int] = frozenset()
    """Indexes of rows that a fault loses before they take effect."""
    base_url: str = ""
    """Where this gateway was reached, without the version."""

    def text(self, name: str) -> str:
        """A field as text; absent is empty."""
        return text_of(self.fields.get(name))

    def texts(self, *names: str) -> dict[str, Any]:
        """Fields as text, by name."""
        return {name: self.text(name) for name in names}

    def missing(self, names: Iterable[str]) -> str:
        """The first of these fields that is absent or empty, "" when none is."""
        return next((name for name in names if not self.text(name)), "")

    def amount(self, name: str, *, currency: str) -> int:
        """Minor units of an amount on the wire, 0 when it or its currency is malformed."""
        return wire_minor_units(self.fields.get(name), currency=currency) or 0

    def rows(self, key: str) -> list[Fields] | None:
        """The rows of a batch, None when they are not a list of objects; one object is one row."""
        given = self.fields.get(key)
        if isinstance(given, str) and given[:1] in {"{", "["}:
            # A form carries objects and lists as JSON text.
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                return None
        rows = [given] if isinstance(given, dict) else given
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return None
        return rows

    def table(self, key: str) -> Fields:
        """An object of the request, the first where it is a list of them; absent is empty."""
        rows = self.rows(key)
        return rows[0] if rows else {}

    def logged(self, outcome: str, *, fault: str = "") -> LoggedRequest:
        """What the log keeps of it."""
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
    """What an operation answers."""

    content: Mapping[str, Any]
    form: Literal["json", "xml", "checkout", "pay", "see_other"] = "json"
    """A page is named by its template."""
    http_status: int = HTTP_OK
    rows_key: str = ""
    """Under which key of the content the rows stand, "" when there are none."""
    row_replies: tuple[RowReply, ...] = ()
    outcome: str = ""
    address: str = ""
    """Where a redirect or the form of a page leads."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the content."""
        return list(self.content.get(self.rows_key, ()))


def json_refusal(
    sandbox: Sandbox, call: Call, reason: str, *, http_status: int = HTTP_BAD_REQUEST
) -> OperationReply:
    """The refusal of an operation that has no record to refuse by."""
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
    """The reply of an operation that answers with rows, or refuses them all."""
    content = {
        **call.texts("merchant_id", "account_id"),
        "return_status": status,
        "return_message": sandbox.terms.refusal(reason) if reason else "OK",
        "encryption_data": echoed_signature(call, reason=reason),
        rows_key: list(rows),
    }
    return OperationReply(content, rows_key=rows_key, outcome=status)


def echoed_signature(call: Call, *, reason: str = "") -> str:
    """A reply repeats the request's signature, except where that very signature was refused."""
    return "" if reason == "signature" else call.text("encryption_data")


def wrong(parameter: str) -> str:
    """`parameters` with the name of the one that is missing or malformed; "" for none."""
    return f"parameters{OF_PARAMETER}{parameter}" if parameter else ""


@dataclass(frozen=True, slots=True)
class SandboxOperation:
    """One operation of the gateway: what is checked, how it refuses, and how it answers.

    A reason for a refusal is a short name of sandbox.toml, with the parameter that it is about.
    """

    answer: Callable[[Sandbox, Call], OperationReply]
    refuse: Callable[[Sandbox, Call, str], OperationReply] = json_refusal
    unfit: Callable[[Sandbox, Call], str] = lambda _sandbox, _call: ""
    """Why it is refused although merchant, account and signature are right, else ""."""
    template: str = ""
    """Of its signature, where this is not its own name."""
    rows_key: str = ""
    """The list of rows in its request, "" when the request is its own row."""
    needs_registered_ip: bool = False
    instead: Callable[[Sandbox, Call], OperationReply | None] = lambda _sandbox, _call: None
    """What is answered without any of these checks, None to go on."""
    keys: Callable[[Call], list[RowKey]] | None = None
    """What a request is about that has no list of rows and is more than one row."""

    def played(self, sandbox: Sandbox, call: Call) -> OperationReply:
        """The reply to a call, after it took effect or was refused."""
        if reply := self.instead(sandbox, call):
            return reply
        reason = self._refusal(sandbox, call)
        return self.refuse(sandbox, call, reason) if reason else self.answer(sandbox, call)

    def row_keys(self, call: Call) -> list[RowKey]:
        """The transactions and orders a request is about."""
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

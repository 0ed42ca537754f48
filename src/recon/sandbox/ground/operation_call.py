"""One request on its way through an operation, and the reply it gets.

Operations are functions from a `Call` to a `Reply`; they change the book inside the transaction
that the exchange holds open, and never see HTTP.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from recon.sandbox.ground.book import Book, RowReply
from recon.sandbox.ground.clock import VirtualClock
from recon.sandbox.ground.options import SandboxOptions
from recon.sandbox.ground.sandbox_terms import OF_PARAMETER, SandboxTerms
from recon.sandbox.ground.wire import Fields, agrees, sign, text_of, too_long, wire_minor_units

HTTP_OK = 200
HTTP_BAD_REQUEST = 400


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

    def rows(self, key: str) -> list[Fields] | None:
        """The rows of a batch, None when they are not a list of objects; one object is one row."""
        given = _structure(self.fields.get(key))
        rows = [given] if isinstance(given, dict) else given
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return None
        return rows

    def table(self, key: str) -> Fields:
        """An object of the request, the first where it is a list of them; absent is empty."""
        rows = self.rows(key)
        return rows[0] if rows else {}


def _structure(value: Any) -> Any:
    """A form carries objects and lists as JSON text."""
    if not isinstance(value, str) or value[:1] not in {"{", "["}:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


@dataclass(frozen=True, slots=True)
class OperationReply:
    """What an operation answers."""

    content: Mapping[str, Any]
    form: Literal["json", "xml", "html", "see_other"] = "json"
    http_status: int = HTTP_OK
    rows_key: str = ""
    """Under which key of the content the rows stand, "" when there are none."""
    row_replies: tuple[RowReply, ...] = field(default=())
    outcome: str = ""
    address: str = ""
    """Where a page or a redirect leads."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the content."""
        return list(self.content.get(self.rows_key, ()))


def merchant_refusal(sandbox: Sandbox, call: Call) -> str:
    """`merchant` or `account` when it is not one of ours, else ""."""
    if call.text("merchant_id") != sandbox.options.merchant:
        return "merchant"
    return "" if call.text("account_id") in sandbox.options.accounts else "account"


def signature_refusal(
    sandbox: Sandbox, call: Call, *, template: str = "", rows: list[Fields] | None = None
) -> str:
    """`signature` when it is wrong or missing, `parameters` when a field is too long, else ""."""
    expected = sign(
        template or call.operation,
        call.fields,
        sign_key=sandbox.options.sign_key,
        rows=rows or (),
    )
    if not agrees(call.text("encryption_data"), expected=expected):
        return "signature"
    return wrong(too_long(call.fields, profile=sandbox.options.profile))


def wrong(parameter: str) -> str:
    """`parameters` with the name of the one that is missing or malformed; "" for none."""
    return f"parameters{OF_PARAMETER}{parameter}" if parameter else ""


def echoed_signature(call: Call, *, reason: str) -> str:
    """A reply repeats the request's signature, except where that very signature was refused."""
    return "" if reason == "signature" else call.text("encryption_data")


def amount_of(value: Any, *, currency: str) -> int:
    """Minor units of an amount on the wire, 0 when it or its currency is malformed."""
    return wire_minor_units(value, currency=currency) or 0


def json_refusal(
    sandbox: Sandbox, call: Call, *, reason: str, http_status: int = HTTP_BAD_REQUEST
) -> OperationReply:
    """The refusal of an operation that has no record to refuse by."""
    code, text = sandbox.terms.request_refusal(reason).split(":", 1)
    content = {"code": code, "source": call.operation, "message": text}
    return OperationReply(content, http_status=http_status, outcome=str(http_status))


def unreadable(sandbox: Sandbox, why: str) -> OperationReply:
    """The one refusal that is not HTTP 200: the body is no message at all."""
    code, text = sandbox.terms.request_refusal("unreadable").split(":", 1)
    content = {"code": code, "source": "request", "message": f"{text} ({why})"}
    return OperationReply(content, http_status=HTTP_BAD_REQUEST, outcome=str(HTTP_BAD_REQUEST))

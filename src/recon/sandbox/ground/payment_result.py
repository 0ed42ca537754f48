"""What the gateway says of a payment, and what it remembers of one beside its money.

Nothing of a card but ten of its digits, and nothing of a shopper: a state file can be shown.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit, urlunsplit

from recon.model.words import GatewayState
from recon.sandbox.ground.book import Book, Payment, RowReply, marks_of
from recon.sandbox.ground.operation_call import Call, OperationReply, Sandbox
from recon.sandbox.ground.wire import sign

Stage = Literal["", "challenge", "issuer", "hosted"]
"""What a shopper still has to do, "" when nothing."""


@dataclass(frozen=True, slots=True)
class Detail:
    """The circumstances of one payment."""

    transaction_id: str
    method: Literal["card", "apm", "hosted"]
    stage: Stage = ""
    info: str = ""
    """What was last said of it, `<code>:<text>`."""
    page_key: str = ""
    """The part of a page's address that cannot be guessed."""
    tries: int = 0
    """Wrong one-time codes so far."""
    base_url: str = ""
    """Where this gateway was reached, without the version."""
    return_url: str = ""
    cancel_url: str = ""
    notify_url: str = ""
    note: str = ""
    installments: str = ""
    installments_id: str = ""
    open3d: str = ""
    card: str = ""
    """First six and last four digits."""
    expires: str = ""
    """`2030-05`, of a card that may be saved."""
    wants_token: bool = False
    token_id: str = ""
    threeds_result: str = ""
    risk_score: int = 0
    risk_action: str = ""
    subscription: dict[str, Any] = field(default_factory=dict)
    """As asked for."""
    contract_name: str = ""
    recurring_id: str = ""
    recurring_deduction_period: str = ""
    recurring_deduction_time: str = ""

    @property
    def page_url(self) -> str:
        """Where the shopper goes on, "" when nothing is left to do."""
        return f"{self.base_url}/v1/pay/{self.page_key}" if self.stage else ""


TEMPLATE = "payment_reply"
SUCCESS = "0000:Success"
STATUS_SUCCESS = "1"
STATUS_FAILED = "0"
STATUS_PENDING = "-2"
CONNECTOR = "sandbox"
RETURNED = (
    *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
    *("order_status", "result_info", "encryption_data"),
)
"""What the shopper's browser carries back to the merchant."""

Course = tuple[Payment, Detail]
"""What a payment has become, and its circumstances."""

_WAITING = frozenset({GatewayState.PENDING, GatewayState.IN_REVIEW})


def status_of(payment: Payment) -> str:
    """The order_status of a payment as its own reply tells it."""
    if payment.state in _WAITING:
        return STATUS_PENDING
    return STATUS_FAILED if payment.state is GatewayState.FAILED else STATUS_SUCCESS


def result_of(sandbox: Sandbox, payment: Payment, detail: Detail) -> dict[str, Any]:
    """All elements of a payment's result, in the document's order, signed."""
    content = _elements(payment, detail) | {"amount": payment.amount}
    return signed(sandbox, content)


def _elements(payment: Payment, detail: Detail) -> dict[str, Any]:
    action = detail.risk_action
    content: dict[str, Any] = {
        "merchant_id": payment.merchant_id,
        "account_id": payment.account_id,
        "order_no": payment.order_no,
        "amount": "",
        "currency": payment.currency,
        "transaction_id": payment.transaction_id,
        "card": detail.card,
        "order_status": status_of(payment),
        "result_info": detail.info,
        "contract_name": detail.contract_name,
        "recurring_id": detail.recurring_id,
        "recurring_deduction_period": detail.recurring_deduction_period,
        "recurring_deduction_time": detail.recurring_deduction_time,
        "note": detail.note,
        "token_id": detail.token_id,
        "connector": CONNECTOR,
        "threeds_result": detail.threeds_result,
        "risk_action": action,
        "risk_score": str(detail.risk_score) if action else "",
        "risk_reasons": {"name": "card_reputation" if action else "", "status": action},
    }
    added = ("installments", "installments_id")
    content |= {name: getattr(detail, name) for name in added if getattr(detail, name)}
    if detail.page_url:
        content["issuer_url"] = detail.page_url
    return content


def signed(sandbox: Sandbox, content: dict[str, Any]) -> dict[str, Any]:
    """The content with the signature of a payment's reply; absent fields count as empty."""
    signature = sign(TEMPLATE, content, sign_key=sandbox.options.sign_key)
    return content | {"encryption_data": signature}


def xml_result(sandbox: Sandbox, course: Course) -> OperationReply:
    """The XML reply to a card payment."""
    payment, detail = course
    content, row_reply = result_of(sandbox, payment, detail), row_reply_of(payment, detail)
    return OperationReply(content, form="xml", row_replies=(row_reply,), outcome=row_reply.status)


def row_reply_of(payment: Payment, detail: Detail) -> RowReply:
    """What a client was told of a payment."""
    return RowReply(payment.transaction_id, payment.order_no, status_of(payment), detail.info)


def xml_refusal(sandbox: Sandbox, call: Call, *, reason: str, card: str) -> OperationReply:
    """The XML reply to a card payment that was refused before it became one."""
    refused = Payment(
        transaction_id="",
        order_no=call.text("order_no"),
        merchant_id=call.text("merchant_id"),
        account_id=call.text("account_id"),
        currency="",
        authorised=0,
        state=GatewayState.FAILED,
        created_at=call.now,
    )
    info = sandbox.terms.request_refusal(reason)
    detail = Detail("", "card", info=info, note=call.text("note"), card=card)
    echo = {name: call.text(name) for name in ("amount", "currency")}
    content = signed(sandbox, _elements(refused, detail) | echo)
    if reason == "signature":
        content["encryption_data"] = ""
    return OperationReply(
        content, form="xml", row_replies=(row_reply_of(refused, detail),), outcome=STATUS_FAILED
    )


def way_back(sandbox: Sandbox, payment: Payment, detail: Detail, *, url: str) -> str:
    """The merchant's address with the result behind it, "" when there is none to go to."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return ""
    result = result_of(sandbox, payment, detail)
    pairs = urlencode({name: result[name] for name in RETURNED})
    query = f"{parts.query}&{pairs}" if parts.query else pairs
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))


PAGE_KEY_LENGTH = 32


def write_detail(book: Book, detail: Detail) -> None:
    """Remember the circumstances of a payment, or what has become of them."""
    kept = asdict(detail)
    text = json.dumps({name: value for name, value in kept.items() if value})
    book.execute(
        "INSERT OR REPLACE INTO payment_detail VALUES (?, ?, ?)",
        (detail.transaction_id, detail.page_key, text),
    )


def details_of(book: Book, transaction_ids: Sequence[str]) -> dict[str, Detail]:
    """The circumstances of payments by transaction; seeded ones have none."""
    marks = marks_of(transaction_ids)
    statement = f"SELECT detail FROM payment_detail WHERE transaction_id IN ({marks})"  # noqa: S608
    return dict(_read(book.select(statement, transaction_ids)))


def detail_behind(book: Book, page_key: str) -> Detail | None:
    """The payment of a page."""
    statement = "SELECT detail FROM payment_detail WHERE page_key = ? AND page_key <> ''"
    return next((detail for _, detail in _read(book.select(statement, (page_key,)))), None)


def _read(rows: Iterable[Sequence[str]]) -> list[tuple[str, Detail]]:
    details = [Detail(**json.loads(row[0])) for row in rows]
    return [(detail.transaction_id, detail) for detail in details]


def opaque(seed: int, *, about: str, name: str) -> str:
    """A text that says nothing and is the same for the same seed: of a page, of a saved card."""
    digest = hashlib.sha256(f"{seed}\x1f{about}\x1f{name}".encode())
    return digest.hexdigest()[:PAGE_KEY_LENGTH]

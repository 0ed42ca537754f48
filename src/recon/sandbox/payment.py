"""A payment as the gateway knows it: the card that pays, what is remembered, and what is answered.

Nothing of a card but ten of its digits is kept, and nothing of a shopper: a state file can be
shown. A card number lives in memory while its request is answered; documented test numbers decide
what becomes of a payment.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit, urlunsplit

from recon.model.words import GatewayState
from recon.sandbox.book import Book, Payment, RowReply
from recon.sandbox.call import STATUS_DONE, STATUS_FAILED, Call, OperationReply, Sandbox
from recon.sandbox.notifications import PAYMENT, REVIEW_RESULT, tell
from recon.sandbox.terms import SandboxTerms
from recon.sandbox.wire import sign

CARD_NUMBER = re.compile(r"[0-9]{12,19}", re.ASCII)
CARD_FIELDS = ("card", "expiration_year", "expiration_month", "security_code")
CENTURY = 2000
TEN = 10
MONTHS_OF_A_YEAR = 12

DO_3DS = "do3DS"
FRICTIONLESS = "frictionless"
CHALLENGE = "challenge"
FAILED = "failed"
EXTERNAL = "external"
AUTHENTICATED_ECI = frozenset({"05", "02", "06", "01", "5", "2", "6", "1"})
"""Electronic commerce indicators of a payment that was authenticated, or at least tried."""


@dataclass(frozen=True, slots=True)
class Card:
    """What is kept in memory of a card, or what a saved one left in the book."""

    masked: str
    expires: str
    """`2030-05`."""
    declined: str = ""
    """`<code>:<text>` of its bank, "" when it pays."""
    threeds: str = FRICTIONLESS
    """How its bank authenticates its holder."""
    risk_score: int = 0


def read_card(call: Call, *, terms: SandboxTerms) -> Card | str:
    """The card of a request, or the short name of why it cannot pay."""
    number = call.text("card").replace(" ", "")
    if CARD_NUMBER.fullmatch(number) is None or not _luhn_holds(number):
        return "card_number"
    expires = _expiry(call.text("expiration_year"), month=call.text("expiration_month"))
    if _has_expired(expires, now=call.now):
        return "card_expired"
    return Card(
        masked(number),
        expires,
        terms.declined_cards.get(number, ""),
        terms.threeds.cards.get(number, FRICTIONLESS),
        terms.risk.cards.get(number, terms.risk.score),
    )


def _luhn_holds(card: str) -> bool:
    digits = [int(digit) for digit in reversed(card)]
    doubled = (sum(divmod(2 * digit, TEN)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % TEN == 0


def masked(card: str) -> str:
    """A card number as a reply may show it: first six and last four digits."""
    digits = card.replace(" ", "")
    return f"{digits[:6]}***{digits[-4:]}" if CARD_NUMBER.fullmatch(digits) else ""


def _expiry(year: str, *, month: str) -> str:
    """The last month of a card as `2030-05`, "" when it is none."""
    if re.fullmatch(r"(?:20)?[0-9]{2}", year) is None or re.fullmatch(r"[0-9]{1,2}", month) is None:
        return ""
    if not 1 <= int(month) <= MONTHS_OF_A_YEAR:
        return ""
    return f"{CENTURY + int(year) % 100}-{int(month):02d}"


def _has_expired(expires: str, *, now: int) -> bool:
    """A card is good to the end of its month; what is no month is no good."""
    return expires < datetime.fromtimestamp(now, UTC).strftime("%Y-%m")


def saved_card(book: Book, call: Call) -> Card | str:
    """The card behind a token of this account, or the short name of why it cannot pay."""
    rows = book.select(
        "SELECT card, expires, risk_score FROM token WHERE token_id = ? AND account_id = ?",
        (call.text("token_id"), call.text("account_id")),
    )
    if not rows:
        return "unknown_token"
    card, expires, risk_score = rows[0]
    if _has_expired(expires, now=call.now):
        return "card_expired"
    return Card(card, expires, risk_score=risk_score)


def threeds_result(card: Card, *, open3d: str, mpi_info: object = None) -> str:
    """How the payer was authenticated: one of the words above, "" without 3-D Secure.

    Data of an authentication made elsewhere (`mpi_info`) replaces our own.
    """
    elsewhere = mpi_info if isinstance(mpi_info, dict) else {}
    names = ("eci", "cavv", "xid", "dsTransID")
    given = {name: str(elsewhere.get(name) or "").strip() for name in names}
    if any(given.values()):
        proven = given["eci"] in AUTHENTICATED_ECI and given["cavv"]
        return EXTERNAL if proven else FAILED
    return card.threeds if open3d == DO_3DS else ""


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
STATUS_PENDING = "-2"
CONNECTOR = "sandbox"
RETURNED = (
    *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
    *("order_status", "result_info", "encryption_data"),
)
"""What the shopper's browser carries back to the merchant."""

Course = tuple[Payment, Detail]
"""What a payment has become, and its circumstances."""


def status_of(payment: Payment) -> str:
    """The order_status of a payment as its own reply tells it."""
    if payment.state in {GatewayState.PENDING, GatewayState.IN_REVIEW}:
        return STATUS_PENDING
    return STATUS_FAILED if payment.state is GatewayState.FAILED else STATUS_DONE


_AS_KEPT = (
    *("contract_name", "recurring_id", "recurring_deduction_period", "recurring_deduction_time"),
    *("note", "token_id"),
)


def result_of(sandbox: Sandbox, payment: Payment, detail: Detail, **echo: str) -> dict[str, Any]:
    """All elements of a payment's result, in the document's order, signed; `echo` replaces some."""
    action = detail.risk_action
    content: dict[str, Any] = {
        "merchant_id": payment.merchant_id,
        "account_id": payment.account_id,
        "order_no": payment.order_no,
        "amount": payment.amount if payment.currency else "",
        "currency": payment.currency,
        "transaction_id": payment.transaction_id,
        "card": detail.card,
        "order_status": status_of(payment),
        "result_info": detail.info,
        **{name: getattr(detail, name) for name in _AS_KEPT},
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
    return signed(sandbox, content | echo)


def signed(sandbox: Sandbox, content: dict[str, Any]) -> dict[str, Any]:
    """The content with the signature of a payment's reply; absent fields count as empty."""
    signature = sign(TEMPLATE, content, sign_key=sandbox.options.sign_key)
    return content | {"encryption_data": signature}


def payment_reply(
    course: Course, content: Mapping[str, Any], form: Literal["xml", "checkout"] = "xml"
) -> OperationReply:
    """The reply to a payment, with what its client is told by it."""
    payment, detail = course
    status = status_of(payment)
    row_reply = RowReply(payment.transaction_id, payment.order_no, status, detail.info)
    return OperationReply(content, form=form, row_replies=(row_reply,), outcome=status)


def way_back(sandbox: Sandbox, payment: Payment, detail: Detail, *, url: str) -> str:
    """The merchant's address with the result behind it, "" when there is none to go to."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return ""
    result = result_of(sandbox, payment, detail)
    pairs = urlencode({name: result[name] for name in RETURNED})
    query = f"{parts.query}&{pairs}" if parts.query else pairs
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))


_NOTIFIED = (
    *RETURNED[:-1],
    *("note", "card", "threeds_result", "risk_action", "contract_name", "recurring_id"),
)


def tell_payment(
    sandbox: Sandbox, payment: Payment, *, detail: Detail, at: int, reviewed: bool = False
) -> None:
    """Tell what a payment has come to; `reviewed` tells of the review that decided it."""
    result = result_of(sandbox, payment, detail)
    fields = {name: str(result[name]) for name in _NOTIFIED}
    operation, type_ = "checkout" if detail.method == "hosted" else "authorise", PAYMENT
    if reviewed:
        operation, type_ = "review", REVIEW_RESULT
        fields |= {"review_flag": payment.review_flag, "review_status": STATUS_DONE}
    url = detail.notify_url
    tell(sandbox, fields, operation=operation, type_=type_, notify_url=url, at=at)


PAGE_KEY_LENGTH = 32


def write_detail(book: Book, detail: Detail) -> None:
    """Remember the circumstances of a payment, or what has become of them."""
    kept = {name: value for name, value in asdict(detail).items() if value}
    book.execute(
        "INSERT OR REPLACE INTO payment_detail VALUES (?, ?, ?)",
        (detail.transaction_id, detail.page_key, json.dumps(kept)),
    )


def detail_of(
    book: Book, key: str, *, by: Literal["transaction_id", "page_key"] = "transaction_id"
) -> Detail | None:
    """The circumstances of a payment, or of the one behind a page; seeded ones have none."""
    statement = f"SELECT detail FROM payment_detail WHERE {by} = ? AND {by} <> ''"  # noqa: S608
    rows = book.select(statement, (key,))
    return Detail(**json.loads(rows[0][0])) if rows else None


def opaque(seed: int, *, about: str, name: str) -> str:
    """A text that says nothing and is the same for the same seed: of a page, of a saved card."""
    digest = hashlib.sha256(f"{seed}\x1f{about}\x1f{name}".encode())
    return digest.hexdigest()[:PAGE_KEY_LENGTH]

"""Payments and subscriptions: `authorise`, `checkout`, `cancelsubscription` and payment pages.

A payment is by card, or by another method (APM) where no card is named. It is declined, waits for
its shopper, is in review, or takes effect; by another method it waits until the payer pays on the
issuer's page. `checkout` answers with a page that forwards the shopper's browser to the hosted card
form: an HTML form of hidden inputs that submits itself back to `checkout`, where the input gbc_id
selects the form. Values that the browser sends are displayed but not trusted: the amount is the one
that the merchant requested.

Everything here happens in the transaction of the call that caused it; the effects name that call.
Pages are plain forms that work without a script, framed or not. A page ends with a redirect to the
merchant's `return_url` (`cancel_url` where the shopper gave up) with the signed result as query
parameters, or shows the payment's result.

Only ten digits of a card are stored, and nothing of a shopper, so that a state file can be shown. A
card number is held in memory only while its request is answered; documented test numbers determine
the outcome of a payment.

A card payment may create a subscription. Each of its periods is a contract that the clock charges
at its end; the payment that created it is not one. An ended subscription starts no new contract,
but the current one is still charged at the end of its period.
"""

import hashlib
import json
import re
import tomllib
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit, urlunsplit

from recon.model.money import is_currency
from recon.model.terms import GatewayState
from recon.privacy.card_numbers import has_check_digit
from recon.sandbox.call import (
    HTTP_BAD_REQUEST,
    HTTP_OK,
    STATUS_DONE,
    STATUS_FAILED,
    Call,
    OperationReply,
    Sandbox,
    SandboxOperation,
    echoed_signature,
    json_refusal,
    wrong,
)
from recon.sandbox.database import (
    Detail,
    Effect,
    Payment,
    RowReply,
    columns_of,
    effect_of,
    ids_of,
)
from recon.sandbox.notifications import PAYMENT, REVIEW_RESULT, notify
from recon.sandbox.options import DAY_SECONDS, MOVE_SECONDS_MAX, as_text
from recon.sandbox.population import paid_at_once, transaction_id_of
from recon.sandbox.terms import SandboxTerms
from recon.sandbox.wire import Fields, sign, signed_fields, text_of, wire_minor_units

HTTP_SEE_OTHER = 303
HTTP_NOT_FOUND = 404
HTTP_UNPROCESSABLE = 422
APM = "authorise_apm"
CARD = "authorise"
CARD_TEMPLATE = "authorise_card"
ACCEPT = "ACCEPT"
REVIEW = "REVIEW"
REJECT = "REJECT"
_ORDER_NO = re.compile(r"[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,49}", re.ASCII)
PARTS = (
    *("item_total", "shipping", "handling", "tax_total", "insurance"),
    *("shipping_discount", "discount"),
)
"""Amounts other than the total."""


def _order_refusal(sandbox: Sandbox, call: Call, *, required: Iterable[str]) -> str:
    """`parameters` with the first missing or malformed field, or a reused order, else ""."""
    if problem := next(_malformed(call, required=required), ""):
        return wrong(problem)
    # An order may be retried only while every earlier attempt was declined.
    earlier = sandbox.database.payments("order_no", keys=(call.text("order_no"),))
    account_id = call.text("account_id")
    declined = all(
        payment.state is GatewayState.FAILED
        for payment in earlier
        if payment.account_id == account_id
    )
    return "" if declined else "duplicate_order"


def _malformed(call: Call, *, required: Iterable[str]) -> Iterator[str]:
    currency = call.text("currency")
    yield from (name for name in required if not call.text(name))
    if _ORDER_NO.fullmatch(call.text("order_no")) is None:
        yield "order_no"
    if not is_currency(currency):
        yield "currency"
    if not call.amount("amount", currency=currency):
        yield "amount"
    for name in PARTS:
        if call.text(name) and wire_minor_units(call.fields[name], currency=currency) is None:
            yield name
    payment = _payment(call, number=0)
    if payment.detail.subscription.get("contract_name") and not _requested(payment, now=call.now):
        yield "subscription"


def _payment(call: Call, *, number: int, method: Literal["", "apm", "hosted"] = "") -> Payment:
    """A new payment, pending and not yet stored."""
    names = ("return_url", "cancel_url", "notify_url", "note", "installments", "installments_id")
    return Payment(
        transaction_id=transaction_id_of(call.now, number=number),
        **call.texts("order_no", "merchant_id", "account_id", "currency"),
        authorised=call.amount("amount", currency=call.text("currency")),
        state=GatewayState.PENDING,
        created_at=call.now,
        reference_no=f"R{number:09d}",
        detail=Detail(
            method,
            base_url=call.base_url,
            **call.texts(*names, "open3d"),
            wants_token=call.text("token_flag").upper() == "YES",
            subscription=call.table("subscription"),
        ),
    )


def _noted(payment: Payment, **changes: Any) -> Payment:
    """The payment with changes to its detail."""
    return replace(payment, detail=replace(payment.detail, **changes))


CARD_NUMBER = re.compile(r"[0-9]{12,19}", re.ASCII)
CARD_FIELDS = ("card", "expiration_year", "expiration_month", "security_code")
CENTURY = 2000
MONTHS_OF_A_YEAR = 12

DO_3DS = "do3DS"
FRICTIONLESS = "frictionless"
CHALLENGE = "challenge"
FAILED = "failed"
EXTERNAL = "external"
AUTHENTICATED_ECI = frozenset({"05", "02", "06", "01", "5", "2", "6", "1"})
"""Electronic commerce indicators of an authentication that succeeded or was attempted."""


@dataclass(frozen=True, slots=True)
class Card:
    """What is kept in memory of a card, or what the database has of a saved one."""

    masked: str
    expires: str
    """`2030-05`."""
    declined: str = ""
    """`<code>:<text>` of its bank's refusal, "" when it pays."""
    threeds: str = FRICTIONLESS
    """How its bank authenticates the cardholder."""
    risk_score: int = 0


def _card_of(sandbox: Sandbox, call: Call) -> Card | str:
    """The card that pays (one in the request takes precedence), or why it cannot pay."""
    if call.text("card"):
        return _read_card(call, terms=sandbox.terms)
    rows = sandbox.database.select(
        "SELECT card, expires, risk_score FROM token WHERE token_id = ? AND account_id = ?",
        (call.text("token_id"), call.text("account_id")),
    )
    if not rows:
        return "unknown_token"
    card, expires, risk_score = rows[0]
    if _has_expired(expires, now=call.now):
        return "card_expired"
    return Card(card, expires, risk_score=risk_score)


def _read_card(call: Call, *, terms: SandboxTerms) -> Card | str:
    """The card of a request, or the short name of why it cannot pay."""
    number = call.text("card").replace(" ", "")
    if CARD_NUMBER.fullmatch(number) is None or not has_check_digit(number):
        return "card_number"
    expires = _expiry(call.text("expiration_year"), month=call.text("expiration_month"))
    if _has_expired(expires, now=call.now):
        return "card_expired"
    return Card(
        _masked(number),
        expires,
        terms.declined_cards.get(number, ""),
        terms.threeds.cards.get(number, FRICTIONLESS),
        terms.risk.cards.get(number, terms.risk.score),
    )


def _masked(card: str) -> str:
    """A card number as a reply may show it: first six and last four digits."""
    digits = card.replace(" ", "")
    return f"{digits[:6]}***{digits[-4:]}" if CARD_NUMBER.fullmatch(digits) else ""


def _expiry(year: str, *, month: str) -> str:
    """The last valid month of a card as `2030-05`, "" when it is malformed."""
    if re.fullmatch(r"(?:20)?[0-9]{2}", year) is None or re.fullmatch(r"[0-9]{1,2}", month) is None:
        return ""
    if not 1 <= int(month) <= MONTHS_OF_A_YEAR:
        return ""
    return f"{CENTURY + int(year) % 100}-{int(month):02d}"


def _has_expired(expires: str, *, now: int) -> bool:
    """Whether a card has expired; it is valid to the end of its month, a malformed month never."""
    return expires < datetime.fromtimestamp(now, UTC).strftime("%Y-%m")


def _threeds_result(card: Card, *, open3d: str, mpi_info: object = None) -> str:
    """Result of the payer's authentication: a constant from above, "" without 3-D Secure.

    Data of an external authentication (`mpi_info`) replaces our own.
    """
    nested = mpi_info if isinstance(mpi_info, dict) else {}
    names = ("eci", "cavv", "xid", "dsTransID")
    given = {name: str(nested.get(name) or "").strip() for name in names}
    if any(given.values()):
        proven = given["eci"] in AUTHENTICATED_ECI and given["cavv"]
        return EXTERNAL if proven else FAILED
    return card.threeds if open3d == DO_3DS else ""


SUCCESS = "0000:Success"
PAGE_KEY_LENGTH = 32


def _by_card(sandbox: Sandbox, call: Call, payment: Payment, *, card: Card) -> Payment:
    """Process a card payment: first its bank decides, then 3-D Secure, then the risk score.

    `detail.threeds_result` holds the payer's authentication, or that a challenge is to follow.
    """
    payment = _noted(payment, card=card.masked, expires=card.expires, risk_score=card.risk_score)
    if card.declined:
        return _failed(sandbox, payment, info=card.declined)
    if payment.detail.threeds_result == FAILED:
        return _failed(sandbox, payment, info=sandbox.terms.results["threeds"])
    if payment.detail.threeds_result == CHALLENGE:
        return _waiting(sandbox, payment, stage="challenge")
    return _by_risk(sandbox, call, payment)


def _opaque(sandbox: Sandbox, payment: Payment, *, name: str) -> str:
    """An opaque token for a page or a saved card, the same for the same seed."""
    plain = f"{sandbox.options.seed}\x1f{payment.transaction_id}\x1f{name}"
    return hashlib.sha256(plain.encode()).hexdigest()[:PAGE_KEY_LENGTH]


def _waiting(
    sandbox: Sandbox, payment: Payment, *, stage: Literal["challenge", "issuer", "hosted"]
) -> Payment:
    """Make the payment pending until the shopper completes the stage on a page of its own."""
    payment = replace(payment, page_key=_opaque(sandbox, payment, name="page"))
    payment = _noted(payment, stage=stage, info=sandbox.terms.results["waiting"])
    return _moved(sandbox, payment, state=GatewayState.PENDING)


def _by_risk(sandbox: Sandbox, call: Call, payment: Payment) -> Payment:
    """Decline the payment, put it in review or let it take effect, by its risk score."""
    risk, score = sandbox.terms.risk, payment.detail.risk_score
    action = REJECT if score >= risk.reject_from else REVIEW
    action = action if score >= risk.review_from else ACCEPT
    payment = _noted(payment, stage="", risk_action=action)
    if action == REJECT:
        return _failed(sandbox, payment, info=sandbox.terms.results["risk"])
    if action == REVIEW:
        payment = _noted(payment, info=sandbox.terms.results["in_review"])
        return _moved(sandbox, payment, state=GatewayState.IN_REVIEW)
    return _in_effect(sandbox, call, payment)


def _failed(sandbox: Sandbox, payment: Payment, *, info: str) -> Payment:
    """End the attempt without effect; its order may be tried again."""
    return _moved(sandbox, _noted(payment, stage="", info=info), state=GatewayState.FAILED)


def _in_effect(sandbox: Sandbox, call: Call, payment: Payment) -> Payment:
    """Reserve the money, or capture it at once where no capture is to follow."""
    is_apm, database, detail = payment.detail.method == "apm", sandbox.database, payment.detail
    operations = [APM if is_apm else CARD]
    state, amount = GatewayState.AUTHORISED, payment.authorised
    if is_apm or sandbox.options.capture_mode == "auto":
        operations.append("capture")
        state = GatewayState.PAID
        payment = replace(payment, captured=amount, captured_at=call.now)
    log_id = call.request_log_id
    database.append_effects(
        effect_of(
            payment, operation, origin="api", amount=amount, at=call.now, request_log_id=log_id
        )
        for operation in operations
    )
    if detail.wants_token and not detail.token_id:
        # A token is stored to pay with again, never the card number.
        token_id = _opaque(sandbox, payment, name="token")
        token_row = (token_id, payment.account_id, detail.card, detail.expires, detail.risk_score)
        database.execute("INSERT OR REPLACE INTO token VALUES (?, ?, ?, ?, ?)", token_row)
        payment = _noted(payment, token_id=token_id)
    if requested := _requested(payment, now=call.now):
        number = database.next_number("subscriptions")
        started = replace(requested, recurring_id=f"RC{number:09d}").renewed()
        database.write("subscription", [started], kind=Subscription)
        payment = _noted(
            payment,
            contract_name=started.contract_name,
            recurring_id=started.recurring_id,
            recurring_deduction_period=f"{started.interval_count} {started.interval}",
            recurring_deduction_time=as_text(started.end_of(1)),
        )
    return _moved(sandbox, _noted(payment, stage="", info=SUCCESS), state=state)


def after_review(sandbox: Sandbox, call: Call, payment: Payment) -> None:
    """Apply the review_flag to a payment in review."""
    flags = sandbox.terms.review
    if payment.review_flag == flags.accept:
        decided = _in_effect(sandbox, call, payment)
    elif payment.review_flag == flags.reject:
        decided = _failed(sandbox, payment, info=sandbox.terms.results["review"])
    else:
        return
    _notify_payment(sandbox, decided, at=call.now, reviewed=True)


def _moved(sandbox: Sandbox, payment: Payment, *, state: GatewayState) -> Payment:
    payment = replace(payment, state=state, previous_state=payment.state.value)
    sandbox.database.write_payments([payment])
    if state is not GatewayState.PENDING:
        _notify_payment(sandbox, payment, at=sandbox.clock.now())
    return payment


TEMPLATE = "payment_reply"
STATUS_PENDING = "-2"
CONNECTOR = "sandbox"
RETURNED = (
    *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
    *("order_status", "result_info", "encryption_data"),
)
"""Fields that the shopper's browser returns to the merchant."""
_AS_STORED = (
    *("contract_name", "recurring_id", "recurring_deduction_period", "recurring_deduction_time"),
    *("note", "token_id"),
)
_NOTIFIED = (
    *RETURNED[:-1],
    *("note", "card", "threeds_result", "risk_action", "contract_name", "recurring_id"),
)


def _status_of(payment: Payment) -> str:
    """The order_status of a payment in its own reply."""
    if payment.state in {GatewayState.PENDING, GatewayState.IN_REVIEW}:
        return STATUS_PENDING
    return STATUS_FAILED if payment.state is GatewayState.FAILED else STATUS_DONE


def _result_of(sandbox: Sandbox, payment: Payment, **echo: str) -> dict[str, Any]:
    """All elements of a payment's result in the document's order, signed; `echo` replaces some."""
    detail, action = payment.detail, payment.detail.risk_action
    content: dict[str, Any] = {
        "merchant_id": payment.merchant_id,
        "account_id": payment.account_id,
        "order_no": payment.order_no,
        "amount": payment.amount if payment.currency else "",
        "currency": payment.currency,
        "transaction_id": payment.transaction_id,
        "card": detail.card,
        "order_status": _status_of(payment),
        "result_info": detail.info,
        **{name: getattr(detail, name) for name in _AS_STORED},
        "connector": CONNECTOR,
        "threeds_result": detail.threeds_result,
        "risk_action": action,
        "risk_score": str(detail.risk_score) if action else "",
        "risk_reasons": {"name": "card_reputation" if action else "", "status": action},
    }
    added = ("installments", "installments_id")
    content |= {name: getattr(detail, name) for name in added if getattr(detail, name)}
    if detail.stage:
        content["issuer_url"] = payment.page_url
    return _signed(sandbox, content | echo)


def _signed(sandbox: Sandbox, content: dict[str, Any]) -> dict[str, Any]:
    """The content with the signature of a payment's reply; absent fields count as empty."""
    signature = sign(TEMPLATE, content, sign_key=sandbox.options.sign_key)
    return content | {"encryption_data": signature}


def _payment_reply(
    payment: Payment, content: Mapping[str, Any], form: Literal["xml", "checkout"] = "xml"
) -> OperationReply:
    """The reply to a payment, with the row reply to log."""
    status, info = _status_of(payment), payment.detail.info
    row_reply = RowReply(payment.transaction_id, payment.order_no, status, info)
    return OperationReply(content, form=form, row_replies=(row_reply,), outcome=status)


def _way_back(sandbox: Sandbox, payment: Payment, *, url: str) -> str:
    """The merchant's address with the result as its query, "" when there is no usable address."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return ""
    result = _result_of(sandbox, payment)
    pairs = urlencode({name: result[name] for name in RETURNED})
    query = f"{parts.query}&{pairs}" if parts.query else pairs
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))


def _notify_payment(sandbox: Sandbox, payment: Payment, *, at: int, reviewed: bool = False) -> None:
    """Schedule the notification of a payment's result, or of the review that decided it."""
    result, detail = _result_of(sandbox, payment), payment.detail
    fields = {name: str(result[name]) for name in _NOTIFIED}
    operation, type_ = "checkout" if detail.method == "hosted" else "authorise", PAYMENT
    if reviewed:
        operation, type_ = "review", REVIEW_RESULT
        fields |= {"review_flag": payment.review_flag, "review_status": STATUS_DONE}
    url = detail.notify_url
    notify(sandbox, fields, operation=operation, type_=type_, notify_url=url, at=at)


def _unfit_card(sandbox: Sandbox, call: Call) -> str:
    """Reason to refuse a card payment, else ""; a saved card replaces the card fields."""
    if _card_of(sandbox, call) == "unknown_token":
        return wrong("token_id")
    saved = () if call.text("card") else CARD_FIELDS
    required = [name for name in signed_fields(CARD_TEMPLATE) if name not in saved]
    return _order_refusal(sandbox, call, required=required)


def _refuse_card(sandbox: Sandbox, call: Call, reason: str) -> OperationReply:
    """The XML reply to a card payment that was refused before it was created."""
    info, card = sandbox.terms.refusal(reason), _masked(call.text("card"))
    rejected = Payment(
        transaction_id="",
        **call.texts("order_no", "merchant_id", "account_id"),
        currency="",
        authorised=0,
        state=GatewayState.FAILED,
        created_at=call.now,
        detail=Detail(info=info, note=call.text("note"), card=card),
    )
    content = _result_of(sandbox, rejected, **call.texts("amount", "currency"))
    if reason == "signature":
        content["encryption_data"] = ""
    return _payment_reply(rejected, content)


def _answer_card(sandbox: Sandbox, call: Call) -> OperationReply:
    card = _card_of(sandbox, call)
    payment = _payment(call, number=sandbox.database.next_number("payments"))
    if isinstance(card, Card):
        # Data of an external authentication.
        mpi_info = call.table("additional_information").get("mpi_info")
        payer = _threeds_result(card, open3d=call.text("open3d"), mpi_info=mpi_info)
        token = "" if call.text("card") else call.text("token_id")
        payment = _noted(payment, threeds_result=payer, token_id=token)
        payment = _by_card(sandbox, call, payment, card=card)
    else:
        payment = _noted(payment, card=_masked(call.text("card")))
        payment = _failed(sandbox, payment, info=sandbox.terms.refusal(card))
    return _payment_reply(payment, _result_of(sandbox, payment))


def _answer_apm(sandbox: Sandbox, call: Call) -> OperationReply:
    payment = _payment(call, number=sandbox.database.next_number("payments"), method="apm")
    payment = _waiting(sandbox, payment, stage="issuer")
    echo = call.texts("merchant_id", "account_id", "order_no", "amount", "currency")
    return _payment_reply(payment, _signed(sandbox, echo | {"issuer_url": payment.page_url}))


_BY_CARD = SandboxOperation(
    _answer_card, refuse=_refuse_card, unfit=_unfit_card, template=CARD_TEMPLATE
)
_BY_APM = SandboxOperation(
    _answer_apm,
    refuse=lambda sandbox, call, reason: json_refusal(
        sandbox,
        call,
        reason,
        http_status=HTTP_NOT_FOUND if reason in {"merchant", "account"} else HTTP_BAD_REQUEST,
    ),
    unfit=lambda sandbox, call: _order_refusal(
        sandbox, call, required=(*signed_fields(APM), "payment_method")
    ),
    template=APM,
)
AUTHORISE = SandboxOperation(
    _answer_card,
    # Without a card or a saved card it is by another method.
    instead=lambda sandbox, call: (
        _BY_CARD if call.text("card") or call.text("token_id") else _BY_APM
    ).played(sandbox, call),
)

OWN = "gbc_id"
NEVER_DISPLAYED = frozenset({*CARD_FIELDS, OWN})
"""Fields that no hosted payment has, because a page would show them."""
INPUTS: Mapping[str, Any] = tomllib.loads(
    files("recon.sandbox").joinpath("hosted.toml").read_text("utf-8")
)
"""Hidden inputs of the checkout page: the gateway's own, the request's, and their aliases."""


def _answer_checkout(sandbox: Sandbox, call: Call) -> OperationReply:
    """Reply with the checkout page, each hidden input once by name."""
    payment = _payment(call, number=sandbox.database.next_number("payments"), method="hosted")
    payment = _waiting(sandbox, payment, stage="hosted")
    given = {name: value for name, value in call.fields.items() if name not in NEVER_DISPLAYED}
    requested = {
        name: json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, dict | list)
        else text_of(value)
        for name, value in given.items()
    }
    inputs = dict.fromkeys(INPUTS["fields"], "") | INPUTS["fixed"] | requested
    inputs |= {alias: requested.get(name, "") for alias, name in INPUTS["aliases"].items()}
    inputs |= {"source_request_ip": call.client_ip, OWN: payment.page_key}
    inputs["allParams"] = urlencode(requested)
    return replace(
        _payment_reply(payment, inputs, "checkout"), address=f"{call.base_url}/v1/checkout"
    )


def _to_card_form(sandbox: Sandbox, call: Call) -> OperationReply | None:
    """The redirect to the card form for the form that the page posts back, None for any other."""
    if not call.text(OWN):
        return None
    if _behind(sandbox, call.text(OWN)) is None:
        return json_refusal(sandbox, call, wrong(OWN))
    return _see_other(f"{call.base_url}/v1/pay/{call.text(OWN)}")


CHECKOUT = SandboxOperation(
    _answer_checkout,
    # A missing return_url is signed as empty: table 2.1 lists it for other methods only.
    unfit=lambda sandbox, call: _order_refusal(
        sandbox, call, required=[n for n in signed_fields("checkout") if n != "return_url"]
    ),
    instead=_to_card_form,
)


def _see_other(address: str) -> OperationReply:
    return OperationReply({}, "see_other", HTTP_SEE_OTHER, address=address, outcome="303")


VISIT = "pay"
"""Operation under which a state-changing page visit is logged."""
GIVE_UP = "cancel"
WRONG_CODE = "The code is wrong. Tries left: {left}."


def page_shown(sandbox: Sandbox, page_key: str, *, problem: str = "") -> OperationReply:
    """The page in its current state: the shopper's next step, or the payment's result."""
    payment = _behind(sandbox, page_key)
    if payment is None:
        return OperationReply({"payment": None, "detail": None}, "pay", HTTP_NOT_FOUND)
    url = "" if payment.detail.stage else payment.detail.return_url
    content = {
        "payment": payment,
        "detail": payment.detail,
        "problem": problem,
        "terms": sandbox.terms,
        "back": _way_back(sandbox, payment, url=url),
    }
    return OperationReply(content, "pay", HTTP_UNPROCESSABLE if problem else HTTP_OK)


def page_submitted(
    sandbox: Sandbox, page_key: str, *, fields: Fields, client_ip: str
) -> OperationReply:
    """Process a submitted form; submitting it twice changes nothing the second time."""
    with sandbox.database.transaction():
        payment = _behind(sandbox, page_key)
        if payment is None or not payment.detail.stage:
            return page_shown(sandbox, page_key)
        log_id = sandbox.database.next_request()
        ids = {"merchant_id": payment.merchant_id, "account_id": payment.account_id}
        call = Call(VISIT, {**fields, **ids}, client_ip, log_id, sandbox.clock.now())
        payment, problem = _visited(sandbox, call, payment)
        reply = _payment_reply(payment, {})
        sandbox.database.write_request(call.logged(reply.outcome), rows=reply.row_replies)
    if problem:
        return page_shown(sandbox, page_key, problem=problem)
    detail = payment.detail
    gave_up = fields.get("action") == GIVE_UP and detail.cancel_url
    url = detail.cancel_url if gave_up else detail.return_url
    back = "" if detail.stage else _way_back(sandbox, payment, url=url)
    return _see_other(back or f"/v1/pay/{page_key}")


def _behind(sandbox: Sandbox, page_key: str) -> Payment | None:
    return next(iter(sandbox.database.payments("page_key", keys=(page_key,))), None)


def _visited(sandbox: Sandbox, call: Call, payment: Payment) -> tuple[Payment, str]:
    """The payment after the submitted form, and the problem to show the shopper."""
    results, threeds, detail = sandbox.terms.results, sandbox.terms.threeds, payment.detail
    if call.text("action") == GIVE_UP:
        return _failed(sandbox, payment, info=results["cancelled"]), ""
    if detail.stage == "issuer":
        return _in_effect(sandbox, call, payment), ""
    if detail.stage == "challenge" and call.text("otp").strip() == threeds.otp:
        return _by_risk(sandbox, call, payment), ""
    if detail.stage == "challenge":
        payment = _noted(payment, tries=detail.tries + 1)
        if left := threeds.tries - payment.detail.tries:
            sandbox.database.write_payments([payment])
            return payment, WRONG_CODE.format(left=left)
        return _failed(sandbox, payment, info=results["threeds"]), ""
    return _paid_by_form(sandbox, call, payment)


def _paid_by_form(sandbox: Sandbox, call: Call, payment: Payment) -> tuple[Payment, str]:
    card = _read_card(call, terms=sandbox.terms)
    if isinstance(card, str):
        text = sandbox.terms.refusal(card).partition(":")[2]
        return payment, f"{text}. Nothing was taken; try again."
    payer = _threeds_result(card, open3d=payment.detail.open3d)
    payment = _noted(payment, stage="", threeds_result=payer)
    return _by_card(sandbox, call, payment, card=card), ""


ACTIVE = "active"
INACTIVE = "Inactived"
NAME_LENGTH_MAX = 200
INTERVAL_COUNT_MAX = 365
CHARGES_MAX = 10_000
"""Maximum number of charges of one subscription in its whole life."""
DIGITS_MAX = 9
FOREVER = 2**53
"""End, in seconds, of a subscription that names none."""
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}


@dataclass(frozen=True, slots=True)
class Subscription:
    """A shopper's recurring contract."""

    recurring_id: str
    merchant_id: str
    account_id: str
    order_no: str
    """Order of the payment that created it."""
    transaction_id: str
    contract_name: str
    currency: str
    amount: int
    interval: str
    interval_count: int
    charges_max: int
    """Maximum number of contracts it may have."""
    starts_at: int
    ends_at: int
    """No contract is charged later than this."""
    contracts: int = 0
    """Number of contracts so far, including the current one."""
    due_at: int | None = None
    """When the current contract ends and is charged; None without one."""
    state: str = ACTIVE

    def renewed(self) -> "Subscription":
        """The subscription with its next contract, unless it ends before that contract does."""
        number = self.contracts + 1
        due_at = self.end_of(number)
        is_over = self.state != ACTIVE or number > self.charges_max or due_at > self.ends_at
        return replace(self, contracts=number, due_at=None if is_over else due_at)

    def end_of(self, number: int) -> int:
        """End of a contract, counted from 1; the day is capped at the end of its month."""
        count, interval = number * self.interval_count, self.interval
        if interval in _DAYS:
            return self.starts_at + count * _DAYS[interval] * DAY_SECONDS
        first = datetime.fromtimestamp(self.starts_at, UTC)
        years, month = divmod(first.month - 1 + count * _MONTHS[interval], MONTHS_OF_A_YEAR)
        year = first.year + years
        day = min(first.day, monthrange(year, month + 1)[1])
        return int(first.replace(year=year, month=month + 1, day=day).timestamp())


COLUMNS = columns_of(Subscription)


def _requested(payment: Payment, *, now: int) -> Subscription | None:
    """The subscription that a payment requests, without its id; None when it is malformed.

    The amount defaults to the payment's, the interval to a month.
    """
    given = payment.detail.subscription
    text = {name: str(value).strip() for name, value in given.items() if value is not None}
    amount = payment.authorised
    if text.get("contract_amount"):
        amount = wire_minor_units(given["contract_amount"], currency=payment.currency) or 0
    interval = text.get("interval", "").lower() or "month"
    count = _count(text.get("interval_count", "") or "1", most=INTERVAL_COUNT_MAX)
    cycles = _count(text.get("billing_cycle", "") or str(CHARGES_MAX), most=CHARGES_MAX)
    starts_at = _instant(text.get("contract_start", ""), otherwise=now)
    ends_at = _instant(text.get("contract_end", ""), otherwise=FOREVER)
    name = text.get("contract_name", "")
    known = interval in _DAYS or interval in _MONTHS
    if not (name and known and amount and count and cycles and starts_at and ends_at):
        return None
    if len(name) > NAME_LENGTH_MAX or starts_at > now + MOVE_SECONDS_MAX:
        return None
    return Subscription(
        **ids_of(payment),
        recurring_id="",
        contract_name=name,
        amount=amount,
        interval=interval,
        interval_count=count,
        charges_max=cycles,
        starts_at=max(starts_at, now),
        ends_at=ends_at,
    )


def _count(text: str, *, most: int) -> int:
    """A whole number from 1 to `most`, else 0."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else 0
    return number if number <= most else 0


def _instant(text: str, *, otherwise: int) -> int:
    """Parse an ISO 8601 date or instant, UTC by default; 0 when malformed."""
    if not text:
        return otherwise
    try:
        read = datetime.fromisoformat(text)
        return max(0, int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, OverflowError):
        return 0


def _answer_end(sandbox: Sandbox, call: Call, rejected: str = "") -> OperationReply:
    """End a subscription (state Inactived); refuse a second time, or another contract name."""
    database, ids = sandbox.database, ("", "")
    message = sandbox.terms.refusal(rejected) if rejected else ""
    if not rejected:
        statement = f"SELECT {COLUMNS} FROM subscription WHERE recurring_id = ?"  # noqa: S608
        named = (call.text("account_id"), call.text("contract_name").strip())
        rows = database.select(statement, (call.text("recurring_id"),))
        found = Subscription(*rows[0]) if rows else None
        ids = (found.transaction_id, found.order_no) if found else ids
        reason = wrong(call.missing(("recurring_id", "contract_name")))
        if not reason and (found is None or (found.account_id, found.contract_name) != named):
            reason = "unknown"
        elif not reason and found and found.state != ACTIVE:
            reason = "inactive"
        if found and not reason:
            database.write("subscription", [replace(found, state=INACTIVE)], kind=Subscription)
            end = Effect(
                call.operation,
                "api",
                **ids_of(found),
                amount=None,
                committed_at=call.now,
                request_log_id=call.request_log_id,
            )
            database.append_effects([end])
        message = sandbox.terms.refusal(reason, "subscription") if reason else ""
    status = STATUS_FAILED if message else STATUS_DONE
    content = {
        **call.texts("merchant_id", "account_id", "recurring_id", "contract_name"),
        "cancel_status": status,
        "error_message": message,
        "encryption_data": echoed_signature(call, reason=rejected),
    }
    row_reply = RowReply(*ids, status, message)
    return OperationReply(content, row_replies=(row_reply,), outcome=status)


CANCEL_SUBSCRIPTION = SandboxOperation(_answer_end, refuse=_answer_end)


def charge_what_is_due(sandbox: Sandbox) -> None:
    """Charge every contract whose end has come, in chronological order."""
    first_due = (
        f"SELECT {COLUMNS} FROM subscription WHERE due_at <= ?"  # noqa: S608 - our own names
        " ORDER BY due_at, recurring_id LIMIT 1"
    )
    while due := sandbox.database.select(first_due, (sandbox.clock.now(),)):
        subscription = Subscription(*due[0])
        with sandbox.database.transaction():
            _charge(sandbox, subscription, due_at=subscription.due_at or 0)


def _charge(sandbox: Sandbox, subscription: Subscription, *, due_at: int) -> None:
    """Authorise and capture one payment by the gateway itself, and start the next contract."""
    database, amount = sandbox.database, subscription.amount
    # Notified at the address of its first payment.
    first = database.payment(subscription.transaction_id)
    payment = paid_at_once(
        database.next_number("payments"),
        order_no=f"{subscription.recurring_id}-{subscription.contracts:05d}",
        merchant_id=subscription.merchant_id,
        account_id=subscription.account_id,
        currency=subscription.currency,
        amount=amount,
        at=due_at,
    )
    payment = _noted(
        payment,
        info=SUCCESS,
        notify_url=first.detail.notify_url if first else "",
        contract_name=subscription.contract_name,
        recurring_id=subscription.recurring_id,
    )
    database.write_payments([payment])
    database.append_effects(
        effect_of(payment, operation, origin="gateway", amount=amount, at=due_at)
        for operation in ("authorise", "capture")
    )
    _notify_payment(sandbox, payment, at=due_at)
    database.write("subscription", [subscription.renewed()], kind=Subscription)

"""Payments: `authorise`, `checkout`, and what a shopper does on a page of the gateway.

A payment is by card, or by another method where no card is named. It is declined, waits for its
shopper, is in review, or in effect; by another method it waits until the payer pays on the issuer's
page. `checkout` answers with a page that sends the shopper's browser on to the hosted card form: an
HTML form of hidden inputs that submits itself back to `checkout`, where the input gbc_id leads to
the form. What the browser carries is shown and not believed: the amount is the one that the
merchant asked for.

Everything here happens inside the transaction of the call that caused it; the effects name that
call. Pages are plain forms that work without a script, framed or not. A page is left by a redirect
to the merchant's `return_url` (`cancel_url` where the shopper gave up) with the signed result
behind it, or shows what became of the payment.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import urlencode

from recon.model.money import is_currency
from recon.model.words import GatewayState
from recon.sandbox.book import Payment, effect_of
from recon.sandbox.call import (
    HTTP_BAD_REQUEST,
    HTTP_OK,
    Call,
    OperationReply,
    Sandbox,
    SandboxOperation,
    json_refusal,
    wrong,
)
from recon.sandbox.options import in_words
from recon.sandbox.payment import (
    CARD_FIELDS,
    CHALLENGE,
    FAILED,
    SUCCESS,
    Card,
    Course,
    Detail,
    detail_of,
    masked,
    opaque,
    payment_reply,
    read_card,
    result_of,
    saved_card,
    signed,
    tell_payment,
    threeds_result,
    way_back,
    write_detail,
)
from recon.sandbox.population import transaction_id_of
from recon.sandbox.subscriptions import asked_for, begin
from recon.sandbox.wire import Fields, signed_fields, text_of, wire_minor_units

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
"""Amounts beside the total."""


def _order_refusal(sandbox: Sandbox, call: Call, *, required: Iterable[str]) -> str:
    """`parameters` and the first field that is missing or malformed, or a reused order, else ""."""
    if problem := next(_malformed(call, required=required), ""):
        return wrong(problem)
    # An order may be tried again only while every attempt was declined.
    earlier = sandbox.book.payments("order_no", keys=(call.text("order_no"),))
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
    asked = call.table("subscription")
    named, payment = asked.get("contract_name"), _payment(call, number=0)
    if named and not asked_for(asked, payment=payment, now=call.now):
        yield "subscription"


def _attempted(
    sandbox: Sandbox, call: Call, *, method: Literal["card", "apm", "hosted"]
) -> tuple[Payment, Detail]:
    """A new payment, pending and not yet written, and what was asked for with it."""
    payment = _payment(call, number=sandbox.book.next_number("payments"))
    names = ("return_url", "cancel_url", "notify_url", "note", "installments", "installments_id")
    detail = Detail(
        transaction_id=payment.transaction_id,
        method=method,
        base_url=call.base_url,
        **call.texts(*names, "open3d"),
        wants_token=call.text("token_flag").upper() == "YES",
        subscription=call.table("subscription"),
    )
    return payment, detail


def _payment(call: Call, *, number: int) -> Payment:
    return Payment(
        transaction_id=transaction_id_of(call.now, number=number),
        **call.texts("order_no", "merchant_id", "account_id", "currency"),
        authorised=call.amount("amount", currency=call.text("currency")),
        state=GatewayState.PENDING,
        created_at=call.now,
        reference_no=f"R{number:09d}",
    )


def _by_card(
    sandbox: Sandbox, call: Call, payment: Payment, *, detail: Detail, card: Card
) -> Course:
    """Let a card pay: its bank, then 3-D Secure, then the risk decide.

    `detail.threeds_result` says how the payer was authenticated, or that this is to come.
    """
    score = card.risk_score
    detail = replace(detail, card=card.masked, expires=card.expires, risk_score=score)
    if card.declined:
        return _failed(sandbox, payment, detail=detail, info=card.declined)
    if detail.threeds_result == FAILED:
        return _failed(sandbox, payment, detail=detail, info=sandbox.terms.results["threeds"])
    if detail.threeds_result == CHALLENGE:
        return _waiting(sandbox, payment, detail=replace(detail, stage="challenge"))
    return _by_risk(sandbox, call, payment, detail=detail)


def _waiting(sandbox: Sandbox, payment: Payment, *, detail: Detail) -> Course:
    """Pending until the shopper has done what the stage says, on a page of its own."""
    key = opaque(sandbox.options.seed, about=payment.transaction_id, name="page")
    detail = replace(detail, page_key=key, info=sandbox.terms.results["waiting"])
    return _moved(sandbox, payment, detail=detail, state=GatewayState.PENDING)


def _by_risk(sandbox: Sandbox, call: Call, payment: Payment, *, detail: Detail) -> Course:
    """Refuse, keep for review, or let it take effect, by the risk score."""
    risk, score = sandbox.terms.risk, detail.risk_score
    action = REJECT if score >= risk.reject_from else REVIEW
    detail = replace(detail, stage="", risk_action=action if score >= risk.review_from else ACCEPT)
    if detail.risk_action == REJECT:
        return _failed(sandbox, payment, detail=detail, info=sandbox.terms.results["risk"])
    if detail.risk_action == REVIEW:
        detail = replace(detail, info=sandbox.terms.results["in_review"])
        return _moved(sandbox, payment, detail=detail, state=GatewayState.IN_REVIEW)
    return _in_effect(sandbox, call, payment, detail=detail)


def _failed(sandbox: Sandbox, payment: Payment, *, detail: Detail, info: str) -> Course:
    """The attempt is over and has no effect; its order may be tried again."""
    detail = replace(detail, stage="", info=info)
    return _moved(sandbox, payment, detail=detail, state=GatewayState.FAILED)


def _in_effect(sandbox: Sandbox, call: Call, payment: Payment, *, detail: Detail) -> Course:
    """The money is reserved, or taken at once where nobody captures it later."""
    is_apm, book = detail.method == "apm", sandbox.book
    operations = [APM if is_apm else CARD]
    state, amount = GatewayState.AUTHORISED, payment.authorised
    if is_apm or sandbox.options.capture_mode == "auto":
        operations.append("capture")
        state = GatewayState.PAID
        payment = replace(payment, captured=amount, captured_at=call.now)
    log_id = call.request_log_id
    book.append_effects(
        effect_of(
            payment, operation, origin="api", amount=amount, at=call.now, request_log_id=log_id
        )
        for operation in operations
    )
    if detail.wants_token and not detail.token_id:
        # What pays again is kept: never the number.
        token_id = opaque(sandbox.options.seed, about=payment.transaction_id, name="token")
        kept = (token_id, payment.account_id, detail.card, detail.expires, detail.risk_score)
        book.execute("INSERT OR REPLACE INTO token VALUES (?, ?, ?, ?, ?)", kept)
        detail = replace(detail, token_id=token_id)
    if asked := asked_for(detail.subscription, payment=payment, now=call.now):
        begun = begin(book, asked)
        detail = replace(
            detail,
            contract_name=begun.contract_name,
            recurring_id=begun.recurring_id,
            recurring_deduction_period=f"{begun.interval_count} {begun.interval}",
            recurring_deduction_time=in_words(begun.due_at(1)),
        )
    detail = replace(detail, stage="", info=SUCCESS)
    return _moved(sandbox, payment, detail=detail, state=state)


def after_review(sandbox: Sandbox, call: Call, payment: Payment) -> None:
    """What the review_flag of a payment in review leads to."""
    known = detail_of(sandbox.book, payment.transaction_id)
    detail = known or Detail(payment.transaction_id, "card")
    flags = sandbox.terms.review
    if payment.review_flag == flags.accept:
        decided = _in_effect(sandbox, call, payment, detail=detail)
    elif payment.review_flag == flags.reject:
        decided = _failed(sandbox, payment, detail=detail, info=sandbox.terms.results["review"])
    else:
        return
    tell_payment(sandbox, decided[0], detail=decided[1], at=call.now, reviewed=True)


def _moved(sandbox: Sandbox, payment: Payment, *, detail: Detail, state: GatewayState) -> Course:
    payment = replace(payment, state=state, previous_state=payment.state.value)
    sandbox.book.write_payments([payment])
    write_detail(sandbox.book, detail)
    if state is not GatewayState.PENDING:
        tell_payment(sandbox, payment, detail=detail, at=sandbox.clock.now())
    return payment, detail


def _card_of(sandbox: Sandbox, call: Call) -> Card | str:
    """The card that pays, the one in the request before the saved one."""
    if call.text("card"):
        return read_card(call, terms=sandbox.terms)
    return saved_card(sandbox.book, call)


def _unfit_card(sandbox: Sandbox, call: Call) -> str:
    """A saved card stands in for the fields of one."""
    if _card_of(sandbox, call) == "unknown_token":
        return wrong("token_id")
    saved = () if call.text("card") else CARD_FIELDS
    required = [name for name in signed_fields(CARD_TEMPLATE) if name not in saved]
    return _order_refusal(sandbox, call, required=required)


def _refuse_card(sandbox: Sandbox, call: Call, reason: str) -> OperationReply:
    """The XML reply to a card payment that was refused before it became one."""
    refused = Payment(
        transaction_id="",
        **call.texts("order_no", "merchant_id", "account_id"),
        currency="",
        authorised=0,
        state=GatewayState.FAILED,
        created_at=call.now,
    )
    info, card = sandbox.terms.refusal(reason), masked(call.text("card"))
    detail = Detail("", "card", info=info, note=call.text("note"), card=card)
    content = result_of(sandbox, refused, detail, **call.texts("amount", "currency"))
    if reason == "signature":
        content["encryption_data"] = ""
    return payment_reply((refused, detail), content)


def _answer_card(sandbox: Sandbox, call: Call) -> OperationReply:
    card = _card_of(sandbox, call)
    payment, detail = _attempted(sandbox, call, method="card")
    if isinstance(card, Card):
        # Data of an authentication that was made elsewhere.
        mpi_info = call.table("additional_information").get("mpi_info")
        payer = threeds_result(card, open3d=call.text("open3d"), mpi_info=mpi_info)
        token = "" if call.text("card") else call.text("token_id")
        detail = replace(detail, threeds_result=payer, token_id=token)
        course = _by_card(sandbox, call, payment, detail=detail, card=card)
    else:
        detail = replace(detail, card=masked(call.text("card")))
        info = sandbox.terms.refusal(card)
        course = _failed(sandbox, payment, detail=detail, info=info)
    return payment_reply(course, result_of(sandbox, *course))


def _refuse_apm(sandbox: Sandbox, call: Call, reason: str) -> OperationReply:
    """JSON with 400 what is invalid, with 404 an unknown account."""
    unknown = reason in {"merchant", "account"}
    status = HTTP_NOT_FOUND if unknown else HTTP_BAD_REQUEST
    return json_refusal(sandbox, call, reason, http_status=status)


def _answer_apm(sandbox: Sandbox, call: Call) -> OperationReply:
    payment, detail = _attempted(sandbox, call, method="apm")
    course = _waiting(sandbox, payment, detail=replace(detail, stage="issuer"))
    echo = call.texts("merchant_id", "account_id", "order_no", "amount", "currency")
    content = echo | {"issuer_url": course[1].page_url}
    return payment_reply(course, signed(sandbox, content))


_BY_CARD = SandboxOperation(
    _answer_card, refuse=_refuse_card, unfit=_unfit_card, template=CARD_TEMPLATE
)
_BY_APM = SandboxOperation(
    _answer_apm,
    refuse=_refuse_apm,
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
NEVER_SHOWN = frozenset({*CARD_FIELDS, OWN})
"""Fields that no hosted payment has; a page would show them."""
INPUTS: Mapping[str, Any] = tomllib.loads(
    files("recon.sandbox").joinpath("hosted.toml").read_text("utf-8")
)
"""The hidden inputs of the checkout page: the gateway's own, the request's, their other names."""


def _unfit_checkout(sandbox: Sandbox, call: Call) -> str:
    # Signed as empty where it is not given: table 2.1 lists it for other methods alone.
    required = [name for name in signed_fields("checkout") if name != "return_url"]
    return _order_refusal(sandbox, call, required=required)


def _answer_checkout(sandbox: Sandbox, call: Call) -> OperationReply:
    """The page of hidden inputs, every one by name, each once."""
    payment, detail = _attempted(sandbox, call, method="hosted")
    course = _waiting(sandbox, payment, detail=replace(detail, stage="hosted"))
    given = {name: value for name, value in call.fields.items() if name not in NEVER_SHOWN}
    asked = {
        name: json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, dict | list)
        else text_of(value)
        for name, value in given.items()
    }
    inputs = dict.fromkeys(INPUTS["fields"], "") | INPUTS["fixed"] | asked
    inputs |= {alias: asked.get(name, "") for alias, name in INPUTS["aliases"].items()}
    inputs |= {"source_request_ip": call.client_ip, OWN: course[1].page_key}
    inputs["allParams"] = urlencode(asked)
    return replace(
        payment_reply(course, inputs, "checkout"), address=f"{call.base_url}/v1/checkout"
    )


def _to_card_form(sandbox: Sandbox, call: Call) -> OperationReply | None:
    """Where the form leads that the page posts back; None where it is no such form."""
    if not call.text(OWN):
        return None
    detail = detail_of(sandbox.book, call.text(OWN), by="page_key")
    if detail is None:
        return json_refusal(sandbox, call, wrong(OWN))
    return _see_other(f"{call.base_url}/v1/pay/{detail.page_key}")


CHECKOUT = SandboxOperation(_answer_checkout, unfit=_unfit_checkout, instead=_to_card_form)


def _see_other(address: str) -> OperationReply:
    return OperationReply({}, "see_other", HTTP_SEE_OTHER, address=address, outcome="303")


VISIT = "pay"
"""What a visit that changes something is called in the log of requests."""
GIVE_UP = "cancel"
WRONG_CODE = "The code is wrong. Tries left: {left}."


def page_shown(sandbox: Sandbox, page_key: str, *, problem: str = "") -> OperationReply:
    """The page as it stands: what the shopper has to do, or what the payment has become."""
    behind = _behind(sandbox, page_key)
    if behind is None:
        return OperationReply({"payment": None, "detail": None}, "pay", HTTP_NOT_FOUND)
    payment, detail = behind
    url = "" if detail.stage else detail.return_url
    content = {
        "payment": payment,
        "detail": detail,
        "problem": problem,
        "terms": sandbox.terms,
        "back": way_back(sandbox, payment, detail, url=url),
    }
    return OperationReply(content, "pay", HTTP_UNPROCESSABLE if problem else HTTP_OK)


def page_submitted(
    sandbox: Sandbox, page_key: str, *, fields: Fields, client_ip: str
) -> OperationReply:
    """What becomes of a form that was sent; sent twice it changes nothing the second time."""
    with sandbox.book.transaction():
        behind = _behind(sandbox, page_key)
        if behind is None or not behind[1].stage:
            return page_shown(sandbox, page_key)
        log_id, payment = sandbox.book.next_request(), behind[0]
        ids = {"merchant_id": payment.merchant_id, "account_id": payment.account_id}
        call = Call(VISIT, {**fields, **ids}, client_ip, log_id, sandbox.clock.now())
        course, problem = _visited(sandbox, call, *behind)
        reply = payment_reply(course, {})
        sandbox.book.write_request(call.logged(reply.outcome), rows=reply.row_replies)
    payment, detail = course
    if problem:
        return page_shown(sandbox, page_key, problem=problem)
    gave_up = fields.get("action") == GIVE_UP and detail.cancel_url
    url = detail.cancel_url if gave_up else detail.return_url
    back = "" if detail.stage else way_back(sandbox, payment, detail, url=url)
    return _see_other(back or f"/v1/pay/{page_key}")


def _behind(sandbox: Sandbox, page_key: str) -> Course | None:
    detail = detail_of(sandbox.book, page_key, by="page_key")
    payment = sandbox.book.payment(detail.transaction_id) if detail else None
    return (payment, detail) if payment and detail else None


def _visited(sandbox: Sandbox, call: Call, payment: Payment, detail: Detail) -> tuple[Course, str]:
    """What the payment has become, and what the shopper has to do better."""
    results, threeds = sandbox.terms.results, sandbox.terms.threeds
    if call.text("action") == GIVE_UP:
        return _failed(sandbox, payment, detail=detail, info=results["cancelled"]), ""
    if detail.stage == "issuer":
        return _in_effect(sandbox, call, payment, detail=detail), ""
    if detail.stage == "challenge" and call.text("otp").strip() == threeds.otp:
        return _by_risk(sandbox, call, payment, detail=detail), ""
    if detail.stage == "challenge":
        detail = replace(detail, tries=detail.tries + 1)
        if left := threeds.tries - detail.tries:
            write_detail(sandbox.book, detail)
            return (payment, detail), WRONG_CODE.format(left=left)
        return _failed(sandbox, payment, detail=detail, info=results["threeds"]), ""
    return _paid_by_form(sandbox, call, payment, detail)


def _paid_by_form(
    sandbox: Sandbox, call: Call, payment: Payment, detail: Detail
) -> tuple[Course, str]:
    card = read_card(call, terms=sandbox.terms)
    if isinstance(card, str):
        text = sandbox.terms.refusal(card).partition(":")[2]
        return (payment, detail), f"{text}. Nothing was taken; try again."
    payer = threeds_result(card, open3d=detail.open3d)
    detail = replace(detail, stage="", threeds_result=payer)
    return _by_card(sandbox, call, payment, detail=detail, card=card), ""

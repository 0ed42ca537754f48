"""What a shopper does on a page of the gateway: pays, confirms with a code, or goes away.

A page is left by a redirect to the merchant's `return_url` (`cancel_url` where the shopper gave
up) with the signed result behind it, or shows what has become of the payment.
"""

from dataclasses import dataclass, replace

from recon.sandbox.ground.book_records import LoggedRequest, Payment
from recon.sandbox.ground.operation_call import HTTP_OK, Call, Sandbox
from recon.sandbox.ground.payment_detail import Detail, detail_behind, write_detail
from recon.sandbox.ground.payment_result import Course, row_reply_of, way_back
from recon.sandbox.ground.wire import Fields
from recon.sandbox.operations.card import CARD_FIELDS, read_card, threeds_result
from recon.sandbox.operations.payment_course import by_card, by_risk, failed, in_effect
from recon.sandbox.pages.pay_page_markup import done_page, pay_page, unknown_page

OPERATION = "pay"
"""What a visit that changes something is called in the log of requests."""

HTTP_NOT_FOUND = 404
HTTP_UNPROCESSABLE = 422
CANCEL = "cancel"
WRONG_CODE = "The code is wrong. Tries left: {left}."


@dataclass(frozen=True, slots=True)
class Visit:
    """What a browser gets."""

    html: str = ""
    http_status: int = HTTP_OK
    location: str = ""
    """Where the browser is sent instead, "" to stay."""


def shown(sandbox: Sandbox, page_key: str) -> Visit:
    """The page as it stands."""
    behind = _behind(sandbox, page_key)
    if behind is None:
        return Visit(unknown_page(), HTTP_NOT_FOUND)
    payment, detail = behind
    if detail.stage:
        return Visit(pay_page(payment, detail, terms=sandbox.terms))
    return Visit(done_page(payment, back=way_back(sandbox, payment, detail, url=detail.return_url)))


def submitted(sandbox: Sandbox, page_key: str, *, fields: Fields, client_ip: str) -> Visit:
    """What becomes of a form that was sent; sent twice it changes nothing the second time."""
    with sandbox.book.transaction():
        behind = _behind(sandbox, page_key)
        if behind is None or not behind[1].stage:
            return shown(sandbox, page_key)
        log_id = f"RL{sandbox.book.next_number('requests'):08d}"
        call = Call(OPERATION, fields, client_ip, log_id, sandbox.clock.now())
        (payment, detail), problem = _answered(sandbox, call, *behind)
        _log(sandbox, call, payment, detail)
    if problem:
        page = pay_page(payment, detail, terms=sandbox.terms, problem=problem)
        return Visit(page, HTTP_UNPROCESSABLE)
    gave_up = fields.get("action") == CANCEL and detail.cancel_url
    url = detail.cancel_url if gave_up else detail.return_url
    back = "" if detail.stage else way_back(sandbox, payment, detail, url=url)
    return Visit(location=back or f"/v1/pay/{page_key}")


def _behind(sandbox: Sandbox, page_key: str) -> Course | None:
    detail = detail_behind(sandbox.book, page_key)
    payment = sandbox.book.payment(detail.transaction_id) if detail else None
    return (payment, detail) if payment and detail else None


def _answered(sandbox: Sandbox, call: Call, payment: Payment, detail: Detail) -> tuple[Course, str]:
    """What the payment has become, and what the shopper has to do better."""
    if call.text("action") == CANCEL:
        info = sandbox.terms.results["cancelled"]
        return failed(sandbox, payment, detail=detail, info=info), ""
    if detail.stage == "issuer":
        return in_effect(sandbox, call, payment, detail=detail), ""
    if detail.stage == "challenge":
        return _confirmed(sandbox, call, payment, detail)
    card = read_card(
        {name: call.text(name) for name in CARD_FIELDS}, terms=sandbox.terms, now=call.now
    )
    if isinstance(card, str):
        return (payment, detail), _sentence(sandbox.terms.request_refusal(card))
    payer = threeds_result(card, open3d=detail.open3d, mpi_info={})
    detail = replace(detail, stage="", threeds_result=payer)
    return by_card(sandbox, call, payment, detail=detail, card=card), ""


def _confirmed(
    sandbox: Sandbox, call: Call, payment: Payment, detail: Detail
) -> tuple[Course, str]:
    """A one-time code, right, wrong, or wrong too often."""
    threeds = sandbox.terms.threeds
    if call.text("otp").strip() == threeds.otp:
        return by_risk(sandbox, call, payment, detail=detail), ""
    detail = replace(detail, tries=detail.tries + 1)
    if detail.tries < threeds.tries:
        write_detail(sandbox.book, detail)
        return (payment, detail), WRONG_CODE.format(left=threeds.tries - detail.tries)
    return failed(sandbox, payment, detail=detail, info=sandbox.terms.results["threeds"]), ""


def _sentence(refusal: str) -> str:
    """The text of a `<code>:<text>` as a shopper reads it."""
    return f"{refusal.partition(':')[2]}. Nothing was taken; try again."


def _log(sandbox: Sandbox, call: Call, payment: Payment, detail: Detail) -> None:
    row_reply = row_reply_of(payment, detail)
    logged = LoggedRequest(
        call.request_log_id,
        call.now,
        OPERATION,
        payment.merchant_id,
        payment.account_id,
        row_reply.status,
        "",
    )
    sandbox.book.write_request(logged, rows=(row_reply,))

"""What a shopper does on a page of the gateway: pays, confirms with a code, or goes away.

An issuer's page, a bank's one-time code, the hosted card form: plain forms that work without a
script, framed or not. A page is left by a redirect to the merchant's `return_url` (`cancel_url`
where the shopper gave up) with the signed result behind it, or shows what became of the payment.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from recon.model.words import GatewayState
from recon.sandbox.ground.book import LoggedRequest, Payment
from recon.sandbox.ground.operation_call import HTTP_OK, Call, Sandbox
from recon.sandbox.ground.payment_result import (
    Course,
    Detail,
    detail_behind,
    row_reply_of,
    way_back,
    write_detail,
)
from recon.sandbox.ground.sandbox_terms import SandboxTerms
from recon.sandbox.ground.wire import Fields, rendered
from recon.sandbox.operations.card import (
    CARD_FIELDS,
    CHALLENGE,
    DO_3DS,
    FAILED,
    read_card,
    threeds_result,
)
from recon.sandbox.operations.payment_course import by_card, by_risk, failed, in_effect

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
        end = "The address leads to no payment. Begin again in the shop."
        return Visit(_page("No such payment", end=end), HTTP_NOT_FOUND)
    payment, detail = behind
    if detail.stage:
        return Visit(_pay_page(payment, detail, terms=sandbox.terms))
    end = _ENDS.get(payment.state) or f"The payment is {payment.state.value.replace('_', ' ')}."
    back = way_back(sandbox, payment, detail, url=detail.return_url)
    return Visit(_page("Your payment", payment=payment, end=end, back=back))


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
        page = _pay_page(payment, detail, terms=sandbox.terms, problem=problem)
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


CARD_THAT_PAYS = "4242424242424242"
"""Any number that is not listed and whose check digit is right does the same."""

_GROUP = 4
_TITLES = {
    "challenge": "Confirm your payment",
    "hosted": "Pay by card",
    "issuer": "Pay at your bank",
}
_ENDS = {
    GatewayState.PENDING: "The payment has not been made yet.",
    GatewayState.IN_REVIEW: "The payment waits for a review.",
    GatewayState.AUTHORISED: "The payment is authorised: the amount is reserved.",
    GatewayState.PAID: "The payment is paid.",
    GatewayState.FAILED: "The payment was not made; nothing was taken.",
}


def _page(title: str, **content: object) -> str:
    left_out = dict.fromkeys(("payment", "problem", "stage", "end", "back"), "")
    return rendered("pay", title=title, **left_out | content)


def _pay_page(payment: Payment, detail: Detail, *, terms: SandboxTerms, problem: str = "") -> str:
    """The page for what the shopper still has to do, and how to reach each end of the payment."""
    others = _other_cards(terms, open3d=detail.open3d) if detail.stage == "hosted" else ()
    return _page(
        _TITLES[detail.stage],
        payment=payment,
        problem=problem,
        stage=detail.stage,
        threeds=terms.threeds,
        card_that_pays=_grouped(CARD_THAT_PAYS),
        cards=[(_grouped(card), outcome) for card, outcome in others],
    )


def _grouped(card: str) -> str:
    """A card number as it is printed on a card."""
    return " ".join(card[at : at + _GROUP] for at in range(0, len(card), _GROUP))


def _other_cards(terms: SandboxTerms, *, open3d: str) -> Iterator[tuple[str, str]]:
    for card, info in terms.declined_cards.items():
        yield card, info.partition(":")[2]
    if open3d == DO_3DS:
        words = {CHALLENGE: "The bank asks for a code", FAILED: "The shopper is not authenticated"}
        yield from ((card, words[way]) for card, way in terms.threeds.cards.items() if way in words)
    for card, score in terms.risk.cards.items():
        if score >= terms.risk.reject_from:
            yield card, "Refused by the risk rules"
        elif score >= terms.risk.review_from:
            yield card, "Waits for a review"

"""What a shopper does on a page of the gateway: pays, confirms with a code, or goes away.

An issuer's page, a bank's one-time code, the hosted card form, and the checkout page that submits
itself: plain forms that work without a script, framed or not; every text is escaped. A page is left
by a redirect to the merchant's `return_url` (`cancel_url` where the shopper gave up) with the
signed result behind it, or shows what has become of the payment.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from recon.model.words import GatewayState
from recon.sandbox.ground.book_records import LoggedRequest, Payment
from recon.sandbox.ground.operation_call import HTTP_OK, Call, Sandbox
from recon.sandbox.ground.payment_result import (
    Course,
    Detail,
    Stage,
    detail_behind,
    row_reply_of,
    way_back,
    write_detail,
)
from recon.sandbox.ground.sandbox_terms import SandboxTerms
from recon.sandbox.ground.wire import Fields
from recon.sandbox.operations.card import (
    CARD_FIELDS,
    CHALLENGE,
    DO_3DS,
    FAILED,
    read_card,
    threeds_result,
)
from recon.sandbox.operations.payment_course import by_card, by_risk, failed, in_effect
from recon.sandbox.pages.markup import document, paragraph, table

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


CARD_THAT_PAYS = "4242424242424242"
"""Any number that is not listed and whose check digit is right does the same."""

_GROUP = 4


def hint(stage: Stage, *, terms: SandboxTerms, open3d: str) -> str:
    """A box that says that this is no bank, and how to reach each end of the payment."""
    hints = {
        "issuer": "Here the shopper would log in at the bank. Pay takes the money and leads back"
        " to the shop; Cancel leads back without it.",
        "challenge": f"The bank would have sent a code to the shopper's phone. Here"
        f" {terms.threeds.otp} is right, and {terms.threeds.tries} wrong ones end the payment.",
        "hosted": f"{grouped(CARD_THAT_PAYS)} pays, with any month to come and any security code.",
        "": "",
    }[stage]
    box = f'<p class="sandbox">Sandbox: no money moves. {escape(hints)}</p>'
    return box + (_other_cards(terms, open3d=open3d) if stage == "hosted" else "")


def grouped(card: str) -> str:
    """A card number as it is printed on a card."""
    return " ".join(card[at : at + _GROUP] for at in range(0, len(card), _GROUP))


def _other_cards(terms: SandboxTerms, *, open3d: str) -> str:
    rows = [(grouped(card), outcome) for card, outcome in _outcomes(terms, open3d=open3d)]
    listed = table(("Card number", "What happens"), rows)
    return f"<details><summary>Cards that do something else</summary>{listed}</details>"


def _outcomes(terms: SandboxTerms, *, open3d: str) -> Iterator[tuple[str, str]]:
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


def render_checkout(inputs: Mapping[str, Any], *, action: str) -> bytes:
    """The page as bytes; without scripts the shopper presses its one button."""
    hidden = "".join(
        f'<input type="hidden" name="{escape(str(name))}" value="{escape(str(value))}">'
        for name, value in inputs.items()
    )
    page = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Loading</title></head>'
        '<body onload="document.forms[0].submit()">'
        f'<form method="post" action="{escape(action)}">{hidden}'
        '<noscript><button id="continue">Continue</button></noscript></form></body></html>'
    )
    return page.encode()


_Input = tuple[str, str, str, int, str]
_INPUTS: dict[str, tuple[_Input, ...]] = {
    "challenge": (("otp", "One-time code", "one-time-code", 10, ""),),
    "hosted": (
        ("card", "Card number", "cc-number", 23, ""),
        ("expiration_month", "Month (MM)", "cc-exp-month", 2, "short"),
        ("expiration_year", "Year (YYYY)", "cc-exp-year", 4, "short"),
        ("security_code", "Security code", "cc-csc", 4, "short"),
    ),
    "issuer": (),
}
"""Name and id, label, what a browser may fill in, characters at most, class of the style."""

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


def pay_page(payment: Payment, detail: Detail, *, terms: SandboxTerms, problem: str = "") -> str:
    """The page for what the shopper still has to do."""
    stage = detail.stage or "issuer"
    inputs = "".join(map(_input, _INPUTS[stage]))
    verb = "Confirm" if stage == "challenge" else "Pay"
    form = (
        f'<form method="post">{inputs}'
        f'<p><button id="pay" name="action" value="pay">{verb}</button>'
        '<button id="cancel" name="action" value="cancel" formnovalidate>Cancel</button></p></form>'
    )
    problem_line = f'<p class="bad" role="alert">{escape(problem)}</p>' if problem else ""
    given = hint(stage, terms=terms, open3d=detail.open3d)
    return document(_TITLES[stage], _order(payment), problem_line, form, given, name="shopper")


def done_page(payment: Payment, *, back: str) -> str:
    """The page for a payment on which nothing is left to do."""
    link = f'<p><a id="back" href="{escape(back)}">Back to the shop</a></p>' if back else ""
    end = _ENDS.get(payment.state) or f"The payment is {payment.state.value.replace('_', ' ')}."
    return document("Your payment", _order(payment), paragraph(end), link, name="shopper")


def unknown_page() -> str:
    """The page behind an address that leads to no payment."""
    sentence = paragraph("The address leads to no payment. Begin again in the shop.")
    return document("No such payment", sentence, name="shopper")


def _order(payment: Payment) -> str:
    """How much, for what, to whom."""
    amount = paragraph(f"{payment.amount} {payment.currency}", name="amount")
    return amount + paragraph(f"Order {payment.order_no}, merchant {payment.merchant_id}")


def _input(described: _Input) -> str:
    name, label, fills, length_max, shape = described
    return (
        f'<label class="{shape}">{escape(label)}<input id="{name}" name="{name}" required'
        f' inputmode="numeric" autocomplete="{fills}" maxlength="{length_max}"></label>'
    )

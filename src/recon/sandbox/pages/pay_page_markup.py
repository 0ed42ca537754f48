"""The pages on which a shopper pays: an issuer's, a bank's one-time code, the hosted card form.

Plain forms that work without a script, framed or not. Every text is escaped.
"""

from html import escape

from recon.model.words import GatewayState
from recon.sandbox.ground.book_records import Payment
from recon.sandbox.ground.payment_detail import Detail
from recon.sandbox.ground.sandbox_terms import SandboxTerms
from recon.sandbox.pages.markup import document, paragraph
from recon.sandbox.pages.pay_page_hints import hint

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

"""The pages on which a shopper pays: an issuer's, a bank's one-time code, the hosted card form.

Plain forms that work without a script, framed or not. Every text is escaped.
"""

from html import escape

from recon.sandbox.markup import document, paragraph, table
from recon.sandbox.payment_detail import Detail
from recon.sandbox.records import Payment

_INPUTS = {
    "challenge": (("otp", "One-time code", "one-time-code", 10),),
    "hosted": (
        ("card", "Card number", "cc-number", 23),
        ("expiration_month", "Month", "cc-exp-month", 2),
        ("expiration_year", "Year", "cc-exp-year", 4),
        ("security_code", "Security code", "cc-csc", 4),
    ),
    "issuer": (),
}
"""Name and id, label, what a browser may fill in, characters at most."""

_TITLES = {
    "challenge": "Confirm your payment",
    "hosted": "Pay by card",
    "issuer": "Pay at your bank",
}


def pay_page(payment: Payment, detail: Detail, *, problem: str = "") -> str:
    """The page for what the shopper still has to do."""
    inputs = "".join(_input(*given) for given in _INPUTS[detail.stage or "issuer"])
    form = (
        f'<form method="post">{inputs}<p>'
        '<button id="pay" name="action" value="pay">Pay</button> '
        '<button id="cancel" name="action" value="cancel" formnovalidate>Cancel</button></p></form>'
    )
    said = paragraph(problem, name="bad") if problem else ""
    return document(_TITLES[detail.stage or "issuer"], _order(payment), said, form)


def done_page(payment: Payment, *, back: str) -> str:
    """The page for a payment on which nothing is left to do."""
    link = f'<p><a id="back" href="{escape(back)}">Back to the shop</a></p>' if back else ""
    return document("Payment", _order(payment), paragraph(f"It is {payment.state.value}."), link)


def unknown_page() -> str:
    """The page behind an address that leads to no payment."""
    return document("No such payment", paragraph("The address leads to no payment."))


def _order(payment: Payment) -> str:
    names = ("Order", "Amount", "Currency", "Merchant")
    row = (payment.order_no, payment.amount, payment.currency, payment.merchant_id)
    return table(names, [row])


def _input(name: str, label: str, fills: str, length_max: int) -> str:
    return (
        f'<p><label>{escape(label)} <input id="{name}" name="{name}" required inputmode="numeric"'
        f' autocomplete="{fills}" maxlength="{length_max}"></label></p>'
    )

"""Why a payment must not be sent. Reasons name fields, never their values."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from pydantic import SecretStr

from recon.gateway_client.interface.described import GatewayInterface, Profile
from recon.gateway_client.interface.rows import text_problem
from recon.gateway_client.interface.wire_amounts import WireAmounts
from recon.gateway_client.payments.payment import ApmPayment, CardPayment, HostedPayment, Payment
from recon.gateway_client.wire.addresses import is_private_way
from recon.gateway_client.wire.private_fields import (
    given_leaves,
    is_blank,
    keeps_digits,
    text_of_field,
)
from recon.privacy.card_numbers import has_check_digit

CENTURY = 2_000
MONTHS = 12
AMOUNTS = (
    *("amount", "item_total", "shipping", "handling", "tax_total", "insurance"),
    *("shipping_discount", "discount"),
)

AMOUNT = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?", re.ASCII)
_CARD = re.compile(r"[0-9]{12,19}", re.ASCII)
_SECURITY_CODE = re.compile(r"[0-9]{3,4}", re.ASCII)
_YEAR = re.compile(r"(?:20)?[0-9]{2}", re.ASCII)
_MONTH = re.compile(r"[0-9]{1,2}", re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def payment_problems(
    payment: Payment, *, interface: GatewayInterface, today: date
) -> Iterator[tuple[str, str]]:
    """Pairs of a field and why it must not be sent.

    Args:
        payment: What is to be sent.
        interface: Grammar, lengths and names of fields.
        today: A card is good to the end of its month.
    """
    for name in payment.required:
        if is_blank(getattr(payment, name)):
            yield name, "is missing"
    yield from _id_problems(payment, interface=interface)
    yield from _amount_problems(payment, interface=interface)
    yield from _text_problems(payment, profile=interface.profile)
    yield from _address_problems(payment)
    yield from _more_problems(payment, interface=interface)
    if isinstance(payment, CardPayment):
        yield from _card_problems(payment, today=today)
    if isinstance(payment, CardPayment | HostedPayment):
        yield from _cookie_problems(payment, interface=interface)


def _id_problems(payment: Payment, *, interface: GatewayInterface) -> Iterator[tuple[str, str]]:
    for name in ("order_no", "currency"):
        reason = text_problem(name, text=getattr(payment, name), interface=interface)
        if reason:
            yield name, reason


def _address_problems(payment: Payment) -> Iterator[tuple[str, str]]:
    for name in ("notify_url", "return_url"):
        address = getattr(payment, name)
        if address and not is_private_way(address):
            yield name, "is not https (http is allowed to 127.0.0.1 or [::1] only)"


def _amount_problems(payment: Payment, *, interface: GatewayInterface) -> Iterator[tuple[str, str]]:
    for name in AMOUNTS:
        value: Decimal | None = getattr(payment, name)
        if value is None:
            continue
        reason = interface.profile.amounts.problem(
            value, currency=payment.currency, may_be_zero=name != "amount"
        )
        reason = reason or text_problem("amount", text=f"{value:f}", interface=interface)
        if reason:
            yield name, reason
    yield from _contract_problems(payment, amounts=interface.profile.amounts)


def _contract_problems(payment: Payment, *, amounts: WireAmounts) -> Iterator[tuple[str, str]]:
    asked = None if isinstance(payment, ApmPayment) else payment.subscription
    if asked is None or not asked.contract_amount:
        return
    number = AMOUNT.fullmatch(asked.contract_amount)
    value = Decimal(asked.contract_amount) if number else None
    reason = amounts.problem(value, currency=payment.currency) if number else "is not an amount"
    if reason:
        yield "subscription.contract_amount", reason


def _more_problems(payment: Payment, *, interface: GatewayInterface) -> Iterator[tuple[str, str]]:
    """Fields that the document does not list go out only where the profile names them."""
    taken = interface.profile.payment.more_fields.get(payment.operation.value, frozenset())
    for name, value in payment.more.items():
        if name not in taken or name in type(payment).model_fields:
            listed = f"payment.more_fields.{payment.operation} of profiles.toml"
            yield f"more.{name}", f"is not under {listed}, or is a field of the document"
        elif name.endswith("_url") and value and not is_private_way(value):
            yield f"more.{name}", "is not https (http is allowed to 127.0.0.1 or [::1] only)"


def _text_problems(payment: Payment, *, profile: Profile) -> Iterator[tuple[str, str]]:
    for path, value in given_leaves(payment):
        if isinstance(value, str | SecretStr):
            text = text_of_field(value)
            longest = profile.lengths.get(path, profile.text_characters_max)
            if _CONTROL.search(text):
                yield path, "has characters that cannot be sent"
            if len(text) > longest:
                yield path, f"is longer than {longest} characters"
        elif path not in AMOUNTS and not keeps_digits(value):
            yield path, "has more digits than a JSON number keeps"


def _card_problems(payment: CardPayment, *, today: date) -> Iterator[tuple[str, str]]:
    """A number that cannot be a card's is not worth a declined attempt."""
    if not is_blank(payment.token_id) and is_blank(payment.card):
        return
    card = payment.card.get_secret_value()
    if _CARD.fullmatch(card) is None or not has_check_digit(card):
        yield "card", "is not a card number (12 to 19 digits with a right check digit)"
    if _SECURITY_CODE.fullmatch(payment.security_code.get_secret_value()) is None:
        yield "security_code", "is not three or four digits"
    year = payment.expiration_year.get_secret_value()
    month = payment.expiration_month.get_secret_value()
    if not (_YEAR.fullmatch(year) and _MONTH.fullmatch(month) and 1 <= int(month) <= MONTHS):
        yield "expiration_month", "and expiration_year are no month and year"
    elif (CENTURY + int(year) % 100, int(month)) < (today.year, today.month):
        yield "expiration_year", "and month: the card has expired"


def _cookie_problems(
    payment: CardPayment | HostedPayment, *, interface: GatewayInterface
) -> Iterator[tuple[str, str]]:
    if payment.antifraud_token_cookie and not interface.profile.payment.antifraud_provider:
        yield "antifraud_token_cookie", "needs payment.antifraud_provider in profiles.toml"

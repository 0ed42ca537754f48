"""Payment requests, field by field as the API document lists them (2.1).

Three kinds: by card (D), by another method (A), by the hosted page (H). Card numbers and codes are
secrets; nothing of a shopper shows in a repr or an error.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, SecretStr

from recon.gateway_client.interface.line_items import LineItem, encoded_items
from recon.gateway_client.payments.shopper import (
    AccountOwner,
    AdditionalInformation,
    CartItem,
    Discount,
    PayingPerson,
    RecurringContract,
)
from recon.gateway_client.wire.private_fields import Amount, PrivateFields


def _composed(items: object) -> object:
    if not isinstance(items, list | tuple):
        return items
    try:
        return encoded_items(
            [row if isinstance(row, LineItem) else LineItem(**row) for row in items]
        )
    except TypeError:
        msg = "an item has the texts name, number, price and quantity"
        raise ValueError(msg) from None


Items = Annotated[str, BeforeValidator(_composed)]
"""Rows of items as one text; `LineItem` or their fields, or the text itself."""


class PaymentOperation(StrEnum):
    """The operations that start a payment; the values name their signature templates."""

    AUTHORISE_CARD = "authorise_card"
    AUTHORISE_APM = "authorise_apm"
    CHECKOUT = "checkout"


class PaymentFields(PrivateFields):
    """What every payment request can carry."""

    operation: ClassVar[PaymentOperation]
    required: ClassVar[tuple[str, ...]] = ("order_no", "currency", "amount")
    shown: ClassVar[frozenset[str]] = frozenset(
        {
            *("order_no", "currency", "amount", "item_total", "shipping", "handling", "tax_total"),
            *("insurance", "shipping_discount", "discount", "website", "notify_url", "return_url"),
            *("platform_source", "device_type", "open3d", "token_flag", "order_type", "price_id"),
            *("installments", "installments_id", "quote_id", "quote_price", "payment_method"),
            *("bank_code", "color_depth", "resolution", "time_zone", "browser_lang"),
        }
    )
    order_no: str
    currency: str
    amount: Amount
    """In major units, with the decimals of the wire, as all amounts here."""
    item_total: Amount | None = None
    shipping: Amount | None = None
    handling: Amount | None = None
    tax_total: Amount | None = None
    insurance: Amount | None = None
    shipping_discount: Amount | None = None
    discount: Amount | None = None
    website: str = ""
    """The merchant's site; the profile says what the field is called on the wire."""
    items: Items = ""
    note: str = ""
    shopper_id: str = ""
    shopper_email: str = ""
    shopper_ip: str = ""
    shopper_phone: str = ""
    shopper_level: str = ""
    first_name: str = ""
    last_name: str = ""
    notify_url: str = ""
    return_url: str = ""
    document: str = ""
    birth_date: str = ""
    billing_country: str = ""
    billing_state: str = ""
    billing_city: str = ""
    billing_address: str = ""
    billing_postal_code: str = ""
    os: str = ""
    browser: str = ""
    browser_lang: str = ""
    time_zone: str = ""
    resolution: str = ""
    cookie_new: str = ""
    cookie_old: str = ""
    delivery_firstname: str = ""
    delivery_lastname: str = ""
    delivery_country: str = ""
    delivery_state: str = ""
    delivery_city: str = ""
    delivery_address: str = ""
    delivery_postal_code: str = ""
    custom: str = ""
    device_fingerprint: str = ""
    platform_source: str = ""
    device_type: str = ""
    color_depth: str = ""
    more: dict[str, str] = Field(default_factory=dict)
    """Fields of a brand's own; the profile names those that it takes."""


class _CardAndHostedFields(PaymentFields):
    """What only card and hosted-page requests can carry."""

    numbers: ClassVar[frozenset[str]] = frozenset({"checkout_time"})
    open3d: str = ""
    token_flag: str = ""
    token_id: SecretStr = SecretStr("")
    """A saved card; it pays without the card's number."""
    challenge_window_size: str = ""
    session_id: str = ""
    installments: str = ""
    installments_id: str = ""
    order_type: str = ""
    checkout_time: int | None = None
    user_agent: str = ""
    antifraud_token_cookie: str = ""
    """The profile names the provider, and by it the field on the wire."""
    cart_items: tuple[CartItem, ...] = ()
    account_owner: tuple[AccountOwner, ...] = ()
    total_discount: tuple[Discount, ...] = ()
    additional_information: tuple[AdditionalInformation, ...] = ()
    price_id: str = ""
    quote_id: str = ""
    quote_price: str = ""
    storefront_domains: str = ""
    subscription: RecurringContract | None = None


class CardPayment(_CardAndHostedFields):
    """A payment by card, whose data passes through us and is never kept."""

    operation: ClassVar[PaymentOperation] = PaymentOperation.AUTHORISE_CARD
    required: ClassVar[tuple[str, ...]] = (
        *PaymentFields.required,
        *("first_name", "last_name", "shopper_email"),
    )
    card: SecretStr = SecretStr("")
    expiration_month: SecretStr = SecretStr("")
    expiration_year: SecretStr = SecretStr("")
    security_code: SecretStr = SecretStr("")
    accept: str = ""


class ApmPayment(PaymentFields):
    """A payment by another method than a card; the shopper pays at the issuer's page."""

    operation: ClassVar[PaymentOperation] = PaymentOperation.AUTHORISE_APM
    required: ClassVar[tuple[str, ...]] = (
        *PaymentFields.required,
        *("return_url", "payment_method"),
    )
    delivery_district_name: str = ""
    delivery_street_name: str = ""
    payment_method: str = ""
    bank_code: str = ""
    person: PayingPerson | None = None


class HostedPayment(_CardAndHostedFields):
    """A payment whose card is asked for by the gateway's own page."""

    operation: ClassVar[PaymentOperation] = PaymentOperation.CHECKOUT


Payment = CardPayment | ApmPayment | HostedPayment

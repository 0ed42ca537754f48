"""Payments with the fields of the API document (2.1 to 2.7): request, bytes and reply.

Three kinds: by card (D), by another method (A), by the hosted page (H). Card numbers and security
codes are secrets; no shopper data is shown in a repr or an error, and problems name fields, never
their values.

Reading accepts any bytes, is pure and never guesses: a payment is done, pending or failed only if a
trusted reply echoes the order and has a known status. Everything else is unknown: the order is
queried, never sent again. Nothing on a hosted page is executed or followed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import zip_longest
from typing import Annotated, ClassVar
from urllib.parse import urljoin, urlsplit

from lxml import etree
from pydantic import BeforeValidator, Field, SecretStr

from recon.gateway_client.addresses import address_problem, is_private_way
from recon.gateway_client.documents import (
    HostedForm,
    UnreadableReplyError,
    element_texts,
    html_form,
    json_object,
    texts_of,
    unlisted,
    xml_root,
)
from recon.gateway_client.errors import NotSentError, RowProblem, UnknownOutcomeError
from recon.gateway_client.interface import CallFormat, GatewayInterface, OurAccount, SignatureState
from recon.gateway_client.messages import (
    NUMBER,
    VISIBLE,
    Amount,
    PreparedCall,
    PrivateFields,
    VisibleAmount,
    VisibleOptional,
    VisibleText,
    amount_problem,
    given_leaves,
    is_blank,
    keeps_digits,
    private_texts,
    refuse,
    refuse_account,
    text_problems,
    wire_value,
)
from recon.gateway_client.replies import (
    FindingKind,
    ReplyFinding,
    ReplyOutcome,
    RiskReason,
    envelope_of,
    first_text,
)
from recon.gateway_client.transport import RawReply
from recon.privacy.card_numbers import has_check_digit
from recon.privacy.foreign_text import LONG_DIGIT_RUN, masked_card

BETWEEN_ITEMS = "#;#"
BETWEEN_PARTS = "#,#"
NOTHING = "0"
"""Stands for an empty part."""


@dataclass(frozen=True, slots=True)
class LineItem:
    """One item of a purchase; the document shows four parts without naming them."""

    name: str
    number: str
    price: str
    """Price of one piece, in major units."""
    quantity: str


def encoded_items(items: Sequence[LineItem]) -> str:
    """Encode items as one text.

    Raises:
        ValueError: a part holds a separator, or forms one together with its neighbours.
    """
    rows = [[part or NOTHING for part in astuple(item)] for item in items]
    text = BETWEEN_ITEMS.join(map(BETWEEN_PARTS.join, rows))
    # Only decoding it again proves that no name adds an item to the order.
    if rows and [item.split(BETWEEN_PARTS) for item in text.split(BETWEEN_ITEMS)] != rows:
        msg = "a part of an item holds a separator, or completes one"
        raise ValueError(msg)
    return text


class ItemPrice(PrivateFields):
    """The price in a cart item."""

    amount_usd: Annotated[Amount | None, VISIBLE, NUMBER] = None
    amount_local_currency: Annotated[Amount | None, VISIBLE, NUMBER] = None
    currency: VisibleText = ""


class BasicItemData(PrivateFields):
    """The description of a cart item (2.2)."""

    name: str = ""
    quantity: str = ""
    type: str = ""
    price: ItemPrice | None = None
    category: str = ""
    productId: str = ""  # noqa: N815 - the document's own name


class CartItem(PrivateFields):
    """One element of `cart_items`."""

    basic_item_data: BasicItemData


class AccountOwner(PrivateFields):
    """One element of `account_owner` (2.3): the shopper's account at the merchant."""

    first_name: str = ""
    last_name: str = ""
    email: str = ""
    account_id: str = ""
    lastLogin_ip: str = ""  # noqa: N815 - the document's own name
    registration_ip: str = ""
    created: Annotated[Decimal | None, NUMBER] = None
    past_orders_count: Annotated[Decimal | None, NUMBER] = None
    past_orders_sum: Annotated[Amount | None, NUMBER] = None


class Discount(PrivateFields):
    """One element of `total_discount`."""

    coupon_code_used: str = ""
    discount_type: str = ""


class MpiInfo(PrivateFields):
    """3-D Secure data obtained elsewhere."""

    eci: str = ""
    cavv: str = ""
    xid: str = ""
    dsTransID: str = ""  # noqa: N815 - the document's own name


class AdditionalInformation(PrivateFields):
    """One element of `additional_information`."""

    mpi_info: MpiInfo


class RecurringContract(PrivateFields):
    """The recurring contract that a payment creates (2.4)."""

    contract: VisibleText = ""
    contract_name: VisibleText = ""
    contract_amount: VisibleText = ""
    interval: VisibleText = ""
    interval_count: VisibleText = ""
    contract_start: VisibleText = ""
    contract_end: VisibleText = ""
    price_id: VisibleText = ""
    billing_cycle: Annotated[int | None, VISIBLE, NUMBER] = None
    promotion_cycle: Annotated[int | None, VISIBLE, NUMBER] = None


class PersonBankAccountCode(PrivateFields):
    """The bank of a person's account."""

    code: str = ""
    name: str = ""


class PersonBankAccount(PrivateFields):
    """A person's bank account in an APM request."""

    account_type: str = ""
    account_number: str = ""
    branch_number: str = ""
    owner_document_number: str = ""
    owner_name: str = ""
    branch_country: str = ""
    currency: str = ""
    bank: PersonBankAccountCode | None = None


class DocumentLabels(PrivateFields):
    """`labels` of a person's documents."""

    person_bank_account_id: str = ""
    bank_account: PersonBankAccount | None = None


class PersonDocuments(PrivateFields):
    """`person.documents`."""

    file_type: str = ""
    file_data: str = ""
    file_url: str = ""
    labels: DocumentLabels | None = None


class PayingPerson(PrivateFields):
    """The person who pays by an alternative method (2.5)."""

    document_number: str = ""
    document_type: str = ""
    social_name: str = ""
    email: str = ""
    phone_country_code: str = ""
    phone_area_code: str = ""
    phone_number: str = ""
    birth_date: str = ""
    net_monthly_average_income: str = ""
    address_street: str = ""
    address_number: str = ""
    address_complement: str = ""
    address_postal_code: str = ""
    address_city: str = ""
    address_state: str = ""
    address_country: str = ""
    fiscal_country: str = ""
    documents: PersonDocuments | None = None


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
"""Items as one text, given as `LineItem`, as their fields, or as the text itself."""


class PaymentOperation(StrEnum):
    """The operations that start a payment; the values name their signature templates."""

    AUTHORISE_CARD = "authorise_card"
    AUTHORISE_APM = "authorise_apm"
    CHECKOUT = "checkout"


class PaymentFields(PrivateFields):
    """Fields that every payment request can carry."""

    operation: ClassVar[PaymentOperation]
    required: ClassVar[tuple[str, ...]] = ("order_no", "currency", "amount")
    order_no: VisibleText
    currency: VisibleText
    amount: VisibleAmount
    """In major units with the decimals of the wire, like all amounts here."""
    item_total: VisibleOptional = None
    shipping: VisibleOptional = None
    handling: VisibleOptional = None
    tax_total: VisibleOptional = None
    insurance: VisibleOptional = None
    shipping_discount: VisibleOptional = None
    discount: VisibleOptional = None
    website: VisibleText = ""
    """The merchant's site; the profile has the name of this field on the wire."""
    items: Items = ""
    note: str = ""
    shopper_id: str = ""
    shopper_email: str = ""
    shopper_ip: str = ""
    shopper_phone: str = ""
    shopper_level: str = ""
    first_name: str = ""
    last_name: str = ""
    notify_url: VisibleText = ""
    return_url: VisibleText = ""
    document: str = ""
    birth_date: str = ""
    billing_country: str = ""
    billing_state: str = ""
    billing_city: str = ""
    billing_address: str = ""
    billing_postal_code: str = ""
    os: str = ""
    browser: str = ""
    browser_lang: VisibleText = ""
    time_zone: VisibleText = ""
    resolution: VisibleText = ""
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
    platform_source: VisibleText = ""
    device_type: VisibleText = ""
    color_depth: VisibleText = ""
    more: dict[str, str] = Field(default_factory=dict)
    """A brand's own fields; the profile names those that are accepted."""


class _CardAndHostedFields(PaymentFields):
    """Fields that only card and hosted-page requests can carry."""

    open3d: VisibleText = ""
    token_flag: VisibleText = ""
    token_id: SecretStr = SecretStr("")
    """A saved card, which pays without the card's number."""
    challenge_window_size: str = ""
    session_id: str = ""
    installments: VisibleText = ""
    installments_id: VisibleText = ""
    order_type: VisibleText = ""
    checkout_time: Annotated[int | None, NUMBER] = None
    user_agent: str = ""
    antifraud_token_cookie: str = ""
    """The profile names the provider, from which the name on the wire is made."""
    cart_items: tuple[CartItem, ...] = ()
    account_owner: tuple[AccountOwner, ...] = ()
    total_discount: tuple[Discount, ...] = ()
    additional_information: tuple[AdditionalInformation, ...] = ()
    price_id: VisibleText = ""
    quote_id: VisibleText = ""
    quote_price: VisibleText = ""
    storefront_domains: str = ""
    subscription: RecurringContract | None = None


class CardPayment(_CardAndHostedFields):
    """A payment by card; the card data passes through and is never stored."""

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
    """A payment by another method than a card; the shopper pays on the issuer's page."""

    operation: ClassVar[PaymentOperation] = PaymentOperation.AUTHORISE_APM
    required: ClassVar[tuple[str, ...]] = (
        *PaymentFields.required,
        *("return_url", "payment_method"),
    )
    delivery_district_name: str = ""
    delivery_street_name: str = ""
    payment_method: VisibleText = ""
    bank_code: VisibleText = ""
    person: PayingPerson | None = None


class HostedPayment(_CardAndHostedFields):
    """A payment for which the gateway's own page asks for the card."""

    operation: ClassVar[PaymentOperation] = PaymentOperation.CHECKOUT


Payment = CardPayment | ApmPayment | HostedPayment


CENTURY = 2_000
MONTHS = 12
AMOUNTS = (
    *("amount", "item_total", "shipping", "handling", "tax_total", "insurance"),
    *("shipping_discount", "discount"),
)

_CARD = re.compile(r"[0-9]{12,19}", re.ASCII)
_SECURITY_CODE = re.compile(r"[0-9]{3,4}", re.ASCII)
_YEAR = re.compile(r"(?:20)?[0-9]{2}", re.ASCII)
_MONTH = re.compile(r"[0-9]{1,2}", re.ASCII)


def payment_problems(
    payment: Payment, *, interface: GatewayInterface, today: date
) -> Iterator[tuple[str, str]]:
    """Yield (field, reason) of what must not be sent; a card is valid to the end of its month."""
    profile = interface.profile
    for name in payment.required:
        if is_blank(getattr(payment, name)):
            yield name, "is missing"
    yield from _amount_problems(payment, interface=interface)
    yield from text_problems(payment, interface=interface)
    for path, value in given_leaves(payment):
        if path not in AMOUNTS and not keeps_digits(value):
            yield path, "has more digits than a JSON number keeps"
    for name in ("notify_url", "return_url"):
        if reason := address_problem(getattr(payment, name)):
            yield name, reason
    allowed = profile.payment.more_fields.get(payment.operation.value, frozenset())
    for name, value in payment.more.items():
        if name not in allowed or name in type(payment).model_fields:
            listed = f"payment.more_fields.{payment.operation} of profiles.toml"
            yield f"more.{name}", f"is not under {listed}, or is a field of the document"
        elif name.endswith("_url") and (reason := address_problem(value)):
            yield f"more.{name}", reason
    if isinstance(payment, CardPayment):
        yield from _card_problems(payment, today=today)
    has_cookie = not isinstance(payment, ApmPayment) and payment.antifraud_token_cookie
    if has_cookie and not profile.payment.antifraud_provider:
        yield "antifraud_token_cookie", "needs payment.antifraud_provider in profiles.toml"


def _amount_problems(payment: Payment, *, interface: GatewayInterface) -> Iterator[tuple[str, str]]:
    amounts, currency = interface.profile.amounts, payment.currency
    for name, value in _amounts_of(payment).items():
        may_be_zero = name != "amount"
        if reason := amount_problem(
            value, currency=currency, interface=interface, may_be_zero=may_be_zero
        ):
            yield name, reason
    requested = None if isinstance(payment, ApmPayment) else payment.subscription
    if requested is None or not requested.contract_amount:
        return
    text = requested.contract_amount
    contract = amounts.amount_of(text, currency=currency, operation=payment.operation)
    if not contract or amounts.written(contract, currency=currency) != text:
        yield "subscription.contract_amount", "is not an amount as it goes out, such as 12.50"


def _amounts_of(payment: Payment) -> dict[str, Decimal]:
    """Return the amounts that were given."""
    given = {name: getattr(payment, name) for name in AMOUNTS}
    return {name: value for name, value in given.items() if value is not None}


def _card_problems(payment: CardPayment, *, today: date) -> Iterator[tuple[str, str]]:
    """Check card data: an impossible number is not worth a declined attempt."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPayment(PreparedCall):
    """One payment, ready to be sent once."""

    operation: PaymentOperation
    payment: Payment
    texts: Mapping[str, str] = field(repr=False)
    """Every plain field as sent, by its name on the wire."""


def prepare_payment(payment: Payment, *, account: OurAccount, today: date) -> PreparedPayment:
    """Check a payment and build its request.

    Args:
        payment: By card, by another method, or by the hosted page.
        account: The account that is paid, with its interface and signing key.
        today: The day on which the card must be valid.

    Raises:
        InvalidRequestError: naming each field that must not be sent; nothing was sent.
    """
    interface = account.interface
    refuse_account(account)
    problems = payment_problems(payment, interface=interface, today=today)
    refuse("payment", problems=[RowProblem(None, *problem) for problem in problems])
    operation = payment.operation
    described: CallFormat = getattr(interface.profile.payment, operation)
    fields = wire_value(payment) | {
        name: interface.profile.amounts.written(value, currency=payment.currency)
        for name, value in _amounts_of(payment).items()
    }
    signature = account.sign(operation, fields=texts_of(fields))
    brand = interface.profile.payment
    names = {
        "website": brand.website_field,
        "antifraud_token_cookie": f"{brand.antifraud_provider}_token_cookie",
    }
    named = dict.fromkeys(brand.sent_empty.get(operation.value, ()), "")
    named |= {names.get(name, name): value for name, value in fields.items() if name != "more"}
    named |= fields.get("more", {})
    message = account.message(named, signature=signature)
    return PreparedPayment.of(
        named,
        described=described,
        account=account,
        signature=signature,
        private=private_texts(payment),
        operation=operation,
        payment=payment,
        texts={name: value for name, value in message.items() if isinstance(value, str)},
    )


ROOT = "respon"
ALIASES = {
    "merNo": "merchant_id",
    "gatewayNo": "account_id",
    "orderNo": "order_no",
    "orderAmount": "amount",
    "orderCurrency": "currency",
}
"""Inputs of the hosted page that must equal the request, like those with our own names."""
RISK_REASONS_MAX = 50
EXACT_CHARACTERS_MAX = 4_000
_NO_PATH = re.compile(r"[^!-~]|\\")
"""Browsers drop some of these from an address, and read a backslash as a slash."""
_TEXTS = (
    *("order_status", "contract_name", "note", "recurring_deduction_period"),
    *("recurring_deduction_time", "connector", "threeds_result", "risk_action", "risk_score"),
)
_IDS = ("transaction_id", "recurring_id")
_EXACT = ("issuer_url", "token_id")
"""Useful only unmodified; neither is shown in a repr."""
_KNOWN = frozenset(
    {
        *(*_TEXTS, *_IDS, *_EXACT),
        *("merchant_id", "account_id", "order_no", "amount", "currency", "card", "result_info"),
        *("risk_reasons", "encryption_data", "security_code"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRecord:
    """The content of a trusted reply to a payment (2.6, 2.7), redacted of card numbers."""

    transaction_id: str = ""
    card: str = ""
    """Masked by the gateway, otherwise by us."""
    order_status: str = ""
    result_code: str = ""
    result_text: str = ""
    contract_name: str = ""
    recurring_id: str = ""
    recurring_deduction_period: str = ""
    recurring_deduction_time: str = ""
    note: str = ""
    token_id: str = field(default="", repr=False)
    """Pays again without the card's number."""
    connector: str = ""
    threeds_result: str = ""
    risk_action: str = ""
    risk_score: str = ""
    risk_reasons: tuple[RiskReason, ...] = ()
    issuer_url: str = field(default="", repr=False)
    """Page on which the shopper pays; https, or http to this machine. Never followed by us."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Elements that the API document does not list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentReply:
    """The outcome of a payment request.

    DONE: paid or authorised. PENDING: the shopper or the gateway has still to act. FAILED:
    declined. REJECTED: certainly refused before anything happened. Anything uncertain is UNKNOWN,
    and a payment is never sent again: the order is queried.
    """

    outcome: ReplyOutcome
    code: str = ""
    message: str = ""
    record: PaymentRecord | None = None
    """None if the reply could not be trusted, and for the hosted page."""
    form: HostedForm | None = None
    """The hosted page's form, if it belongs to this payment."""
    page: bytes = field(default=b"", repr=False)
    """The hosted page as received, if its form belongs to this payment; it may name the shopper."""
    http_status: int | None = None
    signature: SignatureState = SignatureState.UNCHECKED
    findings: tuple[ReplyFinding, ...] = ()
    stop_reason: str = ""
    """If not empty, nothing more may be sent until a person has checked."""


def read_payment_reply(
    prepared: PreparedPayment, raw: RawReply, *, base_url: str = ""
) -> PaymentReply:
    """Return the outcome of a payment request; never raises on any reply.

    The policy is as for batches; the hosted page has no signature and is checked by its echo.

    Args:
        prepared: The request that was sent.
        raw: The reply, whatever it contains.
        base_url: Where it was sent; if empty, a hosted page may lead to a path or `page_hosts`
            only.
    """
    try:
        if raw.meaning != "read":
            reply = _by_status(raw, prepared=prepared)
        elif prepared.operation is PaymentOperation.CHECKOUT:
            reply = _by_form(raw.body, prepared=prepared, base_url=base_url)
        else:
            reply = _by_result(xml_root(raw.body, root=ROOT), prepared=prepared)
    except UnreadableReplyError as error:
        message = f"the reply (HTTP {raw.status}) is {error}"
        reply = _unknown(FindingKind.UNREADABLE, message)
    return replace(reply, http_status=raw.status)


def payment_without_reply(error: NotSentError | UnknownOutcomeError) -> PaymentReply:
    """Return the outcome of a payment without a reply: not sent, or unknown."""
    outcome = ReplyOutcome.NOT_SENT if isinstance(error, NotSentError) else ReplyOutcome.UNKNOWN
    return PaymentReply(outcome=outcome, code=error.kind, message=str(error))


def _by_status(raw: RawReply, *, prepared: PreparedPayment) -> PaymentReply:
    """Return the outcome for an HTTP error, known only if it is a documented or configured refusal.

    The document shows no error body; a code and a message in JSON are used if present.
    """
    code = text = ""
    with suppress(UnreadableReplyError):
        fields = json_object(raw.body)
        code, text = first_text(fields, names=["message"], masked=prepared.masked_text)
    codes = prepared.account.interface.status_map
    refuses_signature = code in codes.refusals.signature_codes
    is_apm = prepared.operation is PaymentOperation.AUTHORISE_APM
    is_final = raw.status in codes.refusals.before_processing_http
    is_final = is_final or (is_apm and raw.status in codes.refusals.apm_http)
    message = f"the gateway answered HTTP {raw.status}{f': {text}' if text else ''}"
    is_rejected = refuses_signature or is_final
    stops = refuses_signature or raw.meaning == "no_access"
    return PaymentReply(
        outcome=ReplyOutcome.REJECTED if is_rejected else ReplyOutcome.UNKNOWN,
        code=code,
        message=message,
        findings=(ReplyFinding(FindingKind.HTTP_STATUS, message),),
        stop_reason=message if stops else "",
    )


def _order(prepared: PreparedPayment) -> dict[str, str | Decimal]:
    """Return what every reply must repeat about a payment."""
    payment = prepared.payment
    return {"order_no": payment.order_no, "currency": payment.currency, "amount": payment.amount}


def _differing(
    expected: Mapping[str, str | Decimal], *, given: Mapping[str, str], prepared: PreparedPayment
) -> list[str]:
    """Return the names whose text differs from what is expected; amounts compare as numbers."""
    amounts = prepared.account.interface.profile.amounts
    currency, operation = prepared.payment.currency, prepared.operation

    def read(name: str, value: str | Decimal) -> str | Decimal | None:
        text = given.get(name)
        if isinstance(value, str):
            return text
        return amounts.amount_of(text, currency=currency, operation=operation)

    return [name for name, value in expected.items() if read(name, value) != value]


def _leads_to_the_page(action: str, *, prepared: PreparedPayment, base_url: str) -> bool:
    """Return whether submitting the form leads a browser to this gateway's hosted page (4.3)."""
    path = prepared.path
    try:
        there, own = urlsplit(urljoin(f"{base_url}{path}", action)), urlsplit(base_url)
    except ValueError:
        return False
    if _NO_PATH.search(action) or there.path not in {path, f"{own.path}{path}"}:
        return False
    hosts = {own.netloc, *prepared.account.interface.profile.payment.page_hosts}
    return there.netloc in hosts and (not there.netloc or is_private_way(there.geturl()))


def _by_form(page: bytes, *, prepared: PreparedPayment, base_url: str) -> PaymentReply:
    """Accept the hosted page if its inputs repeat the request."""
    form = html_form(page)
    ours, sent = prepared.account, prepared.texts
    requested: dict[str, str | Decimal] = {
        "merchant_id": ours.merchant_id,
        "account_id": ours.account_id,
        **_order(prepared),
    }
    expected = {**requested, **{alias: requested[name] for alias, name in ALIASES.items()}}
    # Other fields that the page repeats must be as they were sent.
    expected |= {name: sent[name] for name in sent if name in form.inputs and name not in requested}
    repeated = {name: requested.get(name, sent[name]) for name in sent if name in form.parameters}
    differing = _differing(expected, given=form.inputs, prepared=prepared)
    parameters = _differing(repeated, given=form.parameters, prepared=prepared)
    differing += [f"allParams {name}" for name in parameters]
    leads = _leads_to_the_page(form.action, prepared=prepared, base_url=base_url)
    if form.method != "post" or not leads:
        differing = ["form", *differing]
    if differing:
        message = f"the page differs in {', '.join(differing)}"
        return _unknown(FindingKind.ECHO_DIFFERS, message)
    return PaymentReply(outcome=ReplyOutcome.PENDING, form=form, page=page)


def _by_result(root: etree._Element, *, prepared: PreparedPayment) -> PaymentReply:
    """Read the XML result: check its trustworthiness as for a batch, then its echo and status."""
    texts = element_texts(root, repeated="risk_reasons")
    interface = prepared.account.interface
    record = payment_record(root, texts=texts, prepared=prepared)
    envelope = envelope_of(texts, sent=prepared, message_fields=("result_info",))
    codes = interface.status_map
    refuses_signature = record.result_code in codes.refusals.signature_codes
    if refuses_signature and codes.order_status.get(record.order_status) == "failed":
        # Trusted without a signature: nobody gains by forging this refusal.
        reason = f"the gateway refused our signature ({record.result_code}): check the sign key"
        return PaymentReply(
            outcome=ReplyOutcome.REJECTED,
            code=record.result_code,
            message=record.result_text,
            signature=envelope.signature,
            findings=(ReplyFinding(FindingKind.REFUSED, reason),),
            stop_reason=reason,
        )
    if envelope.doubt is not None:
        kind, message = envelope.doubt.kind, envelope.doubt.message
        stops = kind is not FindingKind.ACCOUNT_NOT_ECHOED
        return _unknown(kind, message, signature=envelope.signature, stops=stops)
    if differing := _differing(_order(prepared), given=texts, prepared=prepared):
        message = f"the reply differs in {', '.join(differing)}"
        return _unknown(FindingKind.ECHO_DIFFERS, message, signature=envelope.signature)
    outcome, message = _outcome(record, operation=prepared.operation, interface=interface)
    findings: list[ReplyFinding] = []
    if outcome is ReplyOutcome.UNKNOWN:
        findings.append(ReplyFinding(FindingKind.UNMAPPED_CODE, message))
    if LONG_DIGIT_RUN.search(texts.get("card", "")):
        findings.append(ReplyFinding(FindingKind.MALFORMED, "the reply shows a whole card number"))
    if envelope.note is not None:
        sentence = f"{envelope.note.message}; its echo decided"
        findings.append(ReplyFinding(envelope.note.kind, sentence))
    return PaymentReply(
        outcome=outcome,
        code=record.result_code,
        message=message or record.result_text,
        record=record,
        signature=envelope.signature,
        findings=tuple(findings),
    )


def _outcome(
    record: PaymentRecord, *, operation: PaymentOperation, interface: GatewayInterface
) -> tuple[ReplyOutcome, str]:
    """Return the outcome, and why it is unknown; an unsafe issuer_url makes it so."""
    meaning = interface.status_map.order_status.get(record.order_status)
    needs_pages = operation is PaymentOperation.AUTHORISE_APM and not record.order_status
    why = ""
    if needs_pages and not record.issuer_url:
        why = "the reply names no issuer_url"
    elif not needs_pages and meaning is None:
        why = f"order_status {record.order_status or 'missing'} is not in the status map"
    elif meaning == "done" and not record.transaction_id:
        why = "a payment without transaction_id"
    elif record.issuer_url and not is_private_way(record.issuer_url):
        why = "the reply's issuer_url is not https"
    if why:
        return ReplyOutcome.UNKNOWN, why
    return ReplyOutcome.PENDING if needs_pages else ReplyOutcome(meaning or ""), ""


def payment_record(
    root: etree._Element, *, texts: Mapping[str, str], prepared: PreparedCall
) -> PaymentRecord:
    """Extract a payment's result with private values masked; never raises."""
    masked = prepared.masked_text

    def visible(name: str) -> str:
        return masked(texts.get(name, ""))

    def exact(name: str) -> str:
        return texts.get(name, "") if len(texts.get(name, "")) <= EXACT_CHARACTERS_MAX else ""

    reasons: list[RiskReason] = []
    for group in root.iterchildren("risk_reasons"):  # the group may repeat, or the pairs in it
        names, states = (
            [masked(element.text or "") for element in group.iterchildren(tag)]
            for tag in ("name", "status")
        )
        pairs = zip_longest(names, states, fillvalue="")
        reasons.extend(RiskReason(*pair) for pair in pairs if any(pair))
    code, separator, text = visible("result_info").partition(":")
    return PaymentRecord(
        **{name: visible(name) for name in _TEXTS},
        **{name: prepared.stored_id(texts.get(name, "")) for name in _IDS},
        **{name: exact(name) for name in _EXACT},
        card=masked_card(visible("card")),
        result_code=code.strip() if separator else "",
        result_text=(text if separator else code).strip(),
        risk_reasons=tuple(reasons[:RISK_REASONS_MAX]),
        extra=unlisted(texts, listed=_KNOWN, masked=masked),
    )


def _unknown(
    kind: FindingKind,
    message: str,
    *,
    signature: SignatureState = SignatureState.UNCHECKED,
    stops: bool = False,
) -> PaymentReply:
    return PaymentReply(
        outcome=ReplyOutcome.UNKNOWN,
        message=message,
        signature=signature,
        findings=(ReplyFinding(kind, message),),
        stop_reason=message if stops else "",
    )

"""Payouts with the fields of the API document (2.9): request, checks and record.

No data of a beneficiary or payer is shown in a repr or an error.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from recon.gateway_client.addresses import address_problem
from recon.gateway_client.documents import text_of, unlisted
from recon.gateway_client.interface import GatewayInterface
from recon.gateway_client.messages import (
    VISIBLE,
    PreparedCall,
    PrivateFields,
    VisibleAmount,
    VisibleOptional,
    VisibleText,
    is_blank,
    text_problems,
)


class PersonFacts(PrivateFields):
    """`beneficiary.additional_info`."""

    business_area: str = ""
    business_phone_number: str = ""
    business_registration_number: str = ""
    personal_email: str = ""
    personal_id_number: str = ""
    personal_id_type: str = ""
    personal_mobile_number: str = ""
    personal_net_monthly_average_income: str = ""
    personal_phone_country_code: str = ""
    personal_phone_area_code: str = ""
    personal_fiscal_country: str = ""


class BeneficiaryAddress(PrivateFields):
    """`beneficiary.address`."""

    city: str = ""
    country_code: VisibleText = ""
    postcode: str = ""
    state: str = ""
    street: str = ""
    number: str = ""
    street_address: str = ""
    complement: str = ""


class PersonDocument(PrivateFields):
    """One element of `beneficiary.person_documents`."""

    file_type: VisibleText = ""
    file_url: str = ""
    labels: tuple[str, ...] = ()


class BankDetails(PrivateFields):
    """`beneficiary.bank_details`: the account that is paid."""

    account_currency: VisibleText = ""
    account_name: str = ""
    owner_document_number: str = ""
    account_number: str = ""
    bank_account_category: str = ""
    bank_branch: str = ""
    bank_country_code: VisibleText = ""
    bank_code: str = ""
    bank_name: str = ""
    bank_street_address: str = ""
    binding_mobile_number: str = ""
    iban: str = ""
    swift_code: str = ""
    transaction_reference: str = ""


class Beneficiary(PrivateFields):
    """The person or company that is paid."""

    additional_info: PersonFacts | None = None
    address: BeneficiaryAddress | None = None
    person_documents: tuple[PersonDocument, ...] = ()
    bank_details: BankDetails | None = None
    company_name: str = ""
    date_of_birth: date | None = None
    entity_type: VisibleText = ""
    first_name: str = ""
    last_name: str = ""


class PayerFacts(PrivateFields):
    """`payer.additional_info`."""

    business_registration_number: str = ""
    business_registration_type: str = ""
    external_id: str = ""
    personal_email: str = ""
    personal_id_number: str = ""
    job: str = ""


class PayerAddress(PrivateFields):
    """`payer.address`."""

    city: str = ""
    country_code: VisibleText = ""
    postcode: str = ""
    state: str = ""
    street_address: str = ""


class Payer(PrivateFields):
    """The person or company that pays."""

    additional_info: PayerFacts | None = None
    address: PayerAddress | None = None
    company_name: str = ""
    date_of_birth: date | None = None
    entity_type: VisibleText = ""
    first_name: str = ""
    last_name: str = ""


class PayoutRow(PrivateFields):
    """One payout; the caller generates `request_id` once, before the first send."""

    request_id: Annotated[UUID, VISIBLE]
    payment_amount: VisibleAmount
    """Amount the beneficiary is to receive, in major units with the decimals of the wire."""
    payment_currency: VisibleText
    beneficiary: Beneficiary | None = None
    beneficiary_id: VisibleText = ""
    """A beneficiary that the gateway already knows."""
    client_data: str = ""
    fee_paid_by: VisibleText = ""
    payer: Payer | None = None
    payment_date: Annotated[date | None, VISIBLE] = None
    payment_method: VisibleText = ""
    reason: VisibleText = ""
    reference: VisibleText = ""
    source_amount: VisibleOptional = None
    """Amount to pay from, in `source_currency`; in the same currency the payment amount."""
    source_currency: VisibleText = ""
    swift_charge_option: VisibleText = ""
    fund_source: VisibleText = ""
    notify_url: VisibleText = ""

    @property
    def key(self) -> str:
        """The value that identifies the payout in a reply."""
        return str(self.request_id)


IBAN_MODULUS = 97


def payout_problems(row: PayoutRow, *, interface: GatewayInterface) -> Iterator[tuple[str, str]]:
    """Yield (field, reason) of what must not be sent, except amounts; dots lead into objects."""
    yield from text_problems(row, interface=interface, grammar=interface.batch("payout").grammar)
    if not row.payment_currency:
        yield "payment_currency", "is empty"
    if row.source_amount is not None:
        # Two amounts in one currency would leave it to the gateway which one is paid.
        are_alike = row.source_currency == row.payment_currency
        if not row.source_currency:
            yield "source_currency", "is empty, and source_amount needs one"
        elif are_alike and row.source_amount != row.payment_amount:
            yield "source_amount", "differs from the payment amount in the same currency; give one"
    if is_blank(row.beneficiary) and not row.beneficiary_id:
        yield "beneficiary", "and beneficiary_id are both empty: nobody would be paid"
    if row.beneficiary and row.beneficiary.bank_details:
        iban = row.beneficiary.bank_details.iban
        if iban and not has_iban_check(iban):
            yield "beneficiary.bank_details.iban", "fails its check digits"
    if problem := address_problem(row.notify_url):
        yield "notify_url", problem


def has_iban_check(iban: str) -> bool:
    """Return whether the check digits of an IBAN are right (ISO 7064)."""
    rotated = iban[4:] + iban[:4]
    if not (rotated.isascii() and rotated.isalnum()):
        return False
    return int("".join(str(int(character, 36)) for character in rotated)) % IBAN_MODULUS == 1


_BEARERS = ("PAYER", "BENEFICIARY")
"""The parties that may bear the fee."""
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}(?:Z|[+-][0-9]{2}:?[0-9]{2})", re.ASCII
)
_DROPPED_FIELDS = frozenset({"merchant_id", "account_id", "encryption_data"})


@dataclass(frozen=True, slots=True)
class PayoutRecord:
    """The gateway's record of a payout; it contains no person and no bank account."""

    transaction_id: str = ""
    short_reference_id: str = ""
    status: str = ""
    failure_type: str = ""
    failure_reason: str = ""
    payer_id: str = ""
    amount_beneficiary_receives: Decimal | None = None
    """Major units, like all amounts here; None if missing or malformed."""
    amount_payer_pays: Decimal | None = None
    fee_amount: Decimal | None = None
    fee_currency: str = ""
    created_at: datetime | None = None
    last_updated_at: datetime | None = None
    local_clearing_system: str = ""
    malformed: tuple[str, ...] = ()
    """Fields that were given but cannot be read."""
    extra: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Fields that the API document does not list, redacted of card numbers."""


_TEXT_FIELDS = ("status", "failure_type", "failure_reason", "fee_currency")
_ID_FIELDS = ("transaction_id", "short_reference_id", "payer_id")
_AMOUNT_FIELDS = ("amount_beneficiary_receives", "amount_payer_pays", "fee_amount")
_INSTANT_FIELDS = ("created_at", "last_updated_at")
_KNOWN_FIELDS = (
    frozenset({*_TEXT_FIELDS, *_ID_FIELDS, *_AMOUNT_FIELDS, *_INSTANT_FIELDS})
    | frozenset(PayoutRow.model_fields)
    | _DROPPED_FIELDS
)


def payout_record(
    reply: Mapping[str, Any], *, sent: PayoutRow, prepared: PreparedCall
) -> PayoutRecord:
    """Extract the record from a payout's reply; never raises.

    The request determines in which currency each side pays (A-21).
    """
    amounts = prepared.account.interface.profile.amounts
    masked_text, stored_id = prepared.masked_text, prepared.stored_id
    source = sent.source_currency or sent.payment_currency
    given = {name: text_of(reply.get(name)) for name in _KNOWN_FIELDS}
    fee_in = given["fee_currency"] or ""
    currencies = (sent.payment_currency, source, fee_in if amounts.knows(fee_in) else source)
    read: dict[str, Any] = {
        name: amounts.amount_of(given[name], currency=currency, operation="payout")
        for name, currency in zip(_AMOUNT_FIELDS, currencies, strict=True)
    }
    read |= {name: instant_of(given[name] or "") for name in _INSTANT_FIELDS}
    malformed = [name for name, value in read.items() if value is None and given[name] != ""]
    read |= {name: masked_text(given[name] or "") for name in _TEXT_FIELDS}
    read |= {name: stored_id(given[name] or "") for name in _ID_FIELDS}
    system: Any = reply
    for place in ("beneficiary", "bank_details", "local_clearing_system"):
        system = system.get(place) if isinstance(system, Mapping) else None
    return PayoutRecord(
        **read,
        local_clearing_system=masked_text(text_of(system) or ""),
        malformed=tuple(malformed),
        extra=unlisted(reply, listed=_KNOWN_FIELDS, masked=masked_text),
    )


def misfit(sent: PayoutRow, *, record: PayoutRecord) -> str:
    """Return how a completed payout's figures differ from the request; "" if they agree.

    The payer pays in the source currency, the payee receives the payment currency (A-21). The fee
    is added to what the payer pays or deducted from what the payee receives; if the request does
    not say which, either is accepted. With a fee in another currency only the direction is checked,
    and without a source amount what the payer pays depends on the gateway's exchange rate.
    """
    unread = [name for name in _AMOUNT_FIELDS if name in record.malformed]
    if unread:
        return f"{unread[0]} is not an amount"
    pays, receives = record.amount_payer_pays, record.amount_beneficiary_receives
    if pays is None and receives is None:
        return ""
    requested, fee = sent.payment_amount, record.fee_amount or Decimal(0)
    source = sent.source_currency or sent.payment_currency
    leaves = sent.source_amount or (requested if source == sent.payment_currency else None)
    for bearer in [sent.fee_paid_by] if sent.fee_paid_by in _BEARERS else _BEARERS:
        on_top, off = (fee, Decimal(0)) if bearer == "PAYER" else (Decimal(0), fee)
        if _side_fits(
            pays, requested=leaves, fee=on_top, exact=record.fee_currency in {"", source}
        ) and _side_fits(
            receives,
            requested=requested,
            fee=-off,
            exact=record.fee_currency in {"", sent.payment_currency},
        ):
            return ""
    return (
        f"of {sent.payment_amount} {sent.payment_currency} the payer pays {pays} {source}, the "
        f"payee receives {receives}, the fee is {record.fee_amount} {record.fee_currency}"
    )


def _side_fits(
    given: Decimal | None, *, requested: Decimal | None, fee: Decimal, exact: bool
) -> bool:
    """Return whether what one side pays or receives is the requested amount and its fee."""
    if given is None:
        return True
    if requested is None:
        return given > 0
    if exact or not fee:
        return given == requested + fee
    return given >= requested if fee > 0 else given <= requested


def instant_of(text: str) -> datetime | None:
    """Parse an ISO 8601 instant whose offset may lack the colon; None if it is not one."""
    if _INSTANT.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None

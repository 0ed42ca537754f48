"""A payout request, field by field as the API document lists it (2.9).

Nothing of a beneficiary or payer shows in a repr or an error.
"""

from datetime import date
from typing import ClassVar
from uuid import UUID

from recon.gateway_client.wire.private_fields import Amount, PrivateFields


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

    shown: ClassVar[frozenset[str]] = frozenset({"country_code"})
    city: str = ""
    country_code: str = ""
    postcode: str = ""
    state: str = ""
    street: str = ""
    number: str = ""
    street_address: str = ""
    complement: str = ""


class PersonDocument(PrivateFields):
    """One element of `beneficiary.person_documents`."""

    shown: ClassVar[frozenset[str]] = frozenset({"file_type"})
    file_type: str = ""
    file_url: str = ""
    labels: tuple[str, ...] = ()


class BankDetails(PrivateFields):
    """`beneficiary.bank_details`: where the money goes."""

    shown: ClassVar[frozenset[str]] = frozenset({"account_currency", "bank_country_code"})
    account_currency: str = ""
    account_name: str = ""
    owner_document_number: str = ""
    account_number: str = ""
    bank_account_category: str = ""
    bank_branch: str = ""
    bank_country_code: str = ""
    bank_code: str = ""
    bank_name: str = ""
    bank_street_address: str = ""
    binding_mobile_number: str = ""
    iban: str = ""
    swift_code: str = ""
    transaction_reference: str = ""


class Beneficiary(PrivateFields):
    """Who is paid."""

    shown: ClassVar[frozenset[str]] = frozenset({"entity_type"})
    additional_info: PersonFacts | None = None
    address: BeneficiaryAddress | None = None
    person_documents: tuple[PersonDocument, ...] = ()
    bank_details: BankDetails | None = None
    company_name: str = ""
    date_of_birth: date | None = None
    entity_type: str = ""
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

    shown: ClassVar[frozenset[str]] = frozenset({"country_code"})
    city: str = ""
    country_code: str = ""
    postcode: str = ""
    state: str = ""
    street_address: str = ""


class Payer(PrivateFields):
    """Who pays."""

    shown: ClassVar[frozenset[str]] = frozenset({"entity_type"})
    additional_info: PayerFacts | None = None
    address: PayerAddress | None = None
    company_name: str = ""
    date_of_birth: date | None = None
    entity_type: str = ""
    first_name: str = ""
    last_name: str = ""


class PayoutRow(PrivateFields):
    """One payout; `request_id` is made by the caller, once, before the first send."""

    shown: ClassVar[frozenset[str]] = frozenset(
        {
            *("request_id", "payment_amount", "payment_currency", "payment_date"),
            *("source_amount", "source_currency", "reference", "beneficiary_id", "payment_method"),
            *("reason", "fee_paid_by", "swift_charge_option", "fund_source", "notify_url"),
        }
    )
    request_id: UUID
    payment_amount: Amount
    """What the beneficiary is to receive, in major units, with the decimals of the wire."""
    payment_currency: str
    beneficiary: Beneficiary | None = None
    beneficiary_id: str = ""
    """A beneficiary that the gateway already knows."""
    client_data: str = ""
    fee_paid_by: str = ""
    payer: Payer | None = None
    payment_date: date | None = None
    payment_method: str = ""
    reason: str = ""
    reference: str = ""
    source_amount: Amount | None = None
    """What is to be paid from, where that is another currency; in the same one, as it says."""
    source_currency: str = ""
    swift_charge_option: str = ""
    fund_source: str = ""
    notify_url: str = ""

    @property
    def key(self) -> str:
        """By what the reply is recognised."""
        return str(self.request_id)

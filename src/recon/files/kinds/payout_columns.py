"""The payout columns of an instruction file, named as the API document names the fields (2.9).

Dots lead into objects: `beneficiary.bank_details.iban`. A payee has one document at most, in
`beneficiary.person_documents.<field>`, its labels separated by semicolons.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from recon.config.mistakes import mistakes_of
from recon.settlement.sealing import masked_account

_LIST = "beneficiary.person_documents"
_PLACEHOLDER_ID = "00000000-0000-4000-8000-000000000000"
"""Stands for the request id, which planning makes."""


@dataclass(frozen=True, slots=True)
class ReadPayout:
    """One payout, read; nothing of it shows in a repr."""

    document: str = field(repr=False)
    """The fields as JSON, but for request id, amount and currency."""
    payee_identity: str = field(repr=False)
    """What makes a payee the same payee: the account, else the gateway's own id of it."""
    payee_shown: str


_FIELDS = (
    (
        "beneficiary.additional_info",
        (
            "business_area business_phone_number business_registration_number personal_email "
            "personal_id_number personal_id_type personal_mobile_number "
            "personal_net_monthly_average_income personal_phone_country_code "
            "personal_phone_area_code personal_fiscal_country"
        ),
    ),
    (
        "beneficiary.address",
        "city country_code postcode state street number street_address complement",
    ),
    ("beneficiary.person_documents", "file_type file_url labels"),
    (
        "beneficiary.bank_details",
        (
            "account_currency account_name owner_document_number account_number "
            "bank_account_category bank_branch bank_country_code bank_code bank_name "
            "bank_street_address binding_mobile_number iban swift_code transaction_reference"
        ),
    ),
    ("beneficiary", "company_name date_of_birth entity_type first_name last_name"),
    ("", "beneficiary_id client_data fee_paid_by"),
    (
        "payer.additional_info",
        (
            "business_registration_number business_registration_type external_id "
            "personal_email personal_id_number job"
        ),
    ),
    ("payer.address", "city country_code postcode state street_address"),
    ("payer", "company_name date_of_birth entity_type first_name last_name"),
    (
        "",
        (
            "payment_date payment_method reference source_amount source_currency "
            "swift_charge_option fund_source notify_url"
        ),
    ),
)
"""Object of the API document -> its fields, in the document's order."""

PAYOUT_COLUMNS: tuple[str, ...] = tuple(
    f"{above}.{name}" if above else name for above, names in _FIELDS for name in names.split()
)
"""Every column that a payout row may fill beside the common ones."""


def read_payout(
    details: Mapping[str, str], *, amount: Decimal, currency: str, reason: str
) -> ReadPayout | tuple[str, str]:
    """A payout, or the (column, reason) for which it is refused; reasons show no value."""
    # The client brings all of its HTTP: most processes that read a file meet no payee.
    from recon.gateway_client import PayoutRow

    fields = _nested(details) | ({"reason": reason} if reason else {})
    try:
        row = PayoutRow.model_validate(
            fields
            | {
                "request_id": _PLACEHOLDER_ID,
                "payment_amount": amount,
                "payment_currency": currency,
            }
        )
    except ValidationError as error:
        path, what = mistakes_of(error)[0]
        return path or "(row)", f"cannot be read: {what[:100]}"
    bank = row.beneficiary.bank_details if row.beneficiary else None
    account = (bank.iban or bank.account_number) if bank else ""
    if not account and not row.beneficiary_id:
        column = "beneficiary.bank_details.iban"
        return column, "is blank, as are account_number and beneficiary_id: nobody would be paid"
    identity = [
        account.replace(" ", "").upper(),
        bank.swift_code if bank and account else "",
        bank.bank_code if bank and account else "",
        "" if account else row.beneficiary_id,
    ]
    shown = masked_account(account) if account else f"payee {row.beneficiary_id[:20]}"
    document = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return ReadPayout(document, "\x1f".join(identity), shown)


def _nested(details: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, text in details.items():
        *above, name = path.split(".")
        branch = tree
        for part in above:
            branch = branch.setdefault(part, {})
        branch[name] = text.split(";") if path == f"{_LIST}.labels" else text
    documents = tree.get("beneficiary", {}).get("person_documents")
    if documents:
        tree["beneficiary"]["person_documents"] = [documents]
    return tree

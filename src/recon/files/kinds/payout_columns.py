"""The payout columns of an instruction file, named as the API document names the fields (2.9).

Dots lead into objects: `beneficiary.bank_details.iban`. A payee has one document at most, in
`beneficiary.person_documents.<field>`, its labels separated by semicolons.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from recon.config.declared import mistakes_of
from recon.instructions.sealing import masked_account
from recon.model.errors import AmountError, ConfigurationError
from recon.model.money import format_minor_units, is_currency, parse_minor_units, wire_amount

if TYPE_CHECKING:
    from recon.gateway_client import GatewayInterface

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
    """The payee, and what is paid from where that is another currency: what people approve."""


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


_OF_THE_ROW = {"payment_amount": "amount", "payment_currency": "currency"}
"""Field of the API document -> the common column that it is read from."""


def payout_interface(tables: Mapping[str, Any]) -> "GatewayInterface":
    """The interface by which payouts are checked, from `Settings.interface`; {}: as it ships.

    Raises:
        ConfigurationError: naming the file and key that is wrong.
    """
    # The client brings all of its HTTP: most processes that read a file meet no payee.
    from recon.gateway_client import GatewayInterface, InterfaceError

    try:
        return GatewayInterface.of(**tables) if tables else GatewayInterface.bundled()
    except InterfaceError as error:
        raise ConfigurationError(str(error)) from error


def read_payout(
    details: Mapping[str, str],
    *,
    amount: int,
    currency: str,
    reason: str,
    interface: "GatewayInterface",
) -> ReadPayout | tuple[str, str]:
    """A payout that can be sent, or the (column, reason) for which it is refused.

    Two people approve it later: what the client would not send must be found here. Reasons show no
    value.
    """
    from recon.gateway_client import Operation, PayoutRow, check_rows

    fields = _nested(details) | ({"reason": reason} if reason else {})
    source, leaves = details.get("source_currency", ""), details.get("source_amount", "")
    from_another = f", from {source}" if source not in {"", currency} else ""

    def on_wire(minor_units: int, currency: str) -> str:
        decimals = interface.profile.amounts.decimals_of(currency)
        return f"{wire_amount(minor_units, currency=currency, wire_decimals=decimals):f}"

    column = "amount"
    try:
        payment_amount = on_wire(amount, currency)
        if leaves and is_currency(source):
            column = "source_amount"
            minor_units = parse_minor_units(leaves, currency=source)
            fields["source_amount"] = on_wire(minor_units, source)
            if from_another:
                leaves = format_minor_units(minor_units, currency=source)
                from_another = f", from {leaves} {source}"
        row = PayoutRow.model_validate(
            fields
            | {
                "request_id": _PLACEHOLDER_ID,
                "payment_amount": payment_amount,
                "payment_currency": currency,
            }
        )
    except AmountError:
        example = format_minor_units(12345, currency=currency if column == "amount" else source)
        return column, f"is not an amount that can be sent, such as {example}"
    except ValidationError as error:
        path, what = mistakes_of(error)[0]
        return path or "(row)", f"cannot be read: {what[:100]}"
    bank = row.beneficiary.bank_details if row.beneficiary else None
    account = (bank.iban or bank.account_number) if bank else ""
    if not account and not row.beneficiary_id:
        column = "beneficiary.bank_details.iban"
        return column, "is blank, as are account_number and beneficiary_id: nobody would be paid"
    for problem in check_rows(Operation.PAYOUT, rows=[row], interface=interface):
        return _OF_THE_ROW.get(problem.field, problem.field), problem.reason
    identity = [
        account.replace(" ", "").upper(),
        bank.swift_code if bank and account else "",
        bank.bank_code if bank and account else "",
        "" if account else row.beneficiary_id,
    ]
    shown = masked_account(account) if account else f"payee {row.beneficiary_id[:20]}"
    document = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return ReadPayout(document, "\x1f".join(identity), f"{shown}{from_another}")


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

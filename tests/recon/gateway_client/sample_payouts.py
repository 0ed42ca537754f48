"""A payout with every field of the API document, and the gateway's record of it."""

import json
from typing import Any

from recon.gateway_client import PayoutRow, PreparedRequest

REQUEST_ID = "7b8c1f0e-54a1-4f65-9a0e-6d1f0c4b2a11"

PRIVATE = (
    *("DE89370400440532013000", "Ana Example", "4417119900", "ana@example.test", "1980-02-29"),
    *("912345678", "Rua Augusta 24", "https://files.example.test/passport.png", "Contoso Lda"),
)
"""Values of a person that must show nowhere."""

PAYOUT: dict[str, Any] = {
    "request_id": REQUEST_ID,
    "beneficiary_id": "",
    "beneficiary": {
        "additional_info": {
            "personal_email": "ana@example.test",
            "personal_id_number": "4417119900",
            "personal_mobile_number": "912345678",
        },
        "address": {"city": "Lisboa", "country_code": "PT", "street_address": "Rua Augusta 24"},
        "person_documents": [
            {
                "file_type": "PASSPORT",
                "file_url": "https://files.example.test/passport.png",
                "labels": ["front"],
            }
        ],
        "bank_details": {
            "account_currency": "EUR",
            "account_name": "Ana Example",
            "bank_country_code": "DE",
            "iban": "DE89370400440532013000",
            "swift_code": "COBADEFFXXX",
        },
        "company_name": "",
        "date_of_birth": "1980-02-29",
        "entity_type": "PERSONAL",
        "first_name": "Ana",
        "last_name": "Example",
    },
    "payer": {"company_name": "Contoso Lda", "entity_type": "COMPANY"},
    "fee_paid_by": "PAYER",
    "payment_amount": "250.00",
    "payment_currency": "EUR",
    "payment_date": "2026-11-20",
    "payment_method": "SWIFT",
    "reason": "supplier invoice",
    "reference": "INV-2026-118",
    "swift_charge_option": "SHARED",
    "fund_source": "DepositAccount",
    "notify_url": "https://shop.example.test/notify",
}


def payout_with(**changes: Any) -> PayoutRow:
    """The payout with other fields."""
    return PayoutRow.model_validate(PAYOUT | changes)


def record_of(prepared: PreparedRequest, **changes: Any) -> dict[str, Any]:
    """The gateway's record when a payout went well: an echo, and its own fields as numbers."""
    echo: dict[str, Any] = json.loads(prepared.body)
    echo.pop("notify_url", None)
    return {
        **echo,
        "amount_beneficiary_receives": 250.00,
        "amount_payer_pays": 255.00,
        "fee_amount": 5.00,
        "fee_currency": "EUR",
        "created_at": "2026-11-20T21:59:58+0000",
        "last_updated_at": "2026-11-20T21:59:59+0000",
        "failure_reason": "",
        "failure_type": "",
        "payer_id": "P-1",
        "transaction_id": "PO1",
        "short_reference_id": "20261120-A1B2C3",
        "status": "COMPLETED",
        **changes,
    }

"""Names of fields whose values are never kept, wherever a gateway puts them.

They are those of cards, bank accounts and persons in the API document's requests. No reply needs
them, so one that has them anyway loses the values; that a field was there is kept.
"""

from typing import Any

PRIVATE_NAMES = frozenset(
    {
        *("security_code", "cvv", "cvv2", "cvc", "expiration_month", "expiration_year"),
        *("iban", "account_number", "account_name", "swift_code", "binding_mobile_number"),
        *("document", "document_number", "owner_document_number", "personal_id_number"),
        *("birth_date", "date_of_birth", "first_name", "last_name", "social_name", "company_name"),
        *("shopper_email", "shopper_phone", "personal_email", "personal_mobile_number"),
        *("street_address", "address_street", "billing_address", "delivery_address"),
        *("file_url", "file_data", "sign_key"),
    }
)
NOT_KEPT = "***"


def is_private(name: str) -> bool:
    """Whether a field of this name, in any case, is about a card, an account or a person."""
    return name.strip().lower() in PRIVATE_NAMES


def without_private(value: Any) -> Any:
    """A value of JSON with what is private in its objects left out; others as they are."""
    if isinstance(value, list):
        return [without_private(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: NOT_KEPT if is_private(str(name)) else without_private(part)
        for name, part in value.items()
    }

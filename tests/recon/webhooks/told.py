"""Messages as a gateway would send them, signed by hand."""

import hashlib
from urllib.parse import urlencode

MERCHANT = "100042"
ACCOUNT = "100042001"
SIGN_KEY = "sandbox"
SIGNED = (
    *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
    *("order_status", "result_info"),
)
PAYMENT = {
    "merchant_id": MERCHANT,
    "account_id": ACCOUNT,
    "webhooks_type": "PAYMENT",
    "transaction_id": "T100",
    "order_no": "web-1",
    "currency": "EUR",
    "amount": "10.00",
    "order_status": "1",
    "result_info": "0000:Success",
}
REFUND = {
    **PAYMENT,
    "webhooks_type": "REFUND RESULT",
    "refund_amount": "2.50",
    "refund_status": "1",
    "refund_reference_id": "T100-01",
    "refund_reference": "ours-1",
}
PERSONAL = {
    "card": "4111111111111111",
    "billing_address": "Cambridge Street 9",
    "shopper_email": "ann@example.com",
    "document": "12345678909",
    "iban": "DE89370400440532013000",
    "birth_date": "05-11-1981",
    "note": "card 4111111111111111",
    "refund_reason": "iban DE89370400440532013000",
}
"""What a gateway may also send, and what is never kept."""


def signed(fields: dict[str, str], *, key: str = SIGN_KEY) -> dict[str, str]:
    """The message with its signature."""
    plain = "".join(fields.get(name, "") for name in SIGNED).replace(" ", "")
    return {**fields, "encryption_data": hashlib.sha256(f"{plain}{key}".encode()).hexdigest()}


def form(fields: dict[str, str], *, key: str = SIGN_KEY) -> bytes:
    """The body of a signed message."""
    return urlencode(signed(fields, key=key)).encode()

"""The tables of the gateway's API document, as they stand there and no more.

A gateway that answers by these shares no code with the sandbox: where the two differ, one of them
assumes something that the document does not say.
"""

MONEY = r"[0-9]+\.[0-9]{2}"
"""Part 2: `a point and two decimals`, of every currency."""
CURRENCY = "[A-Z]{3}"
COUNTRY = "[A-Z]{2}"
DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
SIGNATURE = "[0-9a-fA-F]{64}"

BATCH_FIELDS = {
    "capture": ("transaction_id", "order_no", "currency", "amount"),
    "cancel": ("transaction_id", "order_no", "currency", "amount"),
    "review": ("transaction_id", "order_no", "currency", "amount", "review_flag"),
    "refund": (
        *("transaction_id", "order_no", "currency", "amount"),
        *("refund_amount", "refund_reason"),
    ),
}
"""4.4 to 4.7: of one row of a request."""
BATCH_ANSWERS = {
    "capture": (
        *("amount", "capture_status", "currency", "error_message"),
        *("order_no", "transaction_id"),
    ),
    "cancel": (
        *("amount", "cancel_status", "currency", "error_message", "order_no"),
        "transaction_id",
    ),
    "review": (
        *("amount", "currency", "error_message", "order_no", "review_flag", "review_status"),
        "transaction_id",
    ),
    "refund": (
        *("amount", "currency", "order_no", "refund_amount", "refund_message", "refund_reason"),
        *("refund_reference", "refund_reference_id", "refund_status", "transaction_id"),
    ),
}
"""The same: of one row of a reply."""
ROWS_MAX = {"capture": 50, "cancel": 50, "refund": 50, "review": 100, "query": 100}
"""Part 8."""

QUERY_ROW = (
    *("amount", "currency", "order_no", "payment_status", "query_result", "reference_no"),
    *("transaction_date", "transaction_id", "website"),
)
"""2.8; `website` is what the document calls `the service`."""

_COMMON = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "item_total", "shipping"),
    *("handling", "tax_total", "insurance", "shipping_discount", "discount", "website", "items"),
    *("note", "shopper_id", "shopper_email", "shopper_ip", "shopper_phone", "shopper_level"),
    *("first_name", "last_name", "notify_url", "document", "birth_date", "billing_country"),
    *("billing_state", "billing_city", "billing_address", "billing_postal_code", "os", "browser"),
    *("browser_lang", "time_zone", "resolution", "cookie_new", "cookie_old"),
    *("delivery_firstname", "delivery_lastname", "delivery_country", "delivery_state"),
    *("delivery_city", "delivery_address", "delivery_postal_code", "custom"),
    *("device_fingerprint", "encryption_data", "platform_source", "device_type", "color_depth"),
)
_CARD_OR_HOSTED = (
    *("open3d", "token_flag", "token_id", "challenge_window_size", "session_id", "installments"),
    *("installments_id", "order_type", "checkout_time", "user_agent", "cart_items"),
    *("account_owner", "total_discount", "additional_information", "price_id", "quote_id"),
    *("quote_price", "storefront_domains", "subscription"),
)
PAYMENT_FIELDS = {
    "card": frozenset(
        {
            *_COMMON,
            *_CARD_OR_HOSTED,
            *("card", "expiration_month", "expiration_year", "security_code", "accept"),
        }
    ),
    "apm": frozenset(
        {
            *_COMMON,
            *("delivery_district_name", "delivery_street_name", "return_url", "payment_method"),
            *("bank_code", "person"),
        }
    ),
    "hosted": frozenset({*_COMMON, *_CARD_OR_HOSTED}),
}
"""2.1: columns D, A and H."""
PAYMENT_AMOUNTS = (
    *("amount", "item_total", "shipping", "handling", "tax_total", "insurance"),
    *("shipping_discount", "discount"),
)
PAYMENT_TYPES: dict[str, type] = {
    "checkout_time": int,
    "cart_items": list,
    "account_owner": list,
    "total_discount": list,
    "additional_information": list,
    "subscription": dict,
    "person": dict,
}
"""All others are strings."""
PAYMENT_COUNTRIES = ("billing_country", "delivery_country")
CARD_RESULT = (
    *("merchant_id", "account_id", "order_no", "amount", "currency", "transaction_id", "card"),
    *("order_status", "result_info", "contract_name", "recurring_id"),
    *("recurring_deduction_period", "recurring_deduction_time", "note", "token_id", "connector"),
    *("threeds_result", "risk_action", "risk_score", "risk_reasons", "encryption_data"),
)
"""2.6."""
APM_RESULT = ("merchant_id", "account_id", "order_no", "amount", "currency", "issuer_url")
"""2.7: nothing else, not even a signature."""

PAYOUT_FIELDS: dict[str, type] = {
    **dict.fromkeys(
        (
            *("merchant_id", "account_id", "beneficiary_id", "client_data", "fee_paid_by"),
            *("payment_amount", "payment_currency", "payment_date", "payment_method", "reason"),
            *("reference", "request_id", "source_amount", "source_currency"),
            *("swift_charge_option", "fund_source", "notify_url", "encryption_data"),
        ),
        str,
    ),
    "beneficiary": dict,
    "payer": dict,
}
"""2.9."""
PAYOUT_FORMS = {
    "request_id": UUID,
    "payment_date": DATE,
    "payment_amount": MONEY,
    "source_amount": MONEY,
    "payment_currency": CURRENCY,
    "source_currency": CURRENCY,
    "country_code": COUNTRY,
    "bank_country_code": COUNTRY,
    "date_of_birth": DATE,
}
"""Of what is given and not empty, wherever it stands in the request."""
PAYOUT_NOT_ANSWERED = ("notify_url",)
CANCEL_SUBSCRIPTION = (
    *("merchant_id", "account_id", "recurring_id", "contract_name", "cancel_status"),
    *("error_message", "encryption_data"),
)
"""4.9."""

SIGNED = {
    "query": ("merchant_id", "account_id"),
    "payout": ("merchant_id", "account_id", "request_id", "payment_currency", "payment_amount"),
    "cancelsubscription": ("merchant_id", "account_id", "recurring_id", "contract_name"),
    "card": (
        *("merchant_id", "account_id", "order_no", "currency", "amount", "first_name"),
        *("last_name", "card", "expiration_year", "expiration_month", "security_code"),
        "shopper_email",
    ),
    "apm": ("merchant_id", "account_id", "order_no", "currency", "amount", "return_url"),
    "hosted": ("merchant_id", "account_id", "order_no", "currency", "amount", "return_url"),
    "card result": (
        *("merchant_id", "account_id", "transaction_id", "order_no", "currency", "amount"),
        *("order_status", "result_info"),
    ),
}
"""Part 5 shows no signed fields: A-01 of docs/GATEWAY.md, and the one thing taken from there."""

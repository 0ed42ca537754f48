"""The tables of the gateway's API document, as they stand there and no more.

A gateway that answers by these shares no code with the sandbox: where the two differ, one of them
assumes something that the document does not say. Of a nested object each table has the type of each
field: one in brackets is an array of it.
"""

from typing import Any

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
NUMBER = (int, float)
CART_ITEM: dict[str, Any] = {
    "basic_item_data": {
        **dict.fromkeys(("name", "quantity", "type", "category", "productId"), str),
        "price": {"amount_usd": NUMBER, "amount_local_currency": NUMBER, "currency": str},
    }
}
"""2.2."""
ACCOUNT_OWNER: dict[str, Any] = {
    **dict.fromkeys(("first_name", "last_name", "email", "account_id"), str),
    **dict.fromkeys(("lastLogin_ip", "registration_ip"), str),
    **dict.fromkeys(("created", "past_orders_count", "past_orders_sum"), NUMBER),
}
"""2.3."""
SUBSCRIPTION: dict[str, Any] = {
    **dict.fromkeys(("contract", "contract_name", "contract_amount", "interval"), str),
    **dict.fromkeys(("interval_count", "contract_start", "contract_end", "price_id"), str),
    **dict.fromkeys(("billing_cycle", "promotion_cycle"), int),
}
"""2.4."""
PERSON: dict[str, Any] = {
    **dict.fromkeys(("document_number", "document_type", "social_name", "email"), str),
    **dict.fromkeys(("phone_country_code", "phone_area_code", "phone_number", "birth_date"), str),
    **dict.fromkeys(("net_monthly_average_income", "address_street", "address_number"), str),
    **dict.fromkeys(("address_complement", "address_postal_code", "address_city"), str),
    **dict.fromkeys(("address_state", "address_country", "fiscal_country"), str),
    "documents": {
        **dict.fromkeys(("file_type", "file_data", "file_url"), str),
        "labels": {
            "person_bank_account_id": str,
            "bank_account": {
                **dict.fromkeys(("account_type", "account_number", "branch_number"), str),
                **dict.fromkeys(("owner_document_number", "owner_name", "branch_country"), str),
                "currency": str,
                "bank": {"code": str, "name": str},
            },
        },
    },
}
"""2.5."""
PAYMENT_TYPES: dict[str, Any] = {
    "checkout_time": int,
    "cart_items": [CART_ITEM],
    "account_owner": [ACCOUNT_OWNER],
    "total_discount": [{"coupon_code_used": str, "discount_type": str}],
    "additional_information": [
        {"mpi_info": dict.fromkeys(("eci", "cavv", "xid", "dsTransID"), str)}
    ],
    "subscription": SUBSCRIPTION,
    "person": PERSON,
}
"""2.1: all others are strings."""
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

HOSTED_FIXED = (
    *("gbc_id", "connector_code", "account_name", "website", "pm_id", "apm_type", "descriptor"),
    *("orderprefix", "rrtimezone", "ordernumlength", "sendbgoods", "replacename"),
    *("send_bank_website", "replace_up_id", "replace_match_address", "to_pass_page"),
)
HOSTED_ALIASES = {
    "merNo": "merchant_id",
    "orderNo": "order_no",
    "orderCurrency": "currency",
    "orderAmount": "amount",
    "itemTotal": "item_total",
    "taxTotal": "tax_total",
    "shipFee": "shipping",
    "shippingDiscount": "shipping_discount",
    "goodsInfo": "items",
    "remark": "note",
    "email": "shopper_email",
    "phone": "shopper_phone",
    "firstName": "first_name",
    "lastName": "last_name",
    "address": "billing_address",
    "city": "billing_city",
    "state": "billing_state",
    "zip": "billing_postal_code",
    "country": "billing_country",
    "shipFirstName": "delivery_firstname",
    "shipLastName": "delivery_lastname",
    "shipCountry": "delivery_country",
    "shipState": "delivery_state",
    "shipCity": "delivery_city",
    "shipAddress": "delivery_address",
    "shipZip": "delivery_postal_code",
    "notifyUrl": "notify_url",
    "returnUrl": "return_url",
    "cancelUrl": "cancel_url",
    "cancel_url": "cancel_url",
    "return_url": "return_url",
    "defaultLang": "browser_lang",
    "default_lang": "browser_lang",
    "shopperId": "shopper_id",
    "shopperLevel": "shopper_level",
    "gatewayNo": "account_id",
    "signInfo": "encryption_data",
    "token": "token_id",
    "isOpen3D": "open3d",
    "source_request_ip": "shopper_ip",
    "source_notify_url": "notify_url",
    **dict.fromkeys(("paymentToken", "cardType", "card_type", "merSendLogoNo", "logo_name"), ""),
    **dict.fromkeys(("verifyBillingAddress", "verify_billing_address", "APMType"), ""),
    "payment_method": "",
}
"""4.3: each input and the field of the request that it repeats; which one it is, is our reading."""

_NOTES = ("business_registration_number", "personal_email", "personal_id_number")
_PLACE = ("city", "country_code", "postcode", "state", "street_address")
_PARTY = ("company_name", "date_of_birth", "entity_type", "first_name", "last_name")
BANK_DETAILS = (
    *("account_currency", "account_name", "owner_document_number", "account_number"),
    *("bank_account_category", "bank_branch", "bank_country_code", "bank_code", "bank_name"),
    *("bank_street_address", "binding_mobile_number", "iban", "swift_code"),
    "transaction_reference",
)
BENEFICIARY: dict[str, Any] = {
    "additional_info": {
        **dict.fromkeys(("business_area", "business_phone_number", *_NOTES), str),
        **dict.fromkeys(("personal_id_type", "personal_mobile_number"), str),
        **dict.fromkeys(("personal_net_monthly_average_income", "personal_fiscal_country"), str),
        **dict.fromkeys(("personal_phone_country_code", "personal_phone_area_code"), str),
    },
    "address": dict.fromkeys((*_PLACE, "street", "number", "complement"), str),
    "person_documents": [{"file_type": str, "file_url": str, "labels": [str]}],
    "bank_details": dict.fromkeys(BANK_DETAILS, str),
    **dict.fromkeys(_PARTY, str),
}
PAYER: dict[str, Any] = {
    "additional_info": dict.fromkeys(
        (*_NOTES, "business_registration_type", "external_id", "job"), str
    ),
    "address": dict.fromkeys(_PLACE, str),
    **dict.fromkeys(_PARTY, str),
}
PAYOUT_FIELDS: dict[str, Any] = {
    **dict.fromkeys(
        (
            *("merchant_id", "account_id", "beneficiary_id", "client_data", "fee_paid_by"),
            *("payment_amount", "payment_currency", "payment_date", "payment_method", "reason"),
            *("reference", "request_id", "source_amount", "source_currency"),
            *("swift_charge_option", "fund_source", "notify_url", "encryption_data"),
        ),
        str,
    ),
    "beneficiary": BENEFICIARY,
    "payer": PAYER,
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
PAYOUT_RECORD: dict[str, Any] = {
    **dict.fromkeys(("amount_beneficiary_receives", "amount_payer_pays", "fee_amount"), NUMBER),
    **dict.fromkeys(("fee_currency", "created_at", "last_updated_at", "failure_reason"), str),
    **dict.fromkeys(("failure_type", "payer_id", "transaction_id", "short_reference_id"), str),
    "status": str,
}
"""2.9, beside the fields of the request: of its `bank_details` without `bank_code` and with
`local_clearing_system`."""
CANCEL_SUBSCRIPTION = (
    *("merchant_id", "account_id", "recurring_id", "contract_name", "cancel_status"),
    *("error_message", "encryption_data"),
)
"""4.9."""

_JSON, _XML, _FORM = "application/json", "application/xml", "application/x-www-form-urlencoded"
CONTENT_TYPES = {
    **dict.fromkeys(("capture", "cancel", "refund", "review"), (_JSON,)),
    "retrievalTrans": (_FORM,),
    "authorise": (_FORM, _JSON),
    "checkout": (_FORM,),
    "cancelsubscription": (_XML,),
    "payout": (_FORM,),
}
"""Part 4: as declared, or as the sample of the operation has it."""

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

"""Signatures as the sandbox computes them, on its own: it never shares code with the client.

A signature is SHA-256, lower-case hex, over the values of an operation's fields in order and the
sign key, joined without a delimiter, every space removed, a missing field empty.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Any

ALL_ROWS = "*"
"""A field of this prefix is taken from every row of the request, in order."""

_BATCH = ("merchant_id", "account_id", "*transaction_id")
_SIGNED: Mapping[str, tuple[str, ...]] = {
    "authorise": (
        "merchant_id",
        "account_id",
        "order_no",
        "currency",
        "amount",
        "first_name",
        "last_name",
        "card",
        "expiration_year",
        "expiration_month",
        "security_code",
        "shopper_email",
    ),
    "retrievalTrans": ("merchant_id", "account_id"),
    "capture": _BATCH,
    "cancel": _BATCH,
    "review": _BATCH,
    "refund": _BATCH,
    "payment_reply": (
        "merchant_id",
        "account_id",
        "transaction_id",
        "order_no",
        "currency",
        "amount",
        "order_status",
        "result_info",
    ),
}


def signed_fields(operation: str) -> tuple[str, ...]:
    """The names an operation's signature covers, in order."""
    return _SIGNED[operation]


def sign(
    operation: str,
    fields: Mapping[str, Any],
    *,
    sign_key: str,
    rows: Iterable[Mapping[str, Any]] = (),
) -> str:
    """The signature of a message: 64 lower-case hexadecimal characters."""
    parts: list[str] = []
    for name in signed_fields(operation):
        if name.startswith(ALL_ROWS):
            parts += [text_of(row.get(name.removeprefix(ALL_ROWS))) for row in rows]
        else:
            parts.append(text_of(fields.get(name)))
    plain = "".join([*parts, sign_key]).replace(" ", "")
    return hashlib.sha256(plain.encode()).hexdigest()


def agrees(given: str, *, expected: str) -> bool:
    """Whether two signatures are the same, whatever the case, in constant time."""
    return hmac.compare_digest(given.lower().encode(), expected.lower().encode())


def text_of(value: Any) -> str:
    """A field as text: ids may come as numbers, everything that is not text or number is empty."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)

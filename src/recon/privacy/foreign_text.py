"""Make external text safe to store and show, and name the fields that are never stored.

Card numbers are cut to their first six and last four digits and bank accounts to `DE…3000`; control
characters and lone surrogates become spaces, and every text is limited in length. Ids and amounts
never pass through here.
"""

import json
import re
from collections.abc import Collection, Container, Iterator, Sequence
from typing import Any

from recon.privacy.bank_accounts import masked_accounts
from recon.privacy.card_numbers import (
    DIGITS_MIN,
    DISPLAYED_FIRST,
    DISPLAYED_LAST,
    SEPARATORS,
    masked_cards,
)
from recon.privacy.displayed_text import masked_codes

MESSAGE_CHARACTERS_MAX = 300
LOOKED_AT_CHARACTERS_MAX = 4 * MESSAGE_CHARACTERS_MAX

LONG_DIGIT_RUN = re.compile(rf"\d(?:{SEPARATORS}?\d){{10,}}")
_SHORT_CODE_NAME = re.compile(r"c(?:v[vcn]|sc)", re.IGNORECASE)
"""Names of the card's security code that leave room for its digits in so short a text."""
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CODE = re.compile(
    r"(?P<code>[A-Z]{0,3}[0-9]{2,8}(?=[:_]|$)|[A-Za-z0-9]{1,16}(?=:))(?:[:_](?P<text>.*))?",
    re.ASCII | re.DOTALL,
)


def redacted(text: str, *, keep: Container[str] = ()) -> str:
    """Return the text masked (cards, codes, IBANs), on one line, up to MESSAGE_CHARACTERS_MAX."""
    if are_harmless([text]):
        return text.strip()
    line = _UNSAFE.sub(" ", text[:LOOKED_AT_CHARACTERS_MAX]).strip()
    # Masked before it is cut, so that the cut cannot hide a number.
    return masked_codes(masked_cards(masked_accounts(line), keep=keep))[:MESSAGE_CHARACTERS_MAX]


def are_harmless(texts: Sequence[str]) -> bool:
    """Return whether there is nothing to mask, as in nine of ten fields of a reply."""
    joined = "".join(texts)
    return (
        max(map(len, texts), default=0) < DIGITS_MIN
        and joined.isascii()
        and joined.isprintable()
        and _SHORT_CODE_NAME.search(joined) is None
    )


def masked_card(text: str) -> str:
    """Mask a field that holds a card; whole numbers are masked even if the check digit is wrong."""
    return LONG_DIGIT_RUN.sub(lambda match: _cut(re.sub(SEPARATORS, "", match[0])), redacted(text))


def _cut(digits: str) -> str:
    hidden = len(digits) - DISPLAYED_FIRST - DISPLAYED_LAST
    return f"{digits[:DISPLAYED_FIRST]}{'*' * hidden}{digits[-DISPLAYED_LAST:]}"


def masked_values(text: bytes, *, values: Collection[str], word_min: int) -> bytes:
    """Mask each of these values in a text, both as JSON writes them and as they are.

    Args:
        text: A body, or what a message quotes from one.
        values: The values to be masked.
        word_min: Shorter values are masked only between quotes; names of JSON fields never are.
    """
    written = {form for value in values for form in _written(value, word_min=word_min)}
    if not written:
        return text
    alternatives = b"|".join(sorted(written, key=lambda form: (-len(bytes(form)), form)))
    pattern = rb"(?<![0-9A-Za-z])(?:" + alternatives + rb')(?![0-9A-Za-z])(?!"\s*:)'
    return re.sub(pattern, lambda match: b'"***"' if match[0][:1] == b'"' else b"***", text)


def without_values(text: bytes, *, values: Collection[str]) -> bytes:
    """Mask these values wherever they occur in a text, also within a longer word."""
    for value in values:
        for written in {
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            value,
        }:
            text = text.replace(written.encode(errors="surrogatepass"), b"***")
    return text


def _written(value: str, *, word_min: int) -> Iterator[bytes]:
    for form in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        word = re.escape(form.encode(errors="surrogatepass"))
        yield word if len(value) >= word_min else b'"' + word + b'"'


def code_and_text(message: str) -> tuple[str, str]:
    """Split a message of the form `<code>:<text>`; without a code return ("", message)."""
    match = _CODE.fullmatch(message.strip())
    if match is None:
        return "", message.strip()
    return match["code"], (match["text"] or "").strip()


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
NOT_STORED = "***"


def is_private(name: str) -> bool:
    """Return whether a field of this name, in any case, is about a card, an account or a person."""
    return name.strip().lower() in PRIVATE_NAMES


def without_private(value: Any) -> Any:
    """Return a JSON value with the private values in its objects masked."""
    if isinstance(value, list):
        return [without_private(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: NOT_STORED if is_private(str(name)) else without_private(part)
        for name, part in value.items()
    }

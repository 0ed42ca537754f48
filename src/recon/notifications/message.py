"""One message of the gateway: is it from the gateway, for this account, and what does it tell?

Pure. Only the fields of KEPT_FIELDS ever leave this module, each in a form that cannot hold a
person's data; everything else (names, addresses, cards, documents) is dropped unread. The payload
is not shown by the API document: names and signature are assumption A-13.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from recon.gateway_client.interface import GatewayInterface
from recon.gateway_client.signing import Credentials, is_signed
from recon.instructions.account import MESSAGES
from recon.model.errors import AmountError
from recon.model.money import parse_minor_units
from recon.privacy.card_numbers import holds_card

CODE = r"[A-Za-z0-9._ -]{1,40}"
ID = r"[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,63}"
AMOUNT = r"[0-9]{1,15}(?:\.[0-9]{1,4})?"
KEPT_FIELDS: Mapping[str, str] = {
    "webhooks_type": r"[A-Za-z _-]{1,40}",
    "order_no": ID,
    "transaction_id": ID,
    "refund_reference_id": ID,
    "refund_reference": ID,
    "request_id": ID,
    "recurring_id": ID,
    "short_reference_id": ID,
    "currency": r"[A-Z]{3}",
    "refund_currency": r"[A-Z]{3}",
    "payment_currency": r"[A-Z]{3}",
    "amount": AMOUNT,
    "refund_amount": AMOUNT,
    "payment_amount": AMOUNT,
    "order_status": CODE,
    "payment_status": CODE,
    "refund_status": CODE,
    "review_status": CODE,
    "recurring_status": CODE,
    "status": CODE,
    "error_code": CODE,
    "return_type": CODE,
    "failure_type": CODE,
    "result_code": CODE,
    "refund_date": r"[0-9]{14}",
    "transaction_date": r"[0-9]{14}",
}
"""Name -> the whole-text form in which a value is kept; any other value is dropped."""

IDENTITY_FIELDS = (
    *("webhooks_type", "order_no", "transaction_id", "refund_reference_id", "refund_reference"),
    *("request_id", "recurring_id", "order_status", "payment_status", "refund_status"),
    *("review_status", "recurring_status", "status"),
)
"""What a message is about and which stage it tells of; two that agree here must agree in all."""

SUBJECT_FIELDS = ("transaction_id", "order_no", "request_id", "recurring_id")
STATUS_FIELDS = (
    *("refund_status", "review_status", "recurring_status", "status"),
    *("payment_status", "order_status"),
)
OWN_AMOUNTS = ("refund_amount", "payment_amount")
"""What a message about a refund or payout moves, beside the payment's amount."""

TYPE_WORDS: Mapping[str, str] = {
    "PAYMENT": "payment",
    "REVIEW RESULT": "review",
    "DISPUTE RECIEVED": "dispute received",
    "DISPUTE RECEIVED": "dispute received",
    "DISPUTE RESULT": "dispute result",
    "REFUND RECIEVED": "refund received",
    "REFUND RECEIVED": "refund received",
    "REFUND ACCEPTED": "refund accepted",
    "REFUND RESULT": "refund result",
    "SUBSCRIPTION": "subscription",
    "PAYOUT": "payout",
}
"""The gateway's types, its own spelling mistakes included, to our words."""

OTHER = "other"
Problem = Literal["malformed", "forged", "other account", "contradiction"]


@dataclass(frozen=True, slots=True)
class VerifiedMessage:
    """A verified message, reduced to what may be kept."""

    kind: str
    """One of TYPE_WORDS' words, or `other`."""
    fields: Mapping[str, str]
    """Kept fields by name, sorted."""
    currency: str
    amount: int | None
    """Minor units; of the refund or payout where it tells of one. None: not told, or unreadable."""
    status: str

    @property
    def sha256(self) -> str:
        """Of all kept fields, canonical."""
        return _digest(self.fields)

    @property
    def identity_sha256(self) -> str:
        """Of what the message is about."""
        return _digest({name: self.fields.get(name, "") for name in IDENTITY_FIELDS})


@dataclass(frozen=True, slots=True)
class MessageRefusal:
    """Why a message is not believed, safe to keep."""

    problem: Problem
    reason: str
    fields: Mapping[str, str]


def read_message(
    pairs: Mapping[str, str], *, credentials: Credentials, interface: GatewayInterface
) -> VerifiedMessage | MessageRefusal:
    """What the pairs of a form come to.

    Args:
        pairs: Names and values as sent.
        credentials: Of the account that the address names.
        interface: For the signature's rules.
    """
    kept = kept_fields(pairs)
    given = pairs.get("encryption_data", "")
    for name in ("merchant_id", "account_id"):
        if pairs.get(name, "") != getattr(credentials, name):
            reason = f"its {name} is not the one of the address it was sent to"
            return MessageRefusal("other account", reason, kept)
    if not given:
        return MessageRefusal("forged", "it carries no signature", kept)
    if not is_signed(given, MESSAGES, fields=pairs, credentials=credentials, interface=interface):
        return MessageRefusal("forged", "its signature is not ours", kept)
    if not any(kept.get(name) for name in SUBJECT_FIELDS):
        return MessageRefusal(
            "malformed", "it names no order, transaction, payout or contract", kept
        )
    return _message(kept)


def kept_fields(pairs: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed fields whose values have the form they must have."""
    fields = {**pairs, "result_code": re.split("[:_]", pairs.get("result_info", ""), maxsplit=1)[0]}
    return {
        name: fields[name]
        for name, form in sorted(KEPT_FIELDS.items())
        if fields.get(name)
        and re.fullmatch(form, fields[name], re.ASCII)
        and _is_no_card(fields[name])
    }


def _is_no_card(value: str) -> bool:
    """A number that could pay is never kept, whatever field it came in."""
    return not holds_card(value)


def _message(kept: Mapping[str, str]) -> VerifiedMessage:
    kind = TYPE_WORDS.get(kept.get("webhooks_type", "").upper(), "") or _kind_of(kept)
    name = next((name for name in OWN_AMOUNTS if name in kept), "amount")
    currency = kept.get(name.replace("amount", "currency"), "") or kept.get("currency", "")
    # The payment's own status says nothing of a refund of it.
    fields = ("refund_status",) if kind.startswith("refund") else STATUS_FIELDS
    return VerifiedMessage(
        kind=kind,
        fields=kept,
        currency=currency,
        amount=_minor_units(kept.get(name, ""), currency=currency),
        status=next((kept[name] for name in fields if name in kept), "")[:20],
    )


def _kind_of(kept: Mapping[str, str]) -> str:
    """The kind of a message that names no type, or one we do not know."""
    if "webhooks_type" in kept:
        return OTHER
    if "request_id" in kept:
        return "payout"
    if "recurring_status" in kept:
        return "subscription"
    return "refund result" if "refund_status" in kept else "payment"


def _minor_units(text: str, *, currency: str) -> int | None:
    try:
        return parse_minor_units(text, currency=currency)
    except AmountError:
        return None


def _digest(fields: Mapping[str, str]) -> str:
    canonical = json.dumps(dict(fields), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()

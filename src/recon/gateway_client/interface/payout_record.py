"""What the gateway's record of a payout says (2.9), beside the echo of the request."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from recon.gateway_client.interface.payout import PayoutRow
from recon.gateway_client.wire.json_reply import text_of
from recon.gateway_client.wire.private_names import NOT_KEPT, is_private

EXTRA_FIELDS_MAX = 50
Kept = Callable[[str], str]
_BEARERS = ("PAYER", "BENEFICIARY")
"""Who may bear the fee."""
_AMOUNT = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?", re.ASCII)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}(?:Z|[+-][0-9]{2}:?[0-9]{2})", re.ASCII
)
_DROPPED_FIELDS = frozenset({"merchant_id", "account_id", "encryption_data"})


@dataclass(frozen=True, slots=True)
class PayoutRecord:
    """The gateway's side of one payout; it names no person and no bank account."""

    transaction_id: str = ""
    short_reference_id: str = ""
    status: str = ""
    failure_type: str = ""
    failure_reason: str = ""
    payer_id: str = ""
    amount_beneficiary_receives: Decimal | None = None
    """Major units, like all amounts here; None when missing or malformed."""
    amount_payer_pays: Decimal | None = None
    fee_amount: Decimal | None = None
    fee_currency: str = ""
    created_at: datetime | None = None
    last_updated_at: datetime | None = None
    local_clearing_system: str = ""
    malformed: tuple[str, ...] = ()
    """Fields that were given but cannot be read."""
    extra: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Fields that the API document does not list, scrubbed of card numbers."""


_TEXT_FIELDS = (
    *("transaction_id", "short_reference_id", "status", "failure_type", "failure_reason"),
    *("payer_id", "fee_currency"),
)
_AMOUNT_FIELDS = ("amount_beneficiary_receives", "amount_payer_pays", "fee_amount")
_INSTANT_FIELDS = ("created_at", "last_updated_at")
_KNOWN_FIELDS = (
    frozenset({*_TEXT_FIELDS, *_AMOUNT_FIELDS, *_INSTANT_FIELDS, *PayoutRow.model_fields})
    | _DROPPED_FIELDS
)


def payout_record(reply: Mapping[str, Any], *, masked_text: Kept, kept_id: Kept) -> PayoutRecord:
    """The record in a payout's reply, whatever else the reply holds; never raises.

    Args:
        reply: The reply's fields.
        masked_text: Makes foreign text safe to keep, private values of the request included.
        kept_id: The same for ids, whose digits may look like a card's.
    """
    read = {name: amount_of(reply.get(name)) for name in _AMOUNT_FIELDS}
    at = {name: instant_of(text_of(reply.get(name)) or "") for name in _INSTANT_FIELDS}

    blank = [name for name, value in (read | at).items() if value is None]

    def text(name: str) -> str:
        return masked_text(text_of(reply.get(name)) or "")

    return PayoutRecord(
        transaction_id=kept_id(text_of(reply.get("transaction_id")) or ""),
        short_reference_id=kept_id(text_of(reply.get("short_reference_id")) or ""),
        status=text("status"),
        failure_type=text("failure_type"),
        failure_reason=text("failure_reason"),
        payer_id=kept_id(text_of(reply.get("payer_id")) or ""),
        amount_beneficiary_receives=read["amount_beneficiary_receives"],
        amount_payer_pays=read["amount_payer_pays"],
        fee_amount=read["fee_amount"],
        fee_currency=text("fee_currency"),
        created_at=at["created_at"],
        last_updated_at=at["last_updated_at"],
        local_clearing_system=masked_text(_clearing_system(reply)),
        malformed=_malformed(reply, names=blank),
        extra=_extra(reply, masked_text=masked_text),
    )


def misfit(sent: PayoutRow, *, record: PayoutRecord) -> str:
    """What of a completed payout's figures does not fit what was asked for; "" where all fits.

    The payer pays in the source currency, the payee receives the payment currency (A-21). The fee
    is the payer's, on top of the amount, or the payee's, off it; where the request does not say
    whose, either. A fee in another currency than its side's tells the direction only, and what the
    payer pays of a source amount that was not given is the gateway's rate of exchange.
    """
    unread = [name for name in _AMOUNT_FIELDS if name in record.malformed]
    if unread:
        return f"{unread[0]} is not an amount"
    pays, receives = record.amount_payer_pays, record.amount_beneficiary_receives
    if pays is None and receives is None:
        return ""
    asked, fee = sent.payment_amount, record.fee_amount or Decimal(0)
    source = sent.source_currency or sent.payment_currency
    leaves = sent.source_amount or (asked if source == sent.payment_currency else None)
    for bearer in [sent.fee_paid_by] if sent.fee_paid_by in _BEARERS else _BEARERS:
        on_top, off = (fee, Decimal(0)) if bearer == "PAYER" else (Decimal(0), fee)
        if _side_fits(
            pays, asked=leaves, fee=on_top, exact=record.fee_currency in {"", source}
        ) and _side_fits(
            receives,
            asked=asked,
            fee=-off,
            exact=record.fee_currency in {"", sent.payment_currency},
        ):
            return ""
    return (
        f"of {sent.payment_amount} {sent.payment_currency} the payer pays {pays} {source}, the "
        f"payee receives {receives}, the fee is {record.fee_amount} {record.fee_currency}"
    )


def _side_fits(given: Decimal | None, *, asked: Decimal | None, fee: Decimal, exact: bool) -> bool:
    """Whether what one side pays or receives is what was asked, with its part of the fee."""
    if given is None:
        return True
    if asked is None:
        return given > 0
    if exact or not fee:
        return given == asked + fee
    return given >= asked if fee > 0 else given <= asked


def amount_of(value: object) -> Decimal | None:
    """An amount, text or number; None when it is not one."""
    text = text_of(value) or ""
    return Decimal(text) if _AMOUNT.fullmatch(text) else None


def instant_of(text: str) -> datetime | None:
    """An ISO 8601 instant whose offset may lack the colon; None when it is not one."""
    if _INSTANT.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _malformed(reply: Mapping[str, Any], *, names: Sequence[str]) -> tuple[str, ...]:
    """Of fields without a value, those that were given something."""
    return tuple(name for name in names if text_of(reply.get(name)) != "")


def _clearing_system(reply: Mapping[str, Any]) -> str:
    beneficiary = reply.get("beneficiary")
    details = beneficiary.get("bank_details") if isinstance(beneficiary, Mapping) else None
    given = details.get("local_clearing_system") if isinstance(details, Mapping) else None
    return text_of(given) or ""


def _extra(reply: Mapping[str, Any], *, masked_text: Kept) -> dict[str, str]:
    """Unknown fields that are plain text or numbers; objects may hold anything of a person."""
    names = [name for name in reply if name not in _KNOWN_FIELDS][:EXTRA_FIELDS_MAX]
    texts = {name: NOT_KEPT if is_private(name) else text_of(reply[name]) for name in names}
    return {masked_text(name): masked_text(text) for name, text in texts.items() if text}

"""A payment's exact bytes, checked whole before anything is sent."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from recon.gateway_client.interface.described import GatewayInterface
from recon.gateway_client.interface.prepare import (
    PROBLEMS_SHOWN_MAX,
    PreparedCall,
    refuse_credentials,
)
from recon.gateway_client.interface.rows import Credentials
from recon.gateway_client.interface.signing import sign
from recon.gateway_client.payments.payment import Payment, PaymentOperation
from recon.gateway_client.payments.payment_checks import payment_problems
from recon.gateway_client.wire.json_reply import texts_of
from recon.gateway_client.wire.private_fields import private_texts, wire_value
from recon.gateway_client.wire.request_body import request_body
from recon.gateway_client.wire.wire_errors import InvalidPaymentError


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPayment(PreparedCall):
    """One payment, ready to be sent once."""

    operation: PaymentOperation
    payment: Payment
    texts: Mapping[str, str] = field(repr=False)
    """Every plain field as it is sent, by its name there."""


def prepare_payment(
    payment: Payment, *, credentials: Credentials, interface: GatewayInterface, today: date
) -> PreparedPayment:
    """The request of one payment.

    Args:
        payment: By card, by another method, or by the hosted page.
        credentials: Who is paid.
        interface: Names of fields, wire format, signature.
        today: Against which a card's expiry is checked.

    Raises:
        InvalidPaymentError: naming each field that must not be sent; nothing was sent.
    """
    refuse_credentials(credentials, interface=interface)
    problems = tuple(payment_problems(payment, interface=interface, today=today))
    if problems:
        shown = "; ".join(f"{name} {reason}" for name, reason in problems[:PROBLEMS_SHOWN_MAX])
        more = len(problems) - PROBLEMS_SHOWN_MAX
        tail = f" and {more} more" if more > 0 else ""
        msg = f"this payment must not be sent: {shown}{tail}; nothing was sent"
        raise InvalidPaymentError(msg, problems=problems)
    operation = payment.operation
    described = interface.payment(operation)
    fields = wire_value(payment)
    signature = sign(
        operation, fields=texts_of(fields), credentials=credentials, interface=interface
    )
    message = {
        "merchant_id": credentials.merchant_id,
        "account_id": credentials.account_id,
        **dict.fromkeys(interface.profile.payment.sent_empty.get(operation.value, ()), ""),
        **_named(fields, interface=interface),
        "encryption_data": signature,
    }
    body = request_body(message, body=described.body)
    return PreparedPayment(
        operation=operation,
        payment=payment,
        texts={name: value for name, value in message.items() if isinstance(value, str)},
        path=described.path,
        content_type=described.content_type,
        body=body,
        body_sha256=hashlib.sha256(body).hexdigest(),
        signature=signature,
        private=private_texts(payment),
        secrets=credentials.private,
    )


def _named(fields: Mapping[str, Any], *, interface: GatewayInterface) -> dict[str, Any]:
    """The fields under the names that this gateway's brand gives them."""
    described = interface.profile.payment
    names = {
        "website": described.website_field,
        "antifraud_token_cookie": f"{described.antifraud_provider}_token_cookie",
    }
    own = {names.get(name, name): value for name, value in fields.items() if name != "more"}
    return {**own, **fields.get("more", {})}

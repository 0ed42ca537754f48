"""Which payment methods a shopper should be offered (`optimise`, profile extended); moves nothing.

Two pure phases around `MoneyTransport.send`, like everything that is sent once.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

from recon.gateway_client.interface.described import GatewayInterface, ReplyPolicy
from recon.gateway_client.interface.operation_formats import MethodsOperation
from recon.gateway_client.interface.prepare import PreparedCall, refuse_credentials
from recon.gateway_client.interface.reply_outcomes import FindingKind, ReplyFinding
from recon.gateway_client.interface.rows import Credentials, text_problem
from recon.gateway_client.interface.signing import reply_signature, sign
from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.wire.json_reply import (
    UnreadableReplyError,
    json_object,
    text_of,
    texts_of,
)
from recon.gateway_client.wire.private_fields import (
    Amount,
    PrivateFields,
    private_texts,
    wire_value,
)
from recon.gateway_client.wire.request_body import request_body
from recon.gateway_client.wire.text import scrubbed
from recon.gateway_client.wire.wire_errors import InterfaceError, InvalidPaymentError

OPERATION = "optimise"
METHODS_MAX = 200
OK_STATUS = 200


class MethodsRequest(PrivateFields):
    """Who wants to pay how much."""

    shown: ClassVar[frozenset[str]] = frozenset(
        {"request_id", "currency", "amount", "platform", "shopper_country", "shopper_level"}
    )
    request_id: str
    currency: str
    amount: Amount
    shopper_id: str
    shopper_email: str
    shopper_country: str
    shopper_ip: str = ""
    shopper_level: str = ""
    platform: str = ""


@dataclass(frozen=True, slots=True)
class MethodsAnswer:
    """The methods, best first; none when the reply could not be trusted."""

    methods: tuple[str, ...]
    reason: str
    """Why there are none; "" when the reply was good."""
    findings: tuple[ReplyFinding, ...] = ()


def prepare_methods(
    request: MethodsRequest, *, credentials: Credentials, interface: GatewayInterface
) -> PreparedCall:
    """The question for the best payment methods.

    Raises:
        InterfaceError: the profile does not know the operation; only `extended` does.
        InvalidPaymentError: naming the field that must not be sent.
    """
    described = _described(interface)
    refuse_credentials(credentials, interface=interface)
    amounts = interface.profile.amounts
    problems = {
        "currency": text_problem("currency", text=request.currency, interface=interface),
        "amount": amounts.problem(request.amount, currency=request.currency),
    }
    for name, problem in problems.items():
        if problem:
            msg = f"{name} {problem}; nothing was sent"
            raise InvalidPaymentError(msg, problems=((name, problem),))
    fields = wire_value(request)
    signature = sign(
        OPERATION, fields=texts_of(fields), credentials=credentials, interface=interface
    )
    message = {
        "merchant_id": credentials.merchant_id,
        "account_id": credentials.account_id,
        **fields,
        "encryption_data": signature,
    }
    body = request_body(message, body=described.body)
    return PreparedCall(
        path=described.path,
        content_type=described.content_type,
        body=body,
        body_sha256=hashlib.sha256(body).hexdigest(),
        signature=signature,
        private=private_texts(request),
        secrets=credentials.private,
    )


def read_methods_reply(
    prepared: PreparedCall, raw: RawReply, *, interface: GatewayInterface, policy: ReplyPolicy
) -> MethodsAnswer:
    """The methods of a reply; never raises on foreign bytes."""
    try:
        reply = json_object(raw.body)
    except UnreadableReplyError as error:
        return _none(FindingKind.UNREADABLE, f"the reply (HTTP {raw.status}) is {error}")
    if raw.status != OK_STATUS:
        masked_text = prepared.masked_text(text_of(reply.get("message")) or "")
        return _none(
            FindingKind.HTTP_STATUS, f"the gateway answered HTTP {raw.status} {masked_text}"
        )
    state = reply_signature(
        text_of(reply.get("encryption_data")), expected=(prepared.signature,), policy=policy
    )
    if not state.is_enough(policy=policy, may_lack=interface.signature.may_lack(OPERATION)):
        return _none(FindingKind.SIGNATURE, f"the reply's signature is {state}")
    described = _described(interface)
    given = reply.get(described.rows_field)
    listed: list[Any] = given if isinstance(given, list) else []
    names = (_name(method, described=described) for method in listed[:METHODS_MAX])
    return MethodsAnswer(tuple(name for name in names if name), "")


def _described(interface: GatewayInterface) -> MethodsOperation:
    described = interface.profile.query.optimise
    if described is None:
        msg = "profiles.toml describes no optimise; only the profile extended has it"
        raise InterfaceError(msg)
    return described


def _name(method: object, *, described: MethodsOperation) -> str:
    name = method.get(described.name_field) if isinstance(method, dict) else method
    return scrubbed(text_of(name) or "")


def _none(kind: FindingKind, message: str) -> MethodsAnswer:
    return MethodsAnswer((), message, (ReplyFinding(kind, message),))

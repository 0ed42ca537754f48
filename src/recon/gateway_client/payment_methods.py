"""Which payment methods a shopper should be offered (`optimise`, profile extended); moves nothing.

Two pure phases around `Transport.send`, like everything that is sent once.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from recon.gateway_client.batches import PreparedCall, refuse_credentials, text_problem
from recon.gateway_client.documents import (
    UnreadableReplyError,
    json_object,
    text_of,
    texts_of,
)
from recon.gateway_client.errors import InterfaceError, InvalidPaymentError
from recon.gateway_client.interface import GatewayInterface, MethodsOperation, ReplyPolicy
from recon.gateway_client.messages import (
    Amount,
    PrivateFields,
    private_texts,
    wire_value,
)
from recon.gateway_client.replies import FindingKind, ReplyContext, ReplyFinding, envelope_of
from recon.gateway_client.signing import Credentials, sign
from recon.gateway_client.transport import RawReply
from recon.privacy.foreign_text import scrubbed

OPERATION = "optimise"
METHODS_MAX = 200


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
    return PreparedCall.of(
        fields,
        described=described,
        credentials=credentials,
        interface=interface,
        signature=signature,
        private=private_texts(request),
    )


def read_methods_reply(
    prepared: PreparedCall,
    raw: RawReply,
    *,
    policy: ReplyPolicy,
) -> MethodsAnswer:
    """The methods of a reply; never raises on foreign bytes."""
    described = _described(prepared.interface)
    try:
        reply = json_object(raw.body)
    except UnreadableReplyError as error:
        return _none(FindingKind.UNREADABLE, f"the reply (HTTP {raw.status}) is {error}")
    if raw.meaning != "read":
        reason = prepared.masked_text(text_of(reply.get("message")) or "")
        return _none(FindingKind.HTTP_STATUS, f"the gateway answered HTTP {raw.status} {reason}")
    context = ReplyContext(
        operation=OPERATION,
        signature=prepared.signature,
        credentials=prepared.credentials,
        interface=prepared.interface,
        policy=policy,
        must_name_account=False,
    )
    doubt = envelope_of(reply, context=context).doubt
    if doubt is not None:
        return _none(doubt.kind, doubt.message)
    given = reply.get(described.rows_field)
    listed: list[Any] = given if isinstance(given, list) else []
    names = (
        method.get(described.name_field) if isinstance(method, dict) else method
        for method in listed[:METHODS_MAX]
    )
    shown = (scrubbed(text_of(name) or "") for name in names)
    return MethodsAnswer(tuple(name for name in shown if name), "")


def _described(interface: GatewayInterface) -> MethodsOperation:
    described = interface.profile.query.optimise
    if described is None:
        msg = "profiles.toml describes no optimise; only the profile extended has it"
        raise InterfaceError(msg)
    return described


def _none(kind: FindingKind, message: str) -> MethodsAnswer:
    return MethodsAnswer((), message, (ReplyFinding(kind, message),))

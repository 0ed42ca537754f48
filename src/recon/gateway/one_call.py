"""One call that no journal knows: a payment that is started, a payout, the end of a subscription.

Each is sent once and never again. What comes back is reduced to what may be shown: ids, codes and
masked values.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recon.gateway.account import GatewayAccount
from recon.gateway_client import (
    GatewayClientError,
    MethodsAnswer,
    MethodsRequest,
    MoneyTransport,
    NotSentError,
    Operation,
    Payment,
    PaymentReply,
    RawReply,
    Row,
    UnknownOutcomeError,
    payment_without_reply,
    prepare,
    prepare_methods,
    prepare_payment,
    read_batch_reply,
    read_methods_reply,
    read_payment_reply,
)
from recon.gateway_client.interface.prepare import PreparedCall
from recon.model.errors import UsageError
from recon.model.words import Clock

PAYMENT_FACTS = (
    *("transaction_id", "card", "order_status", "connector", "threeds_result", "risk_action"),
    *("risk_score", "recurring_id", "contract_name", "issuer_url"),
)
PAYOUT_FACTS = (
    *("transaction_id", "short_reference_id", "status", "failure_type"),
    *("amount_beneficiary_receives", "amount_payer_pays", "fee_amount", "fee_currency"),
)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What one call came to."""

    outcome: str
    """A word of `model.Outcome`."""
    code: str
    message: str
    facts: Mapping[str, str] = field(default_factory=dict)
    """Filled ones only, in the order in which they are shown."""
    page: bytes = field(default=b"", repr=False)
    """The hosted page as it came; it may name the shopper."""


def start_payment(payment: Payment, *, account: GatewayAccount, clock: Clock) -> CallResult:
    """Start one payment; it is sent once, whatever happens.

    Raises:
        UsageError: the payment must not be sent; names fields, never values.
    """
    try:
        prepared = prepare_payment(
            payment,
            credentials=account.credentials,
            interface=account.interface,
            today=clock().date(),
        )
    except GatewayClientError as error:
        raise UsageError(str(error)) from None
    try:
        raw = asyncio.run(_sent(prepared, account=account, clock=clock))
    except (NotSentError, UnknownOutcomeError) as error:
        return _of_payment(payment_without_reply(error), page=b"")
    reply = read_payment_reply(
        prepared,
        raw,
        interface=account.interface,
        policy=account.settings.gateway.reply_signatures,
        credentials=account.credentials,
        base_url=account.base_url,
    )
    return _of_payment(reply, page=raw.body if reply.form is not None else b"")


def send_row(
    operation: Operation, row: Row, *, account: GatewayAccount, clock: Clock
) -> CallResult:
    """Send one batch of one row; it is sent once, whatever happens.

    Raises:
        UsageError: the row must not be sent; names fields, never values.
    """
    try:
        prepared = prepare(
            operation, [row], credentials=account.credentials, interface=account.interface
        )
    except GatewayClientError as error:
        raise UsageError(str(error)) from None
    try:
        raw = asyncio.run(_sent(prepared, account=account, clock=clock))
    except NotSentError as error:
        return CallResult("not_sent", error.kind, str(error))
    except UnknownOutcomeError as error:
        return CallResult("unknown", error.kind, str(error))
    reply = read_batch_reply(
        prepared,
        raw,
        interface=account.interface,
        policy=account.settings.gateway.reply_signatures,
        credentials=account.credentials,
    )
    result = reply.rows[0]
    message = result.message or "; ".join(finding.message for finding in reply.findings)
    facts = {} if result.payout is None else _facts(result.payout, names=PAYOUT_FACTS)
    return CallResult(result.outcome.value, result.code, message, facts)


def best_methods(
    request: MethodsRequest, *, account: GatewayAccount, clock: Clock
) -> MethodsAnswer:
    """Which payment methods suit a shopper; moves nothing.

    Raises:
        UsageError: the question must not be sent, or the profile does not know it.
    """
    try:
        prepared = prepare_methods(
            request, credentials=account.credentials, interface=account.interface
        )
    except GatewayClientError as error:
        raise UsageError(str(error)) from None
    try:
        raw = asyncio.run(_sent(prepared, account=account, clock=clock))
    except (NotSentError, UnknownOutcomeError) as error:
        return MethodsAnswer((), str(error))
    policy = account.settings.gateway.reply_signatures
    return read_methods_reply(prepared, raw, interface=account.interface, policy=policy)


async def _sent(prepared: PreparedCall, *, account: GatewayAccount, clock: Clock) -> RawReply:
    gateway = account.settings.gateway
    transport = MoneyTransport(
        base_url=account.base_url,
        clock=clock,
        connect_seconds=gateway.connect_timeout_seconds,
        deadline_seconds=gateway.deadline_seconds,
        route=account.route,
    )
    return await transport.send(prepared)


def _of_payment(reply: PaymentReply, *, page: bytes) -> CallResult:
    facts = {} if reply.record is None else _facts(reply.record, names=PAYMENT_FACTS)
    if reply.form is not None:
        facts = {"posts_to": reply.form.action, "inputs": str(len(reply.form.inputs))}
    findings = "; ".join(finding.message for finding in reply.findings)
    return CallResult(reply.outcome.value, reply.code, reply.message or findings, facts, page)


def _facts(record: Any, *, names: tuple[str, ...]) -> dict[str, str]:
    values = {name: getattr(record, name) for name in names}
    return {name: str(value) for name, value in values.items() if value not in {"", None}}

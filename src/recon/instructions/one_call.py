"""One call that no journal knows: a payment that is started, a payout, the end of a subscription.

Each is sent once and never again. What comes back is reduced to what may be shown: ids, codes and
masked values.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recon.gateway_client import (
    GatewayClientError,
    MethodsAnswer,
    MethodsRequest,
    Operation,
    Payment,
    Row,
)
from recon.instructions.account import GatewayAccount
from recon.model.errors import UsageError
from recon.model.words import Clock

Reply = TypeVar("Reply")

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
    """A word of `ReplyOutcome`."""
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
    reply = _run(account.client(clock=clock).pay(payment))
    facts = {} if reply.record is None else _facts(reply.record, names=PAYMENT_FACTS)
    if reply.form is not None:
        facts = {"posts_to": reply.form.action, "inputs": str(len(reply.form.inputs))}
    findings = "; ".join(finding.message for finding in reply.findings)
    message = reply.message or findings
    return CallResult(reply.outcome.value, reply.code, message, facts, reply.page)


def send_row(
    operation: Operation, row: Row, *, account: GatewayAccount, clock: Clock
) -> CallResult:
    """Send one batch of one row; it is sent once, whatever happens.

    Raises:
        UsageError: the row must not be sent; names fields, never values.
    """
    reply = _run(account.client(clock=clock).send(operation, [row]))
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
    return _run(account.client(clock=clock).optimise(request))


def _run(call: Coroutine[Any, Any, Reply]) -> Reply:
    try:
        return asyncio.run(call)
    except GatewayClientError as error:
        raise UsageError(str(error)) from None


def _facts(record: Any, *, names: tuple[str, ...]) -> dict[str, str]:
    values = {name: getattr(record, name) for name in names}
    return {name: str(value) for name, value in values.items() if value not in {"", None}}

"""The order query (`retrievalTrans`): what the gateway shows of each key it is asked for.

Of a payment's risk it shows the provider, its checks, and 3-D Secure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recon.model.words import GatewayState
from recon.sandbox.ground.book import Payment
from recon.sandbox.ground.clock import fourteen_digits
from recon.sandbox.ground.operation_call import (
    Call,
    OperationReply,
    Sandbox,
    echoed_signature,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.ground.payment_result import Detail, details_of
from recon.sandbox.ground.sandbox_terms import QUERY_RESULT_UNKNOWN_KEY, short_name
from recon.sandbox.operations.batch import is_expired

KEYS_MAX = 100
JOINED_LENGTH_MAX = 1_000
"""Characters of `orders` or `trades` under the extended profile."""

ROWS_KEY = "orders_list"
SITE = "sandbox.example"
STATUS_OK = "1"
STATUS_OF = {
    "parameters": "3",
    "group_size": "4",
    "merchant": "5",
    "account": "5",
    "signature": "6",
    "caller": "7",
}
"""return_status of each refusal of the whole query."""

_COLUMNS = {"orders": "order_no", "trades": "transaction_id"}
NO_RISK: Mapping[str, Any] = {"antifraud_provider": "", "fraud_check_result": [], "is3ds": ""}
"""Of a payment that nobody checked."""
YES, NO = "1", "0"


def answer_query(sandbox: Sandbox, call: Call) -> OperationReply:
    """The state of up to 100 orders; a key that is not known gets a row that says so.

    What is known of risk stands beside the rows, as the document shows it, and only when the reply
    is about one payment: a row has the document's nine fields and no more.
    """
    keys = _keys(call)
    reason = _refusal(sandbox, call, keys=keys)
    if reason:
        return _reply(sandbox, call, reason=reason)
    rows = _rows(sandbox, call, keys=keys)
    reply = _reply(sandbox, call, rows=rows)
    if len(rows) != 1:
        return reply
    transaction_id = rows[0]["transaction_id"]
    risk = risk_facts(sandbox, [transaction_id]).get(transaction_id, NO_RISK)
    return replace(reply, content={**reply.content, **risk})


def _keys(call: Call) -> list[str]:
    text = call.text("orders") or call.text("trades")
    return [key.strip() for key in text.split(",")]


def _refusal(sandbox: Sandbox, call: Call, *, keys: list[str]) -> str:
    """Why the whole query is refused, in the order of the checks, else ""."""
    if call.client_ip != sandbox.options.registered_ip:
        return "caller"
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call)
    if reason:
        return reason
    if len(keys) > KEYS_MAX:
        return "group_size"
    return wrong(_unfit(sandbox, call, keys=keys))


def _unfit(sandbox: Sandbox, call: Call, *, keys: list[str]) -> str:
    """The parameter that names no orders or too many, else ""."""
    given = [name for name in _COLUMNS if call.text(name)]
    if len(given) != 1:
        return " or ".join(_COLUMNS)
    too_long = len(call.text(given[0])) > JOINED_LENGTH_MAX
    if sandbox.options.profile == "extended" and too_long:
        return given[0]
    return "" if all(keys) else given[0]


def _reply(
    sandbox: Sandbox, call: Call, *, reason: str = "", rows: list[dict[str, Any]] | None = None
) -> OperationReply:
    status = STATUS_OF[short_name(reason)] if reason else STATUS_OK
    content = {
        "merchant_id": call.text("merchant_id"),
        "account_id": call.text("account_id"),
        "return_status": status,
        "return_message": sandbox.terms.request_refusal(reason) if reason else "OK",
        "encryption_data": echoed_signature(call, reason=reason),
        ROWS_KEY: rows or [],
        **NO_RISK,
    }
    return OperationReply(content, rows_key=ROWS_KEY, outcome=status)


def _rows(sandbox: Sandbox, call: Call, *, keys: list[str]) -> list[dict[str, Any]]:
    column = _COLUMNS["orders" if call.text("orders") else "trades"]
    distinct = list(dict.fromkeys(keys))
    by_key: dict[str, list[Payment]] = {key: [] for key in distinct}
    for payment in sandbox.book.payments(column, keys=distinct):
        if payment.account_id == call.text("account_id"):
            by_key[getattr(payment, column)].append(payment)
    rows: list[dict[str, Any]] = []
    for key, payments in by_key.items():
        rows += [row_of(sandbox, payment, now=call.now) for payment in payments]
        if not payments:
            rows.append(_unknown(key, column=column))
    return rows


def state_of(sandbox: Sandbox, payment: Payment, *, now: int) -> GatewayState:
    """The state of a payment at an instant; that an authorisation lapsed follows from the clock."""
    return GatewayState.EXPIRED if is_expired(sandbox, payment, now=now) else payment.state


def row_of(sandbox: Sandbox, payment: Payment, *, now: int) -> dict[str, Any]:
    """One row of the answer."""
    state = state_of(sandbox, payment, now=now)
    return {
        "amount": payment.amount,
        "currency": payment.currency,
        "order_no": payment.order_no,
        "payment_status": sandbox.terms.code_of[state],
        "query_result": sandbox.terms.result_of(state),
        "reference_no": payment.reference_no,
        "transaction_date": fourteen_digits(payment.created_at),
        "transaction_id": payment.transaction_id,
        "website": SITE,
    }


def _unknown(key: str, *, column: str) -> dict[str, Any]:
    names = ("amount", "currency", "order_no", "payment_status", "reference_no")
    row = dict.fromkeys((*names, "transaction_date", "transaction_id"), "")
    return {**row, "website": "", "query_result": QUERY_RESULT_UNKNOWN_KEY, column: key}


def risk_facts(sandbox: Sandbox, transaction_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The facts of those payments that were checked, by transaction."""
    details = details_of(sandbox.book, transaction_ids)
    provider = sandbox.terms.risk.provider
    return {
        transaction_id: {
            "antifraud_provider": provider if detail.risk_action else "",
            "fraud_check_result": _checks(detail),
            "is3ds": YES if detail.threeds_result else NO,
        }
        for transaction_id, detail in details.items()
        if detail.card
    }


def _checks(detail: Detail) -> list[dict[str, str]]:
    checks = {"risk_score": detail.risk_action.lower(), "three_d_secure": detail.threeds_result}
    return [{"check_items": name, "status": status} for name, status in checks.items() if status]

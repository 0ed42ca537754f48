"""Read-only operations: `retrievalTrans`, and in the profile `extended` the refund search.

The order query returns what the gateway knows of each key, and of a payment's risk the provider,
its checks and 3-D Secure. The API document names `retrievalRefund` without describing it; its
fields follow public documentation of the same interface (A-08). In the refund search a key without
a refund has no row. Both `refund_references` and `merchant_refunds` find the merchant's own
reference as well as the gateway's, since it is not documented which of them means which.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recon.model.terms import GatewayState
from recon.sandbox.batch import is_expired
from recon.sandbox.call import (
    STATUS_DONE,
    STATUS_FAILED,
    Call,
    OperationReply,
    Sandbox,
    SandboxOperation,
    list_reply,
    wrong,
)
from recon.sandbox.database import Payment, on_wire, placeholders
from recon.sandbox.options import DAY_SECONDS, fourteen_digits
from recon.sandbox.terms import QUERY_RESULT_UNKNOWN_KEY, short_name

KEYS_MAX = 100
JOINED_LENGTH_MAX = 1_000
"""Maximum number of characters of `orders` or `trades` in the profile `extended`."""

ROWS_KEY = "orders_list"
SITE = "sandbox.example"
ROW = (
    *("amount", "currency", "order_no", "payment_status", "reference_no"),
    *("transaction_date", "transaction_id", "website", "query_result"),
)
"""Fields of the row of an unknown key."""
STATUS_OF = {
    "parameters": "3",
    "group_size": "4",
    "merchant": "5",
    "account": "5",
    "signature": "6",
    "caller": "7",
}
"""return_status of each reason to refuse the whole query."""

_COLUMNS = {"orders": "order_no", "trades": "transaction_id"}
NO_RISK: Mapping[str, Any] = {"antifraud_provider": "", "fraud_check_result": [], "is3ds": ""}
"""Risk fields of a payment that was not checked."""
YES, NO = "1", "0"


def _refuse(sandbox: Sandbox, call: Call, reason: str) -> OperationReply:
    status, query = STATUS_OF[short_name(reason)], call.operation == "retrievalTrans"
    rows_key = ROWS_KEY if query else REFUNDS_KEY
    reply = list_reply(sandbox, call, rows_key, status=status, reason=reason)
    return replace(reply, content={**reply.content, **(NO_RISK if query else {})})


def _named(call: Call, lists: Iterable[str]) -> dict[str, list[str]]:
    """Keys by the name of each of these lists that the request has; commas separate keys."""
    given = {name: call.text(name) for name in lists if call.text(name)}
    return {name: [key.strip() for key in text.split(",")] for name, text in given.items()}


def _unfit(sandbox: Sandbox, call: Call, lists: Iterable[str]) -> str:
    """Reason to refuse the keys, else "": exactly one list of up to 100 keys is allowed."""
    given = _named(call, lists)
    if len(given) != 1:
        return wrong(" or ".join(given or lists))
    ((name, keys),) = given.items()
    if len(keys) > KEYS_MAX:
        return "group_size"
    is_bounded = sandbox.options.profile == "extended"
    too_long = is_bounded and len(call.text(name)) > JOINED_LENGTH_MAX
    return wrong("" if all(keys) and not too_long else name)


def _answer_query(sandbox: Sandbox, call: Call) -> OperationReply:
    """Reply with the state of up to 100 orders, and a row of its own for each unknown key.

    Risk data is added next to the rows, as the document shows it, and only when the reply is about
    one payment: a row has exactly the document's nine fields.
    """
    ((name, keys),) = _named(call, _COLUMNS).items()
    column = _COLUMNS[name]
    by_key: dict[str, list[Payment]] = {key: [] for key in keys}
    for payment in sandbox.database.payments(column, keys=list(by_key)):
        if payment.account_id == call.text("account_id"):
            by_key[getattr(payment, column)].append(payment)
    rows: list[dict[str, Any]] = []
    found = [payment for payments in by_key.values() for payment in payments]
    for key, payments in by_key.items():
        rows += [row_of(sandbox, payment, now=call.now) for payment in payments]
        if not payments:
            unknown = dict.fromkeys(ROW, "") | {"query_result": QUERY_RESULT_UNKNOWN_KEY}
            rows.append(unknown | {column: key})
    risk = dict(NO_RISK)
    if len(found) == len(rows) == 1 and found[0].detail.card:
        detail = found[0].detail
        checks = {"risk_score": detail.risk_action.lower(), "three_d_secure": detail.threeds_result}
        risk = {
            "antifraud_provider": sandbox.terms.risk.provider if detail.risk_action else "",
            "fraud_check_result": [
                {"check_items": name, "status": status} for name, status in checks.items() if status
            ],
            "is3ds": YES if detail.threeds_result else NO,
        }
    reply = list_reply(sandbox, call, ROWS_KEY, status=STATUS_DONE, rows=rows)
    return replace(reply, content={**reply.content, **risk})


QUERY = SandboxOperation(
    _answer_query,
    refuse=_refuse,
    unfit=lambda sandbox, call: _unfit(sandbox, call, _COLUMNS),
    needs_registered_ip=True,
    keys=lambda call: [
        (key, "") if name == "trades" else ("", key)
        for name, keys in _named(call, _COLUMNS).items()
        for key in keys
        if key
    ],
)


def state_of(sandbox: Sandbox, payment: Payment, *, now: int) -> GatewayState:
    """State of a payment at an instant; the clock decides whether an authorisation has expired."""
    return GatewayState.EXPIRED if is_expired(sandbox, payment, now=now) else payment.state


def row_of(sandbox: Sandbox, payment: Payment, *, now: int) -> dict[str, Any]:
    """One row of the order query's reply."""
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


REFUNDS_KEY = "refunds_list"
BY_ORDER = "refund_orders"
LISTS = (BY_ORDER, "refund_references", "merchant_refunds")
"""Lists that name refunds: a request has exactly one, its keys separated by commas."""

_REFUND_COLUMNS = (
    "transaction_id, order_no, currency, amount, refund_reason, refund_reference,"
    " refund_reference_id, committed_at, EXISTS (SELECT 1 FROM effect r WHERE"
    " r.transaction_id = e.transaction_id AND r.operation = 'refund_reversed'"
    " AND r.refund_reference_id = e.refund_reference_id)"
)


def _answer_search(sandbox: Sandbox, call: Call) -> OperationReply:
    """Reply with the refunds of up to 100 keys, with their state at the virtual time."""
    ((name, named),) = _named(call, LISTS).items()
    keys = list(dict.fromkeys(named))
    if name == BY_ORDER:
        payments = sandbox.database.payments("order_no", keys=keys)
        ids = [payment.transaction_id for payment in payments if payment.refunds]
        refunds = _refunds(sandbox, "transaction_id", keys=ids)
    else:
        ids = [key.rpartition("-")[0] for key in keys]
        numbered = _refunds(sandbox, "transaction_id", keys=[key for key in ids if key])
        refunds = _refunds(sandbox, "refund_reference", keys=keys)
        refunds += [row for row in numbered if row[6] in keys and row not in refunds]
    rows = [row for refund in refunds if (row := _refund_row(sandbox, call, refund))]
    return list_reply(sandbox, call, REFUNDS_KEY, status=STATUS_DONE, rows=rows)


def _refunds(sandbox: Sandbox, column: str, *, keys: Sequence[str]) -> list[Any]:
    return sandbox.database.select(
        f"SELECT {_REFUND_COLUMNS} FROM effect e WHERE {column} IN ({placeholders(keys)})"  # noqa: S608
        f" AND {column} <> '' AND operation = 'refund' ORDER BY position",
        keys,
    )


def _refund_row(sandbox: Sandbox, call: Call, refund: Sequence[Any]) -> dict[str, Any]:
    """One row of the refund search, empty when the refund is another account's."""
    transaction_id, order_no, currency, amount, reason, own, reference, at, failed = refund
    payment = sandbox.database.payment(transaction_id)
    if payment is None or payment.account_id != call.text("account_id"):
        return {}
    processed = at + sandbox.terms.windows.refund_processing_days * DAY_SECONDS
    shows_end = processed <= call.now and not failed
    return {
        "transaction_id": transaction_id,
        "order_no": order_no,
        "amount": payment.amount,
        "refund_status": STATUS_FAILED if failed else STATUS_DONE,
        "payment_status": sandbox.terms.code_of[state_of(sandbox, payment, now=call.now)],
        "refund_amount": on_wire(amount, currency=currency),
        "refund_reference": own,
        "currency": currency,
        "refund_reason": reason,
        "refund_reference_id": reference,
        "refund_date": fourteen_digits(at),
        "refund_processing_date": fourteen_digits(processed) if shows_end else "",
    }


REFUND_SEARCH = SandboxOperation(
    _answer_search,
    refuse=_refuse,
    unfit=lambda sandbox, call: _unfit(sandbox, call, LISTS),
    keys=lambda call: [("", key) for keys in _named(call, LISTS).values() for key in keys if key],
)

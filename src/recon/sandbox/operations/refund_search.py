"""Operations of the profile extended that move nothing: `retrievalRefund` and `optimise`.

The API document names both and no more; fields are those of public documentation of the same
interface (A-08). In the refund search a key without a refund has no row; `refund_references` and
`merchant_refunds` find the merchant's own reference as well as the gateway's, since which of them
means which is not shown. The best methods of each currency stand in sandbox.toml.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from recon.model.money import is_currency
from recon.sandbox.ground.book import marks_of, on_wire
from recon.sandbox.ground.clock import DAY_SECONDS, fourteen_digits
from recon.sandbox.ground.operation_call import (
    HTTP_OK,
    Call,
    OperationReply,
    Sandbox,
    amount_of,
    echoed_signature,
    json_refusal,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.ground.sandbox_terms import short_name
from recon.sandbox.ground.wire import signed_fields
from recon.sandbox.operations.order_query import (
    JOINED_LENGTH_MAX,
    KEYS_MAX,
    STATUS_OF,
    STATUS_OK,
    state_of,
)

ROWS_KEY = "refunds_list"
BY_ORDER = "refund_orders"
LISTS = (BY_ORDER, "refund_references", "merchant_refunds")
"""How refunds are named: exactly one of them, a comma between keys."""

ACCEPTED, FAILED = "1", "0"
_COLUMNS = (
    "transaction_id, order_no, currency, amount, refund_reason, refund_reference,"
    " refund_reference_id, committed_at, EXISTS (SELECT 1 FROM effect r WHERE"
    " r.transaction_id = e.transaction_id AND r.operation = 'refund_reversed'"
    " AND r.refund_reference_id = e.refund_reference_id)"
)


def answer_refund_search(sandbox: Sandbox, call: Call) -> OperationReply:
    """The refunds of up to 100 keys, as they stand on the clock."""
    given = {name: call.text(name) for name in LISTS if call.text(name)}
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call)
    reason = reason or _list_refusal(given)
    rows = [] if reason else _rows(sandbox, call, given=given)
    status = STATUS_OF[short_name(reason)] if reason else STATUS_OK
    content = {
        "merchant_id": call.text("merchant_id"),
        "account_id": call.text("account_id"),
        "return_status": status,
        "return_message": sandbox.terms.request_refusal(reason) if reason else "OK",
        "encryption_data": echoed_signature(call, reason=reason),
        ROWS_KEY: rows,
    }
    return OperationReply(content, rows_key=ROWS_KEY, outcome=status)


def _list_refusal(given: dict[str, str]) -> str:
    """Why the keys cannot be searched for, else ""."""
    if len(given) != 1:
        return wrong(" or ".join(given or LISTS))
    ((name, joined),) = given.items()
    keys = joined.split(",")
    if len(keys) > KEYS_MAX:
        return "group_size"
    fits = len(joined) <= JOINED_LENGTH_MAX and all(key.strip() for key in keys)
    return "" if fits else wrong(name)


def _rows(sandbox: Sandbox, call: Call, *, given: dict[str, str]) -> list[dict[str, Any]]:
    ((name, joined),) = given.items()
    keys = list(dict.fromkeys(key.strip() for key in joined.split(",")))
    orders = _of_orders(sandbox, keys) if name == BY_ORDER else _of_references(sandbox, keys)
    account_id = call.text("account_id")
    rows = [_row(sandbox, refund, account_id=account_id, now=call.now) for refund in orders]
    return [row for row in rows if row]


def _of_orders(sandbox: Sandbox, keys: Sequence[str]) -> list[Any]:
    payments = sandbox.book.payments("order_no", keys=keys)
    ids = [payment.transaction_id for payment in payments if payment.refunds]
    return _refunds(sandbox, "transaction_id", keys=ids)


def _of_references(sandbox: Sandbox, keys: Sequence[str]) -> list[Any]:
    refunds = _refunds(sandbox, "refund_reference", keys=keys)
    ids = [key.rpartition("-")[0] for key in keys]
    numbered = _refunds(sandbox, "transaction_id", keys=[key for key in ids if key])
    return list(dict.fromkeys([*refunds, *(row for row in numbered if row[6] in keys)]))


def _refunds(sandbox: Sandbox, column: str, *, keys: Sequence[str]) -> list[Any]:
    statement = (
        f"SELECT {_COLUMNS} FROM effect e WHERE {column} IN ({marks_of(keys)}) AND {column} <> ''"  # noqa: S608
        " AND operation = 'refund' ORDER BY position"
    )
    return [tuple(row) for row in sandbox.book.select(statement, keys)]


def _row(sandbox: Sandbox, refund: Iterable[Any], *, account_id: str, now: int) -> dict[str, Any]:
    """One refund, empty when it is another account's."""
    transaction_id, order_no, currency, amount, reason, own, reference, at, failed = refund
    payment = sandbox.book.payment(transaction_id)
    if payment is None or payment.account_id != account_id:
        return {}
    processed = at + sandbox.terms.windows.refund_processing_days * DAY_SECONDS
    shows_end = processed <= now and not failed
    return {
        "transaction_id": transaction_id,
        "order_no": order_no,
        "amount": payment.amount,
        "refund_status": FAILED if failed else ACCEPTED,
        "payment_status": sandbox.terms.code_of[state_of(sandbox, payment, now=now)],
        "refund_amount": on_wire(amount, currency=currency),
        "refund_reference": own,
        "currency": currency,
        "refund_reason": reason,
        "refund_reference_id": reference,
        "refund_date": fourteen_digits(at),
        "refund_processing_date": fourteen_digits(processed) if shows_end else "",
    }


TEMPLATE = "optimise"
METHODS_KEY = "payment_methods"
OTHERWISE = "otherwise"
"""The methods of a currency that has none of its own."""


def answer_optimise(sandbox: Sandbox, call: Call) -> OperationReply:
    """The methods, best first; JSON with HTTP 400 what is refused."""
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call)
    reason = reason or _field_refusal(call)
    if reason:
        return json_refusal(sandbox, call, reason=reason)
    listed = sandbox.terms.payment_methods
    methods = listed.get(call.text("currency"), listed[OTHERWISE])
    content = {
        "merchant_id": call.text("merchant_id"),
        "account_id": call.text("account_id"),
        "request_id": call.text("request_id"),
        "encryption_data": echoed_signature(call, reason=""),
        METHODS_KEY: [{"payment_method": name} for name in methods],
    }
    return OperationReply(content, outcome=str(HTTP_OK))


def _field_refusal(call: Call) -> str:
    """`parameters` and the signed field that is missing or malformed, else ""."""
    missing = next((name for name in signed_fields(TEMPLATE) if not call.text(name)), "")
    if missing:
        return wrong(missing)
    if not is_currency(call.text("currency")):
        return wrong("currency")
    amount = amount_of(call.fields.get("amount"), currency=call.text("currency"))
    return "" if amount > 0 else wrong("amount")

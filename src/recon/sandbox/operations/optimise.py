"""The question for the best payment methods (`optimise`, profile extended); it moves nothing.

The API document names the operation and no more; request fields are those of public documentation
of the same interface, the reply is assumed. The methods of each currency stand in sandbox.toml.
"""

from recon.model.money import is_currency
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
from recon.sandbox.ground.signatures import signed_fields

TEMPLATE = "optimise"
ROWS_KEY = "payment_methods"
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
        ROWS_KEY: [{"payment_method": name} for name in methods],
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

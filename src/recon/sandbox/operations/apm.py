"""Payments by another method than a card: pending until the payer pays on the issuer's page."""

from dataclasses import replace

from recon.sandbox.ground.operation_call import (
    HTTP_BAD_REQUEST,
    Call,
    OperationReply,
    Sandbox,
    json_refusal,
    merchant_refusal,
    signature_refusal,
)
from recon.sandbox.ground.payment_result import row_reply_of, signed
from recon.sandbox.ground.signatures import signed_fields
from recon.sandbox.operations.attempt import attempted, order_refusal, reuse_refusal
from recon.sandbox.operations.payment_course import waiting

TEMPLATE = "authorise_apm"
HTTP_NOT_FOUND = 404
ELEMENTS = ("merchant_id", "account_id", "order_no", "amount", "currency")


def answer_apm(sandbox: Sandbox, call: Call) -> OperationReply:
    """XML with the issuer_url; JSON with 400 what is invalid, with 404 an unknown account."""
    unknown = merchant_refusal(sandbox, call)
    reason = unknown or signature_refusal(sandbox, call, template=TEMPLATE)
    required = (*signed_fields(TEMPLATE), "payment_method")
    reason = reason or order_refusal(call, required=required) or reuse_refusal(sandbox, call)
    if reason:
        status = HTTP_NOT_FOUND if unknown else HTTP_BAD_REQUEST
        return json_refusal(sandbox, call, reason=reason, http_status=status)
    payment, detail = attempted(sandbox, call, method="apm")
    detail = replace(detail, stage="issuer")
    payment, detail = waiting(sandbox, payment, detail=detail)
    content = {name: call.text(name) for name in ELEMENTS} | {"issuer_url": detail.page_url}
    row_reply = row_reply_of(payment, detail)
    return OperationReply(
        signed(sandbox, content), form="xml", row_replies=(row_reply,), outcome=row_reply.status
    )

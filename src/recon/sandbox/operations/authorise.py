"""`authorise`: a payment by card, or by another method where no card is named.

By another method it is pending until the payer pays on the issuer's page.
"""

from dataclasses import replace

from recon.sandbox.ground.operation_call import (
    HTTP_BAD_REQUEST,
    Call,
    OperationReply,
    Sandbox,
    json_refusal,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.ground.payment_result import row_reply_of, signed, xml_refusal, xml_result
from recon.sandbox.ground.wire import signed_fields
from recon.sandbox.operations.card import (
    CARD_FIELDS,
    Card,
    masked,
    read_card,
    saved_card,
    threeds_result,
)
from recon.sandbox.operations.payment_course import (
    attempted,
    by_card,
    failed,
    order_refusal,
    reuse_refusal,
    waiting,
)

TEMPLATE = "authorise_card"


def answer_authorise(sandbox: Sandbox, call: Call) -> OperationReply:
    """The XML result of a payment; one without a card or a saved card is by another method."""
    if not call.text("card") and not call.text("token_id"):
        return answer_apm(sandbox, call)
    card = _card(sandbox, call)
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call, template=TEMPLATE)
    reason = reason or _field_refusal(call, card=card) or reuse_refusal(sandbox, call)
    if reason:
        return xml_refusal(sandbox, call, reason=reason, card=masked(call.text("card")))
    payment, detail = attempted(sandbox, call, method="card")
    if isinstance(card, Card):
        payer = threeds_result(card, open3d=call.text("open3d"), mpi_info=_mpi_info(call))
        detail = replace(detail, threeds_result=payer, token_id=_token(call))
        return xml_result(sandbox, by_card(sandbox, call, payment, detail=detail, card=card))
    detail = replace(detail, card=masked(call.text("card")))
    info = sandbox.terms.request_refusal(card)
    return xml_result(sandbox, failed(sandbox, payment, detail=detail, info=info))


def _card(sandbox: Sandbox, call: Call) -> Card | str:
    """The card that pays, the one in the request before the saved one."""
    if call.text("card"):
        fields = {name: call.text(name) for name in CARD_FIELDS}
        return read_card(fields, terms=sandbox.terms, now=call.now)
    account_id = call.text("account_id")
    return saved_card(sandbox.book, call.text("token_id"), account_id=account_id, now=call.now)


def _token(call: Call) -> str:
    return "" if call.text("card") else call.text("token_id")


def _mpi_info(call: Call) -> dict[str, object]:
    """Data of an authentication that was made elsewhere."""
    given = call.table("additional_information").get("mpi_info")
    return given if isinstance(given, dict) else {}


def _field_refusal(call: Call, *, card: Card | str) -> str:
    """`parameters` when a field is missing; a saved card stands in for the fields of one."""
    if card == "unknown_token":
        return wrong("token_id")
    saved = CARD_FIELDS if _token(call) else ()
    required = [name for name in signed_fields(TEMPLATE) if name not in saved]
    return order_refusal(call, required=required)


APM_TEMPLATE = "authorise_apm"
HTTP_NOT_FOUND = 404
ELEMENTS = ("merchant_id", "account_id", "order_no", "amount", "currency")


def answer_apm(sandbox: Sandbox, call: Call) -> OperationReply:
    """XML with the issuer_url; JSON with 400 what is invalid, with 404 an unknown account."""
    unknown = merchant_refusal(sandbox, call)
    reason = unknown or signature_refusal(sandbox, call, template=APM_TEMPLATE)
    required = (*signed_fields(APM_TEMPLATE), "payment_method")
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

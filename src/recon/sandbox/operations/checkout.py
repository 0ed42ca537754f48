"""`checkout`: a page that sends the shopper's browser on to the hosted card form.

The page is an HTML form of hidden inputs that submits itself back to `checkout`; there the input
gbc_id leads to the form. What the browser carries is shown and not believed: the amount is the one
that the merchant asked for.
"""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from recon.sandbox.ground.operation_call import (
    Call,
    OperationReply,
    Sandbox,
    json_refusal,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.ground.payment_detail import Detail, detail_behind
from recon.sandbox.ground.payment_result import row_reply_of
from recon.sandbox.ground.signatures import signed_fields, text_of
from recon.sandbox.operations.attempt import attempted, order_refusal, reuse_refusal
from recon.sandbox.operations.checkout_inputs import ALIASES, FIXED, HOSTED_FIELDS
from recon.sandbox.operations.payment_course import waiting

OWN = "gbc_id"
NEVER_SHOWN = frozenset({"card", "security_code", "expiration_month", "expiration_year", OWN})
"""Fields that no hosted payment has; a page would show them."""

ALL = "allParams"


def answer_checkout(sandbox: Sandbox, call: Call) -> OperationReply:
    """The page of hidden inputs, the way to the card form, or a refusal as JSON with HTTP 400."""
    if call.text(OWN):
        return _card_form(sandbox, call)
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call)
    # Signed as empty where it is not given: table 2.1 lists it for other methods alone.
    required = [name for name in signed_fields(call.operation) if name != "return_url"]
    reason = reason or order_refusal(call, required=required) or reuse_refusal(sandbox, call)
    if reason:
        return json_refusal(sandbox, call, reason=reason)
    payment, detail = attempted(sandbox, call, method="hosted")
    payment, detail = waiting(sandbox, payment, detail=replace(detail, stage="hosted"))
    row_reply = row_reply_of(payment, detail)
    return OperationReply(
        _inputs(call, detail),
        form="html",
        row_replies=(row_reply,),
        outcome=row_reply.status,
        address=f"{call.base_url}/v1/checkout",
    )


def _card_form(sandbox: Sandbox, call: Call) -> OperationReply:
    detail = detail_behind(sandbox.book, call.text(OWN))
    if detail is None:
        return json_refusal(sandbox, call, reason=wrong(OWN))
    address = f"{call.base_url}/v1/pay/{detail.page_key}"
    return OperationReply({}, form="see_other", address=address, outcome="303")


def _inputs(call: Call, detail: Detail) -> dict[str, Any]:
    """Every input of the page by name, each once."""
    given = {name: text for name, text in call.fields.items() if name not in NEVER_SHOWN}
    asked = {name: as_text(value) for name, value in given.items()}
    inputs = dict.fromkeys(HOSTED_FIELDS, "") | FIXED | asked
    inputs |= {alias: asked.get(name, "") for alias, name in ALIASES.items()}
    inputs["source_request_ip"] = call.client_ip
    inputs[OWN] = detail.page_key
    return inputs | {ALL: urlencode(asked)}


def as_text(value: Any) -> str:
    """A field as an input holds it, objects and lists as JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return text_of(value)
